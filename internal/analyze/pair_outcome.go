package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/limit"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/question"
	"tare/internal/report"
	"tare/internal/signature"
)

// compareOutcomes compares what two runs without blocks found: figures by their intervals.
func (p *pairing) compareOutcomes(o CompareOptions) (*report.Report, error) {
	q := question.Of(p.treated.Record.Header.Question)
	ladders := len(p.base.Record.Plan.Load.Rates) > 0 && len(p.treated.Record.Plan.Load.Rates) > 0
	if ladders && q.Drive.Overloads && !q.Answer.BreachesFirst {
		return nil, fmt.Errorf("%s and %s offer the rates of a ladder, whose points have no intervals: nothing would show "+
			"that they differ; compare the tables of their reports, or search: leave out load.rates", p.base.Name,
			p.treated.Name)
	}
	budgets, err := parsed(o.Budget)
	if err != nil {
		return nil, err
	}
	var sides [2]*analysis
	for i, r := range []Run{p.base, p.treated} {
		sides[i] = newAnalysis(r.Record)
		if _, err := sides[i].conclude(Options{Budget: []string{}}); err != nil {
			return nil, fmt.Errorf("analyze %s: %w", r.Name, err)
		}
	}
	base, treated := sides[0], sides[1]
	rep := p.outcomeHead(base, treated)
	var f flaws
	for i, r := range []Run{p.base, p.treated} {
		if x := sides[i].rep; x.Verdict == report.Invalid && (i == 0 || !p.same) {
			f.invalid = append(f.invalid, fmt.Sprintf("%s is invalid: %s", r.Name, x.Reason))
		}
	}
	for i, x := range p.arms {
		pair := &rep.Diff.Pairs[i]
		pair.LimitA, pair.FailureA = base.breaksBy(x.Base)
		pair.LimitB, pair.FailureB = treated.breaksBy(x.Treated)
		rep.Diff.Changes = append(rep.Diff.Changes, p.changes(base, treated, x, len(f.invalid) > 0)...)
		for i, r := range []Run{p.base, p.treated} {
			id := []string{x.Base, x.Treated}[i]
			if s := sides[i].soaked[id]; s != nil && !s.whole() {
				addOnce(&rep.Warnings, fmt.Sprintf("%s: %s of the %s that were planned were measured under %s", r.Name,
					span(s.seconds()), span(r.Record.Plan.Load.Duration), id))
			}
		}
	}
	p.outcomeRemarks(rep, sides)
	if rep.Budgets, err = p.outcomeBudgets(base, treated, budgets, len(f.invalid) > 0); err != nil {
		return nil, err
	}
	if len(rep.Diff.Changes) == 0 {
		f.open = append(f.open, "neither run has a figure to compare")
	}
	rep.Verdict, rep.Reason = verdict(rep, f)
	return rep, nil
}

// outcomeHead is the report of a comparison before anything is compared.
func (p *pairing) outcomeHead(base, treated *analysis) *report.Report {
	rec := *p.treated.Record
	rec.Header.Experiment.Name = p.title()
	rec.Notes, rec.Plan.Notes = nil, nil
	rep := head(&rec)
	rep.Status, rep.Seconds, rep.Quantities = report.Complete, treated.rep.Seconds, treated.rep.Quantities
	rep.Diff = p.diff()
	for _, x := range p.arms {
		of := base.treatment(x.Base)
		of.ID, of.Baseline = p.baseID(x.Base), true
		if !slices.ContainsFunc(rep.Treatments, func(t report.Treatment) bool { return t.ID == of.ID }) {
			rep.Treatments = append(rep.Treatments, of)
		}
		of = treated.treatment(x.Treated)
		of.Baseline = false
		rep.Treatments = append(rep.Treatments, of)
	}
	for i := range rep.Treatments { // each says how it differs from its own run's baseline
		t := &rep.Treatments[i]
		t.Permits, t.Refuses, t.Alters, t.Unshown = nil, nil, nil, nil
	}
	p.rulings(rep)
	return rep
}

// treatment is a treatment as the run's report has it.
func (a *analysis) treatment(id string) report.Treatment {
	i := slices.IndexFunc(a.rep.Treatments, func(t report.Treatment) bool { return t.ID == id })
	if i < 0 {
		return report.Treatment{ID: id}
	}
	return a.rep.Treatments[i]
}

