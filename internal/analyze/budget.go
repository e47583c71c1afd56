package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tare/internal/budget"
	"tare/internal/config"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/record"
	"tare/internal/report"
)

// budgets judges every budget for every treatment that it speaks of.
func (a *analysis) budgets(all []budget.Budget) {
	scope := a.scope()
	for _, b := range all {
		treatments := scope.Judged(&b)
		if len(treatments) == 0 {
			reason := "there are no treatments"
			if r := scope.Refuse(b); r != nil {
				reason = r.Error()
			}
			a.rep.Budgets = append(a.rep.Budgets, report.Budget{
				Text: b.Text, Treatment: b.Treatment, Verdict: report.NotMeasured, Limit: &b.Limit.Value, Unit: b.Limit.Unit,
				Reason: reason,
			})
		}
		for i := range treatments {
			a.rep.Budgets = append(a.rep.Budgets, a.judge(scope, b, &treatments[i]))
		}
	}
}

// misfit returns the first budget that does not fit what was measured; nil: all do.
func misfit(scope *budget.Scope, all []budget.Budget) error {
	for _, b := range all {
		if r := scope.Misfit(b); r != nil {
			return &Misfit{b.Text, r}
		}
	}
	return nil
}

// budgetLines returns the lines of the budgets in the record's experiment file; none if it has no such file.
func budgetLines(r *record.Record) map[string]int {
	if r.Dir == "" {
		return nil // the record is not from a folder
	}
	text, err := r.File()
	if err != nil {
		return nil // a line is a convenience: the report stands without it
	}
	return config.BudgetLines(text)
}

// scope is what the record holds: what its budgets may speak of. Whether a metric that may be measured was, only its
// values tell.
func (a *analysis) scope() *budget.Scope {
	p := &a.rec.Plan
	noBlock := a.cmp != nil && len(a.cmp.blocks) == 0
	s := &budget.Scope{
		Rules: a.question().Budgets, Treatments: unique(p.Treatments), Rate: p.Load.Rate, Ladder: p.Load.Rates,
		Objective: true, Own: a.rep.Quantities, OwnPace: a.cmp != nil && a.cmp.batched,
	}
	if noBlock { // only the plan says whether anything was to be offered
		s.OwnPace = p.Load.Rate == 0 && p.Load.Workers == 0
	}
	arm := budget.Arm{Open: true}
	if a.cmp != nil && !noBlock {
		arm.Operations, arm.Idle = slices.Concat(a.cmp.operations, a.cmp.idle.operations), a.cmp.idle.operations
	}
	if s.OwnPace && !noBlock {
		arm.Open = false
		for _, m := range a.cmp.measures {
			addOnce(&arm.Metrics, m.metric.Name)
		}
	}
	arms := map[string]budget.Arm{}
	s.Of = func(t *design.Treatment) budget.Arm {
		if known, ok := arms[t.ID]; ok {
			return known
		}
		arm := arm
		if soaked := a.soaked[t.ID]; soaked != nil {
			arm.Operations = soaked.total.names
		}
		if names := a.operationNames[t.ID]; names != nil {
			arm.Operations = names
		}
		arms[t.ID] = arm.Indexed()
		return arms[t.ID]
	}
	return s
}

// judgeable are the budgets that can be judged under some treatment, with the names under which their operations were
// measured.
func (a *analysis) judgeable(budgets []budget.Budget) []budget.Budget {
	var out []budget.Budget
	scope := a.scope()
	for i := range budgets {
		for _, t := range scope.Judged(&budgets[i]) {
			if b, refusal := scope.Resolve(budgets[i], &t); refusal == nil {
				out = append(out, b)
				break
			}
		}
	}
	return out
}

func (a *analysis) baseline() (string, bool) {
	i := slices.IndexFunc(a.rep.Treatments, func(t report.Treatment) bool { return t.Baseline })
	if i < 0 {
		return "", false
	}
	return a.rep.Treatments[i].ID, true
}

// judge decides one budget for one treatment.
func (a *analysis) judge(scope *budget.Scope, given budget.Budget, t *design.Treatment) report.Budget {
	var f finding
	treatment := t.ID
	resolved, refusal := scope.Resolve(given, t)
	b := &resolved
	switch {
	case refusal != nil:
		f = unmeasured("%v", refusal)
	case a.cmp != nil:
		f = a.comparedTwice(b, treatment)
	default:
		if f = a.measure(b, treatment); f.why == "" && b.Limit.Against != budget.Absolute {
			f = a.against(b, f)
		}
	}
	return a.budgetOf(b, treatment, f, len(a.flaws.invalid) > 0)
}

// budgetOf judges a finding. An invalid run keeps and breaks no budget, but for calls that it saw permitted.
func (a *analysis) budgetOf(b *budget.Budget, treatment string, f finding, invalid bool) report.Budget {
	f = f.judged(b)
	breach := b.Metric == metric.Permitted.Name && f.verdict == report.Fail
	if invalid && f.why == "" && !breach {
		f.verdict, f.how = report.Inconclusive, runInvalid
	}
	out := report.Budget{
		Text: b.Text, Treatment: treatment, Verdict: f.verdict, Limit: &b.Limit.Value, Unit: b.Limit.Unit, Reason: f.why,
	}
	if f.why != "" {
		return out
	}
	out.Reason = f.how
	if invalid && b.Limit.Against != budget.Absolute { // the figure is an effect
		return out
	}
	out.Estimate, out.Lo, out.Hi = finite(f.Value), finite(f.Lo), finite(f.Hi)
	if s := a.soaked[treatment]; s != nil {
		return ownDoubt(a.unfinished(out, s), b, &f)
	}
	return out
}

