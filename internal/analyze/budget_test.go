package analyze

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/budget"
	"tare/internal/capacity"
	"tare/internal/design"
	"tare/internal/report"
	"tare/rigs/simulation"
)

func TestBudgetsAgainstTheBaseline(t *testing.T) {
	t.Parallel()
	j := journal{
		treatments: []design.Treatment{{ID: "cache=on", Baseline: true}, {ID: "cache=off"}},
		budget: []string{
			"capacity >= -1%", "capacity >= -10/s", "cache=on: capacity >= 100/s", "nobody: capacity >= 1/s", "capacity >= +50%",
		},
		trace: func(id string) capacity.Trace {
			if id == "cache=on" {
				return limitedTrace(1)
			}
			return limitedTrace(2)
		},
	}
	rep := analyzed(t, j.write(t, t.TempDir()))
	var got []string
	for _, b := range rep.Budgets {
		got = append(got, b.Text+" | "+b.Treatment+" | "+string(b.Verdict))
	}
	want := []string{
		"capacity >= -1% | cache=off | inconclusive", "capacity >= -10/s | cache=off | pass",
		"cache=on: capacity >= 100/s | cache=on | pass",
		"nobody: capacity >= 1/s | nobody | not-measured", "capacity >= +50% | cache=off | fail",
	}
	// Both have a capacity of 150/s to within their intervals, which are wider than 1 % together.
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("budgets (-want +got):\n%s\n%+v", d, rep.Budgets)
	}
}

func TestBudgetsAtARate(t *testing.T) {
	t.Parallel()
	want := map[string]report.Verdict{
		"response.p50 <= 6ms at 147/s":      report.Pass,         // measured there
		"response.p50 <= 6ms at 100/s":      report.Pass,         // holds at 147/s, so below too
		"response.p50 <= 5ms at 10/s":       report.Fail,         // every good call takes longer
		"response.p50 <= 5ms at 30/s":       report.Fail,         // broken at 20/s, so above too
		"response.p50 <= 5ms at 1/s":        report.Inconclusive, // broken at higher rates only
		"response.p999 <= 6.015ms at 147/s": report.Inconclusive, // 735 calls are too few
		"error <= 1% at 147/s":              report.Pass,
		"error <= 1% at 195/s":              report.Fail,
		"response.p50 >= 1ms at 147/s":      report.Pass,
		"response.p50 >= 1ms at 100/s":      report.NotMeasured, // a lower limit cannot be carried over
		"nothing.response <= 1s at 20/s":    report.NotMeasured,
		"response.p50 <= 6ms":               report.NotMeasured, // at which rate?
		"service.max <= 10ms at 147/s":      report.Pass,
		"pool_wait.mean <= 1ms at 147/s":    report.Pass,
		"cpu <= 1ms":                        report.NotMeasured,  // one block
		"rss <= 64MiB":                      report.Inconclusive, // nobody read the peak
		"rss <= 30MiB":                      report.Fail,         // a reading is above it
		"goodput >= 1/s":                    report.NotMeasured,
	}
	verdicts(t, analyzed(t, journal{budget: sortedKeys(want)}.write(t, t.TempDir())), want)
}

