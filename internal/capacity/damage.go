package capacity

import (
	"fmt"
	"math"
	"time"
)

// longestRun bounds every instant of a trace: no search lasts a month.
const longestRun = 31 * 24 * time.Hour

// Check reports the first thing in a trace that cannot have happened; the file that it came from may be damaged, or
// made by somebody else. After it, instants lie between 0 and a month, steps end after they begin and follow one
// another, and rates are finite.
func (t *Trace) Check() error {
	last := time.Duration(0)
	for i, s := range t.Steps {
		switch x := s.Segment; {
		case !plausible(x.Start) || !plausible(x.End) || x.End < x.Start:
			return fmt.Errorf("step %d lasts from %d to %d ns", i+1, x.Start, x.End)
		case s.Role != RoleRecovery && x.Start < last:
			return fmt.Errorf("step %d begins before the one before it", i+1)
		case !finite(s.Rate) || x.Offered < 0 || x.Sent < 0 || !finite(x.CPU):
			return fmt.Errorf(
				"step %d has a rate of %v/s, %d calls of which %d were sent, and %v s of CPU time", i+1, s.Rate, x.Offered, x.Sent,
				x.CPU,
			)
		default:
			last = x.Start
		}
	}
	for name, at := range map[string]time.Duration{"timeout": t.Timeout, "read": t.Read, "slo": t.SLO} {
		if !plausible(at) {
			return fmt.Errorf("%s is %d ns", name, at)
		}
	}
	if !finite(t.MaxRate) || !finite(t.SLOShare) || !finite(t.Allowance) || t.MaxConns < 0 || t.Callers < 0 {
		return fmt.Errorf(
			"max_rate is %v, slo_share %v, allowance %v, max_conns %d, callers %d", t.MaxRate, t.SLOShare, t.Allowance,
			t.MaxConns, t.Callers,
		)
	}
	return t.Recovery.check()
}

func (v *Recovery) check() error {
	if v == nil {
		return nil
	}
	instants := []time.Duration{v.Start, v.Limit, v.Deadline}
	if v.DroppedIdle != nil {
		instants = append(instants, *v.DroppedIdle)
	}
	for _, p := range v.Probes {
		instants = append(instants, p.At)
	}
	for _, at := range instants {
		if !plausible(at) {
			return fmt.Errorf("the recovery names an instant of %d ns", at)
		}
	}
	return nil
}

func plausible(at time.Duration) bool { return at >= 0 && at <= longestRun }

func finite(x float64) bool { return x >= 0 && x <= math.MaxFloat64 }
