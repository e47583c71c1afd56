package capacity

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"sort"
	"time"

	"tare/internal/load"
	"tare/internal/signature"
	"tare/internal/unit"
)

// poll is how often a running step is looked at.
const poll = 50 * time.Millisecond

// Why a search ends before its last confirmation.
var (
	errTime = errors.New("the time ran out")
	errStop = errors.New("stopped")
	errDown = errors.New("the target stays down")
)

// Search finds the rate at which the target behind s breaks. on may be nil. The trace is worth assessing also beside an
// error, which is the context's or the stream's: it then holds what was measured until then.
func Search(ctx context.Context, s Stream, o Options, on func(Event)) (Trace, error) {
	r, err := begin(ctx, s, o, on)
	if err != nil {
		return Trace{}, err
	}
	err = r.end(r.search())
	if err == nil && r.t.Stop == StopFound {
		err = r.end(r.alone())
	}
	if err == nil && (r.t.Stop == StopMaxRate || r.t.Stop == StopFound) {
		err = r.end(r.slo())
	}
	if err == nil && (r.t.Stop == StopMaxRate || r.t.Stop == StopFound || r.t.Stop == StopClient) {
		err = r.end(r.rates())
	}
	if err == nil && !r.t.Stop.Down() {
		err = r.end(r.recovery())
	}
	r.read()
	return r.t, err
}

// session is a search or a ladder in progress.
type session struct {
	ctx   context.Context //nolint:containedctx // it lives as long as one call of Search or Play
	s     Stream
	o     Options
	on    func(Event)
	t     Trace
	start time.Duration
	seen  history
	// attempts counts the steps of each role.
	attempts map[Role]int
	estimate judgement
	// typical is the lower quartile of the responses in the ramp step where that was least: a queue that builds up must
	// not count as typical.
	typical time.Duration
	// slow is what someCalls of the calls took at least, in seconds, in the ramp step where that was least; 0: not known.
	slow float64
	// fastest is the highest rate that held.
	fastest float64
	// warm is the median response by which the target was last seen to have become faster; 0: never.
	warm time.Duration
	// long is whether confirmations last longer, since a rate that had held did not last.
	long bool
	// spent is whether a service did less after it had been busy for a while: what it saves up in a pause must not count.
	spent bool
	// took is the highest overload that the target took, tooMuch the last that was far more than it can take.
	took, tooMuch float64
	// lasted is the highest rate that held for long at a stretch.
	lasted float64
	// rests is whether each confirmation begins from rest although the class saves up what is not used.
	rests bool
	// heldBack is whether it was left open if a rate holds, because the host held calls back each time.
	heldBack bool
	// unexplained is whether calls failed far below the estimate, and it was looked into.
	unexplained bool
}

func begin(ctx context.Context, s Stream, o Options, on func(Event)) (*session, error) {
	o = o.Defaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	if on == nil {
		on = func(Event) {}
	}
	return &session{
		ctx: ctx, s: s, o: o, on: on, start: s.Now(), attempts: map[Role]int{},
		t: Trace{
			Timeout: o.Timeout, MaxRate: o.MaxRate, MaxConns: o.MaxConns, Callers: o.Callers, SLO: o.SLO, SLOShare: o.SLOShare,
			Stop: StopFound,
		},
	}, nil
}

// end turns the reasons to stop into the trace's, and leaves real errors.
func (r *session) end(err error) error {
	switch {
	case err == nil, errors.Is(err, errStop):
		return nil
	case errors.Is(err, errTime):
		r.stop(StopTime, fmt.Sprintf("the search was given %.0f s", r.o.MaxSeconds))
		return nil
	case errors.Is(err, errDown):
		stop := StopDown
		if r.t.Recovery.refused() {
			stop = StopRefusing
		}
		r.stop(stop, r.t.Recovery.unanswered())
		return nil
	case r.ctx.Err() != nil:
		r.stop(StopCanceled, "interrupted")
	}
	return err
}

func (r *session) stop(s Stop, reason string) { r.t.Stop, r.t.Reason = s, reason }

