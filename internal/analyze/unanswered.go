package analyze

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/hist"
	"tare/internal/metric"
	"tare/internal/report"
	"tare/internal/stat"
	"tare/internal/unit"
)

// A call that failed was not answered in any time, however soon it ended. When its caller would have had an answer is
// not known, only that it was not before the call ended. So what is said of times must hold in two readings: as the
// calls ended, and if those that failed were never answered. What holds in one of them only is left open.

// An ending is one time of the calls of a trial: of those that were answered well, and of those that failed.
type ending struct{ well, failed durations }

func (e *ending) all() durations { return slices.Concat(e.well, e.failed) }

// A fallible is the times of one block's calls. Where some failed, it has what they are if these were never answered.
type fallible struct {
	durations // as the calls ended; empty where only the median is kept
	// median, answered and rounds are those with stat.Never for each call that failed.
	median   float64
	answered durations
	rounds   rounds
}

// sample keeps a time of one block's calls: one by one, or only its median.
func (e *ending) sample(m *metric.Metric, t *gathered, whole bool) blockSample {
	var s fallible
	if whole {
		s.durations = e.all()
	}
	if t.unanswered == 0 || m.Name == metric.PoolWait.Name {
		return s
	}
	var never hist.Sorter
	for range t.unanswered {
		never.Add(nanoseconds(stat.Never))
	}
	answered := append(slices.Clone(e.well), never.Sorted())
	if s.median = stat.SampleQuantile(.5, answered); whole {
		s.answered = answered
	}
	if m.Name == metric.Response.Name {
		s.rounds = t.answeredRounds
	}
	return s
}

// ifNeverAnswered is the comparison in the second reading; nil if no call failed.
func (c *comparison) ifNeverAnswered() *comparison {
	d := *c.dataset
	d.measures, d.index = nil, maps.Clone(c.index)
	found := false
	for _, m := range c.measures {
		x := c.neverAnswered(m)
		found = found || x != m
		d.measures, d.index[m.key] = append(d.measures, x), x
	}
	if !found {
		return nil
	}
	d.complete()
	return &comparison{dataset: &d, margin: c.margin, gates: c.gates, alphas: c.alphas, measured: c.measured}
}

// unreadOf is how many further calls of a block nobody can read.
func (m *measure) unreadOf(block int) int {
	if m == nil || block >= len(m.unread) {
		return 0
	}
	return m.unread[block]
}

// unreadCalls is how many further calls nobody can read.
func (m *measure) unreadCalls() (n int) {
	if m == nil {
		return 0
	}
	for _, k := range m.unread {
		n += k
	}
	return n
}

// unreadFailed is a share of failed calls that counts those which nobody can read as failed, too. Where all can be
// read, it is m.
func (m *measure) unreadFailed() *measure {
	if m.unreadCalls() == 0 {
		return m
	}
	x := *m
	x.known, x.value, x.samples, x.weight = nil, slices.Clone(m.value), slices.Clone(m.samples), slices.Clone(m.weight)
	for i, v := range m.value {
		if n := float64(m.unreadOf(i)); n > 0 && isFinite(v) && i < len(m.weight) {
			x.weight[i] += n
			x.value[i] = (v*m.weight[i] + n) / x.weight[i]
			x.samples[i] = costs{stat.Values{x.value[i]}}
		}
	}
	return &x
}

// neverAnswered is m in the second reading, in which calls that nobody can read failed: m itself if no call did.
func (d *dataset) neverAnswered(m *measure) *measure {
	if m.metric.Name == metric.Error.Name {
		return m.unreadFailed()
	}
	x := *m
	x.known, x.value = nil, slices.Clone(m.value)
	x.samples, x.rounds = slices.Clone(m.samples), slices.Clone(m.rounds)
	failed, found := d.index[key{m.treatment, m.operation, metric.Error.Name}], false
	for i, s := range m.samples {
		switch s := s.(type) {
		case fallible:
			if s.median == 0 {
				continue
			}
			x.value[i], x.samples[i] = s.median, s.answered
			if s.rounds != nil && i < len(x.rounds) {
				x.rounds[i] = s.rounds
			}
			found = true
		case costs:
			each := i < len(m.weight) && m.weight[i] == float64(s.Len()) // a value is of one run
			spent := slices.Contains(spentOnCalls, m.metric.Name)
			share, unread := 0.0, m.unreadOf(i)
			if failed != nil && failed.value[i] > 0 {
				share = failed.value[i]
			}
			if spent && m.metric.Name != metric.Wall.Name {
				unread = 0 // more calls of another tool, of which it gives no cost
			}
			if !spent && m.metric.Name != metric.Service.Name || share == 0 && unread == 0 {
				continue
			}
			answered := s.neverAnswered(share)
			if run := d.unblocked && each && m.metric.Name == metric.Wall.Name; spent && !run {
				answered = s.ofAnswered(share, never(&m.metric))
			}
			answered = answered.andUnread(unread)
			x.value[i], x.samples[i], found = stat.SortedMedian(answered.Values), answered, true
		}
	}
	if !found {
		return m
	}
	return &x
}

