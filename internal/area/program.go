package area

import (
	"context"
	"time"

	"tare/internal/design"
)

// A Programmed area makes its calls through a program that it finds on this host and starts as child processes.
type Programmed interface {
	// Program starts that program as a run of s would, lets it describe itself, and ends it. It prepares nothing and
	// leaves nothing behind. With Env.Look it builds no program: the identity is then nil, and the times are assumed.
	Program(ctx context.Context, s Spec, env Env) (Program, error)
}

// A Filed area reads files that the treatments name, such as profiles.
type Filed interface {
	// Contents distinguishes the files from all others, by name: their SHA-256. So blocks that were measured with other
	// contents are never mixed. nil: the treatments name no file.
	Contents(s Spec, treatments []design.Treatment) (map[string]string, error)
}

// A Program describes the program that an area found.
type Program struct {
	// Identity distinguishes the program from all others, by property: "says that it is": "hash.py 1". It is stable across
	// processes of tare, so that blocks of two programs are never mixed.
	Identity map[string]string
	// Once is the time that all treatments (Env.Treatments) together take before the first block and after the last one,
	// and Block the time that they take in each block besides their batches, to start and prepare processes. Both are for
	// a forecast.
	Once, Block time.Duration
	// Batches are those that the program describes; empty: they are those of the Batcher.
	Batches []Batches
	// Counts says in words what these times include and what is assumed, for the plan: "…, each 0.1 s as just now".
	Counts string
}
