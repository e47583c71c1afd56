package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/internal/budget"
	"tare/internal/hist"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/stat"
	"tare/internal/unit"
)

// soakFinding measures what a budget limits, over a soak.
func (a *analysis) soakFinding(b *budget.Budget, s *soak) finding {
	if len(s.measured()) == 0 {
		return unmeasured("nothing was measured")
	}
	if b.Drift {
		return s.driftFinding(b)
	}
	switch b.Metric {
	case metric.Response.Name, metric.Service.Name, metric.PoolWait.Name:
		return s.timeFinding(b)
	case metric.Error.Name:
		return s.errorFinding(b)
	case metric.Goodput.Name, metric.CPU.Name:
		return s.meanFinding(b)
	}
	if memory(b.Metric) {
		return s.levelFinding(b)
	}
	return unmeasured("question %s does not measure %s", a.rep.Question, b.Metric)
}

// driftFinding is a trend in the metric's unit an hour.
func (s *soak) driftFinding(b *budget.Budget) finding {
	d, ok := s.drift(b.Operation, b.Metric, b.Quantile)
	switch {
	case !ok:
		return unmeasured("%s was not read window by window", b.Metric)
	case d.Lo == nil:
		return withoutInterval(math.NaN(), d.Reason)
	}
	x := s.countedTrend(b, budget.Interval{Value: d.PerHour, Lo: *d.Lo, Hi: *d.Hi})
	counted := ""
	if x.Lo < *d.Lo || x.Hi > *d.Hi {
		counted = ", at least what so many calls can tell of a share of failures"
	}
	if why := s.whyNoTrend(b.Metric); why != "" {
		return finding{Interval: x, verdict: report.Inconclusive, how: why}
	}
	if b.Limit.Unit == metric.Ratio && b.Limit.Against == budget.Absolute && d.Unit != metric.Ratio {
		if !(d.Start > 0) {
			return unmeasured("the value at the beginning is not above 0, of which a percentage has no meaning")
		}
		x = budget.Interval{Value: x.Value / d.Start, Lo: x.Lo / d.Start, Hi: x.Hi / d.Start}
	}
	return finding{
		Interval: x,
		how: fmt.Sprintf("an hour, over %s, block-bootstrap interval at %s%s", unit.Count(d.N, "window"),
			percent(d.Level), counted),
	}
}

// countedTrend widens the trend of the share of failures, or of goodput, to what so many calls can tell of that share.
func (s *soak) countedTrend(b *budget.Budget, x budget.Interval) budget.Interval {
	scale := 1.0
	switch b.Metric {
	case metric.Error.Name:
	case metric.Goodput.Name:
		ended, _ := s.failures(b.Operation)
		scale = -ended / s.seconds() // each call that fails is one less
	default:
		return x
	}
	c := s.trending(b.Operation, metric.Error.Name, "")
	d := c.drift(s.seconds())
	if d.Lo == nil {
		return x
	}
	w := c.trendOfShare(d.PerHour)
	less, more := (w.Lo-w.Value)*scale, (w.Hi-w.Value)*scale
	x.Lo, x.Hi = min(x.Lo, x.Value+min(less, more)), max(x.Hi, x.Value+max(less, more))
	return x
}

// withoutInterval is a value of which nobody knows how far off it is: it decides nothing, and says why.
func withoutInterval(v float64, why string) finding {
	return finding{
		Interval: budget.Interval{Value: v, Lo: math.Inf(-1), Hi: math.Inf(1)}, verdict: report.Inconclusive,
		how: "no interval: " + why,
	}
}

