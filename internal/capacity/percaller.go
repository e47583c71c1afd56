package capacity

import (
	"fmt"
	"time"

	"tare/internal/load"
)

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

// longestSolo bounds what one caller offers.
const longestSolo = 20 * time.Second

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
	return p, p.length() <= longestSolo
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
			"capacity: all callers share the limit",
			t.Callers, granted, number(p.rate/p.share))}
	case alone-floor >= (1-p.share/p.rate)/2:
		return &Finding{LimitPerCaller, fmt.Sprintf(
			"one of %d callers alone was refused %s %% of %s/s, which all of them together were granted: each caller, or each "+
				"of its connections, has a limit of its own",
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
