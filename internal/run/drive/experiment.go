package drive

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tare/area"
	"tare/internal/capacity"
	"tare/internal/limit"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/run"
	"tare/internal/signature"
	"tare/internal/stat"
)

const (
	// experimentsTime bounds the experiments with calls in flight, limiterTime those of a target that refuses calls by
	// rate: of these a few say enough.
	experimentsTime, limiterTime = 15 * time.Second, 4500 * time.Millisecond
	// mostInFlight is the largest number of calls in flight that is tried; limiterInFlight that of a limiter.
	mostInFlight, limiterInFlight = 64, 4
	// excess is by how much more is offered than the capacity, leverExcess by how much more than a lever promises, and
	// leastLever the least of that with which it is worth trying.
	excess, leverExcess, leastLever = 1.5, 1.3, 1.1
	// unbounded is by how much more is offered than the highest rate that held, where none is known that does not. Few
	// calls are in flight all the same.
	unbounded = 4
	// grows is by how much the rate is higher over two doublings if more calls in flight still help.
	grows = 1.08
	// experimentEnds is how many calls should end in an experiment. It lasts whole seconds, in ten equal parts: a CPU
	// quota lets calls end in bursts of its period, usually 100 ms, and none must be cut in two.
	experimentEnds, experimentParts = 60, 10
	// shortestExperiment and longestExperiment bound the measured part, and those with a lever shortestLever from below.
	shortestExperiment, shortestLever, longestExperiment = time.Second, 2 * time.Second, 3 * time.Second
	// longestPrime bounds the time in which what a limiter has saved up is used before the first experiment.
	longestPrime = 2 * time.Second
	// longestPause bounds the pause after an experiment, in which calls that were given up end at the target.
	longestPause = 2 * time.Second
	// setBackWithin bounds the setting back of a lever.
	setBackWithin = 10 * time.Second
)

// An Experimenting is an experiment that begins, for the live view.
type Experimenting struct{ limit.Experiment }

// experiments tell apart what may set the rate that a search has found.
type experiments struct {
	*run.Arm
	trace *capacity.Trace
	found capacity.Result
	// operations are the names of all that the search called.
	operations []string
	arrivals   func(rate float64, d time.Duration) load.Process
	next       uint64 // number of the next call
	streams    uint64 // opened so far
	done       []limit.Experiment
	end        time.Time // of the time that there is for experiments with the target as it was
	moved      error     // why a lever is not set back
}

// experiment follows a search with experiments, if it found a rate at which the target breaks. What keeps the
// experiments from being made is a warning: the search counts without them.
func experiment(ctx context.Context, a *run.Arm, s *attempted) error {
	r := capacity.Assess(s.trace)
	if !hasLimit(&r) {
		return nil
	}
	given := a.Load.Config
	defer func() { a.Load.Config = given }()
	a.Load.Config = s.config
	keys := uint64(max(1, s.trace.Callers))
	operations := make([]string, len(a.Ops))
	for i := range a.Ops {
		operations[i] = a.Ops[i].Name
	}
	x := &experiments{
		Arm: a, trace: &s.trace, found: r, operations: operations, arrivals: arrivals(&a.Load, a.Trial.Seed),
		next: (s.progress.Due + 1) * keys, // a caller that is alone has every keys-th number
	}
	return x.all(ctx)
}

// rate is what the target can do, in 1/s; where only bounds are known, the rate that broke, or else the one that held.
func (x *experiments) rate() float64 { return cmp.Or(x.found.Rate, x.found.AtMost, x.found.AtLeast) }

// all makes the experiments.
func (x *experiments) all(ctx context.Context) error {
	err := x.inFlight(ctx)
	left := x.end.Sub(x.Env.Clock.Now())
	if err == nil && x.Load.Prove {
		err = x.levers(ctx)
	}
	x.end = x.Env.Clock.Now().Add(left)
	if err == nil && x.moved == nil {
		err = x.openOnes(ctx)
	}
	if err == nil && x.moved == nil {
		err = x.leftOut(ctx)
	}
	if err == nil && len(x.done) > 0 {
		err = x.comeBack(ctx)
	}
	if lost, ok := errors.AsType[*experimentLost](err); ok && ctx.Err() == nil {
		err = x.Writer.Warning(record.Warning{Treatment: x.Trial.Treatment, Text: lost.Error()})
	}
	return errors.Join(err, x.moved)
}

// hasLimit reports whether a search found what a target can do, and left it able to do it again.
func hasLimit(r *capacity.Result) bool {
	found := r.Stop == capacity.StopFound || r.Stop == capacity.StopTime
	t := r.Signature.Class.Traits()
	punishes := t.Limiter && t.Falls // any overload would only be punished again
	known := r.Rate > 0 || r.AtMost > 0 || r.AtLeast > 0
	return found && r.Broke && r.Valid && known && !r.Wedged && !punishes
}

