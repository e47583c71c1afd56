package area

import (
	"context"

	"tare/internal/design"
)

// A Ledger is a Target that counts its own answers, so that its counts can be compared with those of its callers.
type Ledger interface {
	// Counted are the target's own counts of answers so far, by the words of load.Operation.Answer ("permit", "deny"). It
	// changes none of them. Without an error and without counts, the target keeps none.
	Counted(ctx context.Context, t design.Treatment) (map[string]float64, error)
}

// A Trimmer is an Area that can say which treatments this host cannot have, so that the others are measured without
// them.
type Trimmer interface {
	// Trim splits treatments. For each that is left out a finding says which, why, and how to provide what it needs.
	Trim(ctx context.Context, s Spec, treatments []design.Treatment, env Env) (kept []design.Treatment, out []Finding)
}
