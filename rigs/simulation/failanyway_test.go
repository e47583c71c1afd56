package simulation

import (
	"math"
	"testing"

	"tare/internal/load"
	"tare/internal/signature"
)

// late is a rule whose first calls are taken by another.
type late struct {
	first, then rule
	calls       int // that first takes
}

func (s *late) decide(t float64) answer {
	if s.calls--; s.calls >= 0 {
		return s.first.decide(t)
	}
	return s.then.decide(t)
}

// fails500 fails what the next rule refuses.
type fails500 struct{ next rule }

func (s fails500) decide(t float64) answer {
	a := s.next.decide(t)
	if a.outcome == load.Refused {
		a.outcome, a.status = load.Failed, 500
	}
	return a
}

// TestSomeFailAtAnyRate: where a share of the calls fails at any rate, from the first call on or from a later one, the
// capacity is found, no rate is called one that breaks because of them, and the share is what is said of it.
func TestSomeFailAtAnyRate(t *testing.T) {
	targets := map[string]func(r *recipe) rule{
		"a queue": func(r *recipe) rule {
			r.truth.Classes = []signature.Class{signature.Queue}
			return r.line(4, 0.02)
		},
		"a bucket": func(r *recipe) rule {
			r.truth.Classes = []signature.Class{signature.TokenBucket}
			return r.bucket(1+r.capacity/2, false)
		},
		"a bucket that answers 500": func(r *recipe) rule {
			r.truth.Classes = []signature.Class{signature.TokenBucket}
			return fails500{r.bucket(1+r.capacity/2, false)}
		},
		"a collapse": func(r *recipe) rule {
			r.truth.Classes = []signature.Class{signature.Collapse}
			return &thrashing{
				latency: r.latency, service: 1 / r.capacity, knee: int(0.1*r.capacity) + 5, slope: 5 / r.capacity,
				worst: 3, fails: true,
			}
		},
	}
	const share = 0.05
	numbers, searches := 0, 0
	for name, target := range targets {
		for _, after := range []int{0, 300} {
			for i := range 3 {
				k := Kind{Name: name, make: func(r *recipe) {
					x := target(r)
					r.is(open{rule: &late{
						first: x, calls: after, then: faulty{next: x, rng: r.latency.rng, share: share},
					}}, r.truth.Classes...)
				}}
				o, err := Run(t.Context(), k, 23, i)
				if err != nil {
					t.Fatal(err)
				}
				r, truth := o.Result, o.Truth.Capacity
				if searches++; r.Rate > 0 {
					numbers++
				}
				if r.Rate > 0 && (r.Lo > 1.05*truth || r.Hi < 0.95*truth) || r.AtLeast > 1.05*truth ||
					r.AtMost > 0 && r.AtMost < 0.95*truth {
					t.Errorf("%s of %.4g/s, %v %% from call %d on: %.4g [%.4g, %.4g], at least %.4g, at most %.4g; %q", name, truth,
						100*share, after, r.Rate, r.Lo, r.Hi, r.AtLeast, r.AtMost, r.Warnings)
				}
				if e := r.ErrorFloor; r.Rate > 0 && (e.Lo > 1.3*share || e.Hi < 0.7*share) {
					t.Errorf("%s, %v %% from call %d on: [%.2v, %.2v] are said to fail at any rate", name, 100*share, after, e.Lo,
						e.Hi)
				}
			}
		}
	}
	if 4*numbers < 3*searches {
		t.Errorf("%d of %d searches found a number", numbers, searches)
	}
}

// ticks answers all calls that wait every half second.
type ticks struct{}

func (ticks) decide(t float64) answer { return ok(0.5 * math.Ceil(2*t+1e-9)) }

// TestSearchSaysWhyItEnds: a search that ends without a number has a reason.
func TestSearchSaysWhyItEnds(t *testing.T) {
	o, err := Run(t.Context(), Kind{Name: "ticks", make: func(r *recipe) {
		r.options.MaxRate = 2000
		r.is(open{rule: ticks{}})
	}}, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	if r := o.Result; r.Rate > 0 || r.Reason == "" {
		t.Errorf("%.4g/s, at least %.4g/s, broke %v: %s for %q", r.Rate, r.AtLeast, r.Broke, r.Stop, r.Reason)
	}
}
