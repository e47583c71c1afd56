package area

import "time"

// A Batcher is a Spec whose operations time themselves: they run in batches at their own pace, not at an offered rate.
type Batcher interface {
	// Batches returns the batches of each operation in one trial, for a forecast of its duration.
	Batches() []Batches
}

// Batches are the batches of one operation in one trial.
type Batches struct {
	Operation string
	Rounds    int           // batches
	Span      time.Duration // of one batch
	NoCPU     bool          // its CPU time is not compared
}

// The defaults for how many batches make a trial, and how long one lasts.
const (
	UsualRounds = 16
	UsualSpan   = 5 * time.Millisecond
)

// OrUsual fills in the defaults.
func (b Batches) OrUsual() Batches {
	if b.Rounds == 0 {
		b.Rounds = UsualRounds
	}
	if b.Span == 0 {
		b.Span = UsualSpan
	}
	return b
}
