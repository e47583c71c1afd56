package analyze

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"sort"
	"time"

	"tare/internal/budget"
	"tare/internal/capacity"
	"tare/internal/guard"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/stat"
	"tare/internal/unit"
)

// shownBreaches bounds the breaches of a treatment in a report.
const shownBreaches = 20

// An areaFigure is what an area measured of a treatment under a condition: after what times each had not ended yet, and
// after what times it had, both sorted. One that was not seen to end is infinite among most.
type areaFigure struct {
	treatment, condition, metric string
	least, most                  []float64
}

// areaFigureOf sorts the bounds of spans.
func areaFigureOf(treatment, condition, metric string, spans []guard.Span) areaFigure {
	f := areaFigure{treatment: treatment, condition: condition, metric: metric}
	for _, x := range spans {
		if !(x.Least >= 0 && x.Least < 1e9) {
			continue // the record is damaged
		}
		most := math.Inf(1)
		if x.Most != nil && *x.Most >= x.Least {
			most = *x.Most
		}
		f.least, f.most = append(f.least, x.Least), append(f.most, most)
	}
	slices.Sort(f.least)
	slices.Sort(f.most)
	return f
}

// unended is how many were not seen to end.
func (f *areaFigure) unended() int {
	return len(f.most) - sort.Search(len(f.most), func(i int) bool { return math.IsInf(f.most[i], 1) })
}

// summary is a quantile or the mean: of the lower bounds, and as its upper end of the upper bounds.
func (f *areaFigure) summary(name string) budget.Interval {
	x := summary(f.least, name)
	x.Hi = summary(f.most, name).Hi
	return x
}

// guards answers whether each treatment refused what it must. The first block of a treatment is the search for its
// capacity, if there was one; the second holds the points.
func (a *analysis) guards() error {
	for _, t := range a.trials() {
		if !slices.ContainsFunc(t.Steps, func(s record.Step) bool { return s.Name == guard.StepPoint }) {
			if err := a.guardSearch(t); err != nil {
				return fmt.Errorf("analyze trial of %s in block %d: %w", t.Treatment, t.Block, err)
			}
			continue
		}
		a.targets(t)
		if err := a.guard(t); err != nil {
			return fmt.Errorf("analyze the points of %s: %w", t.Treatment, err)
		}
	}
	if len(a.rep.Guard) == 0 {
		a.flaws.open = append(a.flaws.open, "no point with trespasses was measured")
	}
	return nil
}

// guard answers for one treatment.
func (a *analysis) guard(t *record.Trial) error {
	points, breaches, err := guardSteps(t)
	if err != nil {
		return err
	}
	end, err := guardEnd(t)
	if err != nil {
		return err
	}
	var rate *float64
	if c := a.capacityOfTreatment(t.Treatment); c != nil {
		rate = c.Rate
	}
	if rate == nil {
		points = withoutMultiples(points)
	}
	calls := t.Log()
	g, seen := a.judgedPoints(t, points, calls, breaches)
	a.earn(&g, seen, end)
	g.Unearned = cmp.Or(g.Unearned, neverDecided(t, &g))
	for i := range points {
		a.conditionRemarks(t, &points[i], &g)
	}
	g.Capacity = rate
	a.rep.Guard = append(a.rep.Guard, g)
	a.guardGenerator(t, points, calls, g.Points)
	a.busyPoints(t, points)
	a.logs = append(a.logs, calls)
	return calls.Err()
}

// withoutMultiples returns the points by their rates alone. No capacity is known of which they could be multiples: they
// are parts of a rate that held.
func withoutMultiples(points []guard.Point) []guard.Point {
	out := slices.Clone(points)
	for i := range out {
		p := &out[i]
		if p.Factor > 0 && p.Condition == nil {
			p.Name = ""
		}
		p.Factor = 0
	}
	return out
}

