// Package signature names the way in which a target failed, from the records of the calls alone.
package signature

import (
	"iter"
	"math"
	"time"

	"tare/area"
	"tare/internal/load"
)

// A Class is a way to fail. Its word is the same in all outputs.
type Class string

// The classes. See definitions for the order in which they are tried.
const (
	Client            Class = "client"
	ConnectionRefused Class = "connection-refused"
	PortExhaustion    Class = "port-exhaustion"
	FDExhaustion      Class = "fd-exhaustion"
	AcceptQueue       Class = "accept-queue"
	ConcurrencyLimit  Class = "concurrency-limit"
	FixedWindow       Class = "fixed-window"
	TokenBucket       Class = "token-bucket"
	Penalty           Class = "penalty"  // refused calls count against the limit as well
	Shedding          Class = "shedding" // a queue that drops calls by their age or by its length
	Collapse          Class = "collapse"
	QuotaHang         Class = "quota-hang"
	CPUThrottling     Class = "cpu-throttling"
	Pauses            Class = "pauses"
	Queue             Class = "queue"
	Unknown           Class = "unknown"
)

// Window is one stretch of load at one rate.
type Window struct {
	Role       string  // "ramp", "overload", "fill", "burst", "busy"
	Rate       float64 // offered, 1/s
	Start, End time.Duration
	Due        int // calls
}

// Local is what probes on the target's own host saw.
type Local = area.Local

// Evidence is all that the classifier looks at.
type Evidence struct {
	Calls    load.Log      // outstanding ones included; those before the first window do not count
	Now      time.Duration // when Calls were read
	Windows  []Window      // in time order; the first with role "overload" is the one that is judged, the fills follow it
	Capacity float64       // estimated capacity, 1/s
	Repeats  bool          // calls end in a pattern that repeats itself, with about the same number each time
	BaseP50  time.Duration // response times well below capacity
	BaseP99  time.Duration
	BaseMean time.Duration
	// ErrorFloor is the share of calls that fails at any rate, 0…1.
	ErrorFloor float64
	// Allowance is how many calls were served at first beyond the capacity, where that was found to be saved up; 0: none.
	Allowance float64
	Timeout   time.Duration
	// MaxConns is how many connections the client opens at most; 0: not known.
	MaxConns int
	// Stolen is the share of the processors' time that the hypervisor took during the overload, 0…1; 0: none, or not
	// known.
	Stolen float64
	// Sharp is what passed just below and just above the limit.
	Sharp Sharp
	Local Local
}

// until yields the calls that were due from the first window up to an instant.
func (e *Evidence) until(end time.Duration) iter.Seq[*load.Call] {
	return e.Calls.Due(e.Windows[0].Start, end+1)
}

// all yields the calls that were due from the first window on.
func (e *Evidence) all() iter.Seq[*load.Call] { return e.Calls.Due(e.Windows[0].Start, math.MaxInt64) }

// Sharp says how sharp the limit is. It compares two rates, in 1/s: one that was held, and one beyond it with the
// goodput at the end of that stretch; Held is 0 where none was held, Failed where none broke.
type Sharp struct {
	Held, Failed, Goodput float64
	// HeldP50 is the median service time at the rate that was held; 0: not known.
	HeldP50 time.Duration
}

// Verdict is the class with all scores, so that mixtures can be seen.
type Verdict struct {
	Class    Class
	Scores   map[Class]float64 // 0…1; the first in order whose score is high enough for it is chosen
	Evidence []string          // sentences, the strongest first
	RunnerUp Class
	Against  string // what speaks against the runner-up
	// Queued is whether the calls that were served had waited, whatever the class.
	Queued bool
	// Period is that of a fixed window or of the CPU scheduler, in seconds; 0: none was found.
	Period float64
	// Stuck is how many calls were never answered on established connections that never answered at all.
	Stuck int
	// InFlight is the number of calls in flight from which on others were rejected; 0: none was found.
	InFlight int
	// AtOnce is how many calls were accepted of each of two bursts from rest, of which others were not; 0: not known.
	AtOnce int
	// Likely is the class that the evidence speaks for most, also where it does not suffice to name it; "" if none.
	Likely Class
	// Met is what callers met; the zero value where nothing was classified. See Failure.
	Met Failure
}
