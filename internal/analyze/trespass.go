package analyze

import (
	"maps"
	"slices"
	"strings"

	"tare/internal/capacity"
	"tare/internal/guard"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/stat"
	"tare/internal/unit"
)

// searchedTrespasses says what became of the trespasses that a search or a ladder asked for. A rate counts as the
// target's capacity only if nothing was permitted at it that must be refused.
func (a *analysis) searchedTrespasses(t *record.Trial, trace *capacity.Trace) error {
	if len(t.Twins) == 0 {
		return nil
	}
	_, breaches, err := guardSteps(t)
	if err != nil {
		return err
	}
	var points []guard.Point
	for _, s := range trace.Steps {
		if s.Rate > 0 && s.Segment.End > s.Segment.Start {
			points = append(points, guard.Point{Name: s.Name, Rate: s.Rate, Segment: s.Segment, Read: trace.Read})
		}
	}
	g, _ := a.judgedPoints(t, points, trace.Calls, breaches)
	a.rep.Guard = append(a.rep.Guard, g)
	c := a.capacityOfTreatment(t.Treatment)
	if c == nil || c.Rate == nil || g.Onset == nil || g.Onset.Below > *c.Rate {
		return nil
	}
	safe := "it permitted some at every rate that was offered"
	if g.Onset.Above != nil {
		safe = "none was permitted up to " + unit.PerSecond(*g.Onset.Above)
	}
	a.warn(t.Treatment, "at the capacity of %s the target permits what it must refuse; %s", unit.PerSecond(*c.Rate), safe)
	return nil
}

// soakedTrespasses says what became of the trespasses of a soak, whose calls are only counted.
func (a *analysis) soakedTrespasses(s *soak) {
	if len(s.trial.Twins) == 0 {
		return
	}
	var all, legitimate guard.Trespasses
	for _, name := range s.total.names {
		sum := &legitimate
		if s.trial.Twins[name] != "" {
			sum = &all
		}
		sum.Add(s.total.per[name].trespasses())
	}
	sooner := guard.RefusesSooner(all.Unanswered, all.Decided()+all.Undecided,
		legitimate.Unanswered, legitimate.Decided()+legitimate.Undecided)
	if !sooner {
		all.Unanswered = 0
	}
	g := report.Guard{Treatment: s.trial.Treatment, Operations: map[string]report.Trespasses{}}
	p := report.GuardPoint{Rate: a.rec.Plan.Load.Rate, Seconds: s.seconds()}
	for _, name := range s.total.names {
		n := &s.total.per[name].outcomes
		if s.trial.Twins[name] == "" {
			p.Offered += n.Ended()
			p.Served += n.Good()
			p.Wrong += n.Wrong
			p.Unsent += n.Unsent
			continue
		}
		x := s.total.per[name].trespasses()
		if !sooner {
			x.Unanswered = 0
		}
		g.Operations[name], _ = s.trespasses(x, name)
	}
	if p.Rate == 0 && p.Seconds > 0 { // closed workers offer what the target takes
		p.Rate = float64(p.Offered+all.Decided()+all.Undecided) / p.Seconds
	}
	p.Failed = p.Offered - min(p.Offered, p.Served+p.Wrong+p.Unsent)
	if e, ok := (guard.Legitimate{Served: p.Served, Failed: p.Offered - p.Served}).Share(); ok {
		p.ServedShare = shareOf(e)
	}
	p.Trespasses, g.Stretches = s.trespasses(all, "")
	g.Trespasses, g.Points = p.Trespasses, []report.GuardPoint{p}
	if _, breaches, err := guardSteps(s.trial); err == nil && len(s.measured()) > 0 {
		breaches = slices.DeleteFunc(breaches, func(b guard.Breach) bool {
			return b.At < s.measured()[0].Start // in the warm-up, whose calls are not counted
		})
		g.Breaches = breachesOf(breaches, nil)
		for i := range g.Breaches {
			g.Breaches[i].At = s.at(breaches[i].At)
		}
	}
	a.rep.Guard = append(a.rep.Guard, g)
}

// trespasses are the calls of an operation by what became of them as trespasses.
func (x *soakTally) trespasses() guard.Trespasses {
	n := &x.outcomes
	missing := n.Timeout + n.ConnFailed
	return guard.Trespasses{
		Refused: n.Denied, Permitted: n.Permitted, Unsent: n.Unsent, Unclear: x.unclear,
		Undecided:  n.Ended() - n.Denied - n.Permitted - min(n.Unsent, n.Timeout),
		Unanswered: missing - min(n.Unsent, missing),
	}
}

// trespasses counts those of an operation of a soak, or with "" of all. Where a few stretches of windows have the
// breaches, their share has the interval of so many events, and stretches says how many.
func (s *soak) trespasses(n guard.Trespasses, operation string) (out report.Trespasses, stretches int) {
	out = trespasses(n)
	if out.Share == nil || n.Permitted == 0 {
		return out, 0
	}
	c := s.course(metric.Permitted, everyWindow, func(w *record.Slice, _ *usage) (share, weight float64) {
		permitted, decided := 0.0, 0.0
		for i := range w.Operations {
			o := &w.Operations[i]
			if s.trial.Twins[o.Operation] == "" || operation != "" && o.Operation != operation {
				continue
			}
			for _, x := range o.Outcomes {
				switch x.Outcome { //nolint:exhaustive // the others decide nothing
				case load.Permitted:
					permitted, decided = permitted+float64(x.Count), decided+float64(x.Count)
				case load.Denied:
					decided += float64(x.Count)
				}
			}
		}
		return permitted / decided, decided
	})
	e := out.Share
	if m, err := stat.SeriesMean(
		c.hours, c.value, stat.DriftOptions{Level: level, Stretch: c.stretch, Weight: c.weight, Seed: driftSeed},
	); err == nil && m.N >= fewestWindows {
		e.Lo, e.Hi = max(0, min(e.Lo, e.Value-(m.Value-m.Lo))), min(1, max(e.Hi, e.Value+m.Hi-m.Value))
	}
	came, equal, rare := c.events()
	if !rare || uint64(came) >= n.Permitted {
		return out, 0
	}
	e.Lo, e.Hi = min(e.Lo, e.Value*fewest(came)), max(e.Hi, min(1, e.Value*mostOf(equal, level)))
	return out, came
}

// namedTrespasses lists the trespasses of a report that were permitted, for a sentence.
func namedTrespasses(g *report.Guard) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(g.Operations)) {
		if n := g.Operations[name]; n.Permitted > 0 {
			out = append(out, name)
		}
	}
	return strings.Join(out, ", ")
}