// judgedPoints judges the points of a trial by their calls.
func (a *analysis) judgedPoints(t *record.Trial, points []guard.Point, calls load.Log, breaches []guard.Breach,
) (g report.Guard, seen []guard.Seen) {
	g = report.Guard{
		Treatment: t.Treatment, Operations: map[string]report.Trespasses{}, Breaches: breachesOf(breaches, points),
	}
	var ops []guard.Operation
	for _, name := range t.Operations {
		ops = append(ops, guard.Operation{Name: name, Twin: t.Twins[name], Breaches: t.Breaches[name]})
	}
	audits := capacity.Points(traceOfPoints(points, calls))
	total, byOperation := guard.Trespasses{}, map[string]guard.Trespasses{}
	for i, p := range points {
		s := guard.Assess(p, ops, calls)
		s.Late = !audits[i].Audit.Valid
		seen = append(seen, s)
		total.Add(s.Trespasses)
		for name, n := range s.ByOperation {
			sum := byOperation[name]
			sum.Add(n)
			byOperation[name] = sum
		}
		g.Foreign += s.Legitimate.Foreign
		at := guardPoint(&s, &audits[i])
		at.Causes = pointCauses(t, ops, &p, calls)
		g.Points = append(g.Points, at)
	}
	g.Trespasses, g.InBursts = trespasses(total), guard.InBursts(seen)
	for name, n := range byOperation {
		g.Operations[name] = trespasses(n)
	}
	if o, ok := guard.OnsetOf(seen); ok {
		g.Onset = &report.Onset{Above: known(o.Above), Below: o.Below, Clear: o.Clear, Sharp: o.Sharp, Later: o.Later}
	}
	return g, seen
}

// pointCauses counts why calls of a point were not served, and why its trespasses were not decided.
func pointCauses(t *record.Trial, ops []guard.Operation, p *guard.Point, calls load.Log) []report.GuardCause {
	by := make([]causes, len(ops))
	for c := range calls.Due(p.Segment.Start, p.Segment.End) {
		k := int(c.Operation)
		if k >= len(ops) || c.Sent == 0 || c.Outcome == load.Permitted {
			continue
		}
		if c.Outstanding(p.Read) {
			by[k].count(report.Cause{Outcome: load.Timeout.String(), Cause: "not answered when the point ended"}, 1)
			continue
		}
		by[k].add(c, ownCauses(t, k))
	}
	var out []report.GuardCause
	for k, m := range by {
		for _, c := range m.list() {
			out = append(out, report.GuardCause{Operation: ops[k].Name, Cause: c})
		}
	}
	slices.SortStableFunc(out, func(a, b report.GuardCause) int { return cmp.Compare(b.Calls, a.Calls) })
	return out
}

func (a *analysis) capacityOfTreatment(treatment string) *report.Capacity {
	i := slices.IndexFunc(a.rep.Capacity, func(c report.Capacity) bool { return c.Treatment == treatment })
	if i < 0 {
		return nil
	}
	return &a.rep.Capacity[i]
}

// guardSteps reads the points and breaches of a trial.
func guardSteps(t *record.Trial) (points []guard.Point, breaches []guard.Breach, err error) {
	for _, s := range t.Steps {
		switch s.Name {
		case guard.StepPoint:
			var p guard.Point
			if err := json.Unmarshal(s.Payload, &p); err != nil {
				return nil, nil, fmt.Errorf("read a point: %w", err)
			}
			if err := p.Check(); err != nil {
				return nil, nil, err
			}
			points = append(points, p)
		case guard.StepBreach:
			var b guard.Breach
			if err := json.Unmarshal(s.Payload, &b); err != nil {
				return nil, nil, fmt.Errorf("read a breach: %w", err)
			}
			breaches = append(breaches, b)
		}
	}
	return points, breaches, nil
}

// traceOfPoints is a ladder of the points, for what a ladder's points are audited by.
func traceOfPoints(points []guard.Point, calls load.Log) capacity.Trace {
	t := capacity.Trace{Stop: capacity.StopLadder, Calls: calls}
	for _, p := range points {
		t.Read = max(t.Read, p.Read)
		t.Steps = append(t.Steps, capacity.Step{Role: capacity.RolePoint, Name: p.Name, Rate: p.Rate, Segment: p.Segment})
	}
	return t
}

func guardPoint(s *guard.Seen, audited *capacity.Point) report.GuardPoint {
	out := report.GuardPoint{
		Name: s.Name, Rate: s.Rate, Factor: known(s.Factor), Seconds: (s.Segment.End - s.Segment.Start).Seconds(),
		Refined: s.Refined, Trespasses: trespasses(s.Trespasses), Offered: s.Legitimate.Due(), Served: s.Legitimate.Served,
		Wrong: s.Legitimate.Wrong, Foreign: s.Legitimate.Foreign, Failed: s.Legitimate.Failed, Unsent: s.Legitimate.Unsent,
		Median: known(s.Median.Seconds()), P99: known(audited.P99), Generator: auditOf(&audited.Audit),
		FirstBreach: inSeconds(s.FirstBreach), LastBreach: inSeconds(s.LastBreach),
	}
	if e, ok := s.Legitimate.Share(); ok {
		out.ServedShare = shareOf(e)
	}
	if c := s.Condition; c != nil {
		out.Condition = &report.GuardCondition{
			Name: c.Name, Does: c.Does, Begun: (c.Begun - s.Segment.Start).Seconds(), Error: c.Error,
		}
		if c.Ended > 0 {
			out.Condition.Ended = new((c.Ended - s.Segment.Start).Seconds())
			out.Condition.Afterwards = new(trespasses(s.Afterwards))
			if s.During != (guard.Trespasses{}) {
				out.Condition.During = new(trespasses(s.During))
			}
		}
		if s.Recovered {
			out.Condition.Recovery = inSeconds(s.Recovery)
		}
	}
	return out
}