// meanFinding is a mean over all calls, or all the time.
func (s *soak) meanFinding(b *budget.Budget) finding {
	e, why := s.mean(b.Operation, b.Metric, "")
	switch {
	case why != "" && isFinite(e.Value):
		return withoutInterval(e.Value, why)
	case why != "":
		return unmeasured("%s", why)
	}
	f := finding{Interval: budget.Interval{Value: e.Value, Lo: max(0, e.Lo), Hi: e.Hi}, how: basisOf(&e)}
	if b.Metric == metric.Goodput.Name {
		failed := s.errorFinding(&budget.Budget{Operation: b.Operation, Metric: metric.Error.Name})
		if x := goodput(f.Interval, failed.Interval); x != f.Interval {
			f.Interval = x
			f.how += fmt.Sprintf("; of the calls %s to %s may fail", unit.Share(failed.Lo), unit.Share(failed.Hi))
		}
		if s.rate > 0 && f.Hi > s.rate { // no more calls are answered well than come due
			f.Hi = max(f.Value, s.rate)
		}
	}
	return f
}

func basisOf(e *stat.Estimate) string {
	return fmt.Sprintf("%s, block-bootstrap interval at %s", unit.Count(e.N, "window"), percent(e.Level))
}

// mean is a weighted mean over all windows; why says why it has no interval.
func (s *soak) mean(operation, name, quantile string) (e stat.Estimate, why string) {
	e.Value = math.NaN()
	m, of := s.find(operation, name, quantile)
	if of == nil {
		return e, fmt.Sprintf("%s was not read window by window", name)
	}
	c := s.course(m, everyWindow, of)
	switch _, known := quantityOf(name); {
	case len(c.value) > 0:
	case known || name == metric.CPU.Name:
		return e, "no probe read it"
	default:
		return e, "its windows have too few calls each for that"
	}
	got, err := stat.SeriesMean(
		c.hours, c.value, stat.DriftOptions{Level: level, Stretch: c.stretch, Weight: c.weight, Seed: driftSeed},
	)
	if err != nil || len(c.value) < fewestWindows {
		sum, total := 0.0, 0.0
		for i, v := range c.value {
			sum, total = sum+v*c.weight[i], total+c.weight[i]
		}
		e.Value = sum / total
		return e, fmt.Sprintf("%s are too few: it takes %d", unit.Count(len(c.value), "window"), fewestWindows)
	}
	return got, ""
}

// errorFinding is the share of calls that ended badly, with at least the interval that so many calls can tell: where
// none failed, windows do not vary. Where few stretches of windows have such calls, it is at least that of so many
// events. Answers that the target counted otherwise than its callers may have been bad ones.
func (s *soak) errorFinding(b *budget.Budget) finding {
	ended, bad := s.failures(b.Operation)
	if ended == 0 {
		return unmeasured("no call ended")
	}
	w := wilson(bad, ended)
	f := finding{Interval: budget.Interval{Value: bad / ended, Lo: 0, Hi: 1}}
	if e, why := s.mean(b.Operation, b.Metric, ""); why == "" {
		f.Lo, f.Hi, f.how = max(0, min(w.Lo, e.Lo)), min(1, max(w.Hi, e.Hi)), basisOf(&e)
	} else {
		f.how = why
	}
	if bad == 0 {
		f.how = fmt.Sprintf("none of %.0f calls failed: fewer than %s do if each fails by itself; %s", ended,
			unit.Share(f.Hi), missedOutages)
	}
	m, of := s.find(b.Operation, b.Metric, "")
	stretches, equal, rare := s.course(m, everyWindow, of).events()
	x := budget.Interval{Value: f.Value, Lo: max(f.Lo, f.Value*fewest(stretches)), Hi: f.Hi}
	if rare {
		x.Hi = min(1, max(f.Hi, f.Value*mostOf(equal, level)))
	}
	if x != f.Interval {
		f.Interval = x
		f.how += fmt.Sprintf("; the failures came in %s", unit.Count(stretches, "stretch"))
	}
	if s.disputed > 0 {
		f.Hi = min(1, max(f.Hi, (bad+s.disputed)/ended))
		f.how += fmt.Sprintf("; the target's own count differs by %.0f answers, which may have been bad", s.disputed)
	}
	return f
}

// failures counts the calls of an operation, or of all, that ended, and those of them that ended badly.
func (s *soak) failures(operation string) (ended, bad float64) {
	for i := range s.measured() {
		n, k := endedIn(&s.measured()[i], operation)
		ended, bad = ended+n, bad+k
	}
	return ended, bad
}