// neverAnswered are the times of another tool's calls, or runs, of which a share failed, it is not known which: at
// worst those that took the shortest.
func (s costs) neverAnswered(share float64) costs {
	n := min(int(math.Ceil(share*float64(s.Len())-1e-9)), s.Len())
	return costs{append(slices.Clone(s.Values[n:]), slices.Repeat([]float64{stat.Never}, n)...)}
}

// andUnread are the times with those of n calls that nobody can read: they were never answered. More than nine times as
// many as the others change no more than these.
func (s costs) andUnread(n int) costs {
	return costs{append(s.Values, slices.Repeat([]float64{stat.Never}, min(n, 9*s.Len()))...)}
}

// spentOnCalls are what a batch gives as a total of its calls, those that failed among them.
var spentOnCalls = []string{
	metric.Wall.Name, metric.CPU.Name, metric.Instructions.Name, metric.Allocations.Name, metric.Allocated.Name,
}

// ofAnswered are the times or costs of batches for each call that was answered, if the share that failed took nothing;
// unanswerable if none was.
func (s costs) ofAnswered(share, unanswerable float64) costs {
	values := make(stat.Values, 0, s.Len())
	for _, v := range s.Values {
		answered := unanswerable
		if share < 1 {
			answered = min(v/(1-share), unanswerable)
		}
		values = append(values, answered)
	}
	return costs{values}
}

// A time in seconds or a change beyond these is one of calls that were never answered.
const (
	longestTime = 1e6
	mostChange  = 1e4
)

// never is what a call costs that was never answered, and longest is the cost beyond which it was not. Counts of
// instructions and bytes are larger than any time.
func never(m *metric.Metric) float64 { return stat.Never * longest(m) / longestTime }

func longest(m *metric.Metric) float64 {
	if m.Unit == metric.Seconds || m.Unit == metric.CPUSeconds {
		return longestTime
	}
	return 1e9 * longestTime
}

// alsoAnswered makes the interval of an effect on times, or on costs of batches, that of both readings.
func (c *comparison) alsoAnswered(x *contrast, base, treated string, g gate) error {
	if c.answered == nil {
		return nil
	}
	from, to := c.answered.find(base, g.operation, g.metric), c.answered.find(treated, g.operation, g.metric)
	if from == c.find(base, g.operation, g.metric) && to == c.find(treated, g.operation, g.metric) {
		return nil
	}
	y, err := c.answered.between(from, to, g.quantile, x.effect.Kind == kindDifference)
	if err != nil {
		return err
	}
	x.failed, x.unknown = c.failedUnder(g.metric, g.operation, base, treated), y.base > longest(&x.metric)
	x.asEnded, x.test, x.mean = x.test, hull(x.test, y.test), hull(x.mean, y.mean)
	return nil
}

// hull is the test of which two have the interval together: it finds an effect if both find it, on the same side.
func hull(f, g func(level float64) (stat.Test, error)) func(level float64) (stat.Test, error) {
	if f == nil || g == nil {
		return nil
	}
	return func(level float64) (stat.Test, error) {
		x, err := f(level)
		if err != nil {
			return x, err
		}
		y, err := g(level)
		if x.P = max(x.P, y.P); x.Value*y.Value < 0 {
			x.P = 1
		}
		x.Lo, x.Hi = min(x.Lo, y.Lo), max(x.Hi, y.Hi)
		return x, err
	}
}

// failedUnder says how many calls of an operation failed under each of some treatments.
func (c *comparison) failedUnder(name, operation string, treatments ...string) string {
	means, text := ", and a call that failed is not answered in any time", ""
	if slices.Contains(spentOnCalls, name) && name != metric.Wall.Name {
		means = ", and how much of the " + name + " the answered calls took is not known"
	}
	for i, id := range treatments {
		m := c.find(id, operation, metric.Error.Name)
		if m == nil && c.find(id, operation, metric.Service.Name).unreadCalls() > 0 { // the file does not say what failed
			return "some calls could not be read" + means
		}
		if m == nil { // of several operations
			return "some calls failed" + means
		}
		share := unit.Share(stat.Mean(measuredOnly(m.value)))
		if n := m.unreadCalls(); n > 0 {
			id += fmt.Sprintf(" (%s could not be read)", unit.Count(n, "more line"))
		}
		if i == 0 {
			text = share + " of the calls failed under " + id
		} else {
			text += " and " + share + " under " + id
		}
	}
	return text + means
}

