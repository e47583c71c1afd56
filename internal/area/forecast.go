package area

import "tare/internal/design"

// A Forecaster is a Spec that says before a run what its trials will measure, so that budgets for anything else can be
// rejected.
type Forecaster interface {
	// Forecast returns the forecast for one treatment. It is arbitrary for a treatment that Validate rejects.
	Forecast(q design.Question, t design.Treatment) Forecast
}

// A Forecast is what the trials of a treatment will measure.
type Forecast struct {
	Operations []string // those of the area's own mix; nil: only the run will tell
	Idle       []string // those that do nothing
	Metrics    []string // of the target's processes and its own counts, or of batches
	Open       bool     // there may be further metrics
	Rounds     int      // batches of an operation in a block; 0: not known
	// Unread says why the target's processes cannot be read, and Instead what to do; empty: they can.
	Unread, Instead string
}

// ProcessMetrics returns the metrics of every process of a target that tare can read.
func ProcessMetrics() []string { return []string{"cpu", "rss", "threads", "fds"} }
