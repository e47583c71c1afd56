package load

import (
	"context"
	"net/netip"
	"testing"
	"time"
)

// A Go call that does not end in time says why, if its operation can tell; an index that is none of its causes' says
// nothing.
func TestGoCallsSayWhyTheyAreStuck(t *testing.T) {
	for name, c := range map[string]struct {
		stuck func(uint64) int
		want  Cause
	}{
		"nobody can tell":  {nil, CauseNoReturn},
		"it knows nothing": {func(uint64) int { return -1 }, CauseNoReturn},
		"no such cause":    {func(uint64) int { return 1000 }, CauseNoReturn},
		"its own":          {func(i uint64) int { return int(i) + 1 }, OwnCauses + 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			patiently(t, 20*time.Millisecond, func(timeout time.Duration) (slow bool) {
				call := stuckCall(t, timeout, c.stuck)
				if call.Outcome != Timeout {
					t.Errorf("want a timeout, got %+v", call)
				}
				if call.Unsent() { // nothing is stuck that never began, and the operation is not asked about it
					if call.Cause != CauseNoConnection {
						t.Errorf("want cause %d of a call that had no worker, got %+v", CauseNoConnection, call)
					}
					return true
				}
				if call.Cause != c.want {
					t.Errorf("want cause %d, got %+v", c.want, call)
				}
				return false
			})
		})
	}
}

// stuckCall makes one Go call that returns only once it is given up.
func stuckCall(t *testing.T, timeout time.Duration, stuck func(uint64) int) Call {
	t.Helper()
	s := open(t, netip.AddrPort{}, func(cfg *Config) {
		cfg.Timeout = timeout
		cfg.Operations = []Operation{{
			Name: "go", Weight: 1, Causes: []string{"a", "b"}, Stuck: stuck,
			Call: func(ctx context.Context, _ uint64) Result {
				<-ctx.Done()
				return Result{Outcome: Timeout}
			},
		}}
	})
	offer(t, s, Burst{Calls: 1, Duration: time.Millisecond})
	drain(t, s)
	calls := s.Calls(0)
	if len(calls) != 1 {
		t.Fatalf("%d calls, want one", len(calls))
	}
	return calls[0]
}
