package record

import (
	"time"

	"tare/internal/load"
	"tare/internal/metric"
)

// A Slice is a short stretch of a soak: what came of the calls that ended in it, and a reading of the probes at its end. Slices follow
// each other without a gap; a long run keeps these instead of its calls. A slow reading of the probes delays the end of the slice after
// it, so that slices may differ in length. The last slice of a trial also holds the calls that ended after its End, having been due before
// it; calls that an interrupt left without an end are in Due and in no operation.
type Slice struct {
	Treatment string        `json:"treatment"`
	Block     int           `json:"block"`
	Start     time.Duration `json:"start"` // on the trial's stream
	End       time.Duration `json:"end"`
	// WarmUp says that the slice lies before what is measured: it is shown, and is in no table, no trend and no histogram.
	WarmUp     bool             `json:"warm_up,omitempty"`
	Operations []SliceOperation `json:"operations,omitempty"` // those of which calls ended
	// Due, Sent and Unsendable are of the generator: calls that came due, were sent, and could not be sent as no connection was free.
	Due        uint64 `json:"due"`
	Sent       uint64 `json:"sent"`
	Unsendable uint64 `json:"unsendable,omitempty"`
	// LatenessP99 and LatenessMax are the generator's own delay of the calls that ended, in seconds; the quantile is absent (0) where there
	// were too few calls to tell it from the maximum. CPU is the generator's CPU time, in seconds.
	LatenessP99 float64 `json:"lateness_p99,omitempty"`
	LatenessMax float64 `json:"lateness_max,omitempty"`
	CPU         float64 `json:"cpu,omitempty"`
	// Samples are the probes' values, read right after the slice's end, not differences; their At is on the trial's stream. What could not
	// be read within a second is absent.
	Samples []metric.Sample `json:"samples,omitempty"`
}

// A SliceOperation is what came of one operation's calls in a slice. Times in seconds, over all outcomes; quantiles are of the slice's
// own histogram, and absent (0) where there were too few calls to tell them from the maximum.
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

// A SliceOutcome counts calls of an operation that ended with an outcome. Causes add up to Count where the outcome is not good.
type SliceOutcome struct {
	Outcome load.Outcome      `json:"outcome"`
	Count   uint64            `json:"count"`
	Unsent  uint64            `json:"unsent,omitempty"`
	Causes  []load.CauseCount `json:"causes,omitempty"`
}

// Ended is how many calls of the operation ended.
func (o *SliceOperation) Ended() uint64 {
	var n uint64
	for i := range o.Outcomes {
		n += o.Outcomes[i].Count
	}
	return n
}

// Answers hold the counts of answers on both sides of a trial against each other, over all of its load, warm-up included.
type Answers struct {
	Treatment string `json:"treatment"`
	Block     int    `json:"block"`
	// Seen are the answers that the calls got, by the words of load.Operation.Answer.
	Seen map[string]uint64 `json:"seen"`
	// Unanswered are calls that were sent and got none: the target may have counted them or not.
	Unanswered uint64 `json:"unanswered,omitempty"`
	// Before and After are the target's own counts around the load; After is what it said last. A target that was started anew in
	// between counts from 0.
	Before map[string]float64 `json:"before"`
	After  map[string]float64 `json:"after"`
	// Error says why the target's counts could not be read.
	Error string `json:"error,omitempty"`
}

// Slice writes a stretch of a soak.
func (w *Writer) Slice(s Slice) error { return w.put(KindSlice, s) }

// Answers writes the counts of both sides.
func (w *Writer) Answers(a Answers) error { return w.put(KindAnswers, a) }
