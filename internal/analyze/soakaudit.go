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
	"tare/internal/unit"
)

// soakAudit judges the generator over what was measured. One that did not send what it could changed the load: the run
// is invalid. One that sent late spoils times: the run is invalid if they are what was asked for.
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
	a.audits = append(a.audits, g)
	id := s.trial.Treatment
	switch {
	case g.Valid:
		if n, limit := s.lateWindows(); n > 0 {
			a.warn(id, "the generator was late (p99 above %s) in %d of %s", span(limit), n,
				unit.Count(len(s.measured()), "window"))
		}
	case sent < signature.LeastAchieved, len(budgets) == 0, asksTimes(budgets):
		a.flaws.invalid = append(a.flaws.invalid, fmt.Sprintf(
			"%sthe generator is the limit, not the target: %s", of(id), g.Reason,
		))
	default:
		last := &a.audits[len(a.audits)-1]
		last.Valid, last.Verdict = true, signature.Possible
		a.warn(id, "%s: no response times are given; what the target spent on its calls does not depend on that", g.Reason)
		s.untimed()
	}
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

// audit sums up the generator's work.
func (s *soak) audit() report.Generator {
	g := report.Generator{Valid: true}
	ratio := s.achieved()
	g.AchievedRatio = &ratio
	late := s.lateness()
	g.Lateness = &late
	switch limit := s.latenessLimit(); {
	case ratio < signature.LeastAchieved:
		g.Valid, g.Reason = false, signature.SentTooLittle(ratio)
	case late.P99 > limit:
		g.Valid, g.Reason = false, signature.SentLate(late.P99, limit)
	}
	return g
}

// achieved is the share of the calls that were due and that the generator sent, or could not: no connection could be
// made, none became free in time, or none is free yet. Calls that wait for the target's slowness wait in the pool, so
// that others have waited as long there.
func (s *soak) achieved() float64 {
	due, could := 0.0, 0.0
	for i := range s.measured() {
		x := &s.measured()[i]
		due, could = due+float64(x.Due), could+float64(x.Sent+x.Unsendable+connectionFailures(x))
	}
	missing := due - could
	if due == 0 || missing <= 0 {
		return 1
	}
	waits := s.hists.all[record.PoolWait]
	if waits != nil && float64(waits.Max())/1e9 >= missing/(due/s.seconds())/2 {
		return 1
	}
	return could / due
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
		out.P99 += n * x.LatenessP99
		out.Max = max(out.Max, x.LatenessMax)
	}
	if calls > 0 {
		out.P99 /= calls
	}
	return out
}

// lateWindows counts the windows in which the generator was late on its own.
func (s *soak) lateWindows() (n int, limit float64) {
	limit = s.latenessLimit()
	for i := range s.measured() {
		if s.measured()[i].LatenessP99 > limit {
			n++
		}
	}
	return n, limit
}

// untimed takes the times out of a soak.
func (s *soak) untimed() {
	s.late = true
	clear(s.hists.per)
	clear(s.hists.all)
	for i := range s.slices {
		s.slices[i].Operations = slices.Clone(s.slices[i].Operations) // the record stays as it was
		for k := range s.slices[i].Operations {
			o := &s.slices[i].Operations[k]
			o.Mean, o.P50, o.P90, o.P99, o.Max, o.Service = 0, 0, 0, 0, 0, 0
		}
	}
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
