package simulation

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tare/internal/capacity"
)

// TestRiseIsSaid: the capacity of a target doubles while the load goes on. A search that has overloaded it before and
// after says so, whether calls wait or are refused; it does not where nothing changes, or only after the search.
func TestRiseIsSaid(t *testing.T) {
	for _, room := range []int{0, 100} {
		for after, want := range map[float64]bool{20: true, 30: true, 40: true, 60: true, 0: false, math.Inf(1): false} {
			t.Run(fmt.Sprintf("room for %d calls, after %v s", room, after), func(t *testing.T) {
				t.Parallel()
				o := capacity.Options{MaxRate: 2000}.Defaults()
				q := &line{room: room, free: make([]float64, 1), service: func(t float64) float64 {
					if t < after {
						return 1.0 / 150
					}
					return 1.0 / 300
				}}
				w := &World{server: open{rule: q}, timeout: o.Timeout, maxConns: o.MaxConns, maxRate: o.MaxRate}
				r := capacity.Assess(searched(t, w, o))
				rises := slices.ContainsFunc(r.Findings, func(f capacity.Finding) bool { return f.Kind == capacity.Autoscaling })
				if rises != want {
					t.Errorf("%.4g/s, findings %v", r.Rate, r.Findings)
				}
			})
		}
	}
}

// TestBusyHostIsNoChange: while the generator's host holds calls back at first, more of them come together than the
// target takes at once. Its capacity stays what it is: the search says no change of it, and does not exclude it.
func TestBusyHostIsNoChange(t *testing.T) {
	for _, places := range []int{2, 4, 8} {
		for _, quiet := range []float64{0, 30, 60, 90} {
			for _, length := range []float64{0.1, 0.3} {
				t.Run(fmt.Sprintf("%d places, %v s long until %v s", places, length, quiet), func(t *testing.T) {
					t.Parallel()
					capacityOf := float64(places) / 0.02
					o := capacity.Options{MaxRate: 2000, MaxSeconds: 180}.Defaults()
					l := &inFlight{n: places, service: func() float64 { return 0.02 }}
					w := &World{server: open{rule: l}, timeout: o.Timeout, maxConns: o.MaxConns, maxRate: o.MaxRate}
					w.generator = heldUp(length, 0.6, quiet)
					r := capacity.Assess(searched(t, w, o))
					for _, f := range r.Findings {
						if f.Kind == capacity.Autoscaling || f.Kind == capacity.SpentCredits {
							t.Errorf("%s: %s", f.Kind, f.Sentence)
						}
					}
					x, _ := r.Interval()
					if x.Lo > capacityOf || x.Hi < capacityOf*0.9 {
						t.Errorf("[%.4g, %.4g] excludes %v/s", x.Lo, x.Hi, capacityOf)
					}
				})
			}
		}
	}
}

// heldUp is a processor that stands still for a while at a time, so many seconds apart on average, up to an instant.
func heldUp(length, apart, until float64) *stolen {
	s := &stolen{rng: rand.New(rand.NewPCG(1, 2)), share: 1e-9}
	for at := apart; at < until; at += length + (apart-length)*s.rng.ExpFloat64() {
		s.begin, s.end = append(s.begin, instant(at)), append(s.end, instant(at+length))
	}
	return s
}
