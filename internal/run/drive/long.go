package drive

import (
	"context"
	"errors"
	"math"
	"time"

	"tare/internal/load"
	"tare/internal/question"
	"tare/internal/record"
	"tare/internal/run"
)

// flushEvery bounds how much of a soak's histograms a killed run loses.
const flushEvery = 5 * time.Minute

// hurriedDrain is how long an interrupt waits for the calls in flight.
const hurriedDrain = 5 * time.Second

// Soak is the state of a soak.
type Soak struct {
	// Planned is the length of the measured part. Elapsed and Left include the warm-up.
	Planned, Elapsed, Left time.Duration
	WarmUp                 bool
	// Slice is the latest complete slice, empty before the first; Cut says that it was completed just now.
	Slice    record.Slice
	Cut      bool
	Restarts int // how often a process of the target was replaced
	Progress load.Progress
}

// sliceLength returns the length of the slices of a soak that measures for d: short enough to show the course of a
// short one, and long enough to keep a day's record small.
func sliceLength(d time.Duration) time.Duration {
	switch {
	case d <= shortSoak:
		return time.Second / 2
	case d <= 3*time.Minute:
		return time.Second
	case d <= 10*time.Minute:
		return 2 * time.Second
	case d <= 30*time.Minute:
		return 5 * time.Second
	}
	return 10 * time.Second
}

// shortSoak is the length up to which slices are shorter than a second: an interval needs twenty of them, and a slow
// reading of the probes joins two.
const shortSoak = 40 * time.Second

// tailCalls is how many calls a slice needs to have a 99th percentile, with room for random arrivals. leastSlices is
// how many slices a soak keeps when its slices are made longer to hold them, and longestSlice how long they may become:
// an outage is placed within a slice.
const (
	tailCalls    = 110
	leastSlices  = 24
	longestSlice = 5 * time.Second
)

// sliceOf returns the length of the slices of a soak that measures for d at a rate, in 1/s; 0: of closed workers. At a
// low rate slices are longer, so that each has a 99th percentile, if enough of them remain.
func sliceOf(d time.Duration, rate float64) time.Duration {
	usual := sliceLength(d)
	if !(rate > 0) {
		return usual
	}
	const step = 100 * time.Millisecond
	full := time.Duration(math.Ceil(tailCalls/rate*float64(time.Second/step))) * step
	if full <= usual || full > d/leastSlices || full > longestSlice {
		return usual
	}
	return full
}

// soakRun is a soak in progress: one segment of load, cut into slices by the stream's own goroutine. Its memory does
// not grow with time: calls become histograms, and histograms go to the record.
type soakRun struct {
	*run.Arm
	stream  load.Stream
	gauges  *gauges
	account *run.Account
	witness func(context.Context) error // ends that of the measured part; nil: not started

	warm, every time.Duration
	began       time.Duration // relative to the stream, as all instants
	next        time.Duration // end of the current slice
	open        mark          // its start
	measured    *mark         // start of the measured part; nil: not started
	last        record.Slice
	cells       cells
	flushed     time.Duration
	err         error // of writing the record: it ends the load
}

// mark is the generator's state at an instant.
type mark struct {
	at       time.Duration
	progress load.Progress
	cpu      float64
	meter    load.Meter
}

// soak puts one treatment under one long segment of load. If it ends early, what was measured until then is kept.
func soak(ctx context.Context, a *run.Arm) (err error) {
	acc := a.Account(ctx)
	s, err := a.OpenStream(ctx, a.Trial.Seed, false) // so that memory does not grow with time
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	k := &soakRun{
		Arm: a, stream: s, account: acc, gauges: newGauges(a),
		warm: question.WarmUp(a.Load.Duration, workerRamp(&a.Load)), every: sliceOf(a.Load.Duration, a.Load.Rate),
	}
	seen := a.WatchHost(context.WithoutCancel(ctx), a.Trial.Block)
	seg, err := k.load(ctx)
	err = errors.Join(err, k.err)
	return errors.Join(err, k.finish(ctx, seg, err), seen())
}

// load offers all of the load in one segment, so that warm-up and measured part are continuous.
func (k *soakRun) load(ctx context.Context) (load.Segment, error) {
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
		p := load.Steps{level(&k.Load, k.warm, k.Trial.Seed), process(&k.Load, k.Load.Duration, k.Trial.Seed)}
		return k.stream.Offer(ctx, p, poll, look)
	}
	return k.stream.Offer(ctx, level(&k.Load, length, k.Trial.Seed), poll, look)
}

func (k *soakRun) mark(at time.Duration) mark {
	return mark{at: at, progress: k.stream.Progress(), cpu: load.ProcessCPU(), meter: k.stream.Meter()}
}

