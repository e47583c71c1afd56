package driver

import (
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// TestCoarseClocks: batches of a length that vary by 1 %, timed by clocks that step. A clock is refused where its steps
// decide what a batch costs, and never where they do not.
func TestCoarseClocks(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(4, 211))
	for _, c := range []struct {
		step, lasts time.Duration
		refused     bool
	}{
		{10 * time.Millisecond, 2 * time.Millisecond, true},
		{10 * time.Millisecond, 10 * time.Millisecond, true},
		{10 * time.Millisecond, time.Second, true},
		{10 * time.Millisecond, 3 * time.Second, false},
		{4 * time.Millisecond, 50 * time.Millisecond, true},
		{time.Millisecond, 5 * time.Millisecond, true},
		{time.Millisecond, 300 * time.Millisecond, false},
		{time.Microsecond, 300 * time.Nanosecond, true},
		{time.Microsecond, 5 * time.Millisecond, false},
		{time.Nanosecond, 5 * time.Millisecond, false},
		{time.Nanosecond, 100 * time.Millisecond, false},
		{time.Hour, time.Millisecond, true},
	} {
		const runs, batches = 300, 320
		refused := 0
		for range runs {
			var x ticks
			step, begun := c.step.Seconds(), 1e4*rng.Float64()
			for range batches {
				end := begun + c.lasts.Seconds()*(1+.01*rng.NormFloat64())
				if err := x.add(step*math.Floor(end/step) - step*math.Floor(begun/step)); err != nil {
					refused++
					break
				}
				begun = end + .01*rng.Float64()
			}
		}
		if want := map[bool]int{true: runs}[c.refused]; refused != want {
			t.Errorf("steps of %s in batches of %s: %d of %d refused, want %d", c.step, c.lasts, refused, runs, want)
		}
	}
}

// TestProgramsWithCoarseClocksAreRefused, once they have shown it, but for the harness, which costs nothing.
func TestProgramsWithCoarseClocksAreRefused(t *testing.T) {
	t.Parallel()
	s := newStage(t, actor{Cost: map[string]float64{"wall": 1.234567e-3, "cpu": 0}}, nil)
	defer s.close(t)
	s.entered(t)
	for _, name := range []string{"empty", "work"} {
		for n := range fewestTotals {
			_, err := s.sample(t, name, 3)
			if name == "work" && n == fewestTotals-1 {
				wantError(t, err, "its clock for cpu of work is too coarse for batches of 3 calls: 8 of 8 totals are 0",
					"time.process_time_ns", "leave it out", "target.span: 2s")
			} else if err != nil {
				t.Errorf("%s, batch %d: %v", name, n, err)
			}
		}
	}
}
