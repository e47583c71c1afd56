package capacity

import "tare/internal/load"

// A Use is what the processors of generator and target did in some steps, in seconds.
type Use struct {
	All       float64 // busy, idle and stolen; 0: not known
	Busy      float64
	Stolen    float64 // by the hypervisor
	Generator float64
	Calls     int // that were due
	// Waited is for how long the generator was ready to run and had no processor, of Seconds.
	Waited, Seconds float64
}

// OverloadUse is the use in the overload that the trace is judged by.
func (t Trace) OverloadUse() Use { return useOf(lastOverload(t)) }

// Crowded reports whether other work may have kept the target from its processors in each step of that overload.
func (t Trace) Crowded() bool {
	over := lastOverload(t)
	for i := range over {
		if !t.inCrowd(over[i]) {
			return false
		}
	}
	return len(over) > 0
}

// inCrowd reports whether other work may have kept the target from its processors in a step, as far as the steps at
// lower rates that held show it.
func (t Trace) inCrowd(step Step) bool {
	var held []load.Segment
	for _, s := range t.Steps {
		passed := s.Passed != nil && *s.Passed && !s.ClientLimited
		if passed && (s.Role == RoleRamp || confirms(s.Role)) && s.Rate < step.Rate {
			held = append(held, s.Segment)
		}
	}
	return step.Segment.InCrowd(nil, held)
}

// useOf sums the steps whose use is known.
func useOf(steps []Step) (u Use) {
	for i := range steps {
		if h := steps[i].host(); h != nil {
			u.All, u.Busy, u.Stolen = u.All+h.All, u.Busy+h.Busy, u.Stolen+h.Stolen
			of := steps[i].Segment.Effort
			u.Generator, u.Calls = u.Generator+of.CPU, u.Calls+steps[i].Segment.Offered
			if of.Queued != nil {
				u.Waited, u.Seconds = u.Waited+*of.Queued*of.Seconds, u.Seconds+of.Seconds
			}
		}
	}
	return u
}

// BusyShare is the share of the time in which the processors were busy or stolen, 0…1; 0 where that is not known.
func (u *Use) BusyShare() float64 { return u.share(u.Busy + u.Stolen) }

// WaitedShare is the share of the time in which the generator was ready to run and had no processor, 0…1; 0 where that
// is not known.
func (u *Use) WaitedShare() float64 {
	if u.Seconds <= 0 {
		return 0
	}
	return u.Waited / u.Seconds
}

// StolenShare is the share of the time that the hypervisor took, 0…1; 0 where that is not known.
func (u *Use) StolenShare() float64 { return u.share(u.Stolen) }

// OthersShare is the share of the time that neither generator nor target used, 0…1, of a target that used so much.
func (u *Use) OthersShare(target float64) float64 {
	return max(0, u.share(u.Busy+u.Stolen-u.Generator-target))
}

func (u *Use) share(of float64) float64 {
	if u.All <= 0 {
		return 0
	}
	return of / u.All
}