// search runs ramps and overloads until an overload is one, and then confirms it.
func (r *session) search() error {
	rate, goodput := r.o.Start, 0.0
	for range 10 {
		var err error
		if goodput <= 0 {
			if goodput, err = r.ramp(rate); err != nil {
				return err
			}
		}
		held, err := r.overload(goodput)
		if err != nil {
			return err
		}
		if goodput = 0; held > 0 {
			if held >= r.o.MaxRate {
				r.top(held)
				return nil
			}
			rate = min(1.5*held, r.o.MaxRate)
			if r.tooMuch > held { // a ramp would only end there again
				goodput = r.between() / overdrive
			}
			continue
		}
		if goodput, err = r.confirm(); err != nil || goodput <= 0 {
			return err
		}
	}
	r.stop(StopFound, fmt.Sprintf("after %s no rate was clear that it breaks at", unit.Count(r.overloads(), "overload")))
	return nil
}

// between is the next rate to try where one overload was taken, and another was far too much.
func (r *session) between() float64 {
	if r.tooMuch <= near*r.took {
		return r.tooMuch
	}
	return math.Sqrt(r.took * r.tooMuch)
}

// top ends a search whose highest rate held.
func (r *session) top(rate float64) {
	reason := "nothing broke up to %s/s"
	if r.broke() {
		reason = "something broke at first, and then %s/s held for 12 s"
	}
	r.stop(StopMaxRate, fmt.Sprintf(reason, number(rate)))
}

// atTop is how long the highest rate must hold to end the search, where usual suffices if nothing has broken yet. Else
// a limiter whose window has turned meanwhile would hold it for a moment.
func (r *session) atTop(usual time.Duration) time.Duration {
	if r.broke() {
		return 12 * time.Second
	}
	return usual
}

// broke reports whether any rate broke so far.
func (r *session) broke() bool {
	return slices.ContainsFunc(r.t.Steps, func(s Step) bool {
		return (s.Role == RoleRamp || confirms(s.Role)) && s.Passed != nil && !*s.Passed && !s.ClientLimited
	})
}

// remaining is what is left of the time for the search.
func (r *session) remaining() time.Duration {
	return r.start + time.Duration(r.o.MaxSeconds*1e9) - r.s.Now()
}

// offer runs one step of load at rate for d, or until stop says so, and adds it to the trace.
func (r *session) offer(
	role Role, rate float64, d time.Duration, stop func(elapsed time.Duration) bool,
) (*Step, error) {
	left := r.remaining()
	if left < time.Second/2 {
		return nil, errTime
	}
	rate = min(rate, r.o.MaxRate)
	return r.offerProcess(Step{Role: role, Rate: rate}, r.o.Arrivals(rate, min(d, left)), stop)
}

