package capacity

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
)

const (
	// sloTries bounds the rates at which an objective is tried, and sloLongest how long each of them is held.
	sloTries, sloLongest = 7, 30 * time.Second
	// sloBuilds is how long calls do not count at first: a queue near the capacity takes a while to build up.
	sloBuilds = 3 * time.Second
	// sloLeast is how long an objective has to hold: a pause every few seconds belongs to what callers meet.
	sloLeast = 10 * time.Second
	// sloLevel is that of each look at whether an objective holds.
	sloLevel = 0.99
	// sloNear is the ratio of a rate at which the objective is not shown to hold to one at which it is, at which the
	// search ends.
	sloNear = 1.1
)

// slo searches the highest rate at which at most a given share of the calls takes longer than the objective, between 0
// and the capacity, or the highest rate that was held.
func (r *session) slo() error {
	if r.o.SLO <= 0 {
		return nil
	}
	r.read()
	held, above, rate := 0.0, 0.0, Assess(r.t).Rate*0.9
	if rate <= 0 {
		rate = r.fastest
	}
	for range sloTries {
		if !(rate > 0) || held > 0 && above > 0 && above < sloNear*held || r.remaining() < sloLongest/2 {
			return nil
		}
		ok, err := r.meets(rate)
		switch {
		case err != nil:
			return err
		case ok && rate >= r.o.MaxRate:
			return nil
		case ok:
			held = rate
		default:
			above = rate // it misses the objective, or noise leaves that open
		}
		switch {
		case above == 0:
			rate = min(1.1*rate, r.o.MaxRate)
		case held == 0:
			rate = above * 0.7
		default:
			rate = math.Sqrt(held * above)
		}
	}
	return nil
}

// meets tries whether the objective holds at rate, by a sequential test. What is left open counts as not met.
func (r *session) meets(rate float64) (bool, error) {
	if err := r.drain("before an objective is tried"); err != nil {
		return false, err
	}
	begun, next := r.s.Now()+sloBuilds, sloBuilds+max(lasting(rate, 2*time.Second, 300), r.o.SLO)+r.o.SLO
	var met *bool
	step, err := r.offer(RoleSLO, rate, sloBuilds+max(sloLongest, 20*r.o.SLO), func(elapsed time.Duration) bool {
		if elapsed < next {
			return false
		}
		// The looks are further and further apart: each of them may err.
		next = elapsed + (elapsed-sloBuilds)/2
		var open bool
		met, open = r.within(begun, elapsed-sloBuilds-r.o.SLO)
		return !open
	})
	if err != nil {
		return false, err
	}
	if step.Passed = met; met == nil {
		step.Note = "undecided: noise"
	}
	return met != nil && *met, nil
}

// within tests the calls that were due within d from begun on: nil where noise leaves open whether the objective holds;
// open: more calls may decide it. An objective that is missed only with the delays by the generator is left open.
func (r *session) within(begun, d time.Duration) (held *bool, open bool) {
	all := r.missing(begun, d, false, func(c *load.Call) time.Duration { return c.Response() })
	switch held = all.decided(r.o.SLOShare); {
	case held == nil:
		return nil, all.mayHold(r.o.SLOShare, d)
	case *held && d < sloLeast:
		return nil, true
	case *held:
		return held, false
	}
	without := r.missing(begun, d, true, func(c *load.Call) time.Duration { return c.Response() - c.Lateness() })
	if w := without.decided(r.o.SLOShare); w == nil || *w {
		return nil, d < sloLongest/2
	}
	return held, false
}

// A missed is how many calls missed an objective, as far as they tell of independent ones: calls that follow one
// another share their fate.
type missed struct{ over, of float64 }

// missing counts the calls that were due within d from begun on and did not end well within the objective, by the times
// that took gives. Calls that were held back are left out if apart is set.
func (r *session) missing(begun, d time.Duration, apart bool, took func(*load.Call) time.Duration) missed {
	var times, over []float64
	n := 0.0
	var stopped heldBack
	for c := range r.due(begun, begun+d) {
		if stopped.disturbs(c) && apart {
			continue
		}
		// How much longer than twice the objective a call takes says nothing of whether others miss it.
		one, response := 0.0, min(2*r.o.SLO, took(c))
		if c.Done == 0 {
			response = 2 * r.o.SLO
		}
		if endedBadly(c) || response > r.o.SLO {
			one = 1
			n++
		}
		times, over = append(times, float64(response)), append(over, one)
	}
	each := max(stat.Inefficiency(times), stat.Inefficiency(over))
	return missed{n / each, float64(len(times)) / each}
}

// interval bounds the share that misses the objective. Parts of calls are rounded so that it becomes wider.
func (m missed) interval() (lo, hi float64) {
	n := uint64(m.of)
	low, ok := stat.BinomialInterval(min(n, uint64(m.over)), n, sloLevel)
	high, _ := stat.BinomialInterval(min(n, uint64(math.Ceil(m.over))), n, sloLevel)
	if !ok {
		return 0, 1
	}
	return low.Lo, high.Hi
}

