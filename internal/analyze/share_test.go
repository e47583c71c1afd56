package analyze

import (
	"math/rand/v2"
	"testing"

	"tare/internal/metric"
	"tare/internal/report"
	"tare/internal/stat"
)

// sharesOf is a comparison of two arms, a and b, whose calls fail with a chance, in blocks of so many calls.
func sharesOf(rng *rand.Rand, blocks, calls int, chance map[string]float64) *comparison {
	d := &dataset{index: map[key]*measure{}, blocks: make([]int, blocks)}
	for _, arm := range []string{"a", "b"} {
		failed := &measure{key: key{arm, "", metric.Error.Name}, metric: metric.Error}
		good := &measure{key: key{arm, "", metric.Goodput.Name}, metric: metric.Goodput}
		for range blocks {
			bad := 0.0
			for range calls {
				if rng.Float64() < chance[arm] {
					bad++
				}
			}
			failed.value, failed.weight = append(failed.value, bad/float64(calls)), append(failed.weight, float64(calls))
			good.value = append(good.value, float64(calls)-bad)
		}
		d.index[failed.key], d.index[good.key] = failed, good
	}
	return &comparison{dataset: d}
}

// TestCountedContrasts: changes of a share of failures and of the goodput beside it hold the truth as often as they
// say, also where no block has a failed call, and exclude 0 exactly when the p-value says so.
func TestCountedContrasts(t *testing.T) {
	t.Parallel()
	const repetitions, alpha = 500, stat.LookAlpha
	for _, c := range []struct {
		blocks, calls int
		a, b          float64 // the chances of a call to fail
		half          float64 // width that most intervals do not exceed
	}{
		{20, 10, 0, .012, .05}, // in a tenth of the runs, no call fails
		{20, 300, 0, .0005, .003},
		{20, 300, 0, 0, .0015},
		{10, 100, .01, .01, .02},
		{20, 300, .002, .001, .004},
		{20, 300, .05, .06, .02},
	} {
		rng := rand.New(rand.NewPCG(11, uint64(c.calls)))
		missed, narrow := map[string]int{}, map[string]int{}
		for range repetitions {
			x := sharesOf(rng, c.blocks, c.calls, map[string]float64{"a": c.a, "b": c.b})
			for name, truth := range map[string]float64{
				metric.Error.Name: c.b - c.a, metric.Goodput.Name: (c.a - c.b) / (1 - c.a),
			} {
				got, err := x.between(x.find("a", "", name), x.find("b", "", name), "", false)
				if err == nil {
					err = got.estimate(alpha)
				}
				if err != nil {
					t.Fatal(err)
				}
				lo, hi := got.scale(got.got.Lo), got.scale(got.got.Hi)
				if lo > truth+1e-9 || hi < truth-1e-9 {
					missed[name]++
				}
				if (hi-lo)/2 <= c.half {
					narrow[name]++
				}
				if (lo > 0 || hi < 0) != (got.got.P <= alpha) {
					t.Errorf("[%v, %v], p = %v", lo, hi, got.got.P)
				}
			}
		}
		t.Logf("%+v: missed %v, narrow %v of %d", c, missed, narrow, repetitions)
		for _, name := range []string{metric.Error.Name, metric.Goodput.Name} {
			if missed[name] > repetitions*20/1000 || narrow[name] < repetitions/2 {
				t.Errorf("%+v: %s misses the truth in %d of %d runs, and is narrow in %d", c, name, missed[name],
					repetitions, narrow[name])
			}
		}
	}
}

// TestChangesOfFewCalls: where no call failed, a change of the goodput is no better known than so many calls allow.
func TestChangesOfFewCalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		calls  int // in each of 10 blocks
		budget string
		want   report.Verdict
	}{
		{40, "goodput >= -1%", report.Inconclusive},
		{400, "goodput >= -1%", report.Pass},
		{400, "goodput >= -10/s", report.Pass},
		{400, "goodput >= -1/s", report.Inconclusive},
		{400, "goodput >= +1%", report.Fail},
	} {
		x := experiment{
			blocks: 10, calls: c.calls, cost: millisecond, operations: []string{"token"}, seed: 2, budget: []string{c.budget},
		}
		rep := measured(t, x)
		if b := rep.Budgets[0]; b.Verdict != c.want {
			t.Errorf("%d calls, %s: %s (%s) [%v, %v], want %s", c.calls, b.Text, b.Verdict, b.Reason, show(b.Lo), show(b.Hi),
				c.want)
		}
		for _, name := range []string{"token.error", "token.goodput"} {
			if e := effectOn(t, rep.Effects, name); !(e.Lo < 0 && e.Hi > 0) {
				t.Errorf("%d calls: %s [%v, %v]", c.calls, name, e.Lo, e.Hi)
			}
		}
		for _, m := range rep.Treatments[0].Metrics {
			if (m.Name == "error" || m.Name == "goodput") && *m.Lo == *m.Hi {
				t.Errorf("%d calls: %s %v [%v, %v]", c.calls, m.Name, m.Value, *m.Lo, *m.Hi)
			}
		}
	}
}