// experimentLost is why an experiment could not be made.
type experimentLost struct{ cause error }

// Error implements error.
func (e *experimentLost) Error() string {
	return fmt.Sprintf("experiments after the search: %v", e.cause)
}

// Unwrap returns the cause.
func (e *experimentLost) Unwrap() error { return e.cause }

// inFlight allows ever more calls in flight, until more of them no longer raise the rate.
func (x *experiments) inFlight(ctx context.Context) error {
	most, factor, within := mostInFlight, 2, experimentsTime
	if t := x.found.Signature.Class.Traits(); t.Limiter && !t.Places {
		most, within = limiterInFlight, limiterTime
		if x.hasSources() {
			factor = limiterInFlight // the time is for those
		}
	}
	x.end = x.Env.Clock.Now().Add(within)
	more := excess
	if x.found.Rate == 0 && x.found.AtMost == 0 {
		more = unbounded
	}
	offered := x.allowed(more * x.rate())
	length := x.length(shortestExperiment)
	for k := 1; k <= most; {
		warm := length / 4
		if k == 1 {
			warm = max(warm, x.prime(offered))
		}
		if !x.fits(warm+length) && len(x.done) > 0 {
			return nil
		}
		made, err := x.offer(ctx, limit.Experiment{InFlight: k, Offered: offered}, warm, length)
		if err != nil || !made || x.levelled() || x.settled() {
			return err
		}
		if !x.done[len(x.done)-1].TookAll() {
			k *= factor
			continue
		}
		before := offered // the target can do more than the search found
		if offered = x.allowed(unbounded * offered); offered < leastLever*before {
			return nil
		}
	}
	return nil
}

// leftOut allows as many calls in flight as were left out between one and the next that did more: they may fill the
// target.
func (x *experiments) leftOut(ctx context.Context) error {
	if len(x.done) < 2 {
		return nil
	}
	one, next := x.done[0], x.done[1]
	length := x.length(shortestExperiment)
	if one.InFlight != 1 || next.InFlight <= 2 || next.Rate() <= grows*one.Rate() || !x.fits(length+length/4) {
		return nil
	}
	_, err := x.offer(ctx, limit.Experiment{InFlight: 2, Offered: next.Offered}, length/4, length)
	return err
}

// prime is how long it takes to use up what a limiter has saved up.
func (x *experiments) prime(offered float64) time.Duration {
	over := offered - x.rate()
	if x.found.Burst == nil || over <= 0 {
		return 0
	}
	return min(longestPrime, time.Duration(*x.found.Burst/over*float64(time.Second)))
}

// levelled reports whether two doublings of the calls in flight have not raised the goodput, or nothing succeeded.
func (x *experiments) levelled() bool {
	last := &x.done[len(x.done)-1]
	if last.TookAll() {
		return false
	}
	return last.Rate() == 0 || slices.ContainsFunc(x.done, func(e limit.Experiment) bool {
		return 4*e.InFlight == last.InFlight && !e.TookAll() && last.Rate() <= grows*e.Rate()
	})
}

// allowed is the rate, or the most that the file allows.
func (x *experiments) allowed(rate float64) float64 {
	if most := x.Load.MaxRate; most > 0 {
		return min(rate, most)
	}
	return rate
}

// length is how long an experiment is measured.
func (x *experiments) length(shortest time.Duration) time.Duration {
	ends := time.Duration(experimentEnds / x.rate() * float64(time.Second))
	return min(max(ends, shortest)+time.Second-1, longestExperiment).Truncate(time.Second)
}

// levers moves each lever of the target, as far as max_rate allows to see what follows.
func (x *experiments) levers(ctx context.Context) error {
	offers := x.Target.Can().Levers
	if offers == nil || len(x.done) == 0 {
		return nil
	}
	for _, l := range offers(x.Treatment) {
		offered := x.allowed(leverExcess * l.Factor * x.rate())
		if offered < leastLever*l.Factor*x.rate() {
			continue
		}
		if err := x.move(ctx, &l, offered); err != nil || x.moved != nil {
			return err
		}
	}
	return nil
}

// move makes one experiment with a lever moved, and sets it back, also after an error or an interrupt.
func (x *experiments) move(ctx context.Context, l *area.Lever, offered float64) error {
	back, err := l.Move(ctx)
	if err != nil {
		return &experimentLost{fmt.Errorf("change the %s from %s to %s: %w", l.Limit, l.From, l.To, err)}
	}
	defer func() {
		within, cancel := context.WithTimeout(context.WithoutCancel(ctx), setBackWithin)
		defer cancel()
		if failed := back(within); failed != nil {
			x.moved = fmt.Errorf("set the %s back to %s: %w", l.Limit, l.From, failed)
		}
	}()
	length := x.length(shortestLever)
	_, err = x.offer(ctx, limit.Experiment{
		InFlight: x.done[len(x.done)-1].InFlight, Offered: offered,
		Lever: &limit.Lever{Kind: limit.Kind(l.Limit), From: l.From, To: l.To, Factor: l.Factor},
	}, length/4, length)
	return err
}

