package area

import (
	"context"

	"tare/internal/design"
)

// A Ledger is a Target that counts its own answers, so that its counts can be compared with those of its callers.
type Ledger interface {
	// Counted returns the target's own counts of answers so far, by the words of load.Operation.Answer ("permit", "deny"),
	// without adding to them. It returns nil without an error if the target keeps no counts.
	Counted(ctx context.Context, t design.Treatment) (map[string]float64, error)
}

// A Trimmer is an Area that can leave out the treatments that this host does not support, so that the others are
// measured.
type Trimmer interface {
	// Trim returns the supported treatments, and findings that say which ones are left out, why, and how to provide what
	// they need.
	Trim(ctx context.Context, s Spec, treatments []design.Treatment, env Env) (kept []design.Treatment, out []Finding)
}