// levelFinding is the highest level that was read, or the lowest for a budget from below: these are facts and have no
// interval, but for memory of which the kernel has seen more between two readings.
func (s *soak) levelFinding(b *budget.Budget) finding {
	m, of := s.find(b.Operation, b.Metric, b.Quantile)
	if of == nil {
		return unmeasured("%s is not read window by window", b.Metric)
	}
	c := s.course(m, everyWindow, of)
	if len(c.value) == 0 {
		return unmeasured("no probe read it")
	}
	v, word := slices.Max(c.value), "highest"
	if b.Op == budget.AtLeast {
		v, word = slices.Min(c.value), "lowest"
	}
	f := finding{
		Interval: budget.Interval{Value: v, Lo: v, Hi: v}, how: fmt.Sprintf("the %s of %d readings", word, len(c.value)),
	}
	if peak := s.peak(); b.Metric == probe.RSS.Name && b.Op == budget.AtMost && peak > v {
		f.Hi = peak
		f.how += fmt.Sprintf("; its parts' own peaks meanwhile come to %s", unit.Bytes(peak))
	}
	return f
}

// peak adds up the most memory that each part of the target had, as far as it is known that this was meanwhile.
func (s *soak) peak() (sum float64) {
	for _, subject := range s.having(probe.RSS.Name) {
		sum += s.parts.peaks[subject]
	}
	return sum
}

// timeFinding is a time of calls over the whole soak, from the histogram of all of them. It reaches down by what can be
// the generator's own delay, and up where calls failed: those were not answered in any time.
func (s *soak) timeFinding(b *budget.Budget) finding {
	h := s.histogramsOf(b.Operation)[record.Measure(b.Metric)]
	if h == nil || h.Count() == 0 {
		return unmeasured("no %s times were kept", b.Metric)
	}
	f, own := s.asMeasured(b, h)
	if f.why != "" {
		return f
	}
	if own > 0 {
		seen := f.Lo
		f.Lo = max(0, seen-own)
		f.own = seen - f.Lo
		f.how += fmt.Sprintf("; at most %s of it is the generator's own delay", unit.Seconds(own))
	}
	if ended, bad := s.failures(b.Operation); bad > 0 && b.Op == budget.AtMost && b.Metric != metric.PoolWait.Name {
		s.unanswered(&f, b, bad/ended)
	}
	s.overLimit(&f, b, h)
	return f
}

// overLimit decides a quantile by the calls that certainly took longer than its limit allows: so many, in so few
// stretches of time that their windows tell no interval, are too many however rare such stretches are.
func (s *soak) overLimit(f *finding, b *budget.Budget, h *hist.Histogram) {
	q := fraction(cmp.Or(b.Quantile, "p50"))
	if b.Op != budget.AtMost || b.Limit.Against != budget.Absolute || !isFinite(q) ||
		f.verdict == "" && budget.Decide(*b, f.Interval) == budget.Fail {
		return
	}
	over := s.own(b.Operation).certainlyOver(h, b.Limit.Value)
	stretches := s.stretchesOver(b.Operation, b.Limit.Value)
	if over*fewest(stretches) > 1-q {
		f.verdict = report.Fail
		f.how = fmt.Sprintf("%s of the calls took longer than %s, in %s of the time: more than %s of them do",
			unit.Share(over), unit.Seconds(b.Limit.Value), unit.Count(stretches, "stretch"), unit.Share(1-q))
	}
}

// stretchesOver counts the stretches of neighbouring windows with a call that took longer than so many seconds.
func (s *soak) stretchesOver(operation string, limit float64) (n int) {
	within := false
	for i := range s.measured() {
		x := &s.measured()[i]
		ended, over := false, false
		for k := range x.Operations {
			if o := &x.Operations[k]; operation == "" || o.Operation == operation {
				ended, over = true, over || o.Max > limit
			}
		}
		if over && !within {
			n++
		}
		if ended {
			within = over
		}
	}
	return n
}

