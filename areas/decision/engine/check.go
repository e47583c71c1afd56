package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"tare/areas/bundle"
	"tare/internal/kit"
	"tare/internal/proc"
)

const (
	// checkWithin bounds the compilation of a bundle, and the search for proofs.
	checkWithin = time.Minute
	// checkWith bounds the memory of that, and ServeWith that of an engine which serves a bundle, in bytes: see Memory.
	checkWith = 1 << 30
	ServeWith = 4 << 30
	// mostSource bounds a file of which a line is shown.
	mostSource = 4 << 20
)

// A Rejection says what an engine does not take of a bundle.
type Rejection struct{ Problems []string }

// Error implements error.
func (r *Rejection) Error() string { return strings.Join(r.Problems, "\n") }

// Check has the engine take a bundle, as it would when it loads that. What it does not take is a *Rejection, each
// problem with its place in the user's file. An opa that was found in PATH checks nothing before it starts.
func (l Launch) Check(ctx context.Context, from string, v0 bool) error {
	if l.Kind == OpenFGA {
		return l.checkStore(ctx, from)
	}
	if !l.CanProve() {
		return nil
	}
	at, err := filepath.Abs(from)
	if err != nil {
		return err
	}
	return l.problems(ctx, from, Config{File: at, Own: true, V0: v0, Check: true}, func(file string) string {
		return strings.Replace(file, at, from, 1) // as the user wrote it
	})
}

// problems asks the program what is wrong with what a line tells, and returns that as a *Rejection. name is how the
// user names a file; nil: as the program does.
func (l Launch) problems(ctx context.Context, from string, line any, name func(string) string) error {
	var answer struct {
		Problems []struct {
			bundle.Place
			Says string
		}
	}
	if err := l.tell(ctx, from, line, &answer); err != nil {
		return fmt.Errorf("compile %s: %w", from, err)
	}
	if len(answer.Problems) == 0 {
		return nil
	}
	r := &Rejection{}
	for _, p := range answer.Problems {
		if p.Line == 0 {
			r.Problems = append(r.Problems, p.Says)
			continue
		}
		text, err := kit.ReadText(p.File, mostSource)
		if err != nil {
			text = nil // it is inside of a bundle
		}
		if name != nil {
			p.File = name(p.File)
		}
		r.Problems = append(r.Problems, p.Show(string(text), p.Says))
	}
	return r
}

// tell runs the program for one line about a bundle, and reads its answer.
func (l Launch) tell(ctx context.Context, from string, line, answer any) error {
	text, err := json.Marshal(line)
	if err != nil {
		return err
	}
	most, err := Memory(checkWith, from)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, checkWithin)
	defer cancel()
	said := &proc.Tail{}
	var out bytes.Buffer
	cmd := proc.Command(ctx, l.Path)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(append(text, '\n')), &out, said
	cmd.Memory = most
	if err := cmd.Run(); err != nil {
		if ctx.Err() == nil && said.RanOutOfMemory() {
			return fmt.Errorf("its rules or tests take more than %d MiB of memory", most>>20)
		}
		return fmt.Errorf("%w: %s", errors.Join(ctx.Err(), err), said.LastLine())
	}
	return json.Unmarshal(out.Bytes(), answer)
}

// Memory is what an engine in Go may take for a bundle, in bytes: so much, and 32 bytes for each of the bundle's. A few
// rules can ask for more than any memory.
func Memory(most uint64, from string) (uint64, error) {
	err := bundle.Each(from, func(_ string, text []byte) error {
		most += 32 * uint64(len(text))
		return nil
	})
	return most, err
}
