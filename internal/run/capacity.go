package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tare/internal/capacity"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/signature"
)

// observer is an optional interface of targets for what only a probe on the target's host can see.
type observer interface {
	Observe(ctx context.Context, t design.Treatment) signature.Local
}

// probedSearch runs a capacity search between two readings of the probes.
func (a *arm) probedSearch(ctx context.Context) error {
	seen := a.witness(ctx)
	if err := a.samples(ctx, record.Before, 0); err != nil {
		return err
	}
	err := a.load(ctx)
	return errors.Join(err, a.samples(context.WithoutCancel(ctx), record.After, 0), seen.close(ctx))
}

// load opens a stream to the target, runs the question, and journals its evidence even if it failed.
func (a *arm) load(ctx context.Context) (err error) {
	cfg, err := a.streamConfig()
	if err != nil {
		return err
	}
	s, err := a.open(ctx, cfg)
	if err != nil {
		return fmt.Errorf("open the load stream: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var stream capacity.Stream = s
	if a.Load.Abort != nil {
		stream = &guard{Stream: s, abort: *a.Load.Abort}
	}
	trace, searchErr := a.search(ctx, stream, cfg.Endpoint.Keys)
	return errors.Join(searchErr, a.keep(s, trace))
}

func (a *arm) streamConfig() (load.Config, error) {
	endpoint, err := a.target.Endpoint(a.treatment)
	if err != nil {
		return load.Config{}, fmt.Errorf("endpoint of %s: %w", a.treatment.ID, err)
	}
	l := a.Load
	cfg := load.Config{
		Engine: l.Engine, Operations: a.ops, Timeout: l.Timeout, MaxConns: l.MaxConns, MaxRate: l.MaxRate, Limit: a.Env.Limit,
		Shards: l.Shards, Spin: l.Spin, GrowGap: l.GrowGap,
		Precise: l.Precise, KeepCalls: true, Seed: a.trial.Seed,
	}
	if endpoint != nil {
		cfg.Endpoint = *endpoint
	}
	cfg.Host = accounts(a.placement(a.treatment, endpoint))
	return cfg, nil
}

// search runs the adaptive search, or the ladder of the file.
func (a *arm) search(ctx context.Context, s capacity.Stream, callers int) (capacity.Trace, error) {
	l := a.Load
	o := capacity.Options{
		Start: l.Start, MaxRate: l.MaxRate, MaxConns: l.MaxConns, Callers: callers, Timeout: l.Timeout,
		MaxSeconds: l.MaxTime.Seconds(),
		SLO:        l.SLO, SLOShare: l.SLOShare, PointTime: l.Point,
	}
	if l.Poisson {
		seed := a.trial.Seed
		o.Arrivals = func(rate float64, d time.Duration) load.Process {
			seed++
			return load.Poisson{Rate: rate, Duration: d, Seed: seed}
		}
	}
	if w, ok := a.target.(observer); ok {
		o.Observe = func() signature.Local { return w.Observe(ctx, a.treatment) }
	}
	var failed error
	on := func(e capacity.Event) {
		if e.Kind == capacity.StepEnds {
			failed = errors.Join(failed, a.Writer.Step(a.trial.Treatment, a.trial.Block, "step", e.Step))
		}
		a.event(Event{Phase: Measuring, Treatment: a.trial.Treatment, Trial: a.trial.Index + 1, Capacity: &e})
	}
	var trace capacity.Trace
	var err error
	if points := a.points(s); len(points) > 0 {
		trace, err = capacity.Play(ctx, s, o, on, points)
	} else {
		trace, err = capacity.Search(ctx, s, o, on)
	}
	return trace, errors.Join(err, failed)
}

// keep records the trace with its calls, the histograms, and the generator's audit.
func (a *arm) keep(s load.Stream, trace capacity.Trace) error {
	p := s.Progress()
	g := record.Generator{
		Treatment: a.trial.Treatment, Block: a.trial.Block, Engine: string(a.Load.Engine), Offered: p.Due, Sent: p.Sent,
		Unsendable: p.UnsentTimeouts + uint64(max(0, p.Waiting)), Seconds: p.Now.Seconds(), BytesIn: p.BytesIn,
		BytesOut:  p.BytesOut,
		Placement: a.placed[a.trial.Treatment],
	}
	for _, step := range trace.Steps {
		g.CPUSeconds += step.Segment.CPU
	}
	return errors.Join(
		a.Writer.Calls(a.trial.Treatment, a.trial.Block, trace.Calls),
		a.Writer.Cells(a.trial.Treatment, a.trial.Block, s.Take()),
		a.Writer.Step(a.trial.Treatment, a.trial.Block, "trace", trace),
		a.Writer.Generator(g),
		a.heldBack(a.trial.Treatment, p.Held),
	)
}

// heldBack warns if max_rate delayed scheduled calls.
func (x *runner) heldBack(treatment string, n uint64) error {
	if n == 0 {
		return nil
	}
	return x.Writer.Warning(record.Warning{Treatment: treatment, Text: fmt.Sprintf(
		"max_rate held calls back, %d times: they were sent late, or not at all; a higher max_rate lets calls catch up "+
			"after a stall", n)})
}
