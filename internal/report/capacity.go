package report

import (
	"cmp"

	"tare/internal/limit"
	"tare/internal/signature"
	"tare/internal/unit"
)

// Capacity is where a treatment breaks, and how.
type Capacity struct {
	Treatment string `json:"treatment"`
	Operation string `json:"operation,omitempty"` // empty: the whole mix
	Broke     bool   `json:"broke"`
	// Rate is the estimated capacity, the slope of good completions under overload; absent if it did not break.
	Rate *float64 `json:"rate,omitempty"`
	Lo   *float64 `json:"lo,omitempty"`
	Hi   *float64 `json:"hi,omitempty"`
	// AtLeast is a rate that holds, AtMost one that breaks, where there is no number between them. BrokeAbove is the
	// fastest step that a target kept up with that has stayed down since: no bound, as a step is short.
	AtLeast      *float64 `json:"at_least,omitempty"`
	AtMost       *float64 `json:"at_most,omitempty"`
	BrokeAbove   *float64 `json:"broke_above,omitempty"`
	VerifiedLow  *float64 `json:"verified_low,omitempty"`  // a rate that was seen to hold
	VerifiedHigh *float64 `json:"verified_high,omitempty"` // a rate that was seen to fail
	SLORate      *float64 `json:"slo_rate,omitempty"`      // the highest rate at which the latency objective held
	SLOFails     *float64 `json:"slo_fails,omitempty"`     // the lowest rate above it at which it did not
	Objective    *Latency `json:"objective,omitempty"`     // what the search was asked to hold; absent: nothing
	Burst        *float64 `json:"burst,omitempty"`         // calls beyond the rate that were served from a full bucket
	// Limit is what sets the rate, Failure what callers meet above it; both are absent if it did not break.
	Limit   *limit.Verdict     `json:"limit,omitempty"`
	Failure *signature.Failure `json:"failure,omitempty"`
	// Findings are what else was seen beside the failure.
	Findings []Finding `json:"findings,omitempty"`
	// Wedged says that the recovery probe failed, RecoverySeconds how long the target took to answer again, Recovery the
	// same in words. All absent or false: it was not probed.
	Wedged          bool     `json:"wedged"`
	RecoverySeconds *float64 `json:"recovery_seconds,omitempty"`
	Recovery        string   `json:"recovery,omitempty"`
	Phases          int      `json:"phases"`
	Seconds         float64  `json:"seconds"`
	// Valid is false where the generator was the limit: then nothing is said about the target.
	Valid bool `json:"valid"`
	// Stop says why the search ended: "found", "max-rate", "client", "no-answer", "failing", "time", "canceled", "down",
	// "refusing", "ladder", "not-recovered"; Reason says it in a sentence.
	Stop   string  `json:"stop,omitempty"`
	Reason string  `json:"reason,omitempty"`
	Points []Point `json:"points,omitempty"` // of a ladder
}

// Latency is a latency objective: at most this share of the calls takes longer than the limit.
type Latency struct {
	Limit float64 `json:"limit"` // seconds
	Share float64 `json:"share"`
	// Reason says why no rate is known to hold it or to miss it; absent: one is.
	Reason string `json:"reason,omitempty"`
}

func (l *Latency) String() string {
	return "at most " + unit.Decimal(100*l.Share, 5) + "% of the calls take longer than " + unit.Seconds(l.Limit)
}

// Finding is something that was seen beside the class of a failure: "cold-start", "autoscaling", "spent-credits",
// "limit-per-caller", "limit-shared", "stays-down".
type Finding struct {
	Kind     string `json:"kind"`
	Sentence string `json:"sentence"`
}

// belowHeld says of a lower bound that it is not the rate that was verified to hold; "" where it is.
func (c *Capacity) belowHeld() string {
	if c.VerifiedLow == nil || *c.VerifiedLow <= *c.AtLeast {
		return ""
	}
	return " (the margin below " + unit.PerSecond(*c.VerifiedLow) + ", which held)"
}

