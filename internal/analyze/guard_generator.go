package analyze

import (
	"fmt"
	"slices"

	"tare/internal/capacity"
	"tare/internal/guard"
	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/report"
)

// guardGenerator judges the generator over the points of a guard. What was permitted does not depend on it; the rates
// at which that was do.
func (a *analysis) guardGenerator(t *record.Trial, points []guard.Point, calls load.Log, judged []report.GuardPoint) {
	trace := traceOfPoints(points, calls)
	var late hist.Sorter
	spoiled, ratio := 0, 1.0
	for i, p := range points {
		addLateness(&late, calls.Due(p.Segment.Start, p.Segment.End))
		x := judged[i].Generator
		if ratio = min(ratio, *x.AchievedRatio); !x.Valid {
			spoiled++
		}
	}
	g := report.Generator{Valid: true, Lateness: latenessOf(late.Sorted()), AchievedRatio: &ratio}
	o := a.searchOpinion(t, &capacity.Result{}, &trace)
	with(&g, &o, 0)
	a.noted(&o)
	if spoiled > 0 {
		g.Reason = fmt.Sprintf("late in %d of %d points", spoiled, len(points))
		a.warn(t.Treatment, "in %d of %d points the generator was late: their rates are less certain; what was permitted at "+
			"them does not depend on it", spoiled, len(points))
	}
	a.audits = append(a.audits, g)
}

// guardSearch reads the search that only chose the rates of a guard. What spoils it spoils the capacity, and not what
// was permitted.
func (a *analysis) guardSearch(t *record.Trial) error {
	invalid, open, audits := a.flaws.invalid, a.flaws.open, a.audits
	err := a.capacity(t)
	for _, flaw := range slices.Concat(a.flaws.invalid[len(invalid):], a.flaws.open[len(open):]) {
		a.warn("", "the search for the capacity: %s", flaw)
	}
	a.flaws.invalid, a.flaws.open, a.audits = invalid, open, audits
	return err
}
