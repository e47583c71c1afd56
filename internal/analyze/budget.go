package analyze

import (
	"fmt"
	"math"
	"slices"

	"tare/internal/budget"
	"tare/internal/capacity"
	"tare/internal/design"
	"tare/internal/report"
	"tare/internal/unit"
)

// budgets judges every budget for every treatment that it speaks of.
func (a *analysis) budgets(all []budget.Budget) {
	for _, b := range all {
		treatments := a.judged(&b)
		if len(treatments) == 0 {
			a.rep.Budgets = append(a.rep.Budgets, report.Budget{
				Text: b.Text, Treatment: b.Treatment, Verdict: report.NotMeasured, Limit: &b.Limit.Value, Unit: b.Limit.Unit,
				Reason: fmt.Sprintf("there is no treatment %q", b.Treatment),
			})
		}
		for _, t := range treatments {
			a.rep.Budgets = append(a.rep.Budgets, a.judge(&b, t))
		}
	}
}

// judged are the treatments that a budget speaks of: every one that it names, or all but the baselines, or all if there is nothing else. A
// limit against the baseline does not speak of the baseline itself.
func (a *analysis) judged(b *budget.Budget) []string {
	var all, treated []string
	for _, t := range a.rec.Plan.Treatments {
		if t.Control != design.None || (b.Treatment != "" && !t.Named(b.Treatment)) {
			continue
		}
		all = append(all, t.ID)
		if !t.Baseline {
			treated = append(treated, t.ID)
		}
	}
	if len(treated) > 0 && (b.Treatment == "" || b.Limit.Against != budget.Absolute) {
		return treated
	}
	return all
}

func (a *analysis) baseline() (string, bool) {
	i := slices.IndexFunc(a.rep.Treatments, func(t report.Treatment) bool { return t.Baseline })
	if i < 0 {
		return "", false
	}
	return a.rep.Treatments[i].ID, true
}

// judge decides one budget for one treatment.
func (a *analysis) judge(b *budget.Budget, treatment string) report.Budget {
	var f finding
	if a.cmp != nil {
		f = a.compared(b, treatment)
	} else if f = a.measure(b, treatment); f.why == "" && b.Limit.Against != budget.Absolute {
		f = a.against(b, f)
	}
	out := report.Budget{Text: b.Text, Treatment: treatment, Verdict: report.NotMeasured, Limit: &b.Limit.Value, Unit: b.Limit.Unit, Reason: f.why}
	if f.why != "" {
		return out
	}
	out.Verdict = f.verdict
	if f.verdict == "" {
		out.Verdict = report.Verdict(budget.Decide(*b, f.Interval))
	}
	out.Estimate, out.Lo, out.Hi, out.Reason = finite(f.Value), finite(f.Lo), finite(f.Hi), f.how
	if s := a.soaked[treatment]; s != nil {
		return a.unfinished(out, s)
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
}

func unmeasured(format string, args ...any) finding {
	return finding{Interval: notMeasured, why: fmt.Sprintf(format, args...)}
}

// measure finds the metric of a budget.
func (a *analysis) measure(b *budget.Budget, treatment string) finding {
	if s := a.soaked[treatment]; s != nil {
		return a.endured(b, s)
	}
	if b.Drift {
		return unmeasured("a drift needs the question soak")
	}
	switch b.Metric {
	case "capacity", "slo_capacity":
		return a.capacityFinding(b, treatment)
	case "response", "service", "pool_wait", "error":
		return a.callFinding(b, treatment)
	case "cpu", "rss":
		return a.targetFinding(b, treatment)
	}
	return unmeasured("question %s does not measure %s", a.rep.Question, b.Metric)
}

func (a *analysis) capacityFinding(b *budget.Budget, treatment string) finding {
	i := slices.IndexFunc(a.rep.Capacity, func(c report.Capacity) bool { return c.Treatment == treatment && c.Operation == b.Operation })
	if i < 0 {
		return unmeasured("no capacity was measured")
	}
	c := &a.rep.Capacity[i]
	switch {
	case !c.Valid:
		return unmeasured("the generator is the limit")
	case b.Metric == "slo_capacity" && c.SLORate != nil:
		// The highest rate that was accepted: a lower bound.
		return finding{Interval: budget.Interval{Value: *c.SLORate, Lo: *c.SLORate, Hi: math.Inf(1)}}
	case b.Metric == "slo_capacity":
		return unmeasured("no latency objective was given")
	}
	res := a.searched[treatment]
	if x, how := res.Interval(); !math.IsNaN(x.Value) {
		return finding{Interval: x, how: how}
	}
	return unmeasured("no capacity was found%s", because(c.Reason))
}

func because(reason string) string {
	if reason == "" {
		return ""
	}
	return ": " + reason
}

// rateTolerance is how far an offered rate may be from the budget's and still be the same.
const rateTolerance = 0.005

// callFinding judges a metric of calls at an offered rate. Response times and errors do not fall as the rate rises, so a limit that holds at
// a higher rate holds at this one, and one that is broken at a lower rate is broken at this one.
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
	if b.At == 0 {
		return unmeasured("the question %s offers many rates: say at which one, as in %q", a.rep.Question, b.Text+" at 50/s")
	}
	return decideAt(b, operation, trace)
}

