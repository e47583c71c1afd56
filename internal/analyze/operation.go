package analyze

import (
	"math"
	"slices"

	"tare/internal/load"
	"tare/internal/report"
)

// tally gathers the calls of one operation.
type tally struct {
	outcomes                  report.Outcomes
	causes                    causes
	due, sent, good           float64 // within the window
	response, service, waited []float64
}

// add takes in c; own are the causes that its operation names.
func (t *tally) add(c *load.Call, w *window, own []string) {
	inside := w.holds(c.Intended)
	if inside {
		t.due++
	}
	if inside && c.Sent > 0 {
		t.sent++
	}
	if c.Ready > 0 {
		t.waited = append(t.waited, c.PoolWait().Seconds())
	}
	if c.Outstanding(w.read) {
		t.outcomes.Outstanding++
		return
	}
	if c.Outcome.Good() && w.holds(c.Done) {
		t.good++
	}
	t.count(c, own)
	t.response = append(t.response, c.Response().Seconds())
	if c.Sent > 0 {
		t.service = append(t.service, c.Service().Seconds())
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

func (t *tally) operation(seconds float64) report.Operation {
	op := report.Operation{
		Outcomes: t.outcomes, Response: distribution(t.response), Service: distribution(t.service), PoolWait: distribution(t.waited),
		Causes: t.causes.list(),
	}
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
