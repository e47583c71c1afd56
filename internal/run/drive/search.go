package drive

import (
	"context"
	"errors"
	"time"

	"tare/internal/capacity"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/run"
	"tare/internal/signature"
)

// probedSearch runs a capacity search between two readings of the probes.
func probedSearch(ctx context.Context, a *run.Arm) error {
	seen := a.Witness(ctx)
	if err := a.Sample(ctx, record.Before, 0); err != nil {
		return err
	}
	watched := a.WatchHost(context.WithoutCancel(ctx), a.Trial.Block)
	_, err := searched(ctx, a)
	return errors.Join(err, watched(), a.Sample(context.WithoutCancel(ctx), record.After, 0), seen(ctx))
}

// searched opens a stream to the target, searches, and journals the evidence even if that failed.
func searched(ctx context.Context, a *run.Arm) (trace capacity.Trace, err error) {
	s, err := a.OpenStream(ctx, a.Trial.Seed, true)
	if err != nil {
		return trace, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	trace, searchErr := search(ctx, a, s)
	return trace, errors.Join(searchErr, keep(a, s, trace), a.ConfirmBreaches(ctx, s))
}

// search runs the adaptive search, or the ladder of the file.
func search(ctx context.Context, a *run.Arm, s *run.Stream) (capacity.Trace, error) {
	l := a.Load
	o := capacity.Options{
		Start: l.Rate, MaxRate: l.MaxRate, MaxConns: l.MaxConns, Callers: s.Keys, Timeout: l.Timeout,
		MaxSeconds: l.MaxTime.Seconds(),
		SLO:        l.SLO, SLOShare: l.SLOShare, PointTime: l.Duration, Shared: a.SharesProcessors(),
		Rates: l.Budgeted,
	}
	if l.Poisson {
		seed := a.Trial.Seed
		o.Arrivals = func(rate float64, d time.Duration) load.Process {
			seed++
			return load.Poisson{Rate: rate, Duration: d, Seed: seed}
		}
	}
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

// keep records the trace with its calls, the histograms, and the generator's audit.
func keep(a *run.Arm, s load.Stream, trace capacity.Trace) error {
	p := s.Progress()
	p.UnsentTimeouts += uint64(max(0, p.Waiting))
	g := record.Generator{Seconds: p.Now.Seconds()}
	for _, step := range trace.Steps {
		g.CPUSeconds += step.Segment.CPU
	}
	return errors.Join(
		a.Writer.Calls(a.Trial.Treatment, a.Trial.Block, load.CallsOf(trace.Calls)),
		a.Writer.Cells(a.Trial.Treatment, a.Trial.Block, s.Take()),
		a.Writer.Step(a.Trial.Treatment, a.Trial.Block, "trace", trace),
		a.Audit(load.Progress{}, p, g),
	)
}