// offer makes one experiment through a stream of its own, and records it. It measures for length after a beginning of
// warm. made is false, and nothing is recorded, where no stream with so many calls in flight can be had.
func (x *experiments) offer(
	ctx context.Context, e limit.Experiment, warm, length time.Duration,
) (made bool, err error) {
	x.Tell(during(x.Arm, run.Measuring, &Experimenting{e}))
	given := x.Load.Config
	c := &x.Load.Config
	c.MaxConns, c.First = e.InFlight, x.next
	c.Timeout += warm + length        // calls wait in the generator on purpose
	c.Precise = true                  // an answer that is read late delays the next call
	c.GrowGap = 10 * time.Microsecond // callers take turns with few connections
	defer func() { x.Load.Config = given }()
	x.streams++
	s, err := x.OpenStream(ctx, x.Trial.Seed+x.streams, true)
	if err != nil {
		return false, &experimentLost{err}
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if s.Multiplexed {
		return false, nil
	}
	account := x.WatchUse(ctx)
	seg, err := s.Offer(ctx, x.arrivals(e.Offered, warm+length), poll, nil)
	e.Account = account()
	if err != nil {
		return false, &experimentLost{err}
	}
	x.next += uint64(seg.Offered)
	calls := s.Calls(seg.Start)
	if p := s.Progress(); p.Ended() > 0 {
		e.Bytes = float64(p.BytesIn) / float64(p.Ended())
	}
	s.Reset()
	from := seg.Start + warm
	if e.Seconds = (seg.End - from).Seconds(); e.Seconds <= 0 {
		return false, nil
	}
	service := count(&e, calls, from, seg.End)
	e.Late = lateness(calls, seg)
	x.done = append(x.done, e)
	if err := x.Writer.Step(x.Trial.Treatment, x.Trial.Block, limit.Step, e); err != nil {
		return true, err
	}
	err = x.ConfirmBreaches(ctx, s)
	pause := min(max(2*service, poll), longestPause, given.Timeout/4)
	return true, errors.Join(err, x.Env.Clock.Sleep(ctx, pause))
}

// comeBack waits until the target answers a fresh call: what is measured next must not find it overloaded.
func (x *experiments) comeBack(ctx context.Context) (err error) {
	s, err := x.OpenStream(ctx, x.Trial.Seed, false)
	if err != nil {
		return &experimentLost{err}
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	within := max(2*x.Load.Timeout, patience)
	for end := s.Now() + within; s.Now() < end; {
		c := s.Fresh(ctx, 0, x.next, min(2*time.Second, x.Load.Timeout))
		if c.Done != 0 && c.Outcome.Good() || ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.Wait(ctx, time.Second/4, poll, nil); err != nil {
			return err
		}
	}
	return &experimentLost{fmt.Errorf("the target answered no fresh call for %v after them", within)}
}

// count fills in what the calls show that ended in (from, to]. It returns the longest time that a call was served.
func count(e *limit.Experiment, calls []load.Call, from, to time.Duration) (longest time.Duration) {
	e.Counts = make([]int, experimentParts)
	var service, transfer, ends []float64
	carried := map[uint32]bool{}
	for i := range calls {
		c := &calls[i]
		switch {
		case c.Done <= from || c.Done > to || c.Unsent():
			continue
		case !c.Outcome.Good():
			e.Bad++
			continue
		}
		part := int(float64(experimentParts) * float64(c.Done-from) / float64(to-from))
		e.Counts[min(part, experimentParts-1)]++
		carried[c.Conn] = true
		service = append(service, c.Service().Seconds())
		ends = append(ends, c.Done.Seconds())
		longest = max(longest, c.Service())
		if c.FirstByte != 0 {
			transfer = append(transfer, (c.Done - c.FirstByte).Seconds())
		}
	}
	e.Service, e.Transfer = median(service), median(transfer)
	if e.Fresh {
		e.Connections = len(carried)
	}
	e.Observe(service, ends)
	return longest
}

// median is 0 without values.
func median(of []float64) float64 {
	if len(of) == 0 {
		return 0
	}
	slices.Sort(of)
	return stat.SortedQuantile(of, 0.5)
}

// lateness says why the generator did not do its part in a segment; "": it did.
func lateness(calls []load.Call, seg load.Segment) string {
	if a := signature.AuditCalls(load.Calls(calls).Due(seg.Start, seg.End), seg.End, seg.Offered); !a.Valid {
		return a.Reason
	}
	if seg.Effort == nil {
		return ""
	}
	c := signature.Conduct{Effort: seg.Effort}
	o := c.Judge()
	return o.Because()
}