// Bound says what is known of a capacity that is not a number: a clause without its subject; "" where nothing is known.
func (c *Capacity) Bound() string {
	since := "stayed down"
	if !c.Wedged {
		since = "did not answer as before since"
	}
	switch {
	case c.Stop == "refusing" && c.BrokeAbove != nil:
		return "broke above " + unit.PerSecond(*c.BrokeAbove) + " and refuses all calls since"
	case c.Stop == "refusing":
		return "broke and refuses all calls since; no rate was seen to hold"
	case c.Stop == "down" && c.BrokeAbove != nil:
		return "broke above " + unit.PerSecond(*c.BrokeAbove) + " and " + since
	case c.Stop == "down":
		return "broke and " + since + "; no rate was seen to hold"
	case c.AtLeast != nil && c.AtMost != nil:
		held := cmp.Or(c.belowHeld(), ", which held,")
		return "between " + unit.PerSecond(*c.AtLeast) + held + " and " + unit.PerSecond(*c.AtMost) + ", which broke"
	case c.AtLeast != nil && c.Broke:
		return "at least " + unit.PerSecond(*c.AtLeast) + c.belowHeld() + "; the rate at which it breaks was not found"
	case c.AtLeast != nil:
		return "at least " + unit.PerSecond(*c.AtLeast)
	case c.AtMost != nil:
		return "below " + unit.PerSecond(*c.AtMost) + ", which broke; no rate was seen to hold since the last overload"
	case c.Broke:
		return "not known: it broke, and no rate was seen to hold or to break for certain since the last overload"
	}
	return ""
}

// Point is one rate of a ladder, or one workload.
type Point struct {
	Name    string  `json:"name,omitempty"` // of a workload: "pod-start ×200"
	Rate    float64 `json:"rate"`           // to be offered, 1/s
	Seconds float64 `json:"seconds"`        // length of the window
	Offered uint64  `json:"offered"`        // calls that were due in the window
	Sent    uint64  `json:"sent"`           // of these, sent at all
	// Success is the share of the offered calls that were answered well, however late.
	Success *float64 `json:"success,omitempty"`
	// Goodput counts the calls that were answered well within the window, per second of it; GoodputSLO only those within
	// the latency objective.
	Goodput    *float64 `json:"goodput,omitempty"`
	GoodputSLO *float64 `json:"goodput_slo,omitempty"`
	// Response times of all calls that ended; a timeout counts as long as it took.
	P50 *float64 `json:"p50,omitempty"`
	P90 *float64 `json:"p90,omitempty"`
	P99 *float64 `json:"p99,omitempty"`
	Max *float64 `json:"max,omitempty"`
	// P99Own is how much of p99 the generator's own delays are at most.
	P99Own *float64 `json:"p99_own,omitempty"`
	// Failures by phase: never sent, sent without a byte back, and an answer that was not the expected one.
	NoConnection uint64 `json:"no_connection"`
	NoByte       uint64 `json:"no_byte"`
	BadStatus    uint64 `json:"bad_status"`
	// Stuck are calls on an established connection that never carried an answer; a full listen queue holds backlog + 1 of
	// them.
	Stuck           uint64   `json:"stuck"`
	DrainSeconds    float64  `json:"drain_seconds"`              // from the window's end to that of the last call
	LastFailedSent  *float64 `json:"last_failed_sent,omitempty"` // when in the window the last call was sent that failed
	RecoverySeconds *float64 `json:"recovery_seconds,omitempty"` // until fresh calls were answered again
	// VegetaThroughput is successes ÷ (window + wait for the last answer), what the load generator vegeta calls
	// throughput. One timeout ruins it; it is here for comparison with published tables only.
	VegetaThroughput *float64   `json:"vegeta_throughput,omitempty"`
	Generator        *Generator `json:"generator,omitempty"`
	// ListenQueue is how many connections waited to be accepted at the window's end.
	ListenQueue *int `json:"listen_queue,omitempty"`
	// Used is what the target's probes saw from the window's beginning until the last call had ended, by "subject metric":
	// the difference of a counter, the last value of a gauge.
	Used map[string]float64 `json:"used,omitempty"`
}
