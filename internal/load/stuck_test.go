package load

import (
	"context"
	"net/netip"
	"testing"
	"time"
)

// A Go call that does not end in time says why, if its operation can tell; an index that is none of its causes' says nothing.
func TestGoCallsSayWhyTheyAreStuck(t *testing.T) {
	for _, c := range []struct {
		stuck func(uint64) int
		want  Cause
	}{
		{nil, CauseNoReturn},
		{func(uint64) int { return -1 }, CauseNoReturn},
		{func(uint64) int { return 1000 }, CauseNoReturn},
		{func(i uint64) int { return int(i) + 1 }, OwnCauses + 1},
	} {
		s := open(t, netip.AddrPort{}, func(cfg *Config) {
			cfg.Timeout, cfg.KeepCalls = 20*time.Millisecond, true
			cfg.Operations = []Operation{{Name: "go", Weight: 1, Causes: []string{"a", "b"}, Stuck: c.stuck, Call: func(ctx context.Context, _ uint64) Result {
				<-ctx.Done()
				return Result{Outcome: Timeout}
			}}}
		})
		offer(t, s, Constant{Rate: 20, Duration: 50 * time.Millisecond})
		drain(t, s)
		calls := s.Calls(0)
		if len(calls) != 1 || calls[0].Outcome != Timeout || calls[0].Cause != c.want {
			t.Errorf("want cause %d, got %+v", c.want, calls)
		}
	}
}
