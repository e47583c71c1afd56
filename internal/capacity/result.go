package capacity

import "tare/internal/signature"

// Result is the answer of a search. A float that is 0 and may be left out is unknown.
type Result struct {
	// Broke is whether a rate was found at which the target breaks.
	Broke bool `json:"broke"`
	// Rate is the capacity in calls per second, with its interval at Level. It is the rate of calls that the target can
	// take: where a share of all calls fails at any rate, those count as taken.
	Rate  float64 `json:"rate,omitempty"`
	Lo    float64 `json:"lo,omitempty"`
	Hi    float64 `json:"hi,omitempty"`
	Level float64 `json:"level,omitempty"`
	// AtLeast is a rate that holds, AtMost one that breaks, where there is no number between them.
	AtLeast float64 `json:"at_least,omitempty"`
	AtMost  float64 `json:"at_most,omitempty"`
	// BrokeAbove is the fastest step that a target kept up with that has stayed down since. It is not a bound: a step is
	// short.
	BrokeAbove float64 `json:"broke_above,omitempty"`
	// VerifiedLow is the highest rate that was tried and held, VerifiedHigh the lowest that was tried and broke.
	VerifiedLow  float64 `json:"verified_low,omitempty"`
	VerifiedHigh float64 `json:"verified_high,omitempty"`
	// SLORate is the highest rate at which the latency objective held.
	SLORate float64 `json:"slo_rate,omitempty"`
	// SLOFails is the lowest rate above it at which the objective did not hold.
	SLOFails float64 `json:"slo_fails,omitempty"`
	// Burst is how many calls above the capacity the target took before it broke; nil where that has no meaning.
	Burst *float64 `json:"burst,omitempty"`
	// Signature is how it broke.
	Signature signature.Verdict `json:"signature"`
	// Findings are what else was seen beside the class, such as a cold start.
	Findings []Finding `json:"findings,omitempty"`
	// Wedged is whether the target failed to come back after the load.
	Wedged bool `json:"wedged"`
	// RecoverySeconds is how long it took to come back; nil if it did not or was not asked.
	RecoverySeconds *float64 `json:"recovery_seconds,omitempty"`
	// IdleDropped is whether it came back (if it did) only after the client had closed its idle connections.
	IdleDropped bool `json:"idle_dropped,omitempty"`
	// RecoveryNote is the recovery in a sentence.
	RecoveryNote string `json:"recovery_note,omitempty"`
	// Phases counts the ramp, overloads, fills and confirmations; Seconds is how long they took, without the recovery.
	Phases  int     `json:"phases"`
	Seconds float64 `json:"seconds"`
	// Attempts counts confirmations, Undecided those that noise left open.
	Attempts  int `json:"attempts"`
	Undecided int `json:"undecided"`
	// ErrorFloor is the share of calls that fails at any rate.
	ErrorFloor float64 `json:"error_floor,omitempty"`
	// BaseP50 and BaseP99 are response times well below capacity, in seconds.
	BaseP50 float64 `json:"base_p50,omitempty"`
	BaseP99 float64 `json:"base_p99,omitempty"`
	// Valid is false where the generator was the limit, so that nothing is said about the target. Reason says why the
	// search stopped.
	Valid  bool   `json:"valid"`
	Stop   Stop   `json:"stop"`
	Reason string `json:"reason,omitempty"`
	Audit  Audit  `json:"audit"`
	// Warnings are sentences that every report must carry.
	Warnings []string `json:"warnings,omitempty"`
}

// Audit is what the generator did in a stretch of load.
type Audit = signature.Audit

// Point is one row of a ladder. Durations are in seconds; a quantile that is 0 and may be left out is unknown.
type Point struct {
	Name string `json:"name,omitempty"` // of a point that is more than a rate
	// ListenQueue is how many connections waited to be accepted at the window's end; nil: not to be seen.
	ListenQueue *int    `json:"listen_queue,omitempty"`
	Rate        float64 `json:"rate"`    // to be offered, 1/s
	Seconds     float64 `json:"seconds"` // length of the window
	Offered     int     `json:"offered"` // calls that were due in the window
	Sent        int     `json:"sent"`    // of these, sent at all
	// Success is the share of the offered calls that ended well, whenever that was.
	Success float64 `json:"success"`
	// OKInWindow is how many ended well within the window, Goodput that number per second of it.
	OKInWindow int     `json:"ok_in_window"`
	Goodput    float64 `json:"goodput"`
	// GoodputSLO counts only calls that ended well within the latency objective, per second; nil without an objective.
	GoodputSLO *float64 `json:"goodput_slo,omitempty"`
	// Drain is how long after the window the last call ended.
	Drain float64 `json:"drain"`
	// Response times of all calls that ended, timeouts included.
	P50 float64 `json:"p50,omitempty"`
	P90 float64 `json:"p90,omitempty"`
	P99 float64 `json:"p99,omitempty"`
	Max float64 `json:"max,omitempty"`
	// P99Own is how much of P99 the generator's own delays are at most.
	P99Own float64 `json:"p99_own,omitempty"`
	// Failures by phase.
	NoConnection int `json:"no_connection"` // never sent
	NoByte       int `json:"no_byte"`       // sent, and never a byte back
	BadStatus    int `json:"bad_status"`    // an answer, but not the expected one
	// Stuck counts calls whose connection was established and never carried an answer; a full listen queue holds backlog +
	// 1 of them.
	Stuck int `json:"stuck"`
	// LastFailedSent is when, after the window began, the last call was sent that failed; nil when none failed.
	LastFailedSent *float64 `json:"last_failed_sent,omitempty"`
	// VegetaThroughput is success ÷ (attack + wait), which one timeout ruins; for comparison with other reports only.
	VegetaThroughput float64 `json:"vegeta_throughput"`
	// RecoverySeconds is how long after the point fresh calls took to be answered again; nil if they were not.
	RecoverySeconds *float64 `json:"recovery_seconds,omitempty"`
	Audit           Audit    `json:"audit"`
}