// outcomeRemarks says what kind of claim the comparison is, what differs between the runs, and what each warned of.
func (p *pairing) outcomeRemarks(rep *report.Report, sides [2]*analysis) {
	first := "the runs were measured at different times, and an interval is of its own run: how much runs of one target " +
		"differ from each other is in neither. A difference that is shown is one between these two runs, whatever its " +
		"cause; to be sure of the cause, repeat both"
	if p.same {
		first = "the treatments were measured one after the other, each once: a difference that is shown may be the host's"
	}
	rep.Warnings = append([]string{first}, rep.Warnings...)
	if !p.same {
		p.warnOfDifferences(rep)
	}
	for i, r := range []Run{p.base, p.treated} {
		if i > 0 && p.same {
			break
		}
		if s := sides[i].rep.Status; s != report.Complete {
			addOnce(&rep.Warnings, fmt.Sprintf("%s did not come to its end (%s)", r.Name, s))
		}
		for _, w := range sides[i].rep.Warnings {
			remark(&rep.Warnings, p.of(r)+w)
		}
		for _, n := range sides[i].rep.Notes {
			remark(&rep.Notes, p.of(r)+n)
		}
	}
}

// breaksBy is what sets the rate of a treatment, and how it fails above it; nil where that is not known.
func (a *analysis) breaksBy(treatment string) (*limit.Verdict, *signature.Failure) {
	for i := range a.rep.Capacity {
		if c := &a.rep.Capacity[i]; c.Treatment == treatment && c.Operation == "" && c.Valid {
			return c.Limit, c.Failure
		}
	}
	return nil, nil
}

// figures are those of a treatment that have an interval, as budgets without a limit.
func (a *analysis) figures(treatment string) (out []budget.Budget) {
	add := func(operation string, m metric.Metric, quantile string) {
		out = append(out, budget.Budget{
			Operation: operation, Metric: m.Name, Quantile: quantile, Op: budget.AtMost,
			Limit: budget.Limit{Against: budget.Absolute},
		})
	}
	for i := range a.rep.Capacity {
		if c := &a.rep.Capacity[i]; c.Treatment == treatment && len(c.Points) == 0 {
			add(c.Operation, metric.Capacity, "")
			if c.SLORate != nil || c.SLOFails != nil {
				add(c.Operation, metric.SLOCapacity, "")
			}
		}
	}
	if a.question().Answer.BreachesFirst {
		add("", metric.Permitted, "")
	}
	s := a.soaked[treatment]
	if s == nil {
		return out
	}
	operations := []string{""}
	if len(s.total.names) > 1 {
		operations = append(operations, s.total.names...)
	}
	for _, op := range operations {
		for _, q := range []string{"p50", "p90", "p99"} {
			add(op, metric.Response, q)
		}
		add(op, metric.Error, "")
		add(op, metric.Goodput, "")
	}
	add("", metric.CPU, "")
	add("", probe.RSS.Metric, "")
	out[len(out)-1].Drift = true
	return out
}

// changes compares the figures of one pair of treatments.
func (p *pairing) changes(base, treated *analysis, x Arms, invalid bool) (out []report.Change) {
	all := treated.figures(x.Treated)
	for _, b := range base.figures(x.Base) {
		if !slices.Contains(all, b) {
			all = append(all, b)
		}
	}
	for i := range all {
		b := &all[i]
		f, g := base.resolvable(b, x.Base), treated.resolvable(b, x.Treated)
		if f.why != "" && g.why != "" && b.Metric != metric.Capacity.Name {
			continue // neither has it, and it is not what was asked
		}
		c := report.Change{
			Treatment: x.Treated, Baseline: p.baseID(x.Base), Operation: b.Operation, Metric: b.Metric, Quantile: b.Quantile,
			Drift: b.Drift, A: figureOf(f), B: figureOf(g),
		}
		if m, ok := probe.Known(b.Metric, metric.Capacity, metric.SLOCapacity, metric.Permitted); ok {
			c.Unit = m.Unit
		}
		c.Verdict, c.Reason = separation(f, g)
		if invalid {
			c.Verdict, c.Reason = report.NotCompared, runInvalid
		}
		if !invalid && f.Value > 0 && f.why == "" && g.why == "" && !b.Drift && !isBound(b, f) && !isBound(b, g) {
			r := g.against(&budget.Budget{Limit: budget.Limit{Against: budget.Ratio}}, f)
			c.Ratio, c.Lo, c.Hi = finite(r.Value), finite(r.Lo), finite(r.Hi)
		}
		out = append(out, c)
	}
	return out
}