// look is called by the stream every poll and cuts slices that are complete. finish cuts the last one, since it knows
// where the load ended.
func (k *soakRun) look(ctx context.Context) (stop bool) {
	now := k.stream.Now()
	cut := now >= k.next && k.end()-k.next >= k.every/2
	if cut {
		if k.witness == nil && now >= k.began+k.warm {
			k.witness = k.Witness(ctx, false)
			now = k.stream.Now() // the call has taken a while, which belongs to the warm-up
		}
		k.err = k.cut(ctx, now, false)
	}
	k.updateView(now, cut)
	return k.err != nil
}

// end is when the load should end.
func (k *soakRun) end() time.Duration { return k.began + k.warm + k.Load.Duration }

// updateView updates the live view.
func (k *soakRun) updateView(now time.Duration, cut bool) {
	phase := run.Measuring
	if k.measured == nil {
		phase = run.WarmingUp
	}
	k.Tell(during(k.Arm, phase, &Soak{
		Planned: k.Load.Duration, Elapsed: now - k.began, Left: max(0, k.end()-now), WarmUp: k.measured == nil,
		Slice: k.last, Cut: cut, Restarts: k.gauges.restarts, Progress: k.stream.Progress(),
	}))
}

// cut completes and writes the current slice. It takes the calls first: a slow probe must not move the slice's end.
func (k *soakRun) cut(ctx context.Context, now time.Duration, last bool) error {
	taken := k.stream.Take()
	here := k.mark(now)
	begins := k.measured == nil && now >= k.began+k.warm
	samples, err := k.gauges.read(ctx, k.stream.Now, begins || last)
	if err != nil {
		return err
	}
	s := slice(k.Ops, taken, k.open, here)
	s.Treatment, s.Block, s.WarmUp, s.Samples = k.Trial.Treatment, k.Trial.Block, k.measured == nil, samples
	k.account.Count(taken)
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
	if begins {
		k.measured = &here
		return k.Writer.Samples(record.Samples{Treatment: s.Treatment, Block: s.Block, When: record.Before, Samples: samples})
	}
	if now >= k.flushed+flushEvery {
		return k.flush(now)
	}
	return nil
}

// flush writes the histograms of the measured part so far.
func (k *soakRun) flush(now time.Duration) error {
	k.flushed = now
	if cells := k.cells.take(); len(cells) > 0 {
		return k.Writer.Cells(k.Trial.Treatment, k.Trial.Block, cells)
	}
	return nil
}

// finish waits for the last calls, and writes the rest. An interrupt does not cut it short.
func (k *soakRun) finish(ctx context.Context, seg load.Segment, failed error) error {
	if seg.End == 0 {
		return nil // there was no load
	}
	end := max(seg.End, k.open.at)
	meter := k.stream.Meter() // draining is no load
	k.drain(ctx, failed)
	ctx = context.WithoutCancel(ctx)
	pending := k.stream.Progress().InFlight // at an interrupt
	err := k.cut(ctx, end, true)
	k.updateView(end, true)
	err = errors.Join(err, k.flush(end))
	if m := k.measured; m != nil && end > m.at {
		err = errors.Join(
			err,
			k.Writer.Samples(record.Samples{
				Treatment: k.Trial.Treatment, Block: k.Trial.Block, When: record.After,
				Samples: k.last.Samples,
			}),
			k.Writer.Window(record.Window{Treatment: k.Trial.Treatment, Block: k.Trial.Block, Start: m.at, End: end}),
			k.Audit(m.progress, k.open.progress, record.Generator{
				Seconds: (end - m.at).Seconds(), CPUSeconds: k.open.cpu - m.cpu, Effort: meter.Since(&m.meter),
			}),
			k.witness(ctx),
		)
	}
	return errors.Join(err, k.account.Close(ctx, pending), k.ConfirmBreaches(ctx, k.stream))
}

// drain waits until every call has ended, at the latest by its timeout; less long after an interrupt. After an abort it
// does not wait at all, since the pending sends would go to a target that suffers.
func (k *soakRun) drain(ctx context.Context, failed error) {
	idle := func() bool { return k.stream.Progress().Open() == 0 }
	if failed != nil && ctx.Err() == nil {
		return
	}
	if ctx.Err() == nil {
		// Its error is ctx's, which is checked next.
		_ = k.stream.Wait(ctx, k.Load.Timeout+time.Second, time.Millisecond, idle)
	}
	if ctx.Err() != nil {
		_ = k.stream.Wait(context.WithoutCancel(ctx), min(k.Load.Timeout, hurriedDrain), time.Millisecond, idle)
	}
}
