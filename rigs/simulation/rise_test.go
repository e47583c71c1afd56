package simulation

import (
	"fmt"
	"math"
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
