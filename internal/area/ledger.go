package area

import (
	"context"

	"tare/internal/design"
	"tare/internal/load"
)

// A Ledger is a Target that counts its own answers, so that its counts can be compared with those of its callers.
type Ledger interface {
	// Counted returns the target's own counts of answers so far, by the words of load.Operation.Answer ("permit", "deny"),
	// without adding to them. It returns nil without an error if the target keeps no counts.
	Counted(ctx context.Context, t design.Treatment) (map[string]float64, error)
}

// A Refuser is a Target with requests that it must refuse, besides those that a mix names.
type Refuser interface {
	// Refusals returns a call for each control that the operations of a mix ask and that none of them expects to refuse:
	// whoever only asks what is permitted cannot see that a control has ceased to act.
	Refusals(t design.Treatment, mix []string) ([]load.Operation, error)
}

// A Trimmer is an Area that can leave out the treatments that this host does not support, so that the others are
// measured.
type Trimmer interface {
	// Trim returns the supported treatments, and findings that say which ones are left out, why, and how to provide what
	// they need.
	Trim(ctx context.Context, s Spec, treatments []design.Treatment, env Env) (kept []design.Treatment, out []Finding)
}
