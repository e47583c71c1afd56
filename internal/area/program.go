package area

import (
	"context"
	"time"
)

// A Programmed area has its calls made by a program that it finds on this host, and starts in processes of its own.
type Programmed interface {
	// Program starts that program as a run of s would, has it say what it is, and ends it. Nothing is prepared, nothing is
	// left. With Env.Look a program that would first have to be built is not: then its identity is nil, and its times are
	// assumed.
	Program(ctx context.Context, s Spec, env Env) (Program, error)
}

// A Program is what was found.
type Program struct {
	// Identity tells the program from any other one, by what each word is of: "says that it is": "hash.py 1". The same
	// program has the same, in a later process of tare too: blocks of two programs cannot be mixed.
	Identity map[string]string
	// Once is what all treatments (Env.Treatments) take together before the first block and after the last one, Block what
	// they take in each block besides their batches: processes start, and prepare. For a forecast.
	Once, Block time.Duration
	// Counts says in words what is in these times, and what of it is assumed, for the plan: "…, each 0.1 s as just now".
	Counts string
}
