package analyze

import (
	"math"
	"slices"
	"strings"

	"tare/internal/budget"
	"tare/internal/capacity"
	"tare/internal/report"
	"tare/internal/stat"
	"tare/internal/unit"
)

// wholeSearch says why a published formula has nothing to say of one rate.
const wholeSearch = "the server's histograms are of the whole search, over all its rates, and not of one"

// levelsAtRates judges the objectives for every treatment of a search at the highest rate that held and at the lowest
// that failed. What the server measured is read before and after the search alone, since asking for it within would
// change what is measured: of one rate there are the calls, by tare's own clock, and the published formulas are not
// measured.
func (a *analysis) levelsAtRates(names []string, actions map[string]action) {
	for i := range a.rep.Capacity {
		c := &a.rep.Capacity[i]
		trace := a.traces[c.Treatment]
		if trace == nil {
			continue
		}
		low := c.VerifiedLow
		if low == nil {
			low = c.AtLeast // it never broke
		}
		for _, at := range []struct {
			rate *float64
			held bool
		}{{low, true}, {c.VerifiedHigh, false}} {
			if at.rate == nil {
				continue
			}
			for _, name := range names {
				a.rep.SLO = append(a.rep.SLO, a.levelsAt(c.Treatment, name, actions[name], trace, *at.rate, at.held)...)
			}
		}
	}
}

// levelsAt are the verdicts on one operation at one rate; none where no call of it was due there.
func (a *analysis) levelsAt(
	treatment, name string, x action, trace *capacity.Trace, rate float64, held bool,
) []report.SLO {
	row := report.SLO{
		Treatment: treatment, Name: x.objective(), Subject: x.String(), Operation: name, Limit: limitOf(x.scope), Rate: &rate,
		Held: &held,
	}
	until := "its answer was read"
	if x.startup {
		row.Name, row.Subject, row.Limit, until = sloStartup, "", startupLimit, "the pod was seen running"
	}
	operation := slices.Index(a.operationNames[treatment], name)
	s, primed := atRate(trace, rate, held, operation)
	if operation < 0 || !s.any() {
		return nil
	}
	var out []report.SLO
	for _, f := range report.Formulas() {
		row.Formula = f
		if f != report.ClientClock {
			row.Verdict, row.Note = report.NotMeasured, wholeSearch
			out = append(out, row)
			continue
		}
		row.Basis = "from when the call was due until " + until + "; the calls that were due at this rate"
		out = append(out, s.level(row, primed))
	}
	return out
}

// atRate returns the calls of one operation that were due while a rate was tried that held, or that did not. primed
// says that a queue was built up before, whose end is in their times.
func atRate(trace *capacity.Trace, rate float64, held bool, operation int) (s stretch, primed bool) {
	s = stretch{trace: trace, rate: rate, operation: operation}
	for i, step := range trace.Steps {
		if step.Rate != rate || step.Passed == nil || *step.Passed != held || step.ClientLimited {
			continue
		}
		primed = primed || (i > 0 && trace.Steps[i-1].Role == capacity.RolePrime)
		s.steps = append(s.steps, step.Segment)
	}
	return s, primed
}

// level judges by p99 of the calls. They hang together near saturation, so that the interval is narrower than it should
// be. A rate that held is not said to fail because of a queue that stood before it.
func (s *stretch) level(out report.SLO, primed bool) report.SLO {
	b := s.of(&budget.Budget{Metric: "response", Quantile: "p99", Op: budget.AtMost})
	bad := s.of(&budget.Budget{Metric: "error"})
	out.N = uint64(s.count())
	out = byClock(out, &stat.Estimate{Value: b.Value, Lo: b.Lo, Hi: b.Hi, Level: level}, "too few calls")
	if math.IsInf(b.Value, 1) { // more than 1 % were never answered
		out.Verdict = report.Fail
	}
	if bad.Value > 0 && out.Verdict == report.Pass && !(b.Hi <= out.Limit) {
		out.Verdict = report.Inconclusive // a call that failed is not answered in any time
	}
	notes := nonEmpty(out.Note)
	if primed {
		notes = append(notes, "a queue was made to stand before this rate was tried: the times of its end are among these")
		if *out.Held && out.Verdict == report.Fail {
			out.Verdict = report.Inconclusive
		}
	}
	if bad.Value > 0 {
		notes = append(
			notes,
			"calls that failed are counted by how long they took: "+unit.Share(bad.Value)+" of them at "+unit.PerSecond(s.rate),
		)
	}
	out.Note = strings.Join(notes, "; ")
	return out
}
