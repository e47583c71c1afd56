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
	columns
}

// columns are the times of calls that have them.
type columns struct{ response, service, wait column }

// A column is one time of each call.
type column []time.Duration

// median is the nearest-rank median, in seconds. It sorts c, which must not be empty.
func (c column) median() float64 {
	slices.Sort(c)
	return c[(len(c)+1)/2-1].Seconds()
}

// seconds are the values in ascending order, in new storage; nil if there are none. It sorts c.
func (c column) seconds() []float64 {
	if len(c) == 0 {
		return nil
	}
	slices.Sort(c)
	out := make([]float64, len(c))
	for i, d := range c {
		out[i] = d.Seconds()
	}
	return out
}

// take counts what became of a call, open if it had not ended, and keeps its times; own are the causes that its operation names.
func (t *tally) take(c *load.Call, open bool, own []string) {
	if c.Ready > 0 {
		t.wait = append(t.wait, c.PoolWait())
	}
	if open {
		t.outcomes.Outstanding++
		return
	}
	t.count(c, own)
	t.response = append(t.response, c.Response())
	if c.Sent > 0 {
		t.service = append(t.service, c.Service())
	}
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
	if len(v) == 0 {
		return nil
	}
	slices.Sort(v)
	d := &report.Distribution{N: uint64(len(v)), Min: v[0], Max: v[len(v)-1]}
	for _, x := range v {
		d.Mean += x / float64(len(v))
	}
	if len(v) > 1 {
		sum := 0.0
		for _, x := range v {
			sum += (x - d.Mean) * (x - d.Mean)
		}
		s := math.Sqrt(sum / float64(len(v)-1))
		d.Stddev = &s
	}
	d.P50, d.P90, d.P95, d.P99, d.P999 = quantile(v, .5), quantile(v, .9), quantile(v, .95), quantile(v, .99), quantile(v, .999)
	return d
}

// quantile is the nearest-rank quantile of sorted values: the one at rank ⌈q·n⌉. Below 1/(1−q) values it would repeat the maximum and
// is absent.
func quantile(v []float64, q float64) *float64 {
	if !enough(len(v), q) {
		return nil
	}
	rank := int(math.Ceil(q*float64(len(v)) - 1e-9))
	x := v[max(rank, 1)-1]
	return &x
}

// enough reports whether n values tell their quantile q from their maximum. 1/(1−q) is rounded, since 1−0.9 is not 0.1 in binary.
func enough(n int, q float64) bool { return float64(n) >= math.Round(1/(1-q)) }
