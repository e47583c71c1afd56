package analyze

import (
	"fmt"
	"math"
	"slices"

	"tare/internal/budget"
	"tare/internal/hist"
	"tare/internal/metric"
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
		return finding{
			Interval: budget.Interval{Value: math.NaN(), Lo: math.Inf(-1), Hi: math.Inf(1)}, verdict: report.Inconclusive,
			how: d.Reason,
		}
	}
	x := budget.Interval{Value: d.PerHour, Lo: *d.Lo, Hi: *d.Hi}
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
		how: fmt.Sprintf("an hour, over %s, block-bootstrap interval at %s", unit.Count(d.N, "window"),
			percent(d.Level)),
	}
}

// meanFinding is a mean over all calls, or all the time.
func (s *soak) meanFinding(b *budget.Budget) finding {
	e, why := s.mean(b.Operation, b.Metric, "")
	switch {
	case why != "" && isFinite(e.Value):
		return finding{Interval: budget.Interval{Value: e.Value, Lo: math.Inf(-1), Hi: math.Inf(1)}, how: why}
	case why != "":
		return unmeasured("%s", why)
	}
	return finding{Interval: budget.Interval{Value: e.Value, Lo: max(0, e.Lo), Hi: e.Hi}, how: basisOf(&e)}
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
	if len(c.value) == 0 {
		return e, "no probe read it"
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
		return e, fmt.Sprintf("%s are too few for an interval", unit.Count(len(c.value), "window"))
	}
	return got, ""
}

// errorFinding is the share of calls that ended badly, with at least the interval that so many calls can tell: where
// none failed, windows do not vary. Answers that the target counted otherwise than its callers may have been bad ones.
func (s *soak) errorFinding(b *budget.Budget) finding {
	ended, bad := 0.0, 0.0
	for i := range s.measured() {
		n, k := endedIn(&s.measured()[i], b.Operation)
		ended, bad = ended+n, bad+k
	}
	if ended == 0 {
		return unmeasured("no call ended")
	}
	w := wilson(bad, ended)
	e, why := s.mean(b.Operation, b.Metric, "")
	if why != "" {
		return finding{Interval: budget.Interval{Value: bad / ended, Lo: 0, Hi: 1}, how: why}
	}
	f := finding{
		Interval: budget.Interval{Value: bad / ended, Lo: max(0, min(w.Lo, e.Lo)), Hi: min(1, max(w.Hi, e.Hi))},
		how:      basisOf(&e),
	}
	if s.disputed > 0 {
		f.Hi = min(1, max(f.Hi, (bad+s.disputed)/ended))
		f.how += fmt.Sprintf("; the target's own count differs by %.0f answers, which may have been bad", s.disputed)
	}
	return f
}

// levelFinding is the highest level that was read, or the lowest for a budget from below: these are facts and have no
// interval.
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
	return finding{
		Interval: budget.Interval{Value: v, Lo: v, Hi: v}, how: fmt.Sprintf("the %s of %d readings", word, len(c.value)),
	}
}

// timeFinding is a time of calls over the whole soak, from the histogram of all of them.
func (s *soak) timeFinding(b *budget.Budget) finding {
	of := s.hists.all
	if b.Operation != "" {
		of = s.hists.per[b.Operation]
	}
	h := of[record.Measure(b.Metric)]
	if h == nil || h.Count() == 0 {
		return unmeasured("no %s times were kept", b.Metric)
	}
	switch b.Quantile {
	case "min", "max":
		v := float64(h.Max()) / 1e9
		if b.Quantile == "min" {
			v = float64(h.Min()) / 1e9
		}
		return finding{Interval: budget.Interval{Value: v, Lo: v, Hi: v}, how: fmt.Sprintf("of %d calls", h.Count())}
	case "mean":
		return s.meanTime(b, h)
	case "":
		return s.quantileFinding(b, h, 0.5)
	}
	q := fraction(b.Quantile)
	if !isFinite(q) || !enough(int(h.Count()), q) {
		return unmeasured("%d calls do not tell their %s", h.Count(), b.Quantile)
	}
	return s.quantileFinding(b, h, q)
}

// meanTime has the interval of the windows' means around the mean of all calls.
func (s *soak) meanTime(b *budget.Budget, h *hist.Histogram) finding {
	v := h.Mean() / 1e9
	e, why := s.mean(b.Operation, b.Metric, "mean")
	if why != "" {
		return finding{Interval: budget.Interval{Value: v, Lo: 0, Hi: math.Inf(1)}, how: why}
	}
	half := (e.Hi - e.Lo) / 2
	return finding{Interval: budget.Interval{Value: v, Lo: max(0, v-half), Hi: v + half}, how: basisOf(&e)}
}

// quantileFinding is a quantile of all calls. Its interval is that of independent calls, between order statistics, with
// fewer calls than there were: as many as their windows tell to be independent (the design effect: Kish, Survey
// Sampling, section 8.2).
func (s *soak) quantileFinding(b *budget.Budget, h *hist.Histogram, q float64) finding {
	v := h.Quantile(q) / 1e9
	effect, n, why := s.designEffect(b.Operation, q)
	if why != "" {
		return finding{Interval: budget.Interval{Value: v, Lo: 0, Hi: math.Inf(1)}, how: why}
	}
	calls := float64(h.Count())
	half := z * math.Sqrt(q*(1-q)*effect/calls)
	x := budget.Interval{Value: v, Lo: 0, Hi: math.Inf(1)}
	if q-half > 0 {
		x.Lo = h.Quantile(q-half) / 1e9
	}
	if q+half < 1 {
		x.Hi = h.Quantile(q+half) / 1e9
	}
	return finding{
		Interval: x,
		how: fmt.Sprintf(
			"%d calls in %s, which tell as much as %.0f independent ones, interval at %s", h.Count(), unit.Count(n, "window"),
			calls/effect, percent(level),
		),
	}
}

// designEffect is how many calls count as one, at least 1: the variance of the mean of the windows' quantiles over what
// it would be if calls did not depend on each other. It is found at the nearest quantile that windows keep. n counts
// the windows.
func (s *soak) designEffect(operation string, q float64) (effect float64, n int, why string) {
	at, name := 0.99, "p99"
	switch {
	case q < 0.75:
		at, name = 0.5, "p50"
	case q < 0.96:
		at, name = 0.9, "p90"
	}
	e, why := s.mean(operation, metric.Response.Name, name)
	if why != "" {
		return 0, 0, why
	}
	of := s.hists.all
	if operation != "" {
		of = s.hists.per[operation]
	}
	h := of[record.Response]
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
	if b.Verdict == report.Pass && !a.whole(s) {
		b.Verdict = report.Inconclusive
		b.Reason = fmt.Sprintf(
			"kept so far, over %s of the %s that were planned; %s", span(s.seconds()), span(a.rec.Plan.Load.Duration), b.Reason,
		)
	}
	return b
}