func inSeconds(d *time.Duration) *float64 {
	if d == nil {
		return nil
	}
	return new(d.Seconds())
}

func trespasses(n guard.Trespasses) report.Trespasses {
	out := report.Trespasses{
		Refused: n.Refused, Permitted: n.Permitted, Undecided: n.Undecided, Unclear: n.Unclear,
		Unanswered: n.Unanswered, Unsent: n.Unsent,
	}
	if e, ok := n.Share(); ok {
		out.Share = shareOf(e)
	}
	return out
}

func shareOf(e stat.Estimate) *report.Share { return &report.Share{Value: e.Value, Lo: e.Lo, Hi: e.Hi} }

// breachesOf returns the first breaches, each with the point in which it was answered.
func breachesOf(all []guard.Breach, points []guard.Point) []report.Breach {
	var out []report.Breach
	for _, b := range all[:min(shownBreaches, len(all))] {
		x := report.Breach{
			Operation: b.Operation, Status: b.Status, Request: b.Request, Answer: b.Answer, AnswerBytes: b.AnswerBytes,
			InFlight: b.InFlight, Waiting: b.Waiting, Again: b.Again,
		}
		for _, p := range points { // the last that began before the answer
			if b.At >= p.Segment.Start {
				x.At, x.Point, x.Rate = (b.At - p.Segment.Start).Seconds(), p.Name, p.Rate
				if p.Condition != nil && p.Condition.Begun > 0 {
					x.At = (b.At - p.Condition.Begun).Seconds()
				}
				if p.Name == "" {
					x.Point = unit.PerSecond(p.Rate)
				}
			}
		}
		out = append(out, x)
	}
	return out
}

// conditionRemarks says which conditions could not be brought about, and keeps what the area measured under the others.
func (a *analysis) conditionRemarks(t *record.Trial, p *guard.Point, g *report.Guard) {
	c := p.Condition
	if c == nil {
		return
	}
	if c.Error != "" {
		a.warn(t.Treatment, "the condition %s: %s", c.Name, c.Error)
		a.flaws.open = append(a.flaws.open, fmt.Sprintf("%s: the condition %s failed", t.Treatment, c.Name))
	}
	for _, name := range slices.Sorted(maps.Keys(c.Spans)) {
		f := areaFigureOf(t.Treatment, c.Name, name, c.Spans[name])
		a.areaFigures = append(a.areaFigures, f)
		if d := distributionOf(costs{stat.Values(f.least)}); d != nil {
			g.Figures = append(g.Figures, report.GuardFigure{
				Condition: c.Name, Metric: name, Values: d, Unended: uint64(f.unended()),
			})
		}
	}
}

// guardFinding is the share of trespasses that were permitted, or a figure that the area measured.
func (a *analysis) guardFinding(b *budget.Budget, treatment string) finding {
	i := slices.IndexFunc(a.rep.Guard, func(g report.Guard) bool { return g.Treatment == treatment })
	if i < 0 {
		return unmeasured("no trespass was measured")
	}
	g := &a.rep.Guard[i]
	if b.Metric != metric.Permitted.Name {
		return a.figureFinding(b, treatment)
	}
	n, foreign := &g.Trespasses, ""
	if g.Foreign > 0 {
		foreign = fmt.Sprintf("%d calls that it must allow got what is somebody else's", g.Foreign)
	}
	switch mixed := mixedUp(g, b.Limit.Value); {
	case n.Share == nil && mixed:
		return finding{verdict: report.Fail, how: foreign}
	case n.Share == nil:
		return unmeasured("the control decided none of the trespasses")
	}
	f := finding{
		Interval: budget.Interval{Value: n.Share.Value, Lo: n.Share.Lo, Hi: n.Share.Hi},
		how:      fmt.Sprintf("%d of %d trespasses were permitted", n.Permitted, n.Decided()),
	}
	if n.Permitted > 0 && len(g.Operations) > 0 {
		f.how += ": " + namedTrespasses(g)
	}
	if foreign != "" {
		f.how += "; " + foreign
	}
	need := uint64(guard.LeastTrespasses)
	if a.question().Answer.BreachesFirst {
		need = guard.Enough()
	}
	var why string
	f.verdict, why = judgedTrespasses(g, b.Limit.Value, need)
	if worst, where, ok := worstPlace(g, b.Limit.Value); ok && b.Limit.Value > 0 {
		if len(g.Points) == 1 { // such as that of a soak, whose share allows for bursts
			worst.Lo, worst.Hi = min(worst.Lo, n.Share.Lo), max(worst.Hi, n.Share.Hi)
		}
		if g.Stretches > 0 {
			where += "; they came in " + g.InStretches()
		}
		f.Interval, why = worst, where+why
		if worst.Lo > b.Limit.Value {
			f.verdict, why = report.Fail, where
		}
	}
	f = f.judged(b)
	unshown := ""
	if t := slices.IndexFunc(a.rep.Treatments, func(t report.Treatment) bool { return t.ID == treatment }); t >= 0 {
		unshown = a.rep.Treatments[t].NotShown()
	}
	switch silent := g.Silent(); {
	case f.verdict == report.Pass && unshown != "":
		f.verdict, why = report.Inconclusive, "; "+unshown
	case f.verdict == report.Pass && g.Unearned != "":
		f.verdict, why = report.Inconclusive, "; "+g.Unearned
	case f.verdict == report.Pass && silent != "":
		why += "; " + silent
	}
	f.how += why
	return f
}