// unanswered raises the upper end of a time to what it is if a call that failed counts as never answered.
func (s *soak) unanswered(f *finding, b *budget.Budget, failed float64) {
	good := s.hists.good
	if b.Operation != "" {
		good = s.hists.goodPer[b.Operation]
	}
	hi := math.Inf(1)
	if q, ok := upperQuantile(b.Quantile, f.half); ok && q < 1-failed && good != nil && good.Count() > 0 {
		hi = good.Quantile(q/(1-failed)) / 1e9
	}
	if hi > f.Hi || f.verdict != "" {
		f.Hi = max(f.Hi, hi)
		f.how += fmt.Sprintf("; %s of the calls failed, and a failed call is not answered in any time", unit.Share(failed))
	}
}

// upperQuantile is the upper end of a quantile's interval, as a quantile; ok is false if name names no quantile.
func upperQuantile(name string, half float64) (q float64, ok bool) {
	if name == "" {
		name = "p50"
	}
	q, ok = budget.Fraction(name)
	return q + half, ok
}

// asMeasured is a time as the generator saw it, and how much of the lower end of its interval can be the generator's
// own delay.
func (s *soak) asMeasured(b *budget.Budget, h *hist.Histogram) (f finding, own float64) {
	o := s.own(b.Operation)
	switch b.Quantile {
	case "min", "max":
		v := float64(h.Max()) / 1e9
		if b.Quantile == "min" {
			v = float64(h.Min()) / 1e9
		}
		return finding{
			Interval: budget.Interval{Value: v, Lo: v, Hi: v}, how: fmt.Sprintf("of %d calls", h.Count()),
		}, o.atMostAtAll()
	case "mean":
		return s.meanTime(b, h), o.inMean(s.histogramsOf(b.Operation)[record.Lateness])
	case "":
		return s.quantileFinding(b, h, 0.5)
	}
	q := fraction(b.Quantile)
	if !isFinite(q) || !enough(int(h.Count()), q) {
		return unmeasured("%d calls do not tell their %s", h.Count(), b.Quantile), 0
	}
	return s.quantileFinding(b, h, q)
}

// meanTime has the interval of the windows' means around the mean of all calls.
func (s *soak) meanTime(b *budget.Budget, h *hist.Histogram) finding {
	v := h.Mean() / 1e9
	e, why := s.mean(b.Operation, b.Metric, "mean")
	if why != "" {
		return withoutInterval(v, why)
	}
	half := (e.Hi - e.Lo) / 2
	return finding{Interval: budget.Interval{Value: v, Lo: max(0, v-half), Hi: v + half}, how: basisOf(&e)}
}

// unbounded ends what an interval without an upper end rests on.
const unbounded = "; so few do not bound it from above"

// quantileFinding is a quantile of all calls. Its interval also ends where those of a higher and of a lower quantile
// do: so what one of them is certain of, no other leaves open. own is how much of its lower end can be the generator's
// delay.
func (s *soak) quantileFinding(b *budget.Budget, h *hist.Histogram, q float64) (f finding, own float64) {
	f, own = s.ownInterval(b, h, q)
	upper, lower := "", ""
	for _, p := range []float64{0.5, 0.9, 0.95, 0.99} {
		switch x, late := s.ownInterval(b, h, p); {
		case p > q && x.Hi < f.Hi:
			f.Hi, f.half, upper = x.Hi, p+x.half-q, fmt.Sprintf("; its upper end is that of p%v", 100*p)
		case p < q && x.Lo > max(0, f.Lo):
			f.Lo, own, lower = x.Lo, late, fmt.Sprintf("; its lower end is that of p%v", 100*p)
		}
	}
	switch {
	case upper+lower != "" && f.verdict != "":
		f.verdict, f.Lo, f.how = "", max(0, f.Lo), unit.Count(h.Count(), "call")
	case upper != "":
		f.how = strings.TrimSuffix(f.how, unbounded)
	}
	f.how += lower + upper
	return f, own
}

