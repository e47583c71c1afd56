package area

import "context"

// A Programmed area has its calls made by a program that it finds on this host, and starts in processes of its own.
type Programmed interface {
	// Program starts that program as a run of s would, has it say what it is, and ends it. Nothing is prepared, nothing is left.
	Program(ctx context.Context, s Spec, env Env) (Program, error)
}

// A Program is what was found.
type Program struct {
	// Identity tells the program from any other one, by what each word is of: "says that it is": "hash.py 1". The same program has the same, in a later process
	// of tare too: blocks of two programs cannot be mixed.
	Identity map[string]string
}
