package analyze

import (
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tare/internal/budget"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/record"
	"tare/internal/stat"
	"tare/rigs/hosttest"
)

// failing is a soak of windows of a second with 200 calls each, of which bad says which ones fail.
func failing(windows int, bad func(call int) bool) *soak {
	const calls = 200
	t := &record.Trial{}
	for w := range windows {
		var counts [2]uint64
		for i := range calls {
			if bad(w*calls + i) {
				counts[1]++
			} else {
				counts[0]++
			}
		}
		outcomes := []record.SliceOutcome{{Outcome: load.OK, Count: counts[0]}, {Outcome: load.Refused, Count: counts[1]}}
		t.Slices = append(t.Slices, record.Slice{
			Start: time.Duration(w) * time.Second, End: time.Duration(w+1) * time.Second,
			Operations: []record.SliceOperation{{Operation: "get", Outcomes: outcomes}},
		})
	}
	return newSoak(t)
}

// outages says which of n calls fall into outages that begin at any time, so many on average. Each lasts for so many
// calls as is drawn, times calls.
func outages(rng *rand.Rand, n int, mean, calls float64, long func() float64) func(call int) bool {
	const before = 0.2 // of a run: outages that began then may last
	down := make([]bool, n)
	for at := rng.ExpFloat64() / mean; at < 1+before; at += rng.ExpFloat64() / mean {
		from := (at - before) * float64(n)
		end := from + calls*long()
		for i := max(0, int(math.Ceil(from))); i < n && float64(i) < end; i++ {
			down[i] = true
		}
	}
	return func(call int) bool { return down[call] }
}

// TestErrorIntervals: where calls fail in few outages, the upper end of the share is below the truth no more often than
// it says; somewhat more often where few outages, of very different lengths, tell nothing of the longest.
func TestErrorIntervals(t *testing.T) {
	t.Parallel()
	hosttest.SkipIfShort(t)
	const windows, repetitions, truth = 60, 400, 0.0102
	for _, c := range []struct {
		name  string
		mean  float64
		equal bool
		most  int // of the repetitions
	}{
		{"3.4 equal outages", 3.4, true, 16},
		{"5 equal outages", 5, true, 16},
		{"10 equal outages", 10, true, 16},
		{"6 outages of exponential length", 6, false, 40},
		{"20 outages of exponential length", 20, false, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(5, uint64(c.mean*10)))
			length := -math.Log(1-truth) / c.mean * windows * 200
			long := rng.ExpFloat64
			if c.equal {
				long = func() float64 { return 1 }
			}
			below, wide, above := 0, 0, 0
			for range repetitions {
				s := failing(windows, outages(rng, windows*200, c.mean, length, long))
				f := s.errorFinding(&budget.Budget{Metric: metric.Error.Name, Op: budget.AtMost})
				if f.Value > 0 && f.Hi < truth {
					below++
				}
				if f.Hi > 8*truth {
					wide++
				}
				g := s.meanFinding(&budget.Budget{Metric: metric.Goodput.Name, Op: budget.AtLeast})
				if f.Value > 0 && g.Lo > 200*(1-truth) {
					above++
				}
			}
			if above > c.most {
				t.Errorf("the lower end of the goodput is above the truth in %d of %d runs, want %d", above, repetitions, c.most)
			}
			t.Logf("the upper end is below the truth in %d of %d runs, and above 8 times it in %d", below, repetitions, wide)
			if below > c.most || wide > repetitions/20 {
				t.Errorf("the upper end is below the truth in %d of %d runs, want %d, and above 8 times it in %d", below,
					repetitions, c.most, wide)
			}
		})
	}
}