// judgedTrespasses judges the share of trespasses that were permitted, with what is to be said of it. Without a verdict
// its interval decides. least is how many must be decided where none may be permitted.
func judgedTrespasses(g *report.Guard, limit float64, least uint64) (v report.Verdict, why string) {
	n, need := &g.Trespasses, least
	if limit > 0 {
		need = stat.TrialsToBound(limit, guard.Level)
	}
	switch worst, _ := stat.BinomialInterval(n.Permitted+n.Open(), n.Decided()+n.Open(), guard.Level); {
	case n.Permitted > 0 && limit == 0, n.Share.Lo > limit, mixedUp(g, limit):
		return report.Fail, ""
	case n.Unclear > 0 && worst.Hi > limit:
		return report.Inconclusive, fmt.Sprintf("; %d more got an answer that is neither a permit nor a refusal: what its "+
			"reader takes it for decides", n.Unclear)
	case n.Unanswered > 0 && worst.Hi > limit:
		return report.Inconclusive, fmt.Sprintf("; %d more got no answer where calls that must be allowed get none at "+
			"least twice as often: they may have been permitted, which the target's own log tells", n.Unanswered)
	case n.Decided() < need:
		return report.Inconclusive, fmt.Sprintf("; the limit needs %d that the control decides: a longer load.duration or a "+
			"larger load.trespass gives more", need)
	case n.Permitted == 0 && limit == 0:
		return report.Pass, fmt.Sprintf(": the share is below %s, at 95 %%", report.ShareBelow(n.Share.Hi))
	}
	return "", ""
}

// mixedUp reports whether more calls that must be allowed got what is somebody else's than a limit permits.
func mixedUp(g *report.Guard, limit float64) bool {
	answered := g.Foreign
	for i := range g.Points {
		answered += g.Points[i].Served
	}
	e, ok := stat.BinomialInterval(g.Foreign, answered, guard.Level)
	return ok && g.Foreign > 0 && e.Lo > limit
}

// figureFinding is a quantile of what the area measured under the worst of its conditions, with its interval; a longest
// value is a fact, as far as the area knows when it ended.
func (a *analysis) figureFinding(b *budget.Budget, treatment string) finding {
	worst, name := unmeasured("no condition measured %s", b.Metric), cmp.Or(b.Quantile, "max")
	few, unended := false, ""
	for i := range a.areaFigures {
		x := &a.areaFigures[i]
		if x.treatment != treatment || x.metric != b.Metric || len(x.least) == 0 {
			continue
		}
		if q, ok := budget.Fraction(name); ok && !enough(len(x.least), q) {
			return unmeasured("%s needs more values than the %d that were measured", name, len(x.least))
		}
		y := x.summary(name)
		if !(y.Value <= worst.Value) {
			worst.how = fmt.Sprintf("measured %d times under the condition %s", len(x.least), x.condition)
		}
		few = few || math.IsInf(summary(x.least, name).Hi, 1)
		if n := x.unended(); n > 0 {
			unended += fmt.Sprintf("; still granted when asked for last under %s: %d of %d", x.condition, n, len(x.least))
		}
		if worst.why == "" {
			y = budget.Interval{Value: max(y.Value, worst.Value), Lo: max(y.Lo, worst.Lo), Hi: max(y.Hi, worst.Hi)}
		}
		worst.Interval, worst.why = y, ""
	}
	if worst.how += unended; few {
		worst.how += unbounded
	}
	return worst
}