// decided says whether at most a share of the calls misses the objective; nil where that is open.
func (m missed) decided(most float64) *bool {
	switch lo, hi := m.interval(); {
	case hi <= most:
		return new(true)
	case lo > most:
		return new(false)
	}
	return nil
}

// mayHold reports whether it would be shown that the objective holds, if the calls went on as within d for sloLongest.
func (m missed) mayHold(most float64, d time.Duration) bool {
	if d < 5*time.Second {
		return true
	}
	more := sloLongest.Seconds() / d.Seconds()
	_, hi := missed{m.over * more, m.of * more}.interval()
	return hi <= most
}

// rates offers the rates that budgets name, from the lowest on, as long as they held in the search and time is left:
// what a target does beyond is known from the search.
func (r *session) rates() error {
	for _, rate := range slices.Compact(slices.Sorted(slices.Values(r.o.Rates))) {
		d := min(lasting(rate, 5*time.Second, 4000), 30*time.Second)
		if rate > max(r.fastest, r.lasted) || d+r.o.Timeout > r.remaining() {
			return nil
		}
		if err := r.drain("before a rate that a budget names"); err != nil {
			return err
		}
		if _, err := r.offer(RoleRate, rate, d, nil); err != nil {
			return err
		}
	}
	return nil
}

// alone asks whether each caller has a limit of its own. All of them offer together a rate that the target grants them;
// then one offers it by itself, which is several times its share.
func (r *session) alone() error {
	if r.o.Callers < 2 {
		return nil
	}
	r.read()
	p, ok := Assess(r.t).solo(r.o.Callers)
	if !ok || r.remaining() < 2*p.length()+r.o.Timeout {
		return nil
	}
	for _, role := range []Role{RoleTogether, RoleAlone} {
		if err := r.drain("before one caller offers what all do"); err != nil {
			return err
		}
		process := r.o.Arrivals(p.rate, p.length())
		if role == RoleAlone {
			process = load.Alone{Process: process, Callers: r.o.Callers}
		}
		if _, err := r.offerProcess(Step{Role: role, Rate: p.rate}, process, nil); err != nil {
			return err
		}
	}
	return nil
}

// A solo is what one caller offers to show whether it has a limit of its own.
type solo struct {
	rate, share  float64       // 1/s: what it offers, and what would be its own if the capacity were divided among all
	skip, judged time.Duration // until all that it may have saved up is used up, and what counts after that
}

func (p solo) length() time.Duration { return p.skip + p.judged }

// solo plans the experiment for n callers. It is not done where calls beyond the limit are not refused, nor where it
// would take too long.
func (r Result) solo(n int) (p solo, ok bool) {
	traits := r.Signature.Class.Traits()
	if r.Rate == 0 || !r.Valid || !traits.Limiter || traits.Waits || traits.Strands {
		return p, false
	}
	p.share = r.Rate / float64(n)
	p.rate = min(0.75*r.Lo, 3*p.share)
	if p.rate < 1.4*p.share {
		return p, false
	}
	saved := 0.0
	if r.Burst != nil {
		saved = *r.Burst / float64(n)
	}
	p.skip = time.Duration(1.5 * saved / (p.rate - p.share) * 1e9)
	p.judged = max(3*time.Second, time.Duration(2*r.Signature.Period*1e9), time.Duration(40/p.rate*1e9))
	return p, p.length() <= 20*time.Second
}

// callers says what came of the experiment; nil: it was not done, or leaves it open.
func (t Trace) callers(r *Result, floor float64) *Finding {
	p, ok := r.solo(t.Callers)
	if t.Callers < 2 || !ok {
		return nil
	}
	together, _, ok := t.badIn(RoleTogether, p)
	if !ok || together > 2*mostBad+floor {
		return nil // what one caller gets says nothing
	}
	alone, n, ok := t.badIn(RoleAlone, p)
	switch granted := number(p.rate); {
	case !ok || n < 20:
	case alone <= mostBad+floor:
		return &Finding{LimitShared, fmt.Sprintf("one of %d callers alone was granted %s/s, %s times its share of the "+
			"capacity: all callers share the limit", t.Callers, granted, number(p.rate/p.share))}
	case alone-floor >= (1-p.share/p.rate)/2:
		return &Finding{LimitPerCaller, fmt.Sprintf("one of %d callers alone was refused %s %% of %s/s, which all of them "+
			"together were granted: each caller, or each of its connections, has a limit of its own",
			t.Callers, number(100*alone), granted)}
	}
	return nil
}

// badIn is the share of the calls that did not end well in the last step of a role, after what was saved up; ok: there
// is such a step, and it ran its course.
func (t Trace) badIn(role Role, p solo) (share float64, n int, ok bool) {
	for _, s := range t.Steps {
		if s.Role != role || s.ClientLimited || s.Length() < p.length()*9/10 {
			continue
		}
		s.Segment.Start += p.skip
		bad, of := t.badCalls(s)
		share, n, ok = float64(bad)/float64(max(1, of)), of, of > 0
	}
	return share, n, ok
}
