package analyze

import (
	"fmt"
	"iter"

	"tare/internal/capacity"
	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/stat"
)

// audit takes in how the generator did in a search. The lateness is over all calls of the steps that count: in a step
// of twenty calls the 99th percentile would only be the slowest. Whether the search is valid was judged step by step.
func (a *analysis) audit(t *record.Trial, res *capacity.Result, trace *capacity.Trace) {
	var late hist.Sorter
	steps := stretches(trace)
	for i := range steps {
		addLateness(&late, steps[i].calls())
	}
	g := report.Generator{Valid: res.Valid, Lateness: latenessOf(late.Sorted()), AchievedRatio: &res.Audit.AchievedRatio}
	o := a.searchOpinion(t, res, trace)
	with(&g, &o, 0)
	a.noted(&o)
	points, failed, reason := outpaced(trace)
	switch {
	case !res.Valid:
		g.Reason = res.Reason
	case failed > 0 && failed == points:
		g.Valid, g.Reason = false, reason
		a.flaws.invalid = append(a.flaws.invalid, fmt.Sprintf(
			"%s: the generator is the limit at every point, not the target: %s", t.Treatment, reason,
		))
	case failed > 0:
		g.Reason = fmt.Sprintf("the generator could not keep up in %d of %d steps", failed, points)
		a.warn(t.Treatment, "the generator could not keep up in %d of %d steps (%s): their numbers are its own, not the "+
			"target's", failed, points, reason)
	}
	a.audits = append(a.audits, g)
}

// outpaced counts the points of a ladder, and those at which the generator could not keep up, with the last reason. The
// steps of a search were judged while it ran.
func outpaced(trace *capacity.Trace) (points, failed int, reason string) {
	if trace.Stop == capacity.StopLadder || trace.Stop == capacity.StopNoRetry {
		for _, p := range capacity.Points(*trace) {
			if points++; !p.Audit.Valid {
				failed, reason = failed+1, p.Audit.Reason
			}
		}
	}
	return points, failed, reason
}

func addLateness(late *hist.Sorter, calls iter.Seq[*load.Call]) {
	for c := range calls {
		if c.Sent > 0 {
			late.Add(int64(c.Lateness()))
		}
	}
}

// latenessOf sums up delays; nil without any.
func latenessOf(late *hist.Exact) *report.Lateness {
	if late.Len() == 0 {
		return nil
	}
	d := durations{late}
	return &report.Lateness{
		P50: stat.SampleQuantile(.5, d), P99: stat.SampleQuantile(.99, d), Max: stat.SampleQuantile(1, d),
	}
}

// generator sums up the audits of all trials: the worst lateness and ratio, all CPU time.
func (a *analysis) generator() {
	a.perOperation()
	g := report.Generator{Valid: true}
	for i := range a.audits {
		x := &a.audits[i]
		if g.Valid && x.Reason != "" && (!x.Valid || g.Reason == "") {
			g.Valid, g.Reason = x.Valid, x.Reason
		}
		if x.Lateness != nil && (g.Lateness == nil || x.Lateness.P99 > g.Lateness.P99) {
			g.Lateness = x.Lateness
		}
		if x.AchievedRatio != nil && (g.AchievedRatio == nil || *x.AchievedRatio < *g.AchievedRatio) {
			g.AchievedRatio = x.AchievedRatio
		}
	}
	found := len(a.audits) > 0
	for _, t := range a.trials() {
		for _, x := range t.Generator {
			found = true
			g.CPUSeconds = sum(g.CPUSeconds, x.CPUSeconds)
			if x.Reason != "" && a.cmp == nil { // a comparison drops the block and goes on
				g.Valid, g.Reason = false, x.Reason
				a.flaws.invalid = append(a.flaws.invalid, fmt.Sprintf("%s: %s", t.Treatment, x.Reason))
			}
		}
		if len(t.Generator) == 0 && len(t.Batches) == 0 && t.Complete() {
			a.warn(t.Treatment, "the record has no account of the generator's work")
		}
	}
	if g.Valid && g.Reason == "" {
		g.Reason = a.tardy
	}
	if a.limited != "" {
		g.Valid, g.Reason, found = false, a.limited, true
	}
	if found {
		a.opined(&g)
		a.rep.Generator = &g
	}
}