// finite keeps what is known: JSON has no infinity, and an open side of an interval is an absent one.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// A finding is a metric's interval, or why there is none.
type finding struct {
	budget.Interval
	verdict report.Verdict // decided already, by several stretches together
	how     string         // what it was measured on
	why     string         // why it was not measured
	// own is by how much the lower end of a time was reduced, since it may be the generator's delay; half is how far the
	// ends of a quantile are from it, as a share of the calls.
	own, half float64
}

func unmeasured(format string, args ...any) finding {
	return finding{Interval: notMeasured, why: fmt.Sprintf(format, args...)}
}

// judged decides a finding, unless it is decided already.
func (f finding) judged(b *budget.Budget) finding {
	switch {
	case f.why != "":
		f.verdict = report.NotMeasured
	case f.verdict == "":
		f.verdict = report.Verdict(budget.Decide(*b, f.Interval))
	}
	return f
}

// measure finds the metric of a budget.
func (a *analysis) measure(b *budget.Budget, treatment string) finding {
	if b.Metric == metric.Permitted.Name || b.Metric == metric.Revoke.Name {
		return a.guardFinding(b, treatment)
	}
	if s := a.soaked[treatment]; s != nil {
		return a.soakFinding(b, s)
	}
	switch b.Metric {
	case "capacity", "slo_capacity":
		return a.capacityFinding(b, treatment)
	case "response", "service", "pool_wait", "error":
		return a.callFinding(b, treatment)
	case "rss":
		return a.memoryFinding(treatment)
	}
	return unmeasured("question %s does not measure %s", a.rep.Question, b.Metric)
}

func (a *analysis) capacityFinding(b *budget.Budget, treatment string) finding {
	i := slices.IndexFunc(
		a.rep.Capacity, func(c report.Capacity) bool { return c.Treatment == treatment && c.Operation == b.Operation },
	)
	if i < 0 {
		return unmeasured("no capacity was measured")
	}
	c := &a.rep.Capacity[i]
	switch {
	case !c.Valid:
		return unmeasured("the generator is the limit")
	case b.Metric == "slo_capacity" && c.SLORate != nil:
		x := budget.Interval{Value: *c.SLORate, Lo: *c.SLORate, Hi: math.Inf(1)}
		if c.SLOFails != nil {
			x.Hi = *c.SLOFails
		}
		return finding{Interval: x}
	case b.Metric == "slo_capacity" && c.SLOFails != nil:
		return finding{
			Interval: budget.Interval{Value: 0, Lo: 0, Hi: *c.SLOFails}, how: "no rate was found at which it holds",
		}
	case b.Metric == "slo_capacity" && c.Objective != nil:
		return unmeasured("%s", c.Objective.Reason)
	case b.Metric == "slo_capacity":
		return unmeasured("no latency objective was given")
	}
	res := a.searched[treatment]
	x, how := res.Interval()
	if math.IsNaN(x.Value) {
		return unmeasured("no capacity was found%s", because(cmp.Or(how, c.Reason)))
	}
	return finding{Interval: x, how: how}
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// callFinding judges a metric of calls at an offered rate. Response times and errors do not fall as the rate rises, so
// a limit that holds at a higher rate holds at this one, and one that is broken at a lower rate is broken at this one.
func (a *analysis) callFinding(b *budget.Budget, treatment string) finding {
	trace := a.traces[treatment]
	if trace == nil {
		return unmeasured("no calls were kept")
	}
	operation := -1
	if b.Operation != "" {
		if operation = slices.Index(a.operationNames[treatment], b.Operation); operation < 0 {
			return unmeasured("there is no operation %q", b.Operation)
		}
	}
	return decideAt(b, operation, trace)
}

// against sets a finding in relation to the baseline's.
func (a *analysis) against(b *budget.Budget, f finding) finding {
	id, ok := a.baseline()
	if !ok {
		return unmeasured("there is no baseline")
	}
	return f.against(b, a.measure(b, id))
}

// against sets a finding in relation to that of the base. The interval is the widest that both allow.
func (f finding) against(b *budget.Budget, base finding) finding {
	switch {
	case base.why != "":
		return unmeasured("baseline: %s", base.why)
	case b.Limit.Against == budget.Difference:
		f.Interval = budget.Interval{Value: f.Value - base.Value, Lo: f.Lo - base.Hi, Hi: f.Hi - base.Lo}
	case base.Lo <= 0:
		f.Interval = budget.Interval{Value: f.Value/base.Value - 1, Lo: math.Inf(-1), Hi: math.Inf(1)}
	default:
		f.Interval = budget.Interval{Value: f.Value/base.Value - 1, Lo: f.Lo/base.Hi - 1, Hi: f.Hi/base.Lo - 1}
	}
	f.verdict = ""
	return f
}
