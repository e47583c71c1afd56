package area

import "time"

// A Batcher is a Spec whose operations have a clock of their own: they run at their own pace, in batches, and nothing is offered to them
// at a rate.
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
