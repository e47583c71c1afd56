package capacity

import (
	"cmp"
	"errors"
	"math"
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/signature"
	"tare/internal/stat"
)

const (
	overdrive = 1.3   // × goodput
	sharp     = 0.012 // relative half width of the interval at which an overload ends
	blurred   = 0.02  // from which on it lasts longer
	// mostSilences is how often a limiter may let nothing through: windows that turn so often are alike by then.
	mostSilences = 4
	near         = 1.5 // × a rate that was taken: an overload up to there is not far too high, however little comes back
)

// overload holds more than the target can take until the slope of its successes is known, and judges. A rate held says
// that it was no overload: the target took all of that.
func (r *session) overload(goodput float64) (held float64, err error) {
	if goodput <= 0 {
		goodput = max(r.fastest, r.o.Start) / overdrive
	}
	tries := 1
	for restarts := 0; ; {
		d := &dose{session: r, rate: min(overdrive*goodput/(1-min(0.5, r.floor())), r.o.MaxRate), number: r.overloads() + 1}
		if err := d.run(); err != nil {
			return 0, err
		}
		last := &r.t.Steps[len(r.t.Steps)-1]
		switch blamed, err := r.blame(last, !d.holds, &tries); {
		case err != nil:
			return 0, err
		case blamed && tries <= mostTries:
			continue
		case blamed:
			if goodput, err = r.retreat(last.Rate, last.Note); err != nil {
				return 0, err
			}
			tries = 1
			continue
		}
		if d.holds {
			r.fastest, r.took = max(r.fastest, d.rate), max(r.took, d.rate)
			last.Passed = new(true)
			r.learn(last)
			return d.rate, r.drain("the target held after all")
		}
		again := d.again()
		if again <= 0 || restarts == 3 || d.rate <= near*r.took {
			r.observe()
			r.judge()
			return 0, nil
		}
		restarts, r.tooMuch = restarts+1, d.rate
		goodput = max(again, math.Sqrt(r.took*d.rate)/overdrive)
		if d.waited() {
			if err := r.settle("far more than the target takes was offered"); err != nil {
				return 0, err
			}
		}
	}
}

// overloads is the number of the last overload.
func (r *session) overloads() int {
	n := 0
	for _, s := range r.t.Steps {
		if s.Role == RoleOverload {
			n = max(n, s.Attempt)
		}
	}
	return n
}

// dose is one overload, in one step or, where a limiter lets nothing through for seconds, several.
type dose struct {
	*session
	rate     float64
	number   int
	begun    time.Duration
	next     time.Duration // when to look at the interval again
	ask      time.Duration // when to look for hanging calls again
	best     float64       // goodput over a second
	silences int           // how often a limiter has let nothing through
	silent   bool          // a limiter has let nothing through for a while
	// shut is whether a limiter has turned all calls away for a moment: it is watched until that repeats, or does not.
	shut   bool
	slowed bool // all calls are turned away, and the last good ones were slow: it is no limiter
	holds  bool
	lower  float64       // the overload was far too high: goodput that the next should start from; 0: it was not
	unit   time.Duration // over which goodput can be told: a second, or twenty calls
	looked bool          // whether the overload was compared with what comes back
	done   bool
	limit  time.Duration
}

// patience is how long a limiter may refuse everything before less is offered until its window turns. It is longer
// every other time: a limit that counts refused calls opens some time after less is offered, and would otherwise look
// like a window.
func (d *dose) patience() time.Duration {
	return 3*time.Second + time.Duration(d.silences%2)*3*time.Second/2
}

func (d *dose) run() error {
	d.begun, d.limit = d.s.Now(), 15*time.Second
	d.next = lasting(d.rate, 2*time.Second, 200)
	d.unit = lasting(d.rate, time.Second, 20)
	for !d.done {
		rate := d.rate
		if d.silent {
			rate = max(min(d.o.Start, d.rate), d.rate/10)
		}
		left := d.limit - (d.s.Now() - d.begun)
		if left < poll {
			break
		}
		step, err := d.offer(RoleOverload, rate, left, d.look)
		if step != nil {
			step.Attempt = d.number
		}
		if err != nil {
			if errors.Is(err, errTime) && d.s.Now() > d.begun {
				return nil // judge what there is
			}
			return err
		}
	}
	return nil
}