// ownInterval is a quantile with its interval by itself: that of independent calls, between order statistics, with
// fewer calls than there were: as many as their windows tell to be independent (the design effect: Kish, Survey
// Sampling, section 8.2).
func (s *soak) ownInterval(b *budget.Budget, h *hist.Histogram, q float64) (f finding, own float64) {
	if q >= tailFrom {
		return s.tailFinding(b, h, q)
	}
	v := h.Quantile(q) / 1e9
	effect, n, why := s.designEffect(b.Operation, q)
	if why != "" {
		return withoutInterval(v, why), 0
	}
	calls := float64(h.Count())
	half := z * math.Sqrt(q*(1-q)*effect/calls)
	if q-half <= 0 && q+half >= 1 {
		return withoutInterval(v, fmt.Sprintf("%s are too few for one", unit.Count(h.Count(), "call"))), 0
	}
	f = finding{
		Interval: budget.Interval{Value: v, Lo: 0, Hi: math.Inf(1)}, half: half,
		how: fmt.Sprintf("%d calls in %s, which tell as much as %.0f independent ones, interval at %s", h.Count(),
			unit.Count(n, "window"), calls/effect, percent(level)),
	}
	if q-half > 0 {
		f.Lo, own = h.Quantile(q-half)/1e9, s.own(b.Operation).atMost(h, q-half)
	}
	if q+half < 1 {
		f.Hi = h.Quantile(q+half) / 1e9
	} else {
		f.how += unbounded
	}
	return f, own
}

// designEffect is how many calls count as one, at least 1: the variance of the mean of the windows' quantiles over what
// it would be if calls did not depend on each other. It is found at the nearest quantile that windows keep, or at a
// lower one where they have too few calls for that. n counts the windows.
func (s *soak) designEffect(operation string, q float64) (effect float64, n int, why string) {
	if q >= 0.75 {
		if effect, n, why = s.designEffectAt(operation, "p90", 0.9); why == "" {
			return effect, n, why
		}
	}
	return s.designEffectAt(operation, "p50", 0.5)
}

// designEffectAt is that at one quantile that windows keep.
func (s *soak) designEffectAt(operation, name string, at float64) (effect float64, n int, why string) {
	e, why := s.mean(operation, metric.Response.Name, name)
	if why != "" {
		return 0, 0, why
	}
	h := s.histogramsOf(operation)[record.Response]
	if h == nil || h.Count() == 0 {
		return 0, 0, "no response times were kept"
	}
	step := (1 - at) / 2
	sparsity := (h.Quantile(at+step) - h.Quantile(at-step)) / 1e9 / (2 * step) // 1 ÷ density
	independent := at * (1 - at) * sparsity * sparsity / float64(h.Count())
	se := (e.Hi - e.Lo) / 2 / z
	if !(independent > 0) {
		return 1, e.N, ""
	}
	return max(1, se*se/independent), e.N, ""
}

// unfinished takes back what a part of a run cannot promise for the whole: a budget that is broken already stays
// broken.
func (a *analysis) unfinished(b report.Budget, s *soak) report.Budget {
	if b.Verdict == report.Pass && !s.whole() {
		b.Verdict = report.Inconclusive
		b.Reason = fmt.Sprintf(
			"kept so far, over %s of the %s that were planned; %s", span(s.seconds()), span(a.rec.Plan.Load.Duration), b.Reason,
		)
	}
	return b
}

// ownDoubt says so where only the generator's own delay may have broken a budget.
func ownDoubt(b report.Budget, limit *budget.Budget, f *finding) report.Budget {
	if b.Verdict == report.Inconclusive && f.own > 0 && f.how != runInvalid &&
		budget.Decide(*limit, f.asSeen()) == budget.Fail {
		b.Reason = "it is broken as measured, but that may be the generator's own delay; " + b.Reason
	}
	return b
}

// asSeen is the interval before the generator's own delay was allowed for.
func (f *finding) asSeen() budget.Interval {
	x := f.Interval
	x.Lo += f.own
	return x
}