func decideAt(b *budget.Budget, operation int, trace *capacity.Trace) finding {
	best := unmeasured("no load was offered near %s", unit.PerSecond(b.At))
	distance := math.Inf(1)
	for _, s := range stretches(trace) {
		x := s.of(b, operation)
		if math.IsNaN(x.Value) {
			continue
		}
		same := math.Abs(s.rate-b.At) <= rateTolerance*b.At
		// Only an upper limit of an absolute value may be carried over from another rate.
		monotone := b.Op == budget.AtMost && b.Limit.Against == budget.Absolute
		if !same && !monotone {
			continue
		}
		v := report.Verdict(budget.Decide(*b, x))
		decides := same || (v == report.Pass && s.rate > b.At) || (v == report.Fail && s.rate < b.At)
		if !decides {
			v = report.Inconclusive
		}
		// A stretch that decides beats one that does not; among equals the nearest rate counts.
		d := math.Abs(s.rate/b.At - 1)
		if v == report.Inconclusive || v == report.NotMeasured {
			d += 1e6
		}
		if d < distance {
			distance = d
			best = finding{Interval: x, verdict: v, how: fmt.Sprintf("measured at %s over %d calls", unit.PerSecond(s.rate), len(s.calls))}
		}
	}
	return best
}

// targetFinding sums up over the parts of the target. One block gives CPU time without an interval, so that it decides nothing; memory
// was read.
func (a *analysis) targetFinding(b *budget.Budget, treatment string) finding {
	if names := a.operationNames[treatment]; b.Operation != "" && (len(names) > 1 || !slices.Contains(names, b.Operation)) {
		return unmeasured("%s is of all calls together and cannot be told apart by operation", b.Metric)
	}
	total, found := 0.0, false
	for i := range a.rep.Target {
		x := &a.rep.Target[i]
		if x.Treatment != treatment || !partOfTarget(x.Name) {
			continue
		}
		v := x.CPUPerOp
		if b.Metric == "rss" {
			v = nil
			if x.RSS != nil {
				v = x.RSS.After
			}
		}
		if v != nil {
			total, found = total+*v, true
		}
	}
	switch {
	case !found:
		return unmeasured("no probe read it")
	case b.Metric == "rss":
		return finding{Interval: budget.Interval{Value: total, Lo: total, Hi: total}}
	}
	return finding{
		Interval: budget.Interval{Value: total, Lo: math.Inf(-1), Hi: math.Inf(1)}, how: "one block gives no interval: use question compare",
	}
}

// against sets a finding in relation to the baseline's. The interval is the widest that both allow.
func (a *analysis) against(b *budget.Budget, f finding) finding {
	id, ok := a.baseline()
	if !ok {
		return unmeasured("there is no baseline")
	}
	base := a.measure(b, id)
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
