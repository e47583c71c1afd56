package signature

// Certainty says how well a statement about a target is founded. Its word is the same in all outputs.
type Certainty string

// The certainties.
const (
	Shown    Certainty = "shown"                  // observed directly, or predicted and then observed
	Likely   Certainty = "likely"                 // the evidence supports it, and excludes some alternatives
	NotKnown Certainty = "not known from outside" // several explanations remain
)

// An Exclusion is an alternative that an observation contradicts.
type Exclusion struct {
	What string `json:"what"` // the alternative, in a few words: "a limit on connections"
	By   string `json:"by"`   // the observation, a clause: "the rate is the same with 32 connections"
}

// A Failure is what callers meet above the limit.
type Failure struct {
	// Class never names what only sets the rate: of a CPU quota, callers meet a queue.
	Class     Class             `json:"class"`
	Certainty Certainty         `json:"certainty"`
	Evidence  []string          `json:"evidence,omitempty"` // sentences, the strongest first
	Excluded  []Exclusion       `json:"excluded,omitempty"`
	Scores    map[Class]float64 `json:"scores,omitempty"` // of all classes, 0…1
}

// Failure is what callers met, by the verdict. A class that only says what sets the rate is met as a queue.
func (v Verdict) Failure() Failure {
	f := Failure{Class: v.Class, Certainty: Likely, Evidence: v.Evidence, Scores: v.Scores}
	switch v.Class {
	case CPUThrottling:
		f.Class = Queue
	case Unknown, "":
		f.Class, f.Certainty = Unknown, NotKnown
	}
	if v.RunnerUp != "" && v.Against != "" {
		f.Excluded = []Exclusion{{What: string(v.RunnerUp), By: v.Against}}
	}
	return f
}
