package capacity

import (
	"fmt"
	"iter"
	"math"
	"time"

	"tare/internal/load"
	"tare/internal/signature"
)

// Role says what a step is for. Its word is the same in all outputs.
type Role string

// The roles.
const (
	RoleRamp        Role = "ramp"         // the rate doubles until something breaks
	RoleOverload    Role = "overload"     // held above capacity: the slope of its successes is the capacity
	RoleFill        Role = "fill"         // far above capacity, to fill a listen queue
	RoleConfirmHigh Role = "confirm-high" // just above the estimate: should break
	RoleConfirmLow  Role = "confirm-low"  // just below the estimate: should hold
	RolePrime       Role = "prime"        // above capacity for a moment, so that a queue stands while rates are confirmed
	RoleSingle      Role = "single"       // a few calls far apart: does the target answer as it did before the load?
	RoleBurst       Role = "burst"        // many calls at once, from rest: is the limit one of places or of rate?
	// about the capacity, with a short queue, for a while: does what a service can do change?
	RoleBusy     Role = "busy"
	RoleSLO      Role = "slo"      // does the latency objective hold at this rate?
	RoleRate     Role = "rate"     // a rate that a budget names
	RoleTogether Role = "together" // all callers offer what one then offers alone
	RoleAlone    Role = "alone"    // one caller offers more than its share: is the limit its own?
	RoleDrain    Role = "drain"    // no load, until calls in flight have ended
	RolePoint    Role = "point"    // one row of a ladder
	RoleRecovery Role = "recovery" // no load but the recovery probe
)

// Step is one stretch of a trace.
type Step struct {
	Role Role `json:"role"`
	// Name is what a point of a ladder is called that is more than a rate.
	Name string `json:"name,omitempty"`
	// Rate is what was to be offered, in 1/s; 0 for a drain and a recovery.
	Rate float64 `json:"rate,omitempty"`
	// Segment is what was offered, on the stream's clock.
	Segment load.Segment `json:"segment"`
	// Attempt counts steps of the same role from 1.
	Attempt int `json:"attempt"`
	// Passed is whether the rate held; nil where that was not the question, or where noise left it open.
	Passed *bool `json:"passed,omitempty"`
	// ClientLimited marks a step in which the generator did not do its part: it says nothing about the target.
	ClientLimited bool `json:"client_limited,omitempty"`
	// ListenQueue is how many connections waited to be accepted at the end of a ladder's point; nil: not to be seen.
	ListenQueue *int   `json:"listen_queue,omitempty"`
	Note        string `json:"note,omitempty"`
}

// Length is how long the step lasted.
func (s Step) Length() time.Duration { return s.Segment.End - s.Segment.Start }

// Stop says why a search or a ladder ended. Its word is the same in all outputs.
type Stop string

// The reasons to stop.
const (
	StopFound    Stop = "found"         // a capacity with its confirmations
	StopMaxRate  Stop = "max-rate"      // the highest rate allowed held
	StopClient   Stop = "client"        // the generator is the limit: nothing is known about the target above
	StopNoAnswer Stop = "no-answer"     // the target answers no call at the lowest rate: nothing to measure
	StopFailing  Stop = "failing"       // most calls fail at the lowest rate: nothing to measure
	StopTime     Stop = "time"          // the time ran out: the result is what was known by then
	StopCanceled Stop = "canceled"      // the caller gave up
	StopLadder   Stop = "ladder"        // all points of a ladder were measured
	StopDown     Stop = "down"          // the target broke, and did not answer single calls again
	StopRefusing Stop = "refusing"      // the target broke, and refused single calls from then on
	StopNoRetry  Stop = "not-recovered" // a ladder's target did not answer again after a point
)

// Down reports whether the target did not come back after it broke.
func (s Stop) Down() bool { return s == StopDown || s == StopRefusing }

// Probe is one call of the recovery probe, on a connection of its own.
type Probe struct {
	At       time.Duration `json:"at"` // on the stream's clock
	Response time.Duration `json:"response"`
	Outcome  load.Outcome  `json:"outcome"`
	Good     bool          `json:"good"` // answered as expected, and fast enough
}