// look ends the step when it has shown what it can.
func (d *dose) look(time.Duration) bool {
	elapsed := d.s.Now() - d.begun
	if d.turns() {
		return true
	}
	if elapsed >= d.unit {
		d.best = max(d.best, d.seen.goodput(d.unit))
		if _, c := d.seen.over(d.unit / 2); c.good == 0 && c.turned >= 20 && !d.shut && !d.slowed {
			d.slowed = d.lastGood(20) > 3*d.typical.Seconds()
			d.shut = !d.slowed
		}
	}
	if !d.windowed() && d.full(elapsed) {
		d.done = true
		return true
	}
	if elapsed < min(d.next, d.limit-2*poll) {
		return false
	}
	d.next = max(d.next, elapsed) * 115 / 100
	d.done = d.enough(elapsed)
	return d.done
}

// turns switches between the overload and less while a limiter refuses everything.
func (d *dose) turns() bool {
	patience := d.patience()
	_, long := d.seen.over(patience)
	_, now := d.seen.over(4 * poll)
	elapsed := d.s.Now() - d.begun
	switch {
	case !d.silent && elapsed > patience && long.good == 0 && d.refusing(long) > 0:
		d.silent = true
		d.silences++
		d.limit = max(d.limit, min(150*time.Second, d.remaining()*2/3))
		return true
	case d.silent && now.good > 0:
		d.silent = false
		return true
	}
	return false
}

// refusing is how many calls were refused, in whatever form as long as those before were not slow.
func (d *dose) refusing(change moment) uint64 {
	if d.slowed {
		return change.rejected
	}
	return change.turned
}

// full reports whether more overload would only do harm: the answers come close to the timeout, or the pool to its end
// while calls hang, or the target collapses.
func (d *dose) full(elapsed time.Duration) bool {
	now, last := d.seen.over(d.unit)
	g := d.seen.goodput(d.unit)
	waits := float64(now.open) / max(g, 1e-9)
	switch {
	case d.shut || float64(d.refusing(last)) > 0.1*float64(last.good+last.bad):
		return false
	case elapsed >= d.unit && !d.looked && d.excessive():
		return true
	case elapsed > d.unit && g > 0 && waits > 0.6*d.o.Timeout.Seconds():
		// In a queue the last answers took waits × goodput ÷ rate. Where they took far less, calls are stuck and not queued,
		// and it takes longer to see that.
		late := responses(d.due(max(0, d.s.Now()-d.o.Timeout), math.MaxInt64), d.s.Now()-time.Second/2)
		queued := len(late) > 0 && stat.Quantile(late, 0.5) > 0.5*waits*g/d.rate*1e9
		if queued && elapsed < 2*d.unit && d.rate > 1.6*g {
			d.lower = g // hardly a call of this overload was answered: it does not show how they wait
		}
		return elapsed > 4*d.unit || queued
	case float64(now.open) > 0.6*float64(d.o.MaxConns) && elapsed > time.Second && d.hanging():
		return true
	case elapsed > 3*d.unit && d.seen.goodput(2*d.unit) < 0.5*max(d.best, d.fastest):
		return true
	}
	return false
}

// lastGood is the median response, in seconds, of the last n calls that ended well, in the overload or shortly before;
// 0 without calls.
func (d *dose) lastGood(n int) float64 {
	calls := slices.DeleteFunc(d.s.Calls(max(0, d.begun-5*time.Second)), func(c load.Call) bool { return endedBadly(&c) })
	slices.SortFunc(calls, func(a, b load.Call) int { return cmp.Compare(b.Done, a.Done) })
	response := responses(load.Calls(calls[:min(n, len(calls))]).All(), 0)
	if len(response) == 0 {
		return 0
	}
	return stat.Quantile(response, 0.5) / 1e9
}

// again is the goodput that another overload should start from, because this one was far too high, or hardly one at
// all; else 0.
func (d *dose) again() float64 {
	e := d.estimate.Estimate
	if d.lower == 0 && e.Value > 0 && d.rate < d.o.MaxRate && d.rate*(1-d.floor()) < 1.1*e.Value {
		return e.Value
	}
	return d.lower
}

