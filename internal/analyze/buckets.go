package analyze

import (
	"cmp"
	"math"
	"slices"

	"tare/area"
)

// buckets are a histogram as a server keeps it: how many requests took at most so long, and how many there were in all.
type buckets struct {
	le    []float64 // seconds, rising
	count []uint64  // cumulative
	total uint64
}

// between is a quantile that is known to lie between the bounds of a bucket. value is NaN beyond the last bucket, where
// hi is +Inf; all are NaN if there were no requests.
type between struct{ value, lo, hi float64 }

// bucketsOf puts a histogram in order: a damaged record may hold anything.
func bucketsOf(in []area.ServedBucket, total uint64) buckets {
	sorted := slices.DeleteFunc(slices.Clone(in), func(b area.ServedBucket) bool { return !isFinite(b.LE) })
	slices.SortFunc(sorted, func(x, y area.ServedBucket) int {
		return cmp.Or(cmp.Compare(x.LE, y.LE), cmp.Compare(x.Count, y.Count))
	})
	out := buckets{total: total}
	most := uint64(0)
	for _, b := range sorted {
		most = max(most, b.Count)
		if n := len(out.le); n > 0 && out.le[n-1] == b.LE {
			out.count[n-1] = most
			continue
		}
		out.le, out.count = append(out.le, b.LE), append(out.count, most)
	}
	out.total = max(out.total, most)
	return out
}

// merge adds the requests of o. Bounds that only one of them has are given up: what the other counted up to there is
// not known.
func (b *buckets) merge(o buckets) {
	switch {
	case o.total == 0:
		return
	case b.total == 0:
		*b = buckets{le: slices.Clone(o.le), count: slices.Clone(o.count), total: o.total}
		return
	}
	sum := buckets{total: b.total + o.total}
	for i, le := range b.le {
		if k, ok := slices.BinarySearch(o.le, le); ok {
			sum.le, sum.count = append(sum.le, le), append(sum.count, b.count[i]+o.count[k])
		}
	}
	*b = sum
}

// first is the upper bound of the first bucket, 0 if there is none.
func (b *buckets) first() float64 {
	if len(b.le) == 0 {
		return 0
	}
	return b.le[0]
}

// last is the upper bound of the last bucket, 0 if there is none.
func (b *buckets) last() float64 {
	if len(b.le) == 0 {
		return 0
	}
	return b.le[len(b.le)-1]
}

// quantile is interpolated within its bucket as Prometheus' histogram_quantile does it: the requests of a bucket are
// taken to be spread evenly over it, and the lowest one to begin at 0
// (https://prometheus.io/docs/prometheus/latest/querying/functions/#histogram_quantile). Where that function would
// answer with the bound of the last bucket, the value is not known here.
func (b *buckets) quantile(q float64) between {
	if b.total == 0 || len(b.le) == 0 {
		return between{math.NaN(), math.NaN(), math.NaN()}
	}
	rank := q * float64(b.total)
	i := 0
	for i < len(b.le) && float64(b.count[i]) < rank {
		i++
	}
	if i == len(b.le) {
		return between{math.NaN(), b.last(), math.Inf(1)}
	}
	lo, below := 0.0, 0.0
	if i > 0 {
		lo, below = b.le[i-1], float64(b.count[i-1])
	}
	hi := b.le[i]
	return between{lo + (hi-lo)*(rank-below)/(float64(b.count[i])-below), lo, hi}
}
