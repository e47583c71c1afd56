package record

import (
	"time"

	"tare/internal/load"
	"tare/internal/metric"
)

// A Slice is a short period of a soak: the results of the calls that ended in it, and a reading of the probes at its
// end. Slices are contiguous; a long run keeps them instead of its calls. A slow reading of the probes delays the end
// of the next slice, so slices may differ in length. The last slice of a trial also holds the calls that were scheduled
// before its End and ended after it; calls that an interrupt left pending are in Due and in no operation.
type Slice struct {
	Treatment string        `json:"treatment"`
	Block     int           `json:"block"`
	Start     time.Duration `json:"start"` // relative to the trial's stream
	End       time.Duration `json:"end"`
	// WarmUp says that the slice precedes the measured part: it is shown, but is in no table, trend or histogram.
	WarmUp     bool             `json:"warm_up,omitempty"`
	Operations []SliceOperation `json:"operations,omitempty"` // those with calls that ended
	// Due, Sent and Unsendable are the generator's counts: calls that were scheduled, were sent, and could not be sent
	// because no connection was free.
	Due        uint64 `json:"due"`
	Sent       uint64 `json:"sent"`
	Unsendable uint64 `json:"unsendable,omitempty"`
	// LatenessP50, LatenessP99 and LatenessMax are the generator's own delay of the calls that ended, in seconds. The
	// quantiles are absent (0) with too few calls to distinguish them from the maximum; LatenessP50 also in early
	// records. CPU is the generator's CPU time, in seconds.
	LatenessP50 float64 `json:"lateness_p50,omitempty"`
	LatenessP99 float64 `json:"lateness_p99,omitempty"`
	LatenessMax float64 `json:"lateness_max,omitempty"`
	CPU         float64 `json:"cpu,omitempty"`
	// Samples are the probes' values right after the slice's end, not differences; At is relative to the trial's stream. A
	// value that could not be read within a second is absent.
	Samples []metric.Sample `json:"samples,omitempty"`
}

// A SliceOperation is the result of one operation's calls in a slice. Times are in seconds, over all outcomes;
// quantiles are of the slice's own histogram, and absent (0) with too few calls to distinguish them from the maximum.
type SliceOperation struct {
	Operation string         `json:"operation"`
	Outcomes  []SliceOutcome `json:"outcomes"`
	Mean      float64        `json:"mean"` // response
	P50       float64        `json:"p50,omitempty"`
	P90       float64        `json:"p90,omitempty"`
	P99       float64        `json:"p99,omitempty"`
	Max       float64        `json:"max"`
	Service   float64        `json:"service,omitempty"` // mean
	BytesIn   uint64         `json:"bytes_in,omitempty"`
	BytesOut  uint64         `json:"bytes_out,omitempty"`
}

// A SliceOutcome counts calls of an operation with an outcome. Causes add up to Count unless the outcome is good.
type SliceOutcome struct {
	Outcome load.Outcome      `json:"outcome"`
	Count   uint64            `json:"count"`
	Unsent  uint64            `json:"unsent,omitempty"`
	Causes  []load.CauseCount `json:"causes,omitempty"`
}

// Ended returns how many calls of the operation ended.
func (o *SliceOperation) Ended() uint64 {
	var n uint64
	for i := range o.Outcomes {
		n += o.Outcomes[i].Count
	}
	return n
}

// Answers are the counts of answers on both sides of a trial, over all of its load including warm-up.
type Answers struct {
	Treatment string `json:"treatment"`
	Block     int    `json:"block"`
	// Seen counts the answers that the calls received, by the words of load.Operation.Answer.
	Seen map[string]uint64 `json:"seen"`
	// Unanswered counts calls that were sent and not answered: the target may have counted them or not.
	Unanswered uint64 `json:"unanswered,omitempty"`
	// Before and After are the target's own counts before and after the load; After is its last reading. A target that
	// restarted meanwhile counts from 0.
	Before map[string]float64 `json:"before"`
	After  map[string]float64 `json:"after"`
	// Error says why the target's counts could not be read.
	Error string `json:"error,omitempty"`
}

// Slice writes a slice of a soak.
func (w *Writer) Slice(s Slice) error { return w.put(KindSlice, s) }

// Answers writes the counts of both sides.
func (w *Writer) Answers(a Answers) error { return w.put(KindAnswers, a) }
