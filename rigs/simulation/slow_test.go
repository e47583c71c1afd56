package simulation

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"tare/internal/capacity"
)

// TestSlowTargetIsNotCalledDead: single calls of a target that needs a second for each are answered after the load as
// they were before, whether it broke under a long backlog, never broke, or took no rate at all.
func TestSlowTargetIsNotCalledDead(t *testing.T) {
	for _, workers := range []int{3, 20, 200} {
		for _, timeout := range []time.Duration{2 * time.Second, 3 * time.Second, 5 * time.Second, 30 * time.Second} {
			for _, service := range []float64{0.3, 0.7, 1, 1.5} {
				t.Run(fmt.Sprintf("%d of %v s, timeout %v", workers, service, timeout), func(t *testing.T) {
					o := capacity.Options{MaxRate: 100, Timeout: timeout}.Defaults()
					q := &line{free: make([]float64, workers), service: func(float64) float64 { return service }}
					w := &World{server: open{rule: q}, timeout: o.Timeout, maxConns: o.MaxConns, maxRate: o.MaxRate}
					r := capacity.Assess(searched(t, w, o))
					if r.Wedged || r.Stop == capacity.StopDown || r.RecoverySeconds == nil {
						t.Errorf("wedged %v, stop %q (%s), %q", r.Wedged, r.Stop, r.Reason, r.RecoveryNote)
					}
				})
			}
		}
	}
}

// slowly searches a target of so many places that takes service, in seconds, for each call, and refuses calls that find
// no place, or lets them wait.
func slowly(t *testing.T, places int, refuses bool, most float64, service func(at float64) float64) capacity.Result {
	t.Helper()
	o := capacity.Options{MaxRate: most, Timeout: 5 * time.Second, MaxSeconds: 180}.Defaults()
	var target rule = &line{free: make([]float64, places), service: service}
	if refuses {
		target = &inFlight{n: places, service: func() float64 { return service(0) }}
	}
	w := &World{server: open{rule: target}, timeout: o.Timeout, maxConns: o.MaxConns, maxRate: o.MaxRate}
	return capacity.Assess(searched(t, w, o))
}

// TestSlowTargetGetsBothSides: a target that answers a few calls a second, always as fast, has a number within three
// minutes, long before it has answered 1000 calls, and a sentence says of how many calls.
func TestSlowTargetGetsBothSides(t *testing.T) {
	for _, c := range []struct {
		places  int
		refuses bool
		service float64
	}{
		{1, false, 0.4}, {3, false, 0.6}, {8, false, 3}, {3, true, 0.6}, {4, true, 0.9}, {2, true, 0.5}, {10, true, 1.5},
	} {
		r := slowly(t, c.places, c.refuses, 0, func(float64) float64 { return c.service })
		truth := float64(c.places) / c.service
		said := strings.Join(r.Warnings, "; ")
		if r.Rate == 0 || r.Lo > truth || r.Hi < truth || !strings.Contains(said, "counts as warm") {
			t.Errorf("%d of %v s: %.3g/s [%.3g, %.3g] instead of %.3g/s, %q", c.places, c.service, r.Rate, r.Lo, r.Hi, truth,
				r.Warnings)
		}
	}
}

// TestSlowTargetThatBecomesWarm: of a slow target that becomes three times as fast while it is searched, no rate is
// said to break that it holds from then on.
func TestSlowTargetThatBecomesWarm(t *testing.T) {
	for _, places := range []int{1, 3, 8} {
		for _, warm := range []float64{10, 20, 40, 60} {
			r := slowly(t, places, false, 0, func(at float64) float64 {
				if at < warm {
					return 1.2
				}
				return 0.4
			})
			if truth := float64(places) / 0.4; r.Rate > 0 && r.Hi < truth/1.05 || r.AtMost > 0 && r.AtMost < truth/1.05 {
				t.Errorf("%d places, warm after %v s: %.3g/s [%.3g, %.3g], below %.3g, instead of %.3g/s, %q", places, warm,
					r.Rate, r.Lo, r.Hi, r.AtMost, truth, r.Warnings)
			}
		}
	}
}

// TestLadderOfASlowTarget: a target that needs five seconds for each call answers fresh ones after each point.
func TestLadderOfASlowTarget(t *testing.T) {
	q := &line{free: make([]float64, 500), service: func(float64) float64 { return 5 }}
	w := &World{server: open{rule: q}, timeout: 30 * time.Second, maxConns: 4096}
	o := capacity.Options{Timeout: 30 * time.Second}
	trace, err := capacity.Play(t.Context(), w, o, nil, []capacity.Planned{{Rate: 1}, {Rate: 20}, {Rate: 50}})
	if err != nil {
		t.Fatal(err)
	}
	points := capacity.Points(trace)
	if trace.Stop != capacity.StopLadder || len(points) != 3 {
		t.Fatalf("%d points, and it ended with %q: %s", len(points), trace.Stop, trace.Reason)
	}
	for _, p := range points {
		if p.Success != 1 || p.RecoverySeconds == nil {
			t.Errorf("at %v/s %.0f %% succeed, and fresh calls after %v s", p.Rate, 100*p.Success, p.RecoverySeconds)
		}
	}
}

// TestSpentQuotaIsNotCalledDead: a target that answers so many calls and then refuses all, at any rate, is said to
// refuse, and nobody is told to restart it.
func TestSpentQuotaIsNotCalledDead(t *testing.T) {
	for _, quota := range []float64{200, 1200} {
		o := capacity.Options{MaxRate: 300, Timeout: 5 * time.Second}.Defaults()
		b := &bucket{latency: latency{rand.New(rand.NewPCG(1, 2)), 0.005}, burst: quota, tokens: quota}
		w := &World{server: open{rule: b}, timeout: o.Timeout, maxConns: o.MaxConns, maxRate: o.MaxRate}
		r := capacity.Assess(searched(t, w, o))
		if r.Stop != capacity.StopRefusing || !strings.Contains(r.RecoveryNote, "still refused") {
			t.Errorf("%.0f calls: stop %q (%s), %q", quota, r.Stop, r.Reason, r.RecoveryNote)
		}
	}
}

// TestSlowerIsNoAllowance: a worker that takes longer for each call from some time on has saved nothing up before.
func TestSlowerIsNoAllowance(t *testing.T) {
	for _, at := range []float64{3, 4, 5, 6, 7, 8, 10} {
		r := slowly(t, 1, false, 400, func(now float64) float64 {
			if now < at {
				return 0.01
			}
			return 0.016
		})
		said := fmt.Sprint(r.Signature.Failure().Excluded)
		if r.Burst != nil || strings.Contains(said, "allowance") {
			t.Errorf("slower from %v s on: a burst: %v, %s; %.3g/s [%.3g, %.3g]", at, r.Burst != nil, said, r.Rate, r.Lo,
				r.Hi)
		}
	}
}
