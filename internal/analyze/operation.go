package analyze

import (
	"math"
	"time"

	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/report"
	"tare/internal/stat"
)

// A tally is what became of the calls of one operation.
type tally struct {
	outcomes        report.Outcomes
	causes          causes
	answers         map[string]uint64 // by their words
	due, sent, good float64           // within the window
}

// merge adds the calls of o.
func (t *tally) merge(o *tally) {
	t.due, t.sent, t.good = t.due+o.due, t.sent+o.sent, t.good+o.good
	t.outcomes.Add(&o.outcomes)
	for cause, n := range o.causes {
		t.causes.count(cause, n)
	}
	for word, n := range o.answers {
		t.answered(word, n)
	}
}

// answered counts n calls that were answered with a word; "": the target does not count such answers.
func (t *tally) answered(word string, n uint64) {
	if word == "" || n == 0 {
		return
	}
	if t.answers == nil {
		t.answers = map[string]uint64{}
	}
	t.answers[word] += n
}

// A timeOf is a time of a call; ok is false for a call that has none, open if it had not ended.
type timeOf func(c *load.Call, open bool) (d time.Duration, ok bool)

// timesOf are the times of a call in the order of metric.Response, metric.Service and metric.PoolWait.
var timesOf = [...]timeOf{
	func(c *load.Call, open bool) (time.Duration, bool) { return c.Response(), !open },
	func(c *load.Call, open bool) (time.Duration, bool) { return c.Service(), !open && c.Sent > 0 },
	func(c *load.Call, _ bool) (time.Duration, bool) { return c.PoolWait(), c.Ready > 0 },
}

// callTimes are the times of the calls of one operation, by the order of timesOf.
type callTimes [len(timesOf)]hist.Sorter

// add adds the times of a call, open if it had not ended.
func (t *callTimes) add(c *load.Call, open bool) {
	for i, of := range timesOf {
		if d, ok := of(c, open); ok {
			t[i].Add(int64(d))
		}
	}
}

// take counts what became of a call, open if it had not ended; own are the causes that its operation names.
func (t *tally) take(c *load.Call, open bool, own []string) {
	if open {
		t.outcomes.Outstanding++
		return
	}
	t.count(c, own)
}

// countDue counts a call that was due in the window.
func (t *tally) countDue(c *load.Call) {
	t.due++
	if c.Sent > 0 {
		t.sent++
	}
}

func (t *tally) count(c *load.Call, own []string) {
	t.causes.add(c, own)
	*field(&t.outcomes, c.Outcome)++
	if c.Outcome == load.Timeout && c.Unsent() {
		t.outcomes.Unsent++
	}
}

// operation is the tally as reports have it, without its times.
func (t *tally) operation(seconds float64) report.Operation {
	op := report.Operation{Outcomes: t.outcomes, Causes: t.causes.list(), Answers: t.answers}
	if seconds > 0 {
		offered, achieved, good := t.due/seconds, t.sent/seconds, t.good/seconds
		op.Offered, op.Achieved, op.Goodput = &offered, &achieved, &good
	}
	return op
}

// distributionOf sums up times; nil without any. A quantile is by the nearest rank, ⌈q·n⌉. Below 1/(1−q) values
// it would repeat the maximum and is absent.
func distributionOf(s blockSample) *report.Distribution {
	n := s.Len()
	if n == 0 {
		return nil
	}
	d := &report.Distribution{N: uint64(n), Min: stat.Ranked(1, s), Max: stat.Ranked(n, s)}
	s.each(func(v float64) { d.Mean += v / float64(n) })
	if n > 1 {
		sum := 0.0
		s.each(func(v float64) { sum += (v - d.Mean) * (v - d.Mean) })
		d.Stddev = new(math.Sqrt(sum / float64(n-1)))
	}
	quantile := func(q float64) *float64 {
		if !enough(n, q) {
			return nil
		}
		return new(stat.SampleQuantile(q, s))
	}
	d.P50, d.P90, d.P95, d.P99, d.P999 = quantile(.5), quantile(.9), quantile(.95), quantile(.99), quantile(.999)
	return d
}

// enough reports whether n values tell their quantile q from their maximum. 1/(1−q) is rounded, since 1−0.9 is not 0.1
// in binary.
func enough(n int, q float64) bool { return float64(n) >= math.Round(1/(1-q)) }
