package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"tare/internal/capacity/simulated"
)

// worldStudy is what is asked of composed worlds.
type worldStudy struct {
	seed           uint64
	n, index       int
	only, named    string
	verbose, trace bool
}

func (s worldStudy) run(ctx context.Context, stdout, stderr io.Writer) error {
	if s.index >= 0 || s.named != "" {
		return s.one(ctx, stdout)
	}
	start := time.Now()
	done := 0
	worlds, err := simulated.RunWorlds(ctx, s.seed, s.n, runtime.GOMAXPROCS(0), simulated.PartKind(s.only), func(o simulated.WorldOutcome) {
		if done++; done%500 == 0 {
			fmt.Fprintf(stderr, "%d of %d worlds, %.0f s\n", done, s.n, time.Since(start).Seconds()) //nolint:errcheck // progress only
		}
		if s.verbose && len(o.Failures()) > 0 {
			fmt.Fprintln(stderr, o.Line()) //nolint:errcheck // as above
		}
	})
	if len(worlds.Outcomes) == 0 && err == nil {
		return fmt.Errorf("no world of %d is limited by %q", s.n, s.only)
	}
	if err != nil {
		return err
	}
	return worlds.Write(stdout)
}

// one searches a single world.
func (s worldStudy) one(ctx context.Context, stdout io.Writer) error {
	c := simulated.Draw(s.seed, max(0, s.index))
	if s.named != "" {
		var err error
		if c, err = simulated.NamedComposition(s.named); err != nil {
			return err
		}
	}
	o, err := simulated.SearchWorld(ctx, c, c.Truth())
	if err != nil {
		return err
	}
	o.Seed, o.Index = s.seed, s.index
	if s.trace {
		return o.WriteTrace(stdout)
	}
	_, err = fmt.Fprintln(stdout, o.Line())
	return err
}
