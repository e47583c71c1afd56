package area

import (
	"context"

	"tare/internal/design"
)

// A Stage is a state that a target is brought into before load that asks for it.
type Stage string

// The stages. What is cached, and what makes it so, is the area's to know.
const (
	Warm     Stage = "warm"     // whatever is cached is in the cache
	Cold     Stage = "cold"     // nothing is
	Renewed  Stage = "renewed"  // everything that is cached was obtained just now, at once, so that it also expires at once
	Rebooted Stage = "rebooted" // the server was started anew: its cache and all connections are lost
)

// A Stager is a Target that can be brought into stages.
type Stager interface {
	Stage(ctx context.Context, t design.Treatment, s Stage) error
}

// A Staged is a Spec that says which stages its target can be brought into.
type Staged interface {
	Stages() []Stage
}
