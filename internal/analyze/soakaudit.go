package analyze

import (
	"fmt"
	"slices"

	"tare/internal/budget"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/signature"
	"tare/internal/stat"
	"tare/internal/unit"
)

// soakAudit judges the generator over what was measured. One that did not send what it could, or sent most calls late,
// did not keep up: the run is invalid, unless all was sent and no times are asked for. One that was late now and then
// kept up: its delay is in the response times, and is given as a bound beside them.
func (a *analysis) soakAudit(s *soak, budgets []budget.Budget) {
	if len(s.measured()) == 0 {
		return
	}
	g := s.audit()
	o := a.soakOpinion(s, &g)
	a.noted(&o)
	if g.Valid && o.Verdict == signature.Limiting {
		g.Valid, g.Reason = false, o.Doubts[0]
	}
	sent := *g.AchievedRatio
	with(&g, &o, a.rec.Plan.Load.Workers)
	switch {
	case g.Valid:
	case sent < signature.LeastAchieved, len(budgets) == 0, asksTimes(budgets):
		a.flaws.invalid = append(a.flaws.invalid, fmt.Sprintf(
			"%sthe generator is the limit, not the target: %s", of(s.trial.Treatment), g.Reason,
		))
	default:
		g.Valid, g.Verdict = true, signature.Possible
		a.warn(s.trial.Treatment, "%s; what the target spent on its calls does not depend on that", g.Reason)
	}
	a.audits = append(a.audits, g)
}

// asksTimes reports whether a budget limits what a late generator spoils.
func asksTimes(budgets []budget.Budget) bool {
	for i := range budgets {
		if m, ok := probe.Known(budgets[i].Metric); (ok && timed(m)) || budgets[i].Metric == metric.PoolWait.Name {
			return true
		}
	}
	return false
}

// soakOpinion judges the generator of a soak.
func (a *analysis) soakOpinion(s *soak, g *report.Generator) signature.GeneratorOpinion {
	c := a.conductOf(s.trial)
	c.Times = true
	ended, lost := 0.0, uint64(0)
	for i := range s.measured() {
		n, _ := endedIn(&s.measured()[i], "")
		ended, lost = ended+n, lost+connectionFailures(&s.measured()[i])
	}
	if sec := s.seconds(); sec > 0 {
		c.Rate = ended / sec
	}
	if h := s.hists.all[record.Response]; h != nil && h.Count() > 0 {
		c.Mean, c.P99 = h.Mean()/1e9, h.Quantile(0.99)/1e9
	}
	c.Idle = lost > 0 || slices.Contains(s.out[s.first:], true) || a.bounded(c.Rate)
	if c.Workers == 0 && c.Effort != nil && g.Valid {
		c.Effort = inTime(c.Effort)
	}
	o := c.Judge()
	if doubt := s.lateDoubt(c.P99); g.Valid && c.Workers == 0 && doubt != "" {
		o.Doubts = append([]string{doubt}, o.Doubts...)
		if o.Verdict == signature.RuledOut {
			o.Verdict = signature.Possible
		}
	}
	if !g.Valid {
		o.Verdict, o.Doubts = signature.Limiting, append([]string{g.Reason}, o.Doubts...)
	}
	return o
}

// lateDoubt says for how long the generator did not keep up, or how much of the slowest times can be its own delay; ""
// where that is little.
func (s *soak) lateDoubt(p99 float64) string {
	const little, matters = 200e-6, 0.2
	if seconds, _ := s.behind(); seconds > 0 {
		return fmt.Sprintf("it sent most calls late for %s of %s", span(seconds), span(s.seconds()))
	}
	h := s.hists.all[record.Response]
	if h == nil || h.Count() == 0 {
		return ""
	}
	if own := s.own("").atMost(h, 0.99); own > max(little, matters*p99) {
		return fmt.Sprintf("up to %s of the p99 of %s can be its own delay", unit.Seconds(own), unit.Seconds(p99))
	}
	return ""
}

// inTime is the effort of a generator whose calls show that it kept up with an open loop. What held its threads up for
// a moment is no doubt of the load: it is in the bound beside the times.
func inTime(e *load.Effort) *load.Effort {
	out := *e
	out.Queued, out.Unread = nil, nil
	if h := e.Host; h != nil {
		out.Host = &load.Processors{All: h.All, Busy: h.Busy + h.Stolen}
	}
	return &out
}