// TestErrorIntervalsAtARate: a server that fails for half a second, at any time. What a stretch of a search shows of so
// few outages is not the truth, and its interval allows for that.
func TestErrorIntervalsAtARate(t *testing.T) {
	t.Parallel()
	const rate, seconds, repetitions = 100, 30, 400
	for _, mean := range []float64{0.3, 0.5, 1, 3} { // outages in a stretch
		rng := rand.New(rand.NewPCG(9, uint64(mean*10)))
		truth := 1 - math.Exp(-mean*0.5/seconds)
		below, above := 0, 0
		for range repetitions {
			trace := made(tried{rate: rate, took: time.Millisecond, lasts: seconds * time.Second})
			calls := trace.Calls.(load.Calls)
			bad := outages(rng, len(calls), mean, rate/2, func() float64 { return 1 })
			for i := range calls {
				if bad(i) {
					calls[i].Outcome = load.Refused
				}
			}
			x := stretches(&trace)[0].of(&budget.Budget{Metric: metric.Error.Name})
			if x.Value > 0 && x.Hi < truth {
				below++
			}
			if x.Lo > truth {
				above++
			}
		}
		t.Logf("%v: the upper end is below the truth in %d, the lower end above it in %d of %d runs", mean, below, above,
			repetitions)
		if below > repetitions*4/100 || above > repetitions*4/100 {
			t.Errorf("%v: the upper end is below the truth in %d, the lower end above it in %d of %d runs", mean, below, above,
				repetitions)
		}
	}
}

// TestErrorIntervalsOverBlocks: blocks in which a tenth of the calls fail, and others in which none does.
func TestErrorIntervalsOverBlocks(t *testing.T) {
	t.Parallel()
	const blocks, calls, repetitions = 20, 150, 1000
	for _, mean := range []float64{1, 2, 4, 6} { // bad blocks in a run
		rng := rand.New(rand.NewPCG(10, uint64(mean)))
		below := 0
		for range repetitions {
			m := &measure{metric: metric.Error}
			for range blocks {
				v := 0.0
				if rng.Float64() < mean/blocks {
					v = 0.1
				}
				m.value, m.weight = append(m.value, v), append(m.weight, calls)
			}
			e, why := widened(m, blockMean(m.value, 1-stat.LookAlpha))
			if why != "" {
				t.Fatal(why)
			}
			if e.Value > 0 && e.Hi < 0.1*mean/blocks {
				below++
			}
		}
		t.Logf("%v: the upper end is below the truth in %d of %d runs", mean, below, repetitions)
		if below > repetitions*13/1000 {
			t.Errorf("%v: the upper end is below the truth in %d of %d runs", mean, below, repetitions)
		}
	}
}

// TestErrorsInFewStretches: the upper end is that of so many events, unless failures are in most of the windows. Where
// no call failed, outages may have been missed.
func TestErrorsInFewStretches(t *testing.T) {
	t.Parallel()
	const n = 60 * 200
	each := func(windows ...int) func(int) bool {
		return func(call int) bool {
			for _, w := range windows {
				if call/200 == w && call%200 < 40 {
					return true
				}
			}
			return false
		}
	}
	for name, c := range map[string]struct {
		bad     func(int) bool
		share   float64
		times   float64 // the upper end, of the share
		says    string
		exactly bool
	}{
		"one stretch":                {each(30), 40. / n, 5.5716, "came in 1 stretch", true},
		"two stretches":              {each(10, 40), 80. / n, 3.6123, "came in 2 stretches", true},
		"a long one and a short one": {each(10, 11, 12, 13, 14, 15, 40), 280. / n, 4.5, "came in 2 stretches", false},
		"in every window":            {func(i int) bool { return i%100 == 0 }, .01, 1.3, "60 windows", false},
		"none":                       {each(), 0, 0, "outages that are rarer than a few in such a run", false},
	} {
		f := failing(60, c.bad).errorFinding(&budget.Budget{Metric: metric.Error.Name, Op: budget.AtMost})
		if math.Abs(f.Value-c.share) > 1e-9 || !strings.Contains(f.how, c.says) {
			t.Errorf("%s: %v (%s), want %v (%q)", name, f.Value, f.how, c.share, c.says)
		}
		times := f.Hi / f.Value
		if c.exactly && math.Abs(times-c.times) > 1e-3 || !c.exactly && c.share > 0 && math.Abs(times-c.times) > 0.5 {
			t.Errorf("%s: the upper end is %.3f of the share, want %v", name, times, c.times)
		}
	}
}
