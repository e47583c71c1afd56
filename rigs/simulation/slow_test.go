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
