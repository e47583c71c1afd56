package analyze

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tare/internal/budget"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/report"
	"tare/internal/stat"
	"tare/internal/unit"
)

// A drift is judged against driftMargin of the value at the beginning, over the time that was measured. Below
// fewestWindows there is none.
const (
	driftMargin   = 0.05
	fewestWindows = 20
)

// driftSeed makes a record give the same intervals every time.
const driftSeed = 20260301

// restAfter is for how long windows are left out after a restart: a new process warms up again, as the first one did.
func (s *soak) restAfter() time.Duration {
	if s.first == 0 || s.first >= len(s.slices) {
		return 0
	}
	return s.slices[s.first].Start - s.origin
}

// drifts are the trends of an operation, or of all of them and of the target.
func (s *soak) drifts(operation string) map[string]report.Drift {
	out := map[string]report.Drift{}
	add := func(key, name, quantile string) {
		if d, ok := s.drift(operation, name, quantile); ok {
			out[key] = d
		}
	}
	add("response.mean", metric.Response.Name, "mean")
	add("response.p99", metric.Response.Name, "p99")
	if operation == "" {
		add(metric.CPU.Name, metric.CPU.Name, "")
		add(probe.RSS.Name, probe.RSS.Name, "")
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

// drift is the trend of one metric; ok is false if no window has it.
func (s *soak) drift(operation, name, quantile string) (d report.Drift, ok bool) {
	c := s.trending(operation, name, quantile)
	if c == nil || len(c.value) == 0 {
		return d, false
	}
	d = c.drift(s.seconds())
	for _, at := range []*float64{d.JumpedAt, d.ChangedFrom, d.ChangedTo} {
		if at != nil {
			*at += s.at(s.slices[s.first].Start)
		}
	}
	known := d.Lo != nil || d.Jumped()
	if why := s.whyNoTrend(name); why != "" && known && (s.short() || d.Verdict != report.Equivalent) {
		d.Verdict, d.Reason = report.EffectInconclusive, why
	}
	return d, true
}

// trending is the course in which a metric's trend is looked for; nil: it is not known window by window.
func (s *soak) trending(operation, name, quantile string) *course {
	m, of := s.find(operation, name, quantile)
	if of == nil {
		return nil
	}
	c := s.course(m, quietWindows, of)
	if name == probe.RSS.Name || name == probe.HeapUsed.Name {
		return c.withoutShort() // a new process begins with memory of its own
	}
	return c.oneStretch()
}

// trendOfShare is the interval that so many calls, or so many events where few stretches of windows have any, can tell
// of the trend of a share an hour: windows in which no call failed do not vary. No share is below 0, which bounds its
// slope by its mean.
func (c *course) trendOfShare(perHour float64) budget.Interval {
	k, n := c.counted()
	mean := k / n
	hi := c.share(budget.Interval{Value: mean, Lo: mean, Hi: mean}, level).Hi
	if _, equal, rare := c.events(); rare {
		n *= min(1, equal/k)
	}
	middle, total := 0.0, 0.0
	for i, t := range c.hours {
		middle, total = middle+t*c.weight[i], total+c.weight[i]
	}
	middle /= total
	spread := 0.0
	for i, t := range c.hours {
		spread += c.weight[i] * (t - middle) * (t - middle) / total
	}
	half := z * math.Sqrt(hi*(1-hi)/n/spread)
	return budget.Interval{
		Value: perHour,
		Lo:    min(perHour, max(perHour-half, -hi/(slices.Max(c.hours)-middle))),
		Hi:    max(perHour, min(perHour+half, hi/(middle-slices.Min(c.hours)))),
	}
}

// short reports whether too little was measured to tell a trend from its absence. All of a plan that was long enough is
// enough, although its windows may end some seconds early or late.
func (s *soak) short() bool {
	least := budget.LeastTrend.Seconds()
	return s.seconds() < least && !(s.planned >= least && s.whole())
}

// whyNoTrend says why a slope, whatever its interval, is no trend of the target; empty: it may be one.
func (s *soak) whyNoTrend(name string) string {
	if s.short() {
		return fmt.Sprintf(
			"over less than %s the slow waves of a host, and a program that is still filling its caches, look like a trend",
			span(budget.LeastTrend.Seconds()),
		)
	}
	return s.moved(name)
}

// drift estimates and judges the trend over so many seconds.
func (c *course) drift(seconds float64) report.Drift {
	d := report.Drift{
		Unit: c.metric.Unit, Margin: driftMargin, Level: level, N: len(c.value), Verdict: report.EffectInconclusive,
	}
	if len(c.value) < fewestWindows {
		d.Level = 0
		d.Reason = fmt.Sprintf("%s that can be used: a trend needs %d", unit.Count(len(c.value), "window"), fewestWindows)
		return d
	}
	fit, err := stat.Drift(
		c.hours, c.value, stat.DriftOptions{Level: level, Stretch: c.stretch, Weight: c.weight, Seed: driftSeed},
	)
	if err != nil {
		d.Level = 0
		d.Reason = err.Error()
		return d
	}
	d.PerHour, d.Lo, d.Hi = fit.Value, finite(fit.Lo), finite(fit.Hi)
	hours := seconds / time.Hour.Seconds()
	d.Start, d.Total = fit.Intercepts[0], fit.Value*hours
	if j, ok := stat.FindJump(c.hours, c.value, c.weight); ok && len(fit.Intercepts) == 1 {
		return c.jumped(d, j)
	}
	return judgeDrift(d, c.metric, hours)
}

// jumped is the trend of a series that changed from one level to another: nothing is said per hour, and what is judged
// is the change.
func (c *course) jumped(d report.Drift, j stat.Jump) report.Drift {
	seconds := func(hours float64) *float64 { return new(time.Duration(hours * float64(time.Hour)).Seconds()) }
	d.ChangedFrom, d.ChangedTo = seconds(j.From), seconds(j.To)
	if j.AtOnce {
		d.JumpedAt = seconds(j.At)
	}
	d.Start, d.Total = j.Before, j.After-j.Before
	off := stat.StudentQuantile(0.5+level/2, float64(d.N-2)) * j.Error
	d.Lo, d.Hi, d.PerHour = new(d.Total-off), new(d.Total+off), 0
	d = judgeDrift(d, c.metric, 1)
	d.Lo, d.Hi, d.Level = nil, nil, 0
	d.Reason = "it changed from one level to another and hardly besides: no change per hour follows from that"
	return d
}

// judgeDrift gives the verdict: by the change over what was measured relative to the value at its beginning.
func judgeDrift(d report.Drift, m metric.Metric, hours float64) report.Drift {
	lo, hi := *d.Lo, *d.Hi
	if m.Better == metric.Higher {
		lo, hi = -hi, -lo
	}
	share := hours / d.Start
	known := d.Start > 0 && isFinite(share)
	switch {
	case known && lo*share > d.Margin:
		d.Verdict = report.Regressed
	case known && hi*share < -d.Margin:
		d.Verdict = report.Improved
	case known && lo*share >= -d.Margin && hi*share <= d.Margin:
		d.Verdict = report.Equivalent
		if lo > 0 || hi < 0 {
			d.Reason = "it differs from 0, by less than that over what was measured"
		}
	case lo > 0:
		d.Verdict = report.Slower
	case hi < 0:
		d.Verdict = report.Faster
	}
	return d
}