// resolvable measures a figure. Times are from cells of a histogram: their interval is at least as wide as a cell.
func (a *analysis) resolvable(b *budget.Budget, treatment string) finding {
	const cell = 1.0 / 512
	f := a.measure(b, treatment)
	if f.why == "" && b.Metric == metric.Response.Name && !b.Drift {
		f.Lo, f.Hi = f.Lo*(1-cell), f.Hi*(1+cell)
	}
	return f
}

// isOneSided reports whether a finding bounds a figure on one side only.
func isOneSided(f finding) bool {
	return math.IsInf(f.Hi, 1) != (math.IsInf(f.Lo, -1) || f.Lo == 0 && f.Value == f.Hi)
}

// isBound reports whether a finding is no estimate: its value is a rate that was seen to hold or to break.
func isBound(b *budget.Budget, f finding) bool {
	rate := b.Metric == metric.Capacity.Name || b.Metric == metric.SLOCapacity.Name
	return rate && (f.Value == f.Lo) != (f.Value == f.Hi)
}

// separation says whether the intervals of two findings show that they differ. Each holds its truth in 95 % of cases:
// one in ten pairs of equal figures is shown to differ at most, and 0.6 % if the intervals are equally wide.
func separation(f, g finding) (v report.ChangeVerdict, why string) {
	unknown := func(x finding) bool {
		return x.why != "" || math.IsNaN(x.Lo) || math.IsNaN(x.Hi) || math.IsInf(x.Lo, -1) && math.IsInf(x.Hi, 1)
	}
	noInterval := func(x finding) string { return cmp.Or(x.why, x.how, "it has no interval") }
	switch {
	case unknown(f):
		return report.NotCompared, "in A, " + noInterval(f)
	case unknown(g):
		return report.NotCompared, "in B, " + noInterval(g)
	case g.Lo > f.Hi:
		return report.ShownHigher, ""
	case g.Hi < f.Lo:
		return report.ShownLower, ""
	case isOneSided(f) && isOneSided(g):
		return report.NotShown, "both intervals are open"
	case f.Lo == f.Hi && g.Lo == g.Hi:
		return report.NotShown, "they are equal"
	}
	return report.NotShown, "the intervals overlap"
}

func figureOf(f finding) report.Figure {
	if f.why != "" {
		return report.Figure{Basis: f.why}
	}
	return report.Figure{Value: finite(f.Value), Lo: finite(f.Lo), Hi: finite(f.Hi), Basis: f.how}
}

// outcomeBudgets judges budgets for the treatments of the second run: absolute ones by its own figures, relative ones
// by the change from the first run.
func (p *pairing) outcomeBudgets(
	base, treated *analysis, budgets []budget.Budget, invalid bool,
) (out []report.Budget, err error) {
	scope := treated.scope()
	bases := map[string]string{}
	scope.Treatments = nil
	for _, x := range p.arms {
		level := map[string]string{pairLevel: "of " + x.Treated}
		bases[x.Treated] = x.Base
		scope.Treatments = append(scope.Treatments,
			design.Treatment{ID: p.baseID(x.Base), Baseline: true, Levels: level},
			design.Treatment{ID: x.Treated, Levels: level})
	}
	if treated.flaws.measured {
		if err := misfit(scope, budgets); err != nil {
			return nil, err
		}
	}
	for _, b := range budgets {
		judged := scope.Judged(&b)
		if len(judged) == 0 {
			out = append(out, report.Budget{
				Text: b.Text, Treatment: b.Treatment, Verdict: report.NotMeasured, Limit: &b.Limit.Value, Unit: b.Limit.Unit,
				Reason: "no treatment that is compared has this name",
			})
		}
		for i := range judged {
			t := &judged[i]
			resolved, refusal := scope.Resolve(b, t)
			var f finding
			switch {
			case refusal != nil:
				f = unmeasured("%v", refusal)
			case b.Limit.Against == budget.Absolute:
				f = treated.measure(&resolved, t.ID)
			default:
				if f = treated.measure(&resolved, t.ID); f.why == "" {
					f = f.against(&resolved, base.measure(&resolved, bases[t.ID]))
				}
			}
			out = append(out, treated.budgetOf(&resolved, t.ID, f, invalid))
		}
	}
	return out, nil
}
