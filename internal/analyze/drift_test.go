package analyze

import (
	"math"
	"math/rand/v2"
	"testing"

	"tare/internal/metric"
	"tare/internal/report"
)

// failingWindows is the share of failures of a soak by windows of 2 s with so many calls each, whose chance to fail
// begins at a share and changes by so much an hour.
func failingWindows(rng *rand.Rand, windows, calls int, at, perHour float64) *course {
	c := &course{metric: metric.Error}
	for i := range windows {
		hours, bad := (2*float64(i)+1)/3600, 0.0
		for range calls {
			if rng.Float64() < at+perHour*hours {
				bad++
			}
		}
		c.hours, c.value = append(c.hours, hours), append(c.value, bad/float64(calls))
		c.weight, c.stretch = append(c.weight, float64(calls)), append(c.stretch, 0)
	}
	return c
}

// TestTrendsOfShares: the trend of a share of failures holds the truth as often as it says, however few calls failed.
func TestTrendsOfShares(t *testing.T) {
	t.Parallel()
	const repetitions = 200
	for _, c := range []struct {
		windows, calls int
		at, perHour    float64
		half           float64 // width that most intervals do not exceed
	}{
		{245, 10, 0, 0, .025},
		{245, 10, 0, .005, .05}, // in two fifths of the runs, no call fails
		{245, 10, 0, .01, .05},
		{245, 10, .002, 0, .08},
		{245, 10, .005, -.03, .1},
		{245, 10, .03, 0, .3},
		{900, 100, 0, 0, .0002},
		{900, 100, 0, .0001, .0006},
		{900, 100, .01, .002, .005},
	} {
		rng := rand.New(rand.NewPCG(17, uint64(c.windows)))
		missed, narrow, without := 0, 0, 0
		for range repetitions {
			x := failingWindows(rng, c.windows, c.calls, c.at, c.perHour)
			d := x.drift(2 * float64(c.windows))
			if d.Lo == nil {
				without++
				continue
			}
			w := x.trendOfShare(d.PerHour)
			lo, hi := math.Min(*d.Lo, w.Lo), math.Max(*d.Hi, w.Hi)
			if lo > c.perHour+1e-9 || hi < c.perHour-1e-9 {
				missed++
			}
			if (hi-lo)/2 <= c.half {
				narrow++
			}
		}
		t.Logf("%+v: missed %d, narrow %d, without %d of %d", c, missed, narrow, without, repetitions)
		if missed > repetitions*5/100+4 || narrow < repetitions/2 {
			t.Errorf("%+v: misses the truth in %d of %d runs, and is narrow in %d", c, missed, repetitions, narrow)
		}
	}
}

// TestDriftsOfFewCalls: where no call failed, a trend of the share of failures is no better known than so many calls
// allow, nor is that of goodput beside it.
func TestDriftsOfFewCalls(t *testing.T) {
	t.Parallel()
	verdicts(t, measured(t, endurance{
		operations: []string{"permit"}, rate: 5, open: true, budget: []string{
			"error drift <= 0.1%/h", "error drift <= 3%/h", "goodput drift >= 0/s/h", "error <= 1%",
		},
	}), map[string]report.Verdict{
		"error drift <= 0.1%/h": report.Inconclusive, "error drift <= 3%/h": report.Pass,
		"goodput drift >= 0/s/h": report.Inconclusive, "error <= 1%": report.Pass,
	})
}
