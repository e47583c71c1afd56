// Package limit names what sets the rate at which a target breaks, apart from how it fails above it.
package limit

import "tare/internal/signature"

// A Kind is something that can set the rate. Its word is the same in all outputs.
type Kind string

// The kinds.
const (
	CPUQuota    Kind = "cpu-quota"   // a limit on the CPU time of the target
	Processors  Kind = "processors"  // all processors that the target may use are busy
	OneThread   Kind = "one-thread"  // one thread is busy all the time, and processors are idle
	Slots       Kind = "slots"       // places for calls, in the target or behind it: workers, a pool, a lock
	Connections Kind = "connections" // so many connections are served at a time
	RateLimit   Kind = "rate-limit"  // a limit that somebody has set on calls per time
	Bandwidth   Kind = "bandwidth"   // bytes per time
	Collector   Kind = "collector"   // garbage collection
	Disk        Kind = "disk"        // threads wait for a disk
	Unknown     Kind = "unknown"
)

// The scopes of a limit.
const (
	EachCaller = "each caller" // it counts each caller by itself
	AllCallers = "all callers" // it counts all callers together
)

// A Verdict is what sets the rate.
type Verdict struct {
	Kind      Kind                `json:"kind"`
	Certainty signature.Certainty `json:"certainty"`
	// Value is the setting where it is known, in a few words: "100m", "about 4 in flight", "150/s".
	Value string `json:"value,omitempty"`
	// Scope says whose limit it is: "each caller", "all callers"; "" where that was not tried.
	Scope string `json:"scope,omitempty"`
	// Operations are the only ones whose calls the limit refuses; empty: those of all, or that is not known.
	Operations []string `json:"operations,omitempty"`

	Evidence []string              `json:"evidence,omitempty"` // sentences, the strongest first
	Excluded []signature.Exclusion `json:"excluded,omitempty"`
	// Prediction follows from the limit; nil: it predicts nothing that can be tried.
	Prediction *Prediction `json:"prediction,omitempty"`
}

// A Prediction says what another setting of the limit would do.
type Prediction struct {
	Change string `json:"change"` // the other setting: "a CPU quota of 200m"
	// Rate is what follows for it, in 1/s, with the interval of the rate that it was computed from.
	Rate float64 `json:"rate"`
	Lo   float64 `json:"lo"`
	Hi   float64 `json:"hi"`
	// Tried is what was measured with it; nil: it was not tried. How says how one may try it.
	Tried *Tried `json:"tried,omitempty"`
	How   string `json:"how,omitempty"`
}

// Tried is what a prediction came to.
type Tried struct {
	Rate float64 `json:"rate"` // 1/s, with its interval
	Lo   float64 `json:"lo"`
	Hi   float64 `json:"hi"`
	Came bool    `json:"came"` // whether what was predicted came about
}