// unbounded reports whether so many calls failed that an effect on times has no bound.
func (c *contrast) unbounded() bool {
	most := longest(&c.metric)
	if c.effect.Kind == kindRatio {
		most = math.Log(mostChange)
	}
	return c.failed != "" && (c.unknown || max(-c.got.Lo, c.got.Hi) > most)
}

// hinges reports whether an effect is open since calls failed: they widen its interval by more than the margin, and by
// more than chance does.
func (c *contrast) hinges() bool {
	if c.failed == "" || decided(c.effect.Verdict) {
		return false
	}
	got, err := c.asEnded(c.got.Level)
	if err != nil {
		return false
	}
	alone := *c
	alone.effect.Lo, alone.effect.Hi = c.scale(got.Lo), c.scale(got.Hi)
	wider := max(got.Lo-c.got.Lo, c.got.Hi-got.Hi)
	return wider > max(c.back(c.margin), (got.Hi-got.Lo)/2) &&
		(c.effect.Verdict == report.EffectInconclusive || decided(alone.verdict()))
}

func decided(v report.EffectVerdict) bool {
	return v == report.Regressed || v == report.Improved || v == report.Equivalent
}

// noteLeftOpen says which of the gating effects on a treatment are open since calls failed. Where no budget decides the
// run, that leaves it open.
func (a *analysis) noteLeftOpen(family []*contrast) {
	on := skips{}
	for _, x := range family {
		if e := &x.effect; x.unbounded() || x.hinges() {
			on.add("under "+e.Treatment+" cannot be told: "+x.failed, gate{e.Operation, e.Metric, e.Quantile})
		}
	}
	for _, why := range sortedKeys(on) {
		text := strings.Join(on[why].on, ", ") + " " + why
		if len(a.asked) > 0 {
			a.warn("", "%s", text)
			continue
		}
		a.flaws.open = append(a.flaws.open, text)
	}
}

// comparedTwice judges a budget of a comparison in both readings. It is decided where both agree.
func (a *analysis) comparedTwice(b *budget.Budget, treatment string) finding {
	c, times := a.cmp, []string{metric.Response.Name, metric.Service.Name, metric.Error.Name}
	if c.answered == nil || !slices.Contains(times, b.Metric) && !slices.Contains(spentOnCalls, b.Metric) {
		return a.compared(b, treatment)
	}
	most := longestTime
	if m, ok := metric.Find(b.Metric); ok {
		most = longest(&m)
	}
	defer func() { a.cmp = c }()
	in := func(x *comparison, b *budget.Budget, treatment string) finding {
		a.cmp = x
		return a.compared(b, treatment)
	}
	asEnded, of := *c, []string{treatment}
	asEnded.answered = nil
	f, g := in(&asEnded, b, treatment), in(c.answered, b, treatment)
	if f.why != "" {
		return f
	}
	if b.Limit.Against != budget.Absolute {
		i := slices.IndexFunc(c.arms, func(t design.Treatment) bool { return t.ID == treatment })
		base, _ := c.baselineOf(&c.arms[i])
		own := *b
		if own.Limit.Against = budget.Absolute; in(c.answered, &own, base.ID).Value > most {
			g.why = "no time is known of the baseline"
		}
		of = []string{base.ID, treatment}
	}
	if g.why != "" {
		g.Interval, g.verdict = budget.Interval{Lo: math.Inf(-1), Hi: math.Inf(1)}, report.Inconclusive
	}
	if b.Limit.Against == budget.Ratio {
		most = mostChange
	}
	lo, hi := min(f.Lo, g.Lo), max(f.Hi, g.Hi)
	if hi > most {
		hi = math.Inf(1)
	}
	if max(f.Lo-lo, hi-f.Hi) > (f.Hi-f.Lo)/2 {
		f.how, _, _ = strings.Cut(f.how, "; about ") // no number of blocks decides what failed calls leave open
	}
	if lo != f.Lo || hi != f.Hi || c.find(treatment, b.Operation, b.Metric).unreadCalls() > 0 {
		f.how += "; " + c.failedUnder(b.Metric, b.Operation, of...)
	}
	if f.Lo, f.Hi = lo, hi; f.verdict != g.verdict {
		f.verdict = report.Inconclusive
	}
	return f
}
