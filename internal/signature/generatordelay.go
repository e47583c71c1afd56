package signature

import (
	"iter"
	"math"
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
)

// WithoutDelays returns what is left of the response times of the calls that have ended without delay by the generator,
// in seconds and ascending: a quantile of the response times less the same quantile of these bounds how much of it is
// the generator's own. A call is delayed by its own lateness or, in a queue, by calls before it that were late, for as
// long as these were in flight after it was due; and never by more than its response exceeds the fastest without
// lateness. The bound holds, to 0.1 ms, for targets that serve calls in the order of their arrival.
func WithoutDelays(calls iter.Seq[*load.Call]) []float64 {
	var delays delayed
	fastest := math.Inf(1)
	left := secondsOf(calls, func(c *load.Call) time.Duration {
		r := c.Response()
		fastest = min(fastest, max(0, r-c.Lateness()).Seconds())
		return r - delays.of(c)
	})
	for i := range left {
		left[i] = max(left[i], fastest)
	}
	slices.Sort(left)
	return left
}

// secondsOf returns a time of each call that has ended.
func secondsOf(calls iter.Seq[*load.Call], of func(*load.Call) time.Duration) []float64 {
	n := 0
	for c := range calls {
		if c.Done != 0 {
			n++
		}
	}
	out := make([]float64, 0, n) // they are many: see Ends
	for c := range calls {
		if c.Done != 0 {
			out = append(out, of(c).Seconds())
		}
	}
	return out
}

// Own returns an upper bound of how much of a quantile of the response times, in seconds, is the generator's own; 0
// where no call has ended.
func Own(calls iter.Seq[*load.Call], q float64) float64 {
	response := secondsOf(calls, (*load.Call).Response)
	if len(response) == 0 {
		return 0
	}
	slices.Sort(response)
	return max(0, stat.SortedQuantile(response, q)-stat.SortedQuantile(WithoutDelays(calls), q))
}

// delayed are the late calls that may still delay others.
type delayed struct{ calls []delay }

type delay struct{ own, done time.Duration }

// of returns by how much the generator may have delayed a call, and keeps that for those that come after it.
func (d *delayed) of(c *load.Call) time.Duration {
	own := c.Lateness()
	kept := d.calls[:0]
	for _, x := range d.calls {
		if x.done <= c.Intended {
			continue
		}
		own = max(own, min(x.own, x.done-c.Intended))
		kept = append(kept, x)
	}
	d.calls = kept
	own = min(own, c.Response())
	if own < shortest {
		return own
	}
	d.calls = slices.DeleteFunc(d.calls, func(x delay) bool { return x.own <= own && x.done <= c.Done })
	last := len(d.calls) - 1
	if last+1 < mostDelays {
		d.calls = append(d.calls, delay{own, c.Done})
	} else {
		d.calls[last] = delay{max(own, d.calls[last].own), max(c.Done, d.calls[last].done)}
	}
	return own
}

const (
	// shortest is the delay from which on calls behind a late one are delayed as well.
	shortest = 100 * time.Microsecond
	// mostDelays bounds the late calls that are kept one by one; more of them count as the worst of them.
	mostDelays = 256
)
