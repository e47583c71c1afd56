package analyze

import (
	"math"
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/report"
)

// A tally is what became of the calls of one operation.
type tally struct {
	outcomes        report.Outcomes
	causes          causes
	due, sent, good float64 // within the window
}

// A timeOf is a time of a call; ok is false for a call that has none, open if it had not ended.
type timeOf func(c *load.Call, open bool) (d time.Duration, ok bool)

func responseOf(c *load.Call, open bool) (time.Duration, bool) { return c.Response(), !open }
func serviceOf(c *load.Call, open bool) (time.Duration, bool) {
	return c.Service(), !open && c.Sent > 0
}
func waitOf(c *load.Call, _ bool) (time.Duration, bool) { return c.PoolWait(), c.Ready > 0 }

// A column is one time of each call: 8 bytes, where a call takes 56.
type column []time.Duration

// quantile is the nearest-rank quantile of a column in ascending order that is not empty, in seconds.
func (c column) quantile(q float64) float64 {
	return c[max(int(math.Ceil(q*float64(len(c))-1e-9)), 1)-1].Seconds()
}

// distribution sums up the times; nil if there are none. It sorts c.
func (c column) distribution() *report.Distribution {
	slices.Sort(c)
	return distributionOf(len(c), func(i int) float64 { return c[i].Seconds() })
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
	if t.causes == nil {
		t.causes = causes{}
	}
	t.causes.add(c, own)
	*field(&t.outcomes, c.Outcome)++
	if c.Outcome == load.Timeout && c.Unsent() {
		t.outcomes.Unsent++
	}
}

// operation is the tally as reports have it, without its times.
func (t *tally) operation(seconds float64) report.Operation {
	op := report.Operation{Outcomes: t.outcomes, Causes: t.causes.list()}
	if seconds > 0 {
		offered, achieved, good := t.due/seconds, t.sent/seconds, t.good/seconds
		op.Offered, op.Achieved, op.Goodput = &offered, &achieved, &good
	}
	return op
}

// distribution sums up times in seconds; nil if there are none. It sorts v.
func distribution(v []float64) *report.Distribution {
	slices.Sort(v)
	return distributionOf(len(v), func(i int) float64 { return v[i] })
}

// distributionOf sums up n times, which at gives in ascending order; nil if there are none. A quantile is by the
// nearest rank, ⌈q·n⌉. Below 1/(1−q) values it would repeat the maximum and is absent.
func distributionOf(n int, at func(i int) float64) *report.Distribution {
	if n == 0 {
		return nil
	}
	d := &report.Distribution{N: uint64(n), Min: at(0), Max: at(n - 1)}
	for i := range n {
		d.Mean += at(i) / float64(n)
	}
	if n > 1 {
		sum := 0.0
		for i := range n {
			x := at(i)
			sum += (x - d.Mean) * (x - d.Mean)
		}
		d.Stddev = new(math.Sqrt(sum / float64(n-1)))
	}
	quantile := func(q float64) *float64 {
		if !enough(n, q) {
			return nil
		}
		return new(at(max(int(math.Ceil(q*float64(n)-1e-9)), 1) - 1))
	}
	d.P50, d.P90, d.P95, d.P99, d.P999 = quantile(.5), quantile(.9), quantile(.95), quantile(.99), quantile(.999)
	return d
}

// enough reports whether n values tell their quantile q from their maximum. 1/(1−q) is rounded, since 1−0.9 is not 0.1 in binary.
func enough(n int, q float64) bool { return float64(n) >= math.Round(1/(1-q)) }
