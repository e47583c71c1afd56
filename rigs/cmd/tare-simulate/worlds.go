package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"tare/rigs/simulation"
)

// worldStudy is what is asked of composed worlds.
type worldStudy struct {
	seed           uint64
	n, index       int
	only           string // worlds that are due to this part
	file           string // a kept case
	verbose, trace bool
	shrink         bool
	keep           string // file for the case
	truths         string // file that remembers the truths
}

func (s worldStudy) run(ctx context.Context, stdout, stderr io.Writer) error {
	if s.index >= 0 || s.file != "" {
		return s.one(ctx, stdout)
	}
	truths, err := simulation.OpenTruths(s.truths)
	if err != nil {
		return err
	}
	start, done := time.Now(), 0
	worlds, err := simulation.RunWorlds(ctx, simulation.WorldsOptions{
		Seed: s.seed, N: s.n, Workers: runtime.GOMAXPROCS(0), Only: simulation.PartKind(s.only), Truth: truths.Of,
		Done: func(o simulation.WorldOutcome) {
			if done++; done%500 == 0 {
				_, _ = fmt.Fprintf(stderr, "%d of %d worlds, %.0f s\n", done, s.n, time.Since(start).Seconds())
			}
			if s.verbose && len(o.Failures()) > 0 {
				_, _ = fmt.Fprintln(stderr, o.Line())
			}
		},
	})
	if s.truths != "" {
		err = errors.Join(err, truths.Save())
	}
	switch {
	case err != nil:
		return err
	case len(worlds.Outcomes) == 0:
		return fmt.Errorf("no world of %d is limited by %q", s.n, s.only)
	}
	return worlds.Write(stdout)
}

// one searches a single world.
func (s worldStudy) one(ctx context.Context, stdout io.Writer) error {
	c := simulation.Draw(s.seed, max(0, s.index))
	if s.file != "" {
		kept, err := simulation.ReadCase(s.file)
		if err != nil {
			return err
		}
		c = kept.Composition
	}
	o, err := simulation.SearchWorld(ctx, c, c.Truth())
	if err != nil {
		return err
	}
	o.Seed, o.Index = s.seed, s.index
	if s.shrink {
		if o, err = s.simplify(ctx, o); err != nil {
			return err
		}
	}
	if s.trace {
		return o.WriteTrace(stdout)
	}
	_, err = fmt.Fprintln(stdout, o.Line())
	return err
}

// simplify shrinks a world in which the search fails, and keeps it as a case where that was asked for.
func (s worldStudy) simplify(ctx context.Context, o simulation.WorldOutcome) (simulation.WorldOutcome, error) {
	failures := o.Failures()
	if len(failures) == 0 {
		return o, errors.New("the search does not fail in this world")
	}
	c := simulation.Shrink(o.Composition, simulation.Still(ctx, failures[0]))
	c.Note = fmt.Sprintf("shrunk from seed %d index %d: %s", s.seed, s.index, failures[0])
	small, err := simulation.SearchWorld(ctx, c, c.Truth())
	if err != nil {
		return o, err
	}
	small.Seed, small.Index = s.seed, s.index
	if s.keep != "" {
		c.Name = strings.TrimSuffix(filepath.Base(s.keep), ".json")
		err = simulation.Case{Composition: c, Failures: failures[:1], Open: true}.Write(s.keep)
	}
	return small, err
}
