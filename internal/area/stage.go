package area

import (
	"context"

	"tare/internal/design"
)

// A Stage is a state that a target is brought into before load that asks for it.
type Stage string

// The stages. The area knows what is cached, and how.
const (
	Warm     Stage = "warm"     // everything that can be cached is in the cache
	Cold     Stage = "cold"     // the cache is empty
	Renewed  Stage = "renewed"  // everything cached was obtained just now, all at once, so it also expires all at once
	Rebooted Stage = "rebooted" // the server was restarted: its cache and all connections are lost
)

// A Stager is a Target that can be brought into stages.
type Stager interface {
	Stage(ctx context.Context, t design.Treatment, s Stage) error
}

// A Staged is a Spec that says which stages its target can be brought into.
type Staged interface {
	Stages() []Stage
}