// waited reports whether the target let calls wait under the overload, for more than half a second, and hardly failed
// any.
func (d *dose) waited() bool {
	_, c := d.seen.over(d.s.Now() - d.begun)
	return float64(c.bad) < 0.1*float64(c.good+c.bad) && float64(d.seen.last().open) > max(20, d.seen.goodput(d.unit)/2)
}

// excessive reports whether the rate is more than twice what comes back, which makes a queue needlessly long.
func (d *dose) excessive() bool {
	d.looked = true
	_, c := d.seen.over(d.unit * 4 / 5)
	g := d.seen.goodput(d.unit * 4 / 5)
	if float64(c.bad) < 0.05*float64(c.good+c.bad) {
		g = max(g, d.fastest) // nothing fails: what held before is no allowance that has been used up
	}
	if g > 0 && d.rate > 2.2*g {
		d.lower = g
		return true
	}
	return false
}

// hanging reports whether calls hang while later ones are answered. It is asked ever more rarely, because it looks at
// all calls.
func (d *dose) hanging() bool {
	elapsed := d.s.Now() - d.begun
	if elapsed < d.ask {
		return false
	}
	d.ask = elapsed * 3 / 2
	d.t.Calls, d.t.Read = load.Calls(d.s.Calls(d.begun)), d.s.Now()
	v := signature.Classify(signature.Evidence{
		Calls: d.t.Calls, Now: d.t.Read, Timeout: d.o.Timeout, Capacity: d.seen.goodput(time.Second),
		BaseP50: d.typical, BaseP99: 2 * d.typical, BaseMean: d.typical,
		Windows: []signature.Window{{Role: string(RoleOverload), Rate: d.rate, Start: d.begun, End: d.t.Read}},
	})
	return v.Score(func(t signature.Traits) bool { return t.Strands }) >= 0.5
}

// enough reports whether the interval is narrow enough, or that it was no overload, or that time is up.
func (d *dose) enough(elapsed time.Duration) bool {
	if elapsed >= 2*time.Second && !d.silent && d.took(elapsed/2) {
		d.holds = d.rate < d.o.MaxRate || elapsed >= d.atTop(0)
		return d.holds
	}
	now := d.s.Now()
	d.t.Calls, d.t.Read = load.Calls(d.s.Calls(max(0, d.begun-5*time.Second))), now
	e := flow(d.t, d.begun+elapsed/10, now)
	if e.N != 0 {
		d.estimate.Estimate = e
	}
	if e.N < 0 {
		return !d.silent && (e.N <= -2 && e.Half() < sharp && elapsed >= d.least() || elapsed > 10*time.Second)
	}
	switch {
	case d.windowed():
		return d.silences > mostSilences
	case e.N > 0 && e.Half() < sharp && elapsed >= d.least():
		return true
	case elapsed < d.limit-4*poll:
		return false
	case d.limit == 15*time.Second && e.Half() > blurred:
		d.limit = 30 * time.Second
		return false
	}
	return true
}

// windowed reports whether a limiter was seen to refuse everything for a while.
func (d *dose) windowed() bool { return d.limit > 30*time.Second }

// least is how long the overload lasts at least: limiters may have a second, larger allowance, and pauses have to be
// seen often.
func (d *dose) least() time.Duration {
	if _, c := d.seen.over(time.Second); c.bad > 0 {
		if d.shut {
			return d.limit - 4*poll
		}
		if 8*d.seen.goodput(d.unit) < d.fastest {
			return 8 * time.Second // so much less than before: it may be paying back
		}
		return 3 * time.Second
	}
	t := signature.Ends(d.t.due(0, d.t.Read+1), d.begun, d.t.Read)
	if p, _ := signature.Beat(t); p == 0 && len(signature.Turns(t, 0.03)) > 0 {
		return 12 * time.Second
	}
	return 0
}

// took reports whether all that was offered over the last stretch came back well.
func (d *dose) took(stretch time.Duration) bool {
	_, c := d.seen.over(stretch)
	floor := d.floor()
	return float64(c.good) >= 0.97*(1-floor)*float64(c.due) && float64(c.bad) <= (0.02+floor)*float64(c.due) &&
		float64(c.open) <= 0.03*float64(c.due)+2*d.rate*d.typical.Seconds()+5
}
