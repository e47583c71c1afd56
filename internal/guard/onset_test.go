package guard

import (
	"math/rand/v2"
	"testing"
	"time"

	"tare/internal/load"
	"tare/rigs/hosttest"
)

// bursting returns a point of a control that permits everything for a short while, at times that do not depend on the
// rate.
func bursting(rng *rand.Rand, rate float64, lasts, every time.Duration) Seen {
	point, calls := simulated(rng, rate, UsualPoint, 0.1, 0, 0)
	offset := time.Duration(rng.Int64N(int64(every)))
	for i := range calls {
		if calls[i].Operation == 1 && (calls[i].Intended+offset)%every < lasts {
			calls[i].Outcome = load.Permitted
		}
	}
	return Assess(point, twoOperations, calls)
}

// TestBurstsHaveNoClearOnset: bursts at times that have nothing to do with the rate are said to begin at one in few
// runs, and to come in bursts in most of those with more than one.
func TestBurstsHaveNoClearOnset(t *testing.T) {
	hosttest.SkipIfShort(t)
	rng := rand.New(rand.NewPCG(8, 15))
	for _, x := range []struct{ lasts, every time.Duration }{
		{60 * time.Millisecond, 15 * time.Second},
		{60 * time.Millisecond, 40 * time.Second},
		{400 * time.Millisecond, 20 * time.Second},
		{60 * time.Millisecond, 4 * time.Second},
	} {
		claimed, told, found := 0, 0, 0
		const runs = 40
		for range runs {
			var seen []Seen
			for _, f := range Factors() {
				seen = append(seen, bursting(rng, 1500*f, x.lasts, x.every))
			}
			o, ok := OnsetOf(seen)
			if !ok {
				continue
			}
			found++
			if o.Clear || o.Later {
				claimed++
			}
			if InBursts(seen) {
				told++
			}
		}
		if claimed > runs/20 {
			t.Errorf("%v every %v: %d of %d runs claim an onset", x.lasts, x.every, claimed, runs)
		}
		if float64(told) < 0.8*float64(found) {
			t.Errorf("%v every %v: %d of %d runs tell of bursts", x.lasts, x.every, told, found)
		}
	}
}

// TestLoneBreachesAreNoBursts: breaches that come by themselves are not said to come in bursts.
func TestLoneBreachesAreNoBursts(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	for _, p := range []float64{0.005, 0.05, 0.5, 1} {
		told := 0
		for range 100 {
			point, calls := simulated(rng, 500, UsualPoint, 0.2, p, 0.1)
			if InBursts([]Seen{Assess(point, twoOperations, calls)}) {
				told++
			}
		}
		if told > 1 {
			t.Errorf("share %v: %d of 100 points are said to have bursts", p, told)
		}
	}
}
