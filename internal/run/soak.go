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

// The warm-up of a soak comes before what is measured: a tenth of it, within bounds, and at least the time over which workers start.
const (
	soakWarmUpShare = 10
	leastSoakWarmUp = time.Second
	mostSoakWarmUp  = 5 * time.Minute
)

// flushEvery is how much of a soak's histograms a killed run loses at most.
const flushEvery = 5 * time.Minute

// hurriedDrain is how long an interrupt waits for the calls that are under way.
const hurriedDrain = 5 * time.Second

// Soak tells where a soak is.
type Soak struct {
	// Planned is what is to be measured, without the warm-up. Elapsed and Left are of all the load, warm-up included.
	Planned, Elapsed, Left time.Duration
	WarmUp                 bool
	// Slice is the last stretch that ended, empty before the first; Cut says that it ended just now.
	Slice    record.Slice
	Cut      bool
	Restarts int // times that a process of the target was replaced
	Progress load.Progress
}

// SliceLength is how long the slices of a soak are that measures for d: short enough to show how a short one develops, and long enough that a
// day's record stays small.
func SliceLength(d time.Duration) time.Duration {
	switch {
	case d <= 3*time.Minute:
		return time.Second
	case d <= 10*time.Minute:
		return 2 * time.Second
	case d <= 30*time.Minute:
		return 5 * time.Second
	}
	return 10 * time.Second
}

// SoakWarmUp is how long a soak that measures for d is under load before that; ramp is the time over which its workers start.
func SoakWarmUp(d, ramp time.Duration) time.Duration {
	return max(ramp, min(d/soakWarmUpShare, mostSoakWarmUp), leastSoakWarmUp)
}

// soaking is a soak in progress: one segment of load, cut into slices from the stream's own goroutine. It keeps nothing that grows with
// time: calls become histograms, histograms go to the record.
type soaking struct {
	*runner
	trial     design.Trial
	treatment design.Treatment
	stream    load.Stream
	ops       []load.Operation
	gauges    *gauges
	account   *account
	witness   *witness // of what is measured; nil: not yet

	warm, every time.Duration
	began       time.Duration // on the stream, as all instants
	next        time.Duration // end of the slice that is open
	open        mark          // where it began
	measured    *mark         // where what is measured begins; nil: not yet
	last        record.Slice
	cells       cells
	flushed     time.Duration
	err         error // of the record: it ends the load
}

// mark is how far the generator had come at an instant.
type mark struct {
	at       time.Duration
	progress load.Progress
	cpu      float64
	meter    load.Meter
}

