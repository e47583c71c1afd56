package analyze

import (
	"fmt"
	"math"
	"slices"

	"tare/internal/design"
	"tare/internal/hist"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/unit"
)

// spoiledShare is how many of its blocks a run may lose to the generator before it says nothing about the target.
const spoiledShare = 0.2

// losses are the blocks in which the generator did not do what it should.
type losses struct {
	dropped, late []int
	limit, why    string // the first reasons
}

// add notes what a block lost. It reports whether the block counts.
func (l *losses) add(b *block) bool {
	switch {
	case b.limit != "":
		if l.dropped = append(l.dropped, b.number); l.limit == "" {
			l.limit = fmt.Sprintf("%s in block %d", b.limit, b.number+1)
		}
		return false
	case b.late != "":
		b.untimed()
		if l.late = append(l.late, b.number); l.why == "" {
			l.why = fmt.Sprintf("%s in block %d", b.late, b.number+1)
		}
	}
	return true
}

// sentShare is the share of calls from which on the generator sent what it should, as package signature has it.
const sentShare = 0.99

// late reports whether the generator sent every call, some of them later than it may: that spoils times, and nothing
// else.
func (x *extract) late() bool {
	return !x.audit.Valid && x.audit.AchievedRatio >= sentShare &&
		!slices.ContainsFunc(x.trial.Generator, func(g record.Generator) bool { return g.Reason != "" })
}

// timed are the metrics that a late generator spoils.
func timed(m metric.Metric) bool {
	switch m.Name {
	case metric.Response.Name, metric.Service.Name, metric.Goodput.Name, "pool_wait":
		return true
	}
	return false
}

// untimed takes the times out of a block, for all arms: a comparison of some would not be of like with like. What the
// target spent on its calls and what became of them stays.
func (b *block) untimed() {
	for _, x := range b.extracts {
		x.measures = slices.DeleteFunc(x.measures, func(m *measure) bool { return timed(m.metric) })
		for i := range x.counted {
			x.counted[i].times = [len(timesOf)]hist.Histogram{}
		}
	}
}

// late says in which blocks times are missing, and reports whether these are so many that none can be given. If times
// are what was asked for, or there is nothing else, the run then says nothing.
func (a *analysis) late(blocks int, l *losses) (all bool) {
	if len(l.late) == 0 {
		return false
	}
	all = float64(len(l.late)) > spoiledShare*float64(blocks)
	if !all {
		a.tardy = "late in " + unit.Count(len(l.late), "block") + ", from which no times are taken"
		a.warn("", "no times are taken from %s, where the generator was late (%s)", blockList(l.late), l.why)
		return false
	}
	why := fmt.Sprintf("the generator sent late in %d of %s: %s", len(l.late), unit.Count(blocks, "block"), l.why)
	if a.asksForTimes() {
		a.limited = why
		a.flaws.invalid = append(a.flaws.invalid, why)
	} else {
		a.tardy = fmt.Sprintf("late in %d of %s: no response times are given", len(l.late), unit.Count(blocks, "block"))
		a.warn("", "no response times are given, since %s; what the target spent on its calls does not depend on that", why)
	}
	return true
}

// asksForTimes reports whether a budget limits times, or whether there is nothing but times to judge: without budgets,
// where the target's CPU time is not known.
func (a *analysis) asksForTimes() bool {
	for name := range a.asked {
		if m, ok := probe.Known(name, a.rep.Quantities...); (ok && timed(m)) || name == "pool_wait" {
			return true
		}
	}
	for _, t := range a.rec.Trials {
		for _, s := range t.Samples {
			for _, x := range s.Samples {
				if x.Metric == metric.CPU.Name {
					return false
				}
			}
		}
	}
	return true
}

// LostBlocks counts the blocks of a comparison whose times cannot be used, and says how many more are to be measured in
// their place before a look that was planned after look blocks, of most in all. At the last look so many are measured
// that no more than a fifth is lost, since of a run that lost more no times are given. Where that cannot be had within
// the spare blocks, none is replaced.
func LostBlocks(rep *report.Report, look, most int) (lost, more int) {
	d := rep.Design
	if d == nil {
		return 0, 0
	}
	lost = d.Late + d.Dropped
	limit := most + design.Spare(most)
	if lost == 0 || float64(lost) > spoiledShare*float64(limit) {
		return lost, 0
	}
	want := look + lost
	if look >= most {
		want = max(want, int(math.Ceil(float64(lost)/spoiledShare)))
	}
	return lost, max(0, min(want, limit)-d.Blocks-d.Dropped)
}

// spoiled says which of the complete blocks were dropped because the generator was the limit, and judges whether the
// run survives that.
func (a *analysis) spoiled(blocks int, dropped []int, reason string) {
	if len(dropped) == 0 {
		return
	}
	a.warn("", "%s left out, where the generator was the limit and not the target (%s)", blockList(dropped), reason)
	if float64(len(dropped)) > spoiledShare*float64(blocks) {
		a.limited = fmt.Sprintf(
			"the generator is the limit, not the target, in %d of %s: %s", len(dropped), unit.Count(blocks, "block"), reason,
		)
		a.flaws.invalid = append(a.flaws.invalid, a.limited)
	}
}
