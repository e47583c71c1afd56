package analyze

import (
	"fmt"
	"slices"

	"tare/internal/capacity"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/signature"
	"tare/internal/stat"
)

// conductOf is the evidence about the generator that the runner recorded of a trial.
func (a *analysis) conductOf(t *record.Trial) signature.Conduct {
	c := signature.Conduct{Workers: a.rec.Plan.Load.Workers}
	for i := range t.Generator {
		g := &t.Generator[i]
		c.Workers = max(c.Workers, g.Workers)
		if g.Effort != nil {
			c.Effort = g.Effort
		}
		if g.Placement != nil {
			c.Shared = len(g.Placement.Shared())
		}
	}
	return c
}

// with puts an opinion into the report's account of the generator. Lateness and what was sent of what was due say
// nothing for a closed loop, and are left out there.
func with(g *report.Generator, o *signature.GeneratorOpinion, workers int) {
	g.Verdict, g.Doubts, g.Evidence = o.Verdict, o.Doubts, o.Evidence
	if workers > 0 {
		g.Lateness, g.AchievedRatio = nil, nil
	}
}

// bounded reports whether max_rate held the workers of a closed loop back.
func (a *analysis) bounded(rate float64) bool {
	most := a.rec.Plan.Load.MaxRate
	return most > 0 && rate >= (1-littleTolerance)*most
}

// trialOpinion judges the generator in the window of a comparison's trial. responses are those of all its calls.
func (a *analysis) trialOpinion(
	t *record.Trial, g *gathering, responses durations, audit *audited,
) signature.GeneratorOpinion {
	c := a.conductOf(t)
	c.Times = true
	c.LatenessP99, c.AchievedRatio = audit.LatenessP99, audit.AchievedRatio
	if !audit.Valid {
		c.LatenessLimit = audit.Limit
	}
	n := responses.Len()
	if sec := g.turns.length().Seconds(); n > 0 && sec > 0 {
		of := float64(g.answered)
		c.Rate, c.Mean, c.P99 = of/sec, g.seconds/of, stat.Ranked(max(1, n*99/100), responses)
	}
	c.Idle = g.refused || a.bounded(c.Rate)
	return c.Judge()
}

// searchOpinion judges the generator over the steps of a search on which its answer hangs: those near the capacity, or
// all where none was found. Whether it kept up was judged step by step; calls that it sent late can break a rate.
func (a *analysis) searchOpinion(
	t *record.Trial, res *capacity.Result, trace *capacity.Trace,
) signature.GeneratorOpinion {
	base := a.conductOf(t)
	if !res.Broke {
		base.Shared = 0 // what held, held
	}
	var worst *signature.GeneratorOpinion
	for _, near := range []bool{true, false} {
		for i := range trace.Steps {
			s := &trace.Steps[i]
			if e := s.Segment.Effort; e == nil || e.Seconds < leastStep || s.Rate <= 0 || s.ClientLimited ||
				near && !decides(s.Rate, res.Rate) {
				continue
			}
			c := base
			c.Effort = s.Segment.Effort
			// A limiter that saves up lets calls pass that come together.
			if s.Passed != nil && !*s.Passed && !res.Signature.Method().Traits().Saves {
				judgeBroken(&c, trace, s)
			}
			if o := c.Judge(); worst == nil || o.Worse(worst) ||
				o.Verdict == worst.Verdict && s.Segment.Effort.Busy > base.Effort.Busy {
				worst, base.Effort = &o, s.Segment.Effort
			}
		}
		if worst != nil {
			return *worst
		}
	}
	return base.Judge()
}

// judgeBroken adds to c how late the calls were sent of a step that broke, beside the response times that it was judged
// by.
func judgeBroken(c *signature.Conduct, trace *capacity.Trace, s *capacity.Step) {
	calls := trace.Calls.Due(s.Segment.Start, s.Segment.End)
	sent := signature.AuditCalls(calls, min(trace.Read, s.Segment.End), 0)
	var took []float64
	for call := range calls {
		if call.Done != 0 {
			took = append(took, call.Response().Seconds())
		}
	}
	if sent.Late && len(took) > 0 {
		c.Times, c.LatenessP99, c.P99 = true, sent.LatenessP99, stat.Quantile(took, 0.99)
	}
}

// pointSteps are the steps of a ladder's points, in the order of capacity.Points.
func pointSteps(trace *capacity.Trace) []capacity.Step {
	var out []capacity.Step
	for i := range trace.Steps {
		if trace.Steps[i].Role == capacity.RolePoint {
			out = append(out, trace.Steps[i])
		}
	}
	return out
}

// pointOpinion judges the generator at one point of a ladder.
func (a *analysis) pointOpinion(t *record.Trial, p *capacity.Point, e *load.Effort) signature.GeneratorOpinion {
	c := a.conductOf(t)
	c.Times, c.Effort, c.P99 = true, e, p.P99
	c.LatenessP99, c.AchievedRatio = p.Audit.LatenessP99, p.Audit.AchievedRatio
	if !p.Audit.Valid {
		c.LatenessLimit = p.Audit.Limit
	}
	o := c.Judge()
	if !p.Audit.Valid {
		o.Verdict = signature.Limiting
	}
	return o
}

// leastStep is how long a step must be, in seconds, for the kernel's accounts of it, which it brings up to date at
// every tick, to mean anything.
const leastStep = 0.2

// decides reports whether a step at a rate bears on a capacity; 0: there is none, and every step does.
func decides(rate, capacity float64) bool {
	return capacity <= 0 || rate >= 0.8*capacity && rate <= 1.5*capacity
}

// opined adds up the opinions of the trials, and warns if they leave the generator in doubt.
func (a *analysis) opined(g *report.Generator) {
	var worst *report.Generator
	doubtful := 0
	for i := range a.audits {
		x := &a.audits[i]
		if x.Verdict != signature.RuledOut {
			doubtful++
		}
		o := signature.GeneratorOpinion{Verdict: x.Verdict, Doubts: x.Doubts}
		if worst == nil || o.Worse(&signature.GeneratorOpinion{Verdict: worst.Verdict, Doubts: worst.Doubts}) {
			worst = x
		}
	}
	switch {
	case worst != nil:
		g.Verdict, g.Doubts, g.Evidence = worst.Verdict, slices.Clone(worst.Doubts), worst.Evidence
	default:
		g.Verdict, g.Doubts = signature.Possible, []string{"its calls were not recorded one by one"}
	}
	if n := len(a.audits); n > 1 && doubtful > 0 && doubtful < n && len(g.Doubts) > 0 {
		g.Doubts = append(g.Doubts, fmt.Sprintf("this is so in %d of %d trials", doubtful, n))
	}
	switch {
	case !g.Valid:
		g.Verdict = signature.Limiting
	case g.Verdict != signature.RuledOut || g.Reason != "":
		g.Verdict = signature.Possible
	}
	if g.Verdict == signature.Possible && len(g.Doubts) > 0 && !slices.Equal(g.Doubts, []string{signature.Unrecorded}) {
		o := signature.GeneratorOpinion{Doubts: g.Doubts}
		a.warn("", "the generator cannot be ruled out as the limit: %s%s", o.Because(), a.advice)
	}
}

// pinning is what helps against processors that generator and target share.
const pinning = "; `pin: {generator: \"0\", target: \"1\"}` gives each its own (taskset does for a target that tare does not start)"

// noted keeps what an opinion advises.
func (a *analysis) noted(o *signature.GeneratorOpinion) {
	if o.Crowded {
		a.advice = pinning
	}
}
