package drive

import (
	"maps"
	"math"
	"slices"

	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/record"
)

// slice summarizes the calls that ended between two marks.
func slice(ops []load.Operation, taken []load.Cell, from, to mark) record.Slice {
	a, b := from.progress, to.progress
	s := record.Slice{
		Start: from.at, End: to.at, Due: b.Due - a.Due, Sent: b.Sent - a.Sent,
		Unsendable: b.UnsentTimeouts - a.UnsentTimeouts,
		CPU:        microseconds(to.cpu - from.cpu),
	}
	var late hist.Histogram
	for op := range ops {
		var mine []load.Cell
		for _, c := range taken {
			if c.Operation == op {
				mine = append(mine, c)
				late.Merge(c.Lateness)
			}
		}
		if len(mine) > 0 {
			s.Operations = append(s.Operations, sliceOperation(ops[op].Name, mine))
		}
	}
	if late.Count() > 0 {
		s.LatenessP50, s.LatenessP99 = quantile(&late, 0.5), quantile(&late, 0.99)
		s.LatenessMax = seconds(float64(late.Max()))
	}
	return s
}

func sliceOperation(name string, cells []load.Cell) record.SliceOperation {
	o := record.SliceOperation{Operation: name}
	response, service := mergeOutcomes(cells)
	for _, c := range cells {
		o.BytesIn += c.BytesIn
		o.BytesOut += c.BytesOut
		o.Outcomes = append(o.Outcomes, record.SliceOutcome{
			Outcome: c.Outcome, Count: c.Response.Count(), Unsent: c.Unsent,
			Causes: c.Causes,
		})
	}
	o.Mean, o.Max = seconds(response.Mean()), seconds(float64(response.Max()))
	o.P50, o.P90, o.P99 = quantile(response, 0.5), quantile(response, 0.9), quantile(response, 0.99)
	if service.Count() > 0 {
		o.Service = seconds(service.Mean())
	}
	return o
}

// mergeOutcomes merges the response and service times of all outcomes. Usually there is one, which needs no copy.
func mergeOutcomes(cells []load.Cell) (response, service *hist.Histogram) {
	if len(cells) == 1 {
		return cells[0].Response, cells[0].Service
	}
	response, service = &hist.Histogram{}, &hist.Histogram{}
	for _, c := range cells {
		response.Merge(c.Response)
		service.Merge(c.Service)
	}
	return response, service
}

// quantile is in seconds; 0 if its rank is that of the maximum.
func quantile(h *hist.Histogram, q float64) float64 {
	if n := float64(h.Count()); math.Ceil(q*n) >= n {
		return 0
	}
	return seconds(h.Quantile(q))
}

// seconds rounds to whole nanoseconds: clocks are not more precise, and the digits would be half of a day's record.
func seconds(ns float64) float64 { return math.Round(ns) / 1e9 }

func microseconds(s float64) float64 { return math.Round(s*1e6) / 1e6 }

// cells sums what is taken from a stream, slice by slice.
type cells struct{ sum map[cellKey]*load.Cell }

type cellKey struct {
	operation int
	outcome   load.Outcome
}

// add adds the cells, and keeps them.
func (c *cells) add(taken []load.Cell) {
	if c.sum == nil {
		c.sum = map[cellKey]*load.Cell{}
	}
	for i := range taken {
		key := cellKey{taken[i].Operation, taken[i].Outcome}
		if have := c.sum[key]; have != nil {
			have.Merge(&taken[i])
		} else {
			c.sum[key] = &taken[i]
		}
	}
}

// take returns the sums, in order, and resets them.
func (c *cells) take() []load.Cell {
	keys := slices.SortedFunc(maps.Keys(c.sum), func(a, b cellKey) int {
		return (a.operation-b.operation)*load.Outcomes + int(a.outcome) - int(b.outcome)
	})
	var out []load.Cell
	for _, k := range keys {
		out = append(out, *c.sum[k])
	}
	c.sum = nil
	return out
}
