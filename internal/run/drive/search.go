package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"tare/internal/capacity"
	"tare/internal/load"
	"tare/internal/question"
	"tare/internal/record"
	"tare/internal/run"
	"tare/internal/signature"
	"tare/internal/unit"
)

// probedSearch runs a capacity search between two readings of the probes.
func probedSearch(ctx context.Context, a *run.Arm) error {
	seen := a.Witness(ctx, false)
	if err := a.Sample(ctx, record.Before, 0); err != nil {
		return err
	}
	watched := a.WatchHost(context.WithoutCancel(ctx), a.Trial.Block)
	found, err := searched(ctx, a)
	err = errors.Join(err, watched(), a.Sample(context.WithoutCancel(ctx), record.After, 0), seen(ctx))
	if err != nil || found == nil {
		return err
	}
	return experiment(ctx, a, found) // after the readings, which count as those of the search's own calls
}

// searched searches, and journals the evidence even if that failed. Where the generator is the limit, and time is left,
// it searches again with other settings, and journals and returns the search that got furthest; nil: there was none.
func searched(ctx context.Context, a *run.Arm) (*attempted, error) {
	given := a.Load.Config
	defer func() { a.Load.Config = given }()
	most := longestSearch(&a.Load)
	best, err := attempt(ctx, a, most)
	if best == nil {
		return nil, err
	}
	tried, left := "", most-best.progress.Now
	for _, s := range otherSettings {
		if err != nil || best.trace.Stop != capacity.StopClient || left < leastAttempt {
			break
		}
		if a.Load.Config = given; !s.change(&a.Load.Config) {
			continue
		}
		next, failed := attempt(ctx, a, left)
		if next == nil {
			continue // these settings are not possible
		}
		left -= next.progress.Now
		if err = failed; err == nil && next.reach() > best.reach() {
			best = next
		}
		tried += fmt.Sprintf("; with %s %s", s.name, next.said())
	}
	a.Load.Config = best.config
	if tried != "" {
		err = errors.Join(err, a.Writer.Note(record.Note{Treatment: a.Trial.Treatment, Text: "the generator was the limit, " +
			"and the search was made again with other settings" + tried + ". The one that got furthest counts"}))
	}
	return best, errors.Join(err, best.keep(a))
}

// longestSearch is how long a search may take, with those that are made with other settings.
func longestSearch(l *run.Load) time.Duration { return cmp.Or(l.MaxTime, question.UsualSearch) }

// leastAttempt is how much time must be left for a search with other settings.
const leastAttempt = 45 * time.Second

// otherSettings are tried where the generator is the limit: a change reports whether it makes a difference.
var otherSettings = []struct {
	name   string
	change func(*load.Config) bool
}{
	{"at most 64 connections", func(c *load.Config) bool {
		const few = 64
		differs := c.MaxConns == 0 || c.MaxConns > few
		c.MaxConns = few
		return differs
	}},
	{"engine std", func(c *load.Config) bool {
		differs := c.Engine != load.Std
		c.Engine = load.Std
		return differs
	}},
}

// An attempted search is its trace with what only its stream knew.
type attempted struct {
	config   load.Config
	trace    capacity.Trace
	progress load.Progress
	cells    []load.Cell
}

// attempt searches through a stream of its own, for at most so long; it returns nil where none can be opened.
func attempt(ctx context.Context, a *run.Arm, most time.Duration) (out *attempted, err error) {
	s, err := a.OpenStream(ctx, a.Trial.Seed, true)
	if err != nil {
		return nil, err
	}
	out = &attempted{config: a.Load.Config}
	defer func() { err = errors.Join(err, s.Close()) }()
	out.trace, err = search(ctx, a, s, most)
	out.progress = s.Progress()
	out.progress.UnsentTimeouts += uint64(max(0, out.progress.Waiting))
	out.cells = s.Take()
	return out, errors.Join(err, a.ConfirmBreaches(ctx, s))
}

// reach is the rate up to which the target is known.
func (x *attempted) reach() float64 {
	r := capacity.Assess(x.trace)
	return max(r.Rate, r.AtLeast)
}

func (x *attempted) said() string {
	if reach := x.reach(); reach > 0 {
		return "it got to " + unit.PerSecond(reach)
	}
	return "it got no further"
}

// keep records the trace with its calls, the histograms, and the generator's audit.
func (x *attempted) keep(a *run.Arm) error {
	g := record.Generator{Seconds: x.progress.Now.Seconds()}
	for _, step := range x.trace.Steps {
		g.CPUSeconds += step.Segment.CPU
	}
	return errors.Join(
		a.Writer.Calls(a.Trial.Treatment, a.Trial.Block, load.CallsOf(x.trace.Calls)),
		a.Writer.Cells(a.Trial.Treatment, a.Trial.Block, x.cells),
		a.Writer.Step(a.Trial.Treatment, a.Trial.Block, "trace", x.trace),
		a.Audit(load.Progress{}, x.progress, g),
	)
}

// arrivals returns what makes the arrival processes of a search.
func arrivals(l *run.Load, seed uint64) func(rate float64, d time.Duration) load.Process {
	return func(rate float64, d time.Duration) load.Process {
		if !l.Poisson {
			return load.Constant{Rate: rate, Duration: d}
		}
		seed++
		return load.Poisson{Rate: rate, Duration: d, Seed: seed}
	}
}

// search runs the adaptive search for at most so long, or the ladder of the file.
func search(ctx context.Context, a *run.Arm, s *run.Stream, most time.Duration) (capacity.Trace, error) {
	l := a.Load
	o := capacity.Options{
		Start: l.Rate, MaxRate: l.MaxRate, MaxConns: l.MaxConns, Callers: s.Keys, Timeout: l.Timeout,
		MaxSeconds: most.Seconds(),
		SLO:        l.SLO, SLOShare: l.SLOShare, PointTime: l.Duration, Shared: a.SharesProcessors(),
		Rates: l.Budgeted,
	}
	o.Arrivals = arrivals(&l, a.Trial.Seed)
	if observe := a.Target.Can().Observe; observe != nil {
		o.Observe = func() signature.Local { return observe(ctx, a.Treatment) }
	}
	var failed error
	on := func(e capacity.Event) {
		if e.Kind == capacity.StepEnds {
			failed = errors.Join(failed, a.Writer.Step(a.Trial.Treatment, a.Trial.Block, "step", e.Step))
		}
		a.Tell(during(a, run.Measuring, &e))
	}
	var trace capacity.Trace
	var err error
	if points := points(a, s); len(points) > 0 {
		trace, err = capacity.Play(ctx, s, o, on, points)
	} else {
		trace, err = capacity.Search(ctx, s, o, on)
	}
	return trace, errors.Join(err, failed)
}