// TestBudgetsAtARateAreDecidedByTheBestStretch: the stretch that was made for the rate decides, else the longest; what
// a moment of the ramp shows neither keeps a budget nor breaks one against a longer stretch.
func TestBudgetsAtARateAreDecidedByTheBestStretch(t *testing.T) {
	t.Parallel()
	const usual, slow = 5 * time.Millisecond, 80 * time.Millisecond
	at := func(role capacity.Role, rate, seconds float64, share int) tried {
		return tried{
			role: role, rate: rate, took: usual, late: usual, share: share, bad: true,
			lasts: time.Duration(seconds * float64(time.Second)),
		}
	}
	cold := at(capacity.RoleRamp, 160, .5, 0)
	cold.took = slow
	for name, c := range map[string]struct {
		budget string
		trace  []tried
		want   report.Verdict
		says   string
	}{
		"a moment's allowance": {
			"error <= 5% at 160/s",
			[]tried{at(capacity.RoleRamp, 160, .5, 0), at(capacity.RoleRate, 160, 25, 33)},
			report.Fail, "4000 calls",
		},
		"a cold moment": {
			"response.p50 <= 20ms at 160/s", []tried{cold, at(capacity.RoleRate, 160, 25, 0)}, report.Pass, "4000 calls",
		},
		"a cold moment, kept at a higher rate": {
			"response.p50 <= 20ms at 160/s",
			[]tried{cold, at(capacity.RoleConfirmLow, 200, 10, 0)},
			report.Pass, "2000 calls",
		},
		"a moment's allowance, broken at a lower rate": {
			"error <= 5% at 160/s",
			[]tried{at(capacity.RoleRamp, 160, .5, 0), at(capacity.RoleConfirmHigh, 103, 10, 20)},
			report.Fail, "1030 calls",
		},
		"a moment alone": {
			"error <= 5% at 160/s", []tried{at(capacity.RoleRamp, 160, .5, 0)}, report.Inconclusive, "too short",
		},
		"a moment alone that breaks it": {
			"error <= 5% at 160/s", []tried{at(capacity.RoleRamp, 160, .5, 40)}, report.Fail, "80 calls",
		},
		"a short allowance at a higher rate against an open answer": {
			"error <= 5% at 160/s",
			[]tried{at(capacity.RoleRamp, 200, 2, 0), at(capacity.RoleRate, 160, 25, 5)},
			report.Inconclusive, "4000 calls",
		},
		"too few calls, and kept at a higher rate": {
			"response.p99 <= 20ms at 10/s",
			[]tried{at(capacity.RoleConfirmLow, 147, 10, 0), at(capacity.RoleRate, 10, 30, 0)},
			report.Pass, "1470 calls",
		},
		"two stretches that disagree": {
			"error <= 5% at 147/s",
			[]tried{at(capacity.RoleConfirmLow, 147, 10, 20), at(capacity.RoleConfirmLow, 147, 12, 0)},
			report.Inconclusive, "1764 calls, and broken at 147/s over 1470 calls",
		},
		"a stretch made for the rate, and a shorter one before it that disagrees": {
			"error <= 5% at 147/s",
			[]tried{at(capacity.RoleConfirmLow, 147, 10, 20), at(capacity.RoleRate, 147, 27, 0)},
			report.Pass, "3969 calls",
		},
		"a stretch made for the rate, and a longer one that disagrees": {
			"error <= 5% at 147/s",
			[]tried{at(capacity.RoleConfirmLow, 147, 40, 20), at(capacity.RoleRate, 147, 27, 0)},
			report.Inconclusive, "3969 calls, and broken at 147/s over 5880 calls",
		},
		"a stretch made for the rate, and a queue that stood at a lower one": {
			"error <= 5% at 147/s",
			[]tried{at(capacity.RoleConfirmLow, 140, 40, 20), at(capacity.RoleRate, 147, 27, 0)},
			report.Pass, "3969 calls",
		},
		"one caller alone": {
			"error <= 5% at 147/s",
			[]tried{at(capacity.RoleAlone, 147, 10, 60), at(capacity.RoleRate, 147, 27, 0)},
			report.Pass, "3969 calls",
		},
		"most were refused at once": {
			"response.p75 <= 20ms at 160/s",
			[]tried{at(capacity.RoleRate, 160, 25, 80)},
			report.Inconclusive, "80% of them failed",
		},
		"few were refused at once": {
			"service.p90 <= 20ms at 160/s",
			[]tried{at(capacity.RoleRate, 160, 25, 2)},
			report.Pass, "2% of them failed",
		},
		"the longest of calls of which few were refused": {
			"response.max <= 20ms at 160/s",
			[]tried{at(capacity.RoleRate, 160, 25, 2)},
			report.Inconclusive, "2% of them failed",
		},
		"the mean of calls of which few were refused": {
			"response.mean <= 20ms at 160/s",
			[]tried{at(capacity.RoleRate, 160, 25, 2)},
			report.Inconclusive, "2% of them failed",
		},
		"a short point of a ladder": {
			"error <= 5% at 200/s", []tried{at(capacity.RolePoint, 200, 1, 0)}, report.Pass, "200 calls",
		},
	} {
		b, err := budget.Parse(c.budget)
		must(t, err)
		trace := made(c.trace...)
		if f := decideAt(&b, -1, &trace); f.verdict != c.want || !strings.Contains(f.how, c.says) {
			t.Errorf("%s: %s: %s (%s), want %s (%q)", name, c.budget, f.verdict, f.how, c.want, c.says)
		}
	}
}

// TestAnAllowanceKeepsNoBudget: a search of a virtual server that takes 100 calls a second, and 300 more once, does
// not say that it answers 160 a second well.
func TestAnAllowanceKeepsNoBudget(t *testing.T) {
	t.Parallel()
	c := simulation.Composition{
		Seed: 3, MaxRate: 2000, Timeout: 10, Latency: .002, Parts: []simulation.Part{
			{Kind: "service", With: map[string]float64{"workers": 32, "mean": .01}},
			{Kind: "token-bucket", With: map[string]float64{"rate": 100, "burst": 300}},
		},
	}
	must(t, c.Validate())
	o := c.Options()
	o.Rates = []float64{80, 160}
	trace, err := capacity.Search(t.Context(), c.World(), o, nil)
	must(t, err)
	for text, want := range map[string]report.Verdict{
		"error <= 5% at 160/s": report.Fail, "error <= 5% at 80/s": report.Pass,
	} {
		b, err := budget.Parse(text)
		must(t, err)
		if f := decideAt(&b, -1, &trace); f.verdict != want {
			t.Errorf("%s: %s, want %s: %v, %s", text, f.verdict, want, f.Interval, f.how)
		}
	}
}
