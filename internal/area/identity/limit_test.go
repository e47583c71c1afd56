package identity

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"tare/internal/load"
	"tare/internal/proc"
)

// TestThrottleStandsIn: without control groups the endpoint limits itself, says so in every report, and still serves about 163/s.
func TestThrottleStandsIn(t *testing.T) {
	tg, j := prepared(t, embedded("cpu-only"), standard, func(tg *target) {
		tg.planGroup = func(string) (string, error) { return "", fmt.Errorf("test: %w", proc.ErrNoCgroup) }
	})
	if err := tg.Enter(t.Context(), standard); err != nil {
		t.Fatal(err)
	}
	if err := tg.Verify(t.Context(), standard); err != nil {
		t.Fatal(err)
	}
	if notes := strings.Join(tg.Notes(), "\n"); !strings.Contains(notes, noteThrottle) {
		t.Errorf("notes %q", notes)
	}
	for _, c := range j.changes {
		if c.Kind == changeCgroup {
			t.Errorf("a group is journaled that was never made: %v", c)
		}
	}
	capacityNear163(t, tg)
	if s := tg.Observe(t.Context(), standard).Throttled; s == nil || *s < 0.5 {
		t.Errorf("the share of throttled periods under overload is %v", s)
	}
}

func TestGroupLimits(t *testing.T) {
	tg, _ := prepared(t, embedded("cpu-only"), standard)
	if tg.places["default"].group == nil {
		t.Skip("no control group on this host")
	}
	if err := tg.Enter(t.Context(), standard); err != nil {
		t.Fatal(err)
	}
	capacityNear163(t, tg)
	if s := tg.Observe(t.Context(), standard).Throttled; s == nil || *s < 0.5 {
		t.Errorf("the share of throttled periods under overload is %v", s)
	}
}

// capacityNear163 overloads the endpoint for 2 s. More than its price allows it can never serve; how much less depends on what else runs here.
func capacityNear163(t *testing.T, tg *target) {
	t.Helper()
	const seconds = 2
	calls := burst(t, tg, 300, seconds*time.Second, 20*time.Second, 64)
	in := 0
	for _, c := range calls {
		if c.Outcome != load.OK {
			t.Fatalf("a call ended as %v", c.Outcome)
		}
		if c.Done < seconds*time.Second {
			in++
		}
	}
	rate := float64(in) / seconds
	t.Logf("%.1f/s", rate)
	if rate < 80 || rate > 190 {
		t.Errorf("%.1f/s, want about 163", rate)
	}
}
