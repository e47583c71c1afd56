package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/record"
)

// The warm-up of a trial is a fifth of its length, within bounds: connections are made, caches filled, code compiled.
const (
	warmUpShare = 5
	leastWarmUp = 500 * time.Millisecond
	mostWarmUp  = 10 * time.Second
)

// growGap is the least time between two new connections, as package load has it.
const growGap = time.Millisecond

// poll is how often a segment looks whether it should end.
const poll = 50 * time.Millisecond

// steady offers one trial of a comparison: a warm-up, which does not count, then the window that does.
func (x *runner) steady(ctx context.Context, t design.Trial, treatment design.Treatment, ops []load.Operation) (err error) {
	cfg, err := x.streamConfig(t, treatment, ops)
	if err != nil {
		return err
	}
	cfg.Seed = x.blockSeed(t.Block) // every arm of a block is sent the same calls at the same instants
	s, err := load.Open(ctx, cfg)
	if err != nil {
		return fmt.Errorf("open the load stream: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	stream := s
	if x.Load.Abort != nil {
		stream = &guard{Stream: s, abort: *x.Load.Abort}
	}
	warm := x.warmUp(cfg.Endpoint.Keys)
	if _, err := x.offer(ctx, stream, warm, x.ramp(), x.blockSeed(t.Block)+1); err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	s.Take() // what is taken and dropped was warm-up
	return x.window(ctx, t, treatment, stream)
}

// warmUp is how long a trial is warmed up: long enough for every identity to call once, so that the connections of a thousand callers are
// made before the window begins, and are no cost of the calls in it.
func (x *runner) warmUp(keys int) time.Duration {
	warm := max(x.Load.Duration/warmUpShare, leastWarmUp, x.ramp())
	if keys > 1 && x.Load.Rate > 0 {
		gap := max(time.Duration(float64(time.Second)/x.Load.Rate), growGap)
		warm = max(warm, time.Duration(keys)*gap*5/4) // arrivals may be random
	}
	return min(warm, mostWarmUp)
}

// window offers what counts, waits until its last call has ended, and keeps it. The probes are read right around it.
func (x *runner) window(ctx context.Context, t design.Trial, treatment design.Treatment, s load.Stream) error {
	if err := x.samples(ctx, t, treatment, record.Before, 0); err != nil {
		return err
	}
	before := s.Progress()
	seg, err := x.offer(ctx, s, x.Load.Duration, 0, x.blockSeed(t.Block))
	if err == nil {
		// Every call ends by its timeout at the latest.
		err = s.Wait(ctx, x.Load.Timeout+time.Second, time.Millisecond, func() bool { return s.Progress().Open() == 0 })
	}
	err = errors.Join(err, x.samples(context.WithoutCancel(ctx), t, treatment, record.After, 0))
	after := s.Progress()
	return errors.Join(
		err,
		x.Writer.Window(record.Window{Treatment: t.Treatment, Block: t.Block, Start: seg.Start, End: seg.End}),
		x.Writer.Calls(t.Treatment, t.Block, s.Calls(seg.Start)),
		x.Writer.Cells(t.Treatment, t.Block, s.Take()),
		x.Writer.Generator(record.Generator{
			Treatment: t.Treatment, Block: t.Block, Engine: string(x.Load.Engine), Offered: after.Due - before.Due, Sent: after.Sent - before.Sent,
			Unsendable: after.UnsentTimeouts - before.UnsentTimeouts, Seconds: (seg.End - seg.Start).Seconds(), CPUSeconds: seg.CPU,
			BytesIn: after.BytesIn - before.BytesIn, BytesOut: after.BytesOut - before.BytesOut,
		}),
	)
}

// ramp is the time over which workers start. It belongs to the warm-up: what is measured is all of them at work.
func (x *runner) ramp() time.Duration {
	if x.Load.Closed == nil {
		return 0
	}
	return x.Load.Closed.Ramp
}

// offer is one segment of the comparison's load.
func (x *runner) offer(ctx context.Context, s load.Stream, d, ramp time.Duration, seed uint64) (load.Segment, error) {
	if c := x.Load.Closed; c != nil {
		return s.Cycle(ctx, load.Closed{Workers: c.Workers, Ramp: min(ramp, d), Duration: d}, poll, nil)
	}
	if x.Load.Poisson {
		return s.Offer(ctx, load.Poisson{Rate: x.Load.Rate, Duration: d, Seed: seed}, poll, nil)
	}
	return s.Offer(ctx, load.Constant{Rate: x.Load.Rate, Duration: d}, poll, nil)
}
