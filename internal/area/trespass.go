package area

import (
	"context"
	"time"

	"tare/internal/design"
	"tare/internal/load"
)

// A Trespasser is a Target that can ask for what its control must refuse.
type Trespasser interface {
	// Trespasses returns the must-refuse twins of the treatment's operations: operations with Twin set, at least one for
	// each operation that has something to refuse. They come from the same population of requests: as large, from the same
	// callers. The first call follows Prepare.
	Trespasses(t design.Treatment) ([]load.Operation, error)
}

// A Questioner is a Spec whose trespasses only ask: whatever their answer is, they change nothing and lock nobody out.
// A soak mixes a few of them in even if its file does not say so.
type Questioner interface {
	// Asks reports whether a mix (empty: the area's own) asks the control for decisions under some treatment.
	Asks(treatments []design.Treatment, mix []string) bool
}

// A Conditioner is a Target that can bring about conditions under which a control might no longer guard.
type Conditioner interface {
	// Conditions returns those that it can bring about under a treatment, by itself and on what it started itself.
	Conditions(t design.Treatment) []Condition
}

// The names of conditions that several areas have.
const (
	Restart   = "restart"   // the control's process is killed, and started again
	Slow      = "slow"      // what the control depends on takes longer
	Starved   = "starved"   // the control gets a fraction of the CPU time that it needs
	Reload    = "reload"    // the control's policies are replaced
	Partition = "partition" // what the control depends on cannot be reached
	ColdStart = "cold"      // the control begins without anything in its caches
	Revoke    = "revoke"    // a permission is withdrawn
)

// A Condition is something that happens to a target under load.
type Condition struct {
	Name string
	Does string // what is done, in a few words: "the endpoint's process is killed and started again"
	// Hold is how long it lasts once it has been imposed; 0: 5 s.
	Hold time.Duration
	// Idle says that it is brought about while no load is offered: its point begins when it is in force, and Hold does not
	// apply.
	Idle bool
	// Impose brings it about, and returns what ends it; nil: it has ended by itself. Both are called beside the load.
	// Whatever outlives this process is journaled first.
	Impose func(ctx context.Context) (lift func(context.Context) error, err error)
	// Figures returns what the area itself has measured while the condition lasted, in seconds by metric: "revoke". It is
	// called after the condition has ended. nil: nothing.
	Figures func() map[string][]float64
}

// A Conditioned is a Spec that says which conditions its target may be able to bring about.
type Conditioned interface {
	Conditions() []string
}

// An Explaining is a Conditioned that says why not.
type Explaining interface {
	// WhyNot says why its target cannot be brought into a condition under one of the treatments; empty: it can, or there
	// is no such condition.
	WhyNot(condition string, treatments []design.Treatment) string
}
