package run

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tare/internal/load"
	"tare/internal/record"
)

// The warm-up of a trial is a fifth of its length, within bounds: connections are opened, caches filled, code compiled.
const (
	warmUpShare = 5
	leastWarmUp = 500 * time.Millisecond
	mostWarmUp  = 10 * time.Second
)

// growGap is the least time between two new connections, as package load has it.
const growGap = time.Millisecond

// poll is the interval at which a segment checks whether it should end.
const poll = 50 * time.Millisecond

// steady runs one trial of a comparison: a warm-up, which does not count, then the window that does.
func (a *arm) steady(ctx context.Context) (err error) {
	cfg, err := a.streamConfig()
	if err != nil {
		return err
	}
	cfg.Seed = a.blockSeed(a.trial.Block) // every arm of a block receives the same calls at the same instants
	acc := a.newAccount(ctx)
	s, err := a.open(ctx, cfg)
	if err != nil {
		return fmt.Errorf("open the load stream: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	stream := a.guarded(s)
	warm := a.warmUp(cfg.Endpoint.Keys)
	if _, err := a.offer(ctx, stream, warm, a.ramp(), a.level(warm, a.blockSeed(a.trial.Block)+1)); err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	acc.count(s.Take()) // these were warm-up
	if err := a.window(ctx, stream, acc); err != nil {
		return err
	}
	return acc.close(ctx)
}

// guarded returns a stream that ends by itself when the target suffers, if the file says so.
func (x *runner) guarded(s load.Stream) load.Stream {
	if x.Load.Abort == nil {
		return s
	}
	return &guard{Stream: s, abort: *x.Load.Abort}
}

// warmUp returns the length of a trial's warm-up: long enough for every identity to call once, so that opening the
// connections of a thousand callers is not part of the window.
func (x *runner) warmUp(keys int) time.Duration {
	warm := max(x.Load.Duration/warmUpShare, leastWarmUp, x.ramp())
	if keys > 1 && x.Load.Rate > 0 {
		gap := max(time.Duration(float64(time.Second)/x.Load.Rate), growGap)
		warm = max(warm, time.Duration(keys)*gap*5/4) // arrivals may be random
	}
	return min(warm, mostWarmUp)
}

// window offers the measured load, waits until its last call has ended, and records it. The probes are read right
// before and after it; the target's own measurements are read around the probes, so that their cost is in no probe.
func (a *arm) window(ctx context.Context, s load.Stream, acc *account) error {
	seen := a.witness(ctx)
	if err := a.samples(ctx, record.Before, 0); err != nil {
		return err
	}
	before := s.Progress()
	seg, err := a.offer(ctx, s, a.Load.Duration, 0, a.process(a.Load.Duration, a.blockSeed(a.trial.Block)))
	if err == nil {
		// Every call ends by its timeout at the latest.
		err = s.Wait(ctx, a.Load.Timeout+time.Second, time.Millisecond, func() bool { return s.Progress().Open() == 0 })
	}
	err = errors.Join(err, a.samples(context.WithoutCancel(ctx), record.After, 0))
	after, taken := s.Progress(), s.Take()
	acc.count(taken)
	return errors.Join(
		err,
		seen.close(ctx),
		a.Writer.Window(record.Window{Treatment: a.trial.Treatment, Block: a.trial.Block, Start: seg.Start, End: seg.End}),
		a.Writer.Calls(a.trial.Treatment, a.trial.Block, s.Calls(seg.Start)),
		a.Writer.Cells(a.trial.Treatment, a.trial.Block, taken),
		a.Writer.Generator(record.Generator{
			Treatment: a.trial.Treatment, Block: a.trial.Block, Engine: string(a.Load.Engine), Offered: after.Due - before.Due,
			Sent:       after.Sent - before.Sent,
			Unsendable: after.UnsentTimeouts - before.UnsentTimeouts, Seconds: (seg.End - seg.Start).Seconds(),
			CPUSeconds: seg.CPU,
			BytesIn:    after.BytesIn - before.BytesIn, BytesOut: after.BytesOut - before.BytesOut,
			Workers: a.workers(), Effort: seg.Effort, Placement: a.placed[a.trial.Treatment],
		}),
		a.heldBack(a.trial.Treatment, after.Held-before.Held),
	)
}

// ramp is the time over which workers start. It belongs to the warm-up: in the measured part all of them work.
func (x *runner) ramp() time.Duration {
	if x.Load.Closed == nil {
		return 0
	}
	return x.Load.Closed.Ramp
}

// offer runs one segment of the comparison's load.
func (x *runner) offer(ctx context.Context, s load.Stream, d, ramp time.Duration,
	p load.Process,
) (load.Segment, error) {
	if c := x.Load.Closed; c != nil {
		return s.Cycle(ctx, load.Closed{Workers: c.Workers, Ramp: min(ramp, d), Duration: d}, poll, nil)
	}
	return s.Offer(ctx, p, poll, nil)
}

// process returns the open loop's arrivals over d.
func (x *runner) process(d time.Duration, seed uint64) load.Process {
	if x.Load.Ramp {
		return load.Ramp{To: x.Load.Rate, Duration: d}
	}
	return x.level(d, seed)
}

// level returns the open loop at its constant rate, as in a warm-up.
func (x *runner) level(d time.Duration, seed uint64) load.Process {
	if x.Load.Poisson {
		return load.Poisson{Rate: x.Load.Rate, Duration: d, Seed: seed}
	}
	return load.Constant{Rate: x.Load.Rate, Duration: d}
}
