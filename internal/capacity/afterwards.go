package capacity

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
)

// slo searches the highest rate at which at most a given share of the calls takes longer than the objective, between 0
// and the capacity, or the highest rate that was held.
func (r *session) slo() error {
	if r.o.SLO <= 0 {
		return nil
	}
	r.read()
	held, broke, rate := 0.0, 0.0, Assess(r.t).Rate*0.9
	if rate <= 0 {
		rate = r.fastest
	}
	for range 7 {
		if !(rate > 0) || held > 0 && broke > 0 && broke < 1.04*held {
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
			broke = rate
		}
		switch {
		case broke == 0:
			rate = min(1.1*rate, r.o.MaxRate)
		case held == 0:
			rate = broke / 2
		default:
			rate = math.Sqrt(held * broke)
		}
	}
	return nil
}

// meets tries whether the objective holds at rate, by a sequential test over batches: calls that follow one another
// share their fate, so that only the batches count as samples. What is left open counts as not met.
func (r *session) meets(rate float64) (bool, error) {
	if err := r.drain("before an objective is tried"); err != nil {
		return false, err
	}
	batch := max(lasting(rate, time.Second/2, 20), r.o.SLO/2)
	const builds = 3 * time.Second // a queue near the capacity takes a while to build up
	begun, next := r.s.Now()+builds, builds+5*batch+r.o.SLO
	var met *bool
	length := builds + max(20*batch, 10*time.Second) + r.o.SLO
	step, err := r.offer(RoleSLO, rate, length, func(elapsed time.Duration) bool {
		if elapsed < next {
			return false
		}
		next = elapsed + batch
		met = r.within(begun, elapsed-builds, batch)
		return met != nil
	})
	if err != nil {
		return false, err
	}
	if step.Passed = met; met == nil {
		step.Note = "undecided: noise"
	}
	return met != nil && *met, nil
}

// within tests the batches since begun that are old enough to tell. An objective that is missed only with the delays by
// the generator is left open.
func (r *session) within(begun, elapsed, batch time.Duration) *bool {
	// of calls that are older than the objective
	held, _ := r.share(begun, elapsed-r.o.SLO, batch, r.o.SLOShare, false, func(c *load.Call) bool {
		return endedBadly(c) || c.Response() > r.o.SLO
	})
	if held == nil || *held {
		return held
	}
	without, _ := r.share(begun, elapsed-r.o.SLO, batch, r.o.SLOShare, true, func(c *load.Call) bool {
		return endedBadly(c) || c.Response() > r.o.SLO+c.Lateness()
	})
	if without == nil || *without {
		return nil
	}
	return held
}

// share tests whether at most most of the calls that were due within d from begun on are bad: nil where noise leaves it
// open. The mean share of the batches is returned as well. Calls that were held back are left out if apart is set.
func (r *session) share(
	begun, d, batch time.Duration, most float64, apart bool, bad func(*load.Call) bool,
) (held *bool, mean float64) {
	n := max(0, int(d/batch))
	slow, all := make([]float64, n), make([]float64, n)
	total, over := 0.0, 0.0
	var stopped heldBack
	for c := range r.due(begun, math.MaxInt64) {
		if stopped.disturbs(c) && apart {
			continue
		}
		k := int((c.Intended - begun) / batch)
		if k < 0 || k >= n {
			continue
		}
		all[k]++
		total++
		if bad(c) {
			slow[k]++
			over++
		}
	}
	for k := range slow {
		slow[k] /= math.Max(1, all[k])
	}
	e, ok := stat.MeanInterval(slow, level)
	switch {
	case !ok || total < 3/most && over <= most*total: // none of n calls proves less than 3/n
		return nil, over / math.Max(1, total)
	case e.Hi <= most:
		return new(true), e.Value
	case e.Lo > most:
		return new(false), e.Value
	}
	return nil, e.Value
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