// Recovery is what the recovery probe saw after the load had stopped.
type Recovery struct {
	Start time.Duration `json:"start"` // the load stopped
	// Limit is the slowest response that counts as an answer, Deadline how long the target had.
	Limit    time.Duration `json:"limit"`
	Deadline time.Duration `json:"deadline"`
	// DroppedIdle is when the client closed its idle connections; nil if it never did.
	DroppedIdle *time.Duration `json:"dropped_idle,omitempty"`
	Probes      []Probe        `json:"probes,omitempty"`
	Recovered   bool           `json:"recovered"`
	// Complete is false when the probe was interrupted: then Recovered says nothing.
	Complete bool `json:"complete"`
}

// Trace is all that happened in a search or a ladder. With its calls it is enough to compute every number again.
type Trace struct {
	Steps []Step `json:"steps"`
	// Timeout, MaxRate (1/s, 0: none) and MaxConns are those of the stream.
	Timeout  time.Duration `json:"timeout"`
	MaxRate  float64       `json:"max_rate,omitempty"`
	MaxConns int           `json:"max_conns,omitempty"`
	// Callers is how many callers take turns with the calls; 0: one.
	Callers int `json:"callers,omitempty"`
	// SLO is the latency objective that at most SLOShare of the calls may miss; 0: none was given.
	SLO      time.Duration `json:"slo,omitempty"`
	SLOShare float64       `json:"slo_share,omitempty"`
	// Read is when Calls were read; calls that had not ended by then are outstanding.
	Read     time.Duration   `json:"read"`
	Recovery *Recovery       `json:"recovery,omitempty"`
	Local    signature.Local `json:"local"`
	// Allowance is how many calls the target served beyond its rate at first, where that was found to be saved up and not
	// the target's capacity; 0: none.
	Allowance float64 `json:"allowance,omitempty"`
	Stop      Stop    `json:"stop"`
	Reason    string  `json:"reason,omitempty"` // the stop in a sentence
	// Calls are all calls since the first step. They are stored elsewhere.
	Calls load.Log `json:"-"`
}

// log returns the calls, also of a trace without any.
func (t Trace) log() load.Log {
	if t.Calls == nil {
		return load.Calls(nil)
	}
	return t.Calls
}

// reach is how long before an instant the calls can have been due that end after it.
func (t Trace) reach() time.Duration { return t.Timeout + time.Second }

// due yields the calls that were due in [from, to).
func (t Trace) due(from, to time.Duration) iter.Seq[*load.Call] { return t.log().Due(from, to) }

// ends returns the instants, in seconds and ascending, at which good calls ended in (from, to].
func (t Trace) ends(from, to time.Duration) []float64 {
	return signature.Ends(t.due(from-t.reach(), to+1), from, to)
}

// ended returns how many good calls ended in (from, to].
func (t Trace) ended(from, to time.Duration) int {
	return signature.CountEnds(t.due(from-t.reach(), to+1), from, to)
}

// responses are those, in nanoseconds, of the calls that ended well after an instant.
func responses(calls iter.Seq[*load.Call], after time.Duration) []float64 {
	var all []float64
	for c := range calls {
		if c.Done > after && c.Outcome.Good() {
			all = append(all, float64(c.Response()))
		}
	}
	return all
}

// endedBadly reports whether a call that is old enough to tell did not end well.
func endedBadly(c *load.Call) bool { return c.Done == 0 || !c.Outcome.Good() }

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
			return fmt.Errorf("step %d has a rate of %v/s, %d calls of which %d were sent, and %v s of CPU time",
				i+1, s.Rate, x.Offered, x.Sent, x.CPU)
		}
		last = s.Segment.Start
	}
	for name, at := range map[string]time.Duration{"timeout": t.Timeout, "read": t.Read, "slo": t.SLO} {
		if !plausible(at) {
			return fmt.Errorf("%s is %d ns", name, at)
		}
	}
	if !finite(t.MaxRate) || !finite(t.SLOShare) || !finite(t.Allowance) || t.MaxConns < 0 || t.Callers < 0 {
		return fmt.Errorf("max_rate is %v, slo_share %v, allowance %v, max_conns %d, callers %d",
			t.MaxRate, t.SLOShare, t.Allowance, t.MaxConns, t.Callers)
	}
	v := t.Recovery
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