// soak puts one treatment under one long stretch of load. Whatever ends it early, what was measured until then is kept.
func (x *runner) soak(ctx context.Context, t design.Trial, treatment design.Treatment, ops []load.Operation) (err error) {
	cfg, err := x.streamConfig(t, treatment, ops)
	if err != nil {
		return err
	}
	cfg.KeepCalls = false // so that memory does not grow with time
	acc := x.newAccount(ctx, t, treatment, ops)
	s, err := x.open(ctx, cfg)
	if err != nil {
		return fmt.Errorf("open the load stream: %w", err)
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	k := &soaking{
		runner: x, trial: t, treatment: treatment, stream: x.guarded(s), ops: ops, account: acc, gauges: newGauges(x, treatment),
		warm: SoakWarmUp(x.Load.Duration, x.ramp()), every: SliceLength(x.Load.Duration),
	}
	seen := x.watch(context.WithoutCancel(ctx), t.Block)
	seg, err := k.load(ctx)
	err = errors.Join(err, k.err)
	return errors.Join(err, k.finish(ctx, seg, err), seen())
}

// load offers all of the load in one segment, so that there is no seam between the warm-up and what is measured.
func (k *soaking) load(ctx context.Context) (load.Segment, error) {
	k.began = k.stream.Now()
	k.open = k.mark(k.began)
	k.flushed = k.began + k.warm
	k.next = k.began + k.warm%k.every
	if k.next == k.began {
		k.next += k.every
	}
	look := func() bool { return k.look(ctx) }
	length := k.warm + k.Load.Duration
	if c := k.Load.Closed; c != nil {
		return k.stream.Cycle(ctx, load.Closed{Workers: c.Workers, Ramp: c.Ramp, Duration: length}, poll, look)
	}
	if k.Load.Ramp {
		p := load.Steps{k.level(k.warm, k.trial.Seed), k.process(k.Load.Duration, k.trial.Seed)}
		return k.stream.Offer(ctx, p, poll, look)
	}
	return k.stream.Offer(ctx, k.level(length, k.trial.Seed), poll, look)
}

func (k *soaking) mark(at time.Duration) mark {
	return mark{at: at, progress: k.stream.Progress(), cpu: load.ProcessCPU(), meter: k.stream.Meter()}
}

// look is asked by the stream every poll: it cuts the slice that has ended. The last one is left to finish, which knows where the load ended.
func (k *soaking) look(ctx context.Context) (stop bool) {
	now := k.stream.Now()
	cut := now >= k.next && k.end()-k.next >= k.every/2
	if cut {
		if k.witness == nil && now >= k.began+k.warm {
			k.witness = k.runner.witness(ctx, k.trial, k.treatment)
			now = k.stream.Now() // asking has taken a while, which belongs to the warm-up
		}
		k.err = k.cut(ctx, now)
	}
	k.tell(now, cut)
	return k.err != nil
}

// end is when the load is to end.
func (k *soaking) end() time.Duration { return k.began + k.warm + k.Load.Duration }

// tell follows the soak for a live view.
func (k *soaking) tell(now time.Duration, cut bool) {
	phase := Measuring
	if k.measured == nil {
		phase = WarmingUp
	}
	k.event(Event{Phase: phase, Treatment: k.trial.Treatment, Trial: k.trial.Index + 1, Soak: &Soak{
		Planned: k.Load.Duration, Elapsed: now - k.began, Left: max(0, k.end()-now), WarmUp: k.measured == nil,
		Slice: k.last, Cut: cut, Restarts: k.gauges.restarts, Progress: k.stream.Progress(),
	}})
}

// cut ends the slice that is open, and writes it. The calls are taken first: a slow probe must not blur where it ends.
func (k *soaking) cut(ctx context.Context, now time.Duration) error {
	taken := k.stream.Take()
	here := k.mark(now)
	samples, err := k.gauges.read(ctx, k.stream.Now)
	if err != nil {
		return err
	}
	s := slice(k.ops, taken, k.open, here)
	s.Treatment, s.Block, s.WarmUp, s.Samples = k.trial.Treatment, k.trial.Block, k.measured == nil, samples
	k.account.count(taken)
	if k.measured != nil {
		k.cells.add(taken)
	}
	k.open, k.last = here, s
	for k.next <= k.stream.Now() {
		k.next += k.every
	}
	if err := k.Writer.Slice(s); err != nil {
		return err
	}
	if k.measured == nil && now >= k.began+k.warm {
		k.measured = &here
		return k.Writer.Samples(record.Samples{Treatment: s.Treatment, Block: s.Block, When: record.Before, Samples: samples})
	}
	if now >= k.flushed+flushEvery {
		return k.flush(now)
	}
	return nil
}

// flush writes the histograms of what is measured so far.
func (k *soaking) flush(now time.Duration) error {
	k.flushed = now
	if cells := k.cells.take(); len(cells) > 0 {
		return k.Writer.Cells(k.trial.Treatment, k.trial.Block, cells)
	}
	return nil
}

// finish waits for the last calls, and writes what is not written yet. An interrupt does not cut it short.
func (k *soaking) finish(ctx context.Context, seg load.Segment, failed error) error {
	if seg.End == 0 {
		return nil // there was no load
	}
	end := max(seg.End, k.open.at)
	meter := k.stream.Meter() // draining is no load
	k.drain(ctx, failed)
	ctx = context.WithoutCancel(ctx)
	left := k.stream.Progress()
	err := k.cut(ctx, end)
	k.tell(end, true)
	k.account.unanswered += uint64(left.InFlight) // at an interrupt
	err = errors.Join(err, k.flush(end))
	k.open.meter = meter
	if m := k.measured; m != nil && end > m.at {
		err = errors.Join(
			err,
			k.Writer.Samples(record.Samples{Treatment: k.trial.Treatment, Block: k.trial.Block, When: record.After, Samples: k.last.Samples}),
			k.Writer.Window(record.Window{Treatment: k.trial.Treatment, Block: k.trial.Block, Start: m.at, End: end}),
			k.Writer.Generator(k.audit(*m, k.open)),
			k.heldBack(k.trial.Treatment, k.stream.Progress().Held),
			k.witness.close(ctx),
		)
	}
	return errors.Join(err, k.account.close(ctx))
}

// drain waits until every call has ended, as each does by its timeout at the latest; not so long after an interrupt. After an abort it does
// not wait at all: what is still to be sent would go to a target that suffers.
func (k *soaking) drain(ctx context.Context, failed error) {
	idle := func() bool { return k.stream.Progress().Open() == 0 }
	if failed != nil && ctx.Err() == nil {
		return
	}
	if ctx.Err() == nil {
		// Its error is that of ctx, which is looked at next.
		_ = k.stream.Wait(ctx, k.Load.Timeout+time.Second, time.Millisecond, idle)
	}
	if ctx.Err() != nil {
		_ = k.stream.Wait(context.WithoutCancel(ctx), min(k.Load.Timeout, hurriedDrain), time.Millisecond, idle)
	}
}

// audit is what the generator did between two marks.
func (k *soaking) audit(from, to mark) record.Generator {
	a, b := from.progress, to.progress
	return record.Generator{
		Treatment: k.trial.Treatment, Block: k.trial.Block, Engine: string(k.Load.Engine), Offered: b.Due - a.Due, Sent: b.Sent - a.Sent,
		Unsendable: b.UnsentTimeouts - a.UnsentTimeouts, Seconds: (to.at - from.at).Seconds(), CPUSeconds: to.cpu - from.cpu,
		BytesIn: b.BytesIn - a.BytesIn, BytesOut: b.BytesOut - a.BytesOut,
		Workers: k.workers(), Placement: k.placed[k.trial.Treatment], Effort: to.meter.Since(&from.meter),
	}
}
