package analyze

import (
	"math"
	"sort"
	"time"

	"tare/internal/budget"
	"tare/internal/hist"
	"tare/internal/stat"
)

// A blockSample is what one block measured of a metric, value by value.
type blockSample interface {
	stat.Sample
	// each calls f with the values in ascending order.
	each(f func(v float64))
}

// costs are the values of batches in ascending order.
type costs struct{ stat.Values }

func (s costs) each(f func(v float64)) {
	for _, v := range s.Values {
		f(v)
	}
}

// durations are the times of the calls of a trial, by operation.
type durations []*hist.Exact

// Len implements stat.Sample.
func (s durations) Len() (n int) {
	for _, part := range s {
		n += part.Len()
	}
	return n
}

// AtMost implements stat.Sample.
func (s durations) AtMost(v float64) (n int) {
	most := nanoseconds(v)
	for _, part := range s {
		n += part.AtMost(most)
	}
	return n
}

// Within implements stat.Sample.
func (s durations) Within(lo, hi float64, f func(v float64)) {
	below := nanoseconds(math.Nextafter(lo, math.Inf(-1)))
	for _, part := range s {
		part.Each(part.AtMost(below), func(ns int64) bool {
			v := time.Duration(ns).Seconds()
			if v <= hi {
				f(v)
			}
			return v <= hi
		})
	}
}

func (s durations) each(f func(v float64)) {
	hist.MergeExact(s...).Each(0, func(ns int64) bool {
		f(time.Duration(ns).Seconds())
		return true
	})
}

// nanoseconds returns the longest time that is at most v seconds. Times of centuries are not told apart.
func nanoseconds(v float64) int64 {
	const most = 9e9
	switch {
	case v >= most:
		return math.MaxInt64
	case !(v > -most):
		return math.MinInt64
	}
	guess := int64(v * 1e9)
	slack := 2 + max(guess, -guess)>>50 // for the rounding of v and of seconds
	return guess - slack - 1 + int64(sort.Search(int(2*slack), func(i int) bool {
		return time.Duration(guess-slack+int64(i)).Seconds() > v
	}))
}

// summarize is one quantile of a sample, or its mean, NaN if it has too few values.
func summarize(s blockSample, quantile string) float64 {
	if s == nil || s.Len() == 0 {
		return math.NaN()
	}
	if q, ok := budget.Fraction(quantile); ok {
		if !enough(s.Len(), q) {
			return math.NaN()
		}
		return stat.SampleQuantile(q, s)
	}
	if quantile == "mean" {
		return sampleMean(s)
	}
	return math.NaN()
}

func sampleMean(s blockSample) float64 {
	sum := 0.0
	s.each(func(v float64) { sum += v })
	return sum / float64(s.Len())
}

// measuredSamples are those of the blocks that have values.
func measuredSamples(all []blockSample) (out []stat.Sample, n int) {
	for _, s := range all {
		if s != nil && s.Len() > 0 {
			out = append(out, s)
			n += s.Len()
		}
	}
	return out, n
}
