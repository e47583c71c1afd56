package area

import "time"

// A Batcher is a Spec whose operations have a clock of their own: they run at their own pace, in batches, and nothing
// is offered to them at a rate.
type Batcher interface {
	// Batches are the operations of one trial, for a forecast of how long it takes.
	Batches() []Batches
}

// Batches are the batches of one operation in one trial.
type Batches struct {
	Operation string
	Rounds    int           // batches
	Span      time.Duration // of one batch
}

// What holds where neither a file nor an operation says how many batches make a trial, and how long one lasts.
const (
	UsualRounds = 16
	UsualSpan   = 5 * time.Millisecond
)

// OrUsual fills in what is not said.
func (b Batches) OrUsual() Batches {
	if b.Rounds == 0 {
		b.Rounds = UsualRounds
	}
	if b.Span == 0 {
		b.Span = UsualSpan
	}
	return b
}