// audit sums up the generator's work.
func (s *soak) audit() report.Generator {
	g := report.Generator{Valid: true}
	late := s.lateness()
	g.Lateness = &late
	ratio, unexplained := s.achieved()
	g.AchievedRatio = &ratio
	switch limit := s.latenessLimit(); {
	case unexplained:
		g.Valid, g.Reason = false, signature.SentTooLittle(ratio)
	case late.P50 > limit:
		g.Valid, g.Reason = false, signature.SentLateInMedian(late.P50, limit)
	}
	return g
}

// achieved is the share of the calls that were due and that the generator sent, or could not: no connection could be
// made, none became free in time, or none is free yet. Calls that wait for the target's slowness wait in the pool, so
// that others have waited as long there. The missing ones are unexplained if they are more than one in a hundred, and
// more than come due while a host stops the generator for a moment.
func (s *soak) achieved() (ratio float64, unexplained bool) {
	due, could := 0.0, 0.0
	for i := range s.measured() {
		x := &s.measured()[i]
		due, could = due+float64(x.Due), could+float64(x.Sent+x.Unsendable+connectionFailures(x))
	}
	missing := due - could
	if due == 0 || missing <= 0 {
		return 1, false
	}
	rate := due / s.seconds()
	waits := s.hists.all[record.PoolWait]
	if waits != nil && float64(waits.Max())/1e9 >= missing/rate/2 {
		return 1, false
	}
	ratio = could / due
	return ratio, ratio < signature.LeastAchieved && missing > 1+signature.Stall.Seconds()*rate
}

// connectionFailures counts the calls of a slice for which no connection could be made, or that lost theirs.
func connectionFailures(x *record.Slice) uint64 {
	var n uint64
	for i := range x.Operations {
		for _, o := range x.Operations[i].Outcomes {
			if o.Outcome == load.ConnFailed {
				n += o.Count
			}
		}
	}
	return n
}

// latenessLimit is what the generator's p99 may be.
func (s *soak) latenessLimit() float64 {
	if s.hists.good.Count() == 0 {
		return signature.LatenessLimit(0)
	}
	return signature.LatenessLimit(s.hists.good.Quantile(0.5) / 1e9)
}

// lateness is of all calls; where their histogram is missing, of the windows.
func (s *soak) lateness() report.Lateness {
	if h := s.hists.lateness; h.Count() > 0 {
		return report.Lateness{P50: h.Quantile(0.5) / 1e9, P99: h.Quantile(0.99) / 1e9, Max: float64(h.Max()) / 1e9}
	}
	var out report.Lateness
	calls := 0.0
	for i := range s.measured() {
		x := &s.measured()[i]
		n, _ := endedIn(x, "")
		calls += n
		out.P50 += n * x.LatenessP50
		out.P99 += n * x.LatenessP99
		out.Max = max(out.Max, x.LatenessMax)
	}
	if calls > 0 {
		out.P50, out.P99 = out.P50/calls, out.P99/calls
	}
	return out
}

// behind is for how long the generator sent most calls late, in seconds, and what held it up meanwhile, as far as the
// host says.
func (s *soak) behind() (seconds float64, why string) {
	limit := s.latenessLimit()
	var stolen, others []float64
	for i := s.first; i < len(s.slices); i++ {
		x := &s.slices[i]
		if x.LatenessP50 <= limit {
			continue
		}
		seconds += (x.End - x.Start).Seconds()
		stolen, others = append(stolen, s.used[i].stolen), append(others, s.used[i].others)
	}
	switch taken, used := stat.Mean(measuredOnly(stolen)), stat.Mean(measuredOnly(others)); {
	case taken >= stealShare:
		return seconds, fmt.Sprintf("the hypervisor took %.0f %% of this host's CPU time meanwhile", 100*taken)
	case used >= busyShare:
		return seconds, otherWork(used, s.hidden()) + " meanwhile"
	}
	return seconds, ""
}

// memory reports whether a metric is a level of which the highest counts.
func memory(name string) bool {
	switch name {
	case probe.RSS.Name, probe.HeapUsed.Name, probe.Threads.Name, probe.FDs.Name, probe.Goroutines.Name,
		probe.Metaspace.Name:
		return true
	}
	return name != metric.CPU.Name && shown(name)
}
