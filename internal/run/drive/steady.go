package drive

import (
	"context"
	"errors"
	"fmt"
	"time"

	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/run"
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
func steady(ctx context.Context, a *run.Arm) (err error) {
	acc := a.Account(ctx)
	seed := blockSeed(a.Seed, a.Trial.Block) // every arm of a block receives the same calls at the same instants
	s, err := a.OpenStream(ctx, seed, true)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	warm := warmUp(&a.Load, s.Keys)
	if _, err := offer(ctx, &a.Load, s, warm, workerRamp(&a.Load), level(&a.Load, warm, seed+1)); err != nil {
		return fmt.Errorf("warm-up: %w", err)
	}
	acc.Count(s.Take()) // these were warm-up
	if err := window(ctx, a, s, acc); err != nil {
		return err
	}
	return acc.Close(ctx, 0)
}

// warmUp returns the length of a trial's warm-up: long enough for every identity to call once, so that opening the
// connections of a thousand callers is not part of the window.
func warmUp(l *run.Load, keys int) time.Duration {
	return min(max(l.Duration/warmUpShare, leastWarmUp, workerRamp(l), allCall(l, keys)), mostWarmUp)
}

// allCall returns how long it takes until every one of several identities has called once; 0 for one, and in a closed
// loop.
func allCall(l *run.Load, keys int) time.Duration {
	if keys <= 1 || l.Rate <= 0 {
		return 0
	}
	gap := max(time.Duration(float64(time.Second)/l.Rate), growGap)
	return time.Duration(keys) * gap * 5 / 4 // arrivals may be random
}

// window offers the measured load, waits until its last call has ended, and records it. The probes are read right
// before and after it; the target's own measurements are read around the probes, so that their cost is in no probe.
func window(ctx context.Context, a *run.Arm, s load.Stream, acc *run.Account) error {
	l, trial := &a.Load, a.Trial
	seen := a.Witness(ctx, false)
	if err := a.Sample(ctx, record.Before, 0); err != nil {
		return err
	}
	before := s.Progress()
	seg, err := offer(ctx, l, s, l.Duration, 0, process(l, l.Duration, blockSeed(a.Seed, trial.Block)))
	if err == nil {
		// Every call ends by its timeout at the latest.
		err = s.Wait(ctx, l.Timeout+time.Second, time.Millisecond, func() bool { return s.Progress().Open() == 0 })
	}
	err = errors.Join(err, a.Sample(context.WithoutCancel(ctx), record.After, 0))
	after, taken := s.Progress(), s.Take()
	acc.Count(taken)
	return errors.Join(
		err,
		seen(ctx),
		a.Writer.Window(record.Window{Treatment: trial.Treatment, Block: trial.Block, Start: seg.Start, End: seg.End}),
		a.Writer.Calls(trial.Treatment, trial.Block, s.Calls(seg.Start)),
		a.Writer.Cells(trial.Treatment, trial.Block, taken),
		a.Audit(before, after, record.Generator{
			Seconds: (seg.End - seg.Start).Seconds(), CPUSeconds: seg.CPU, Effort: seg.Effort,
		}),
	)
}

// workerRamp is the time over which workers start. It belongs to the warm-up: in the measured part all of them work.
func workerRamp(l *run.Load) time.Duration {
	if l.Closed == nil {
		return 0
	}
	return l.Closed.Ramp
}

// offer runs one segment of the comparison's load.
func offer(ctx context.Context, l *run.Load, s load.Stream, d, ramp time.Duration,
	p load.Process,
) (load.Segment, error) {
	if c := l.Closed; c != nil {
		return s.Cycle(ctx, load.Closed{Workers: c.Workers, Ramp: min(ramp, d), Duration: d}, poll, nil)
	}
	return s.Offer(ctx, p, poll, nil)
}

// process returns the open loop's arrivals over d.
func process(l *run.Load, d time.Duration, seed uint64) load.Process {
	if l.Ramp {
		return load.Ramp{To: l.Rate, Duration: d}
	}
	return level(l, d, seed)
}

// level returns the open loop at its constant rate, as in a warm-up.
func level(l *run.Load, d time.Duration, seed uint64) load.Process {
	if l.Poisson {
		return load.Poisson{Rate: l.Rate, Duration: d, Seed: seed}
	}
	return load.Constant{Rate: l.Rate, Duration: d}
}
