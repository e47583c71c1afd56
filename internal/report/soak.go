package report

import (
	"encoding/json"

	"tare/internal/metric"
)

// Soak is how a long run developed: one entry for each operation, and one with an empty Operation for the whole.
type Soak struct {
	Treatment string `json:"treatment"`
	Operation string `json:"operation"` // empty: all operations, and the target
	// Windows is the file beside the report that holds every window: comma-separated values.
	Windows string `json:"windows,omitempty"`
	// Drift are the trends after the warm-up, by metric: "response.mean", "response.p99", "cpu" (per good call), "rss". Of
	// all operations together p99 is the mean of theirs, by their calls.
	Drift map[string]Drift `json:"drift,omitempty"`
	// Restarts are when the target's process was replaced, in seconds since the load began.
	Restarts []float64 `json:"restarts,omitempty"`

	// The rest is of the whole only.
	Seconds       float64  `json:"seconds,omitempty"`         // measured: without the warm-up
	WarmUpSeconds float64  `json:"warm_up_seconds,omitempty"` // load before that
	Planned       float64  `json:"planned,omitempty"`         // seconds that were to be measured
	WindowSeconds float64  `json:"window_seconds,omitempty"`  // of one window
	Workers       int      `json:"workers,omitempty"`         // of a closed loop
	Rate          float64  `json:"rate,omitempty"`            // of an open loop, 1/s
	Outages       []Outage `json:"outages,omitempty"`
	Stalls        []Stall  `json:"stalls,omitempty"`
	// Behind is for how many of the measured seconds the generator did not keep up: in these windows it sent most calls
	// late. BehindWhy says what held it up, as far as the host's account says.
	Behind    float64 `json:"behind,omitempty"`
	BehindWhy string  `json:"behind_why,omitempty"`
	Total     *Total  `json:"total,omitempty"`
	// Disputed is by how many answers of one kind the target's own count differs at most from that of its callers, warm-up
	// included.
	Disputed float64  `json:"disputed,omitempty"`
	Moments  []Moment `json:"moments,omitempty"` // the run in at most 360 points, warm-up included
}

// Total sums up all operations of a soak.
type Total struct {
	Operation
	// CPUPerOp is the CPU time of all parts of the target for each call that was answered well, in CPU-seconds.
	CPUPerOp *float64 `json:"cpu_per_op,omitempty"`
}

// Outage is a stretch in which no call was answered well. Times in seconds since the load began.
type Outage struct {
	Start float64 `json:"start"`
	End   float64 `json:"end"`
	Calls uint64  `json:"calls"` // that ended badly in it
}

// Stall is a time within windows of an open loop in which nearly none of the calls that came due was answered. It is no
// outage, since each of its windows has good answers. In seconds.
type Stall struct {
	Ended   float64 `json:"ended"`   // the begin of the window in which its calls were answered, since the load began
	Seconds float64 `json:"seconds"` // how long the call waited that waited longest
}

// Moment is a stretch of a soak: one window, or several that were joined. Times in seconds since the load began.
type Moment struct {
	Start      float64            `json:"start"`
	End        float64            `json:"end"`
	WarmUp     bool               `json:"warm_up,omitempty"`
	Good       float64            `json:"good"` // calls answered well, 1/s
	Bad        float64            `json:"bad"`  // calls that ended badly, 1/s
	Operations []MomentOperation  `json:"operations,omitempty"`
	CPU        *float64           `json:"cpu,omitempty"`  // CPU-seconds of the target per good call
	RSS        *float64           `json:"rss,omitempty"`  // of all parts of the target, bytes
	Heap       *float64           `json:"heap,omitempty"` // used, bytes
	GC         *float64           `json:"gc,omitempty"`   // share of the time in collections
	Restarted  bool               `json:"restarted,omitempty"`
	Other      map[string]float64 `json:"other,omitempty"`
}

// MomentOperation is one operation in a Moment. Times in seconds; quantiles of joined windows are the means of their
// quantiles.
type MomentOperation struct {
	Operation string   `json:"operation"`
	Calls     uint64   `json:"calls"`
	Bad       uint64   `json:"bad,omitempty"`
	Mean      float64  `json:"mean"`
	P50       *float64 `json:"p50,omitempty"`
	P99       *float64 `json:"p99,omitempty"`
	Max       float64  `json:"max"`
}

// Drift is a trend: the slope of a line through the means of windows, with an interval that allows for windows that
// hang together.
type Drift struct {
	PerHour float64       `json:"per_hour,omitempty"` // in Unit; of no meaning where Lo and Hi are absent
	Lo      *float64      `json:"lo,omitempty"`
	Hi      *float64      `json:"hi,omitempty"`
	Verdict EffectVerdict `json:"verdict"`
	Unit    metric.Unit   `json:"unit,omitempty"`
	Level   float64       `json:"level,omitempty"`
	// ChangedFrom and ChangedTo bound when the value changed, in seconds since the load began, where a change from one
	// level to another describes it and no line does: there is no slope then. JumpedAt is when it did if it did at once:
	// the bounds are at most three windows apart.
	ChangedFrom *float64 `json:"changed_from,omitempty"`
	ChangedTo   *float64 `json:"changed_to,omitempty"`
	JumpedAt    *float64 `json:"jumped_at,omitempty"`
	// Start and Total are the line's value where the measured time begins, and its change from there to the end, or the
	// level before a change, and the change.
	Start  float64 `json:"start,omitempty"`
	Total  float64 `json:"total,omitempty"`
	Margin float64 `json:"margin,omitempty"` // of Total relative to Start, that still counts as none
	N      int     `json:"n,omitempty"`      // windows
	Reason string  `json:"reason,omitempty"` // why there is no verdict or no interval, or what to bear in mind about it
}

// Known reports whether there is a slope: with too few windows there is none, only a reason.
func (d *Drift) Known() bool { return d.Lo != nil || d.Hi != nil || d.PerHour != 0 }

// Jumped reports whether the value changed from one level to another, at once or within a part of the time.
func (d *Drift) Jumped() bool { return d.ChangedFrom != nil && d.ChangedTo != nil }

// MarshalJSON leaves out a slope that is not known, and writes one of 0 that is.
func (d Drift) MarshalJSON() ([]byte, error) {
	type plain Drift
	out := struct {
		PerHour *float64 `json:"per_hour,omitempty"`
		plain
	}{plain: plain(d)}
	if d.Known() {
		out.PerHour = &d.PerHour
	}
	return json.Marshal(out)
}

// AnswerCheck holds the target's own count of one answer against that of its callers.
type AnswerCheck struct {
	Treatment  string  `json:"treatment"`
	Answer     string  `json:"answer"` // "permit"
	Client     uint64  `json:"client"`
	Target     float64 `json:"target"`
	Unanswered uint64  `json:"unanswered,omitempty"` // calls whose answer did not come: either side of the count is right
	Agrees     bool    `json:"agrees"`
	// Reason says why the two cannot be compared, or not exactly: the target was started anew in between. Empty: they can.
	Reason string `json:"reason,omitempty"`
}

// Heap is the memory of a program's heap. Values in bytes.
type Heap struct {
	Before    *float64 `json:"before,omitempty"`
	After     *float64 `json:"after,omitempty"`
	Committed *float64 `json:"committed,omitempty"`
}