// offerProcess runs one step of any shape and adds it to the trace.
func (r *session) offerProcess(step Step, p load.Process, stop func(elapsed time.Duration) bool) (*Step, error) {
	ran, err := r.run(step, func(step *Step) (err error) {
		begun := step.Segment.Start
		step.Segment, err = r.s.Offer(r.ctx, p, poll, func() bool {
			r.watch(StepProgress, *step)
			return stop != nil && stop(r.s.Now()-begun)
		})
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("offer %s/s: %w", number(step.Rate), err)
	}
	return ran, nil
}

// pause offers nothing for d, or until done says so, and adds the drain to the trace.
func (r *session) pause(d time.Duration, done func() bool, note string) error {
	left := r.remaining()
	if left <= 0 {
		return errTime
	}
	_, err := r.run(Step{Role: RoleDrain, Note: note}, func(step *Step) error {
		return r.s.Wait(r.ctx, min(d, left), poll, func() bool {
			r.watch(StepProgress, *step)
			return done != nil && done()
		})
	})
	if err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	return nil
}

// run makes a step by work, and adds it to the trace.
func (r *session) run(step Step, work func(step *Step) error) (*Step, error) {
	r.attempts[step.Role]++
	step.Attempt, step.Segment = r.attempts[step.Role], load.Segment{Start: r.s.Now()}
	r.watch(StepBegins, step)
	err := work(&step)
	step.Segment.End = cmp.Or(step.Segment.End, r.s.Now())
	r.watch(StepEnds, step)
	r.t.Steps = append(r.t.Steps, step)
	return &r.t.Steps[len(r.t.Steps)-1], err
}

// watch takes a look at the stream and tells the caller.
func (r *session) watch(k EventKind, step Step) {
	p := r.s.Progress()
	r.seen.add(p)
	if step.Segment.End == 0 {
		step.Segment.End = p.Now
	}
	r.on(Event{
		Kind: k, Step: step, Now: p.Now, Progress: p, Goodput: r.seen.goodput(time.Second / 2),
		Estimate: r.estimate.Value, Lo: r.estimate.Lo, Hi: r.estimate.Hi, Signature: r.estimate.verdict.Class,
	})
}

// read copies all calls since the first step into the trace.
func (r *session) read() {
	if len(r.t.Steps) > 0 {
		r.t.Calls = load.Calls(r.s.Calls(r.t.Steps[0].Segment.Start))
	}
	r.t.Read = r.s.Now()
}

// due yields the calls that were due in [from, to), as they are now.
func (r *session) due(from, to time.Duration) iter.Seq[*load.Call] {
	return load.Calls(r.s.Calls(from)).Due(from, to)
}

// judge brings the estimate up to date.
func (r *session) judge() {
	r.read()
	if over := lastOverload(r.t); len(over) > 0 {
		r.estimate = judge(r.t, baseOf(r.t), over)
	}
}

// observe asks what the target's own host saw.
func (r *session) observe() {
	if r.o.Observe == nil {
		return
	}
	l, now := &r.t.Local, r.o.Observe()
	l.ListenQueue = cmp.Or(now.ListenQueue, l.ListenQueue)
	l.Throttled, l.Paused = cmp.Or(now.Throttled, l.Throttled), cmp.Or(now.Paused, l.Paused)
}

// class is the class so far, or what the search takes for it.
func (r *session) class() signature.Class { return r.estimate.verdict.Method() }

// number prints a rate with four digits.
func number(x float64) string { return unit.Decimal(x, 4) }

// moment is what was known at an instant.
type moment struct {
	at                       time.Duration
	due, good, bad, rejected uint64
	turned                   uint64 // away, in whatever form: refused, or answered with something else
	open                     int
}

// history is a list of moments, for questions about the recent past that need no call records.
type history struct{ moments []moment }

func (h *history) add(p load.Progress) {
	m := moment{at: p.Now, due: p.Due, open: p.Open(), rejected: p.Done[load.Refused]}
	for o, n := range p.Done {
		switch outcome := load.Outcome(o); {
		case outcome.Good():
			m.good += n
			continue
		case outcome == load.Refused, outcome == load.Failed, outcome == load.Wrong:
			m.turned += n
		case outcome == load.ConnFailed: // those that were sent were cut off
			unsent := p.Ended() + uint64(p.InFlight) - p.Sent - p.UnsentTimeouts
			m.turned += n - min(n, unsent)
		}
		m.bad += n
	}
	if n := len(h.moments); n > 0 && h.moments[n-1].at == m.at {
		h.moments[n-1] = m
		return
	}
	h.moments = append(h.moments, m)
}

func (h *history) last() moment { return h.at(math.MaxInt64) }

// at is the last moment not after t, or the first there is.
func (h *history) at(t time.Duration) moment {
	if len(h.moments) == 0 {
		return moment{}
	}
	i := sort.Search(len(h.moments), func(i int) bool { return h.moments[i].at > t })
	return h.moments[max(0, i-1)]
}

// over is the last moment, and the change over the last d.
func (h *history) over(d time.Duration) (now, change moment) {
	now = h.last()
	then := h.at(now.at - d)
	return now, moment{
		at: now.at - then.at, due: now.due - then.due, good: now.good - then.good, bad: now.bad - then.bad,
		rejected: now.rejected - then.rejected, turned: now.turned - then.turned, open: now.open - then.open,
	}
}

// goodput is calls that ended well per second over the last d.
func (h *history) goodput(d time.Duration) float64 {
	_, c := h.over(d)
	if c.at <= 0 {
		return 0
	}
	return float64(c.good) / c.at.Seconds()
}

// recent is the goodput over the last 0.3 s, or over as much of the last limit as holds ten calls.
func (h *history) recent(limit time.Duration) float64 {
	d := 300 * time.Millisecond
	for ; d < limit; d *= 2 {
		if _, c := h.over(d); c.good >= 10 {
			break
		}
	}
	return h.goodput(min(d, max(limit, 300*time.Millisecond)))
}

// waiting is how many calls were open on average over the last d.
func (h *history) waiting(d time.Duration) float64 {
	sum, n := 0.0, 0
	for i := len(h.moments) - 1; i >= 0 && h.moments[i].at >= h.last().at-d; i-- {
		sum += float64(h.moments[i].open)
		n++
	}
	return sum / float64(max(1, n))
}
