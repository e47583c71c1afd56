// Package guard judges whether a control refuses what it must: from stretches of load with trespasses, and their calls.
// It is pure.
package guard

import (
	"fmt"
	"time"

	"tare/internal/load"
)

// The names of the record's entries that package guard reads.
const (
	StepPoint  = "guard-point"
	StepBreach = "breach"
	StepEnd    = "guard-end"
)

// A Point is a stretch of steady load with trespasses in it. Instants are on the stream's clock.
type Point struct {
	Name string  `json:"name"`
	Rate float64 `json:"rate"` // 1/s, that was to be offered
	// Factor is the rate as a multiple of the capacity; 0: the capacity is not known.
	Factor  float64      `json:"factor,omitempty"`
	Segment load.Segment `json:"segment"`
	// TargetCPU is the processor time that the target used meanwhile, in seconds; nil: not known.
	TargetCPU *float64 `json:"target_cpu,omitempty"`
	// Read is when the calls were read: those that had not ended by then were not decided.
	Read time.Duration `json:"read"`
	// Refined marks a point that narrows down the rate from which trespasses are permitted.
	Refined bool `json:"refined,omitempty"`
	// Condition is what happened to the target meanwhile; nil: nothing.
	Condition *Condition `json:"condition,omitempty"`
}

// A Condition is what happened to a target under load.
type Condition struct {
	Name string `json:"name"`
	Does string `json:"does,omitempty"`
	// Begun is when it was begun to be imposed, Imposed when it was in force, and Ended when it had been lifted; 0: it did
	// not come to that.
	Begun   time.Duration `json:"begun"`
	Imposed time.Duration `json:"imposed,omitempty"`
	Ended   time.Duration `json:"ended,omitempty"`
	// Error says why it could not be brought about, or ended.
	Error string `json:"error,omitempty"`
	// Spans are what the area measured meanwhile, by metric.
	Spans map[string][]Span `json:"spans,omitempty"`
}

// A Span is a time in seconds: it had not ended after Least, and had ended after Most; nil: it was never seen to end.
type Span struct {
	Least float64  `json:"least"`
	Most  *float64 `json:"most,omitempty"`
}

// A Breach is a trespass that was permitted.
type Breach struct {
	Operation string        `json:"operation"`
	Call      uint64        `json:"call"` // its number in the stream
	At        time.Duration `json:"at"`   // when it was answered, on the stream's clock
	Status    int           `json:"status,omitempty"`
	// Request and Answer are descriptions without secrets; empty: the operation has none.
	Request     string `json:"request,omitempty"`
	Answer      string `json:"answer,omitempty"`
	AnswerBytes int    `json:"answer_bytes,omitempty"`
	InFlight    int    `json:"in_flight"` // calls, at that instant
	Waiting     int    `json:"waiting,omitempty"`
	// Again is the outcome of the same trespass, asked once more without other load: "permitted": it does
	// not need the load; "denied": it may need it, or be rare; "": it was not asked.
	Again string `json:"again,omitempty"`
}

// longestRun bounds the instants of a record that is not damaged.
const longestRun = 366 * 24 * time.Hour

// Check finds damage in a point that was read from a record.
func (p *Point) Check() error {
	instants := []time.Duration{p.Segment.Start, p.Segment.End, p.Read}
	if c := p.Condition; c != nil {
		instants = append(instants, c.Begun, c.Imposed, c.Ended)
	}
	for _, at := range instants {
		if at < 0 || at > longestRun {
			return fmt.Errorf("the point %.40q has the instant %v", p.Name, at)
		}
	}
	if p.Segment.End < p.Segment.Start || !(p.Rate >= 0 && p.Rate < 1e12) || !(p.Factor >= 0 && p.Factor < 1e12) {
		return fmt.Errorf("the point %.40q is from %v to %v at %v/s", p.Name, p.Segment.Start, p.Segment.End, p.Rate)
	}
	return nil
}
