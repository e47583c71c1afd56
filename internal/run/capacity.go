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

// load opens a stream to the target, runs the question, and journals its evidence even if it failed.
func (x *runner) load(ctx context.Context, t design.Trial, treatment design.Treatment,
	ops []load.Operation,
) (err error) {
	cfg, err := x.streamConfig(t, treatment, ops)
	if err != nil {
		return err
	}
	s, err := x.open(ctx, cfg)
	if err != nil {
		return fmt.Errorf("open the load stream: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	var stream capacity.Stream = s
	if x.Load.Abort != nil {
		stream = &guard{Stream: s, abort: *x.Load.Abort}
	}
	trace, searchErr := x.search(ctx, t, treatment, stream, cfg.Endpoint.Keys)
	return errors.Join(searchErr, x.keep(t, s, trace))
}

func (x *runner) streamConfig(t design.Trial, treatment design.Treatment, ops []load.Operation) (load.Config, error) {
	endpoint, err := x.target.Endpoint(treatment)
	if err != nil {
		return load.Config{}, fmt.Errorf("endpoint of %s: %w", treatment.ID, err)
	}
	l := x.Load
	cfg := load.Config{
		Engine: l.Engine, Operations: ops, Timeout: l.Timeout, MaxConns: l.MaxConns, MaxRate: l.MaxRate, Limit: x.Env.Limit,
		Shards: l.Shards, Spin: l.Spin, GrowGap: l.GrowGap,
		Precise: l.Precise, KeepCalls: true, Seed: t.Seed,
	}
	if endpoint != nil {
		cfg.Endpoint = *endpoint
	}
	cfg.Host = accounts(x.placement(treatment, endpoint))
	return cfg, nil
}

// search runs the adaptive search, or the ladder of the file.
func (x *runner) search(ctx context.Context, t design.Trial, treatment design.Treatment, s capacity.Stream,
	callers int,
) (capacity.Trace, error) {
	l := x.Load
	o := capacity.Options{
		Start: l.Start, MaxRate: l.MaxRate, MaxConns: l.MaxConns, Callers: callers, Timeout: l.Timeout,
		MaxSeconds: l.MaxTime.Seconds(),
		SLO:        l.SLO, SLOShare: l.SLOShare, PointTime: l.Point,
	}
	if l.Poisson {
		seed := t.Seed
		o.Arrivals = func(rate float64, d time.Duration) load.Process {
			seed++
			return load.Poisson{Rate: rate, Duration: d, Seed: seed}
		}
	}
	if w, ok := x.target.(observer); ok {
		o.Observe = func() signature.Local { return w.Observe(ctx, treatment) }
	}
	var failed error
	on := func(e capacity.Event) {
		if e.Kind == capacity.StepEnds {
			failed = errors.Join(failed, x.Writer.Step(t.Treatment, t.Block, "step", e.Step))
		}
		x.event(Event{Phase: Measuring, Treatment: t.Treatment, Trial: t.Index + 1, Capacity: &e})
	}
	var trace capacity.Trace
	var err error
	if points := x.points(t, treatment, s); len(points) > 0 {
		trace, err = capacity.Play(ctx, s, o, on, points)
	} else {
		trace, err = capacity.Search(ctx, s, o, on)
	}
	return trace, errors.Join(err, failed)
}

// keep records the trace with its calls, the histograms, and the generator's audit.
func (x *runner) keep(t design.Trial, s load.Stream, trace capacity.Trace) error {
	p := s.Progress()
	g := record.Generator{
		Treatment: t.Treatment, Block: t.Block, Engine: string(x.Load.Engine), Offered: p.Due, Sent: p.Sent,
		Unsendable: p.UnsentTimeouts + uint64(max(0, p.Waiting)), Seconds: p.Now.Seconds(), BytesIn: p.BytesIn,
		BytesOut:  p.BytesOut,
		Placement: x.placed[t.Treatment],
	}
	for _, step := range trace.Steps {
		g.CPUSeconds += step.Segment.CPU
	}
	return errors.Join(
		x.Writer.Calls(t.Treatment, t.Block, trace.Calls),
		x.Writer.Cells(t.Treatment, t.Block, s.Take()),
		x.Writer.Step(t.Treatment, t.Block, "trace", trace),
		x.Writer.Generator(g),
		x.heldBack(t.Treatment, p.Held),
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
