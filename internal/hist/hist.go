// Package hist keeps distributions of non-negative integers, usually nanoseconds, in log-linear arrays that merge
// exactly.
package hist

import (
	"math"
	"math/bits"
)

// subBits is the number of bits that distinguish values within one octave: with 2^8 cells an octave, the middle of a
// cell is within 1/512 (0.2 %) of every value in it.
const subBits = 8

const cells = (64 - subBits) << subBits

// A Histogram counts values. The zero value is empty and ready. It is not safe for concurrent use: keep one per shard
// and merge.
type Histogram struct {
	counts     []uint64 // up to the largest cell used
	few        *few     // instead of counts; see Compact
	n          uint64
	sum, sum2  float64
	minV, maxV int64
}

// Record counts v; a negative v counts as 0.
func (h *Histogram) Record(v int64) {
	v = max(v, 0)
	if i := cell(v); i < len(h.counts) {
		h.counts[i]++
	} else {
		h.add(i, 1)
	}
	if h.n == 0 || v < h.minV {
		h.minV = v
	}
	h.n++
	h.maxV = max(h.maxV, v)
	f := float64(v)
	h.sum += f
	h.sum2 += f * f
}

// RecordN counts v n times, for distributions from other sources.
func (h *Histogram) RecordN(v int64, n uint64) {
	if n == 0 {
		return
	}
	h.Record(v)
	v = max(v, 0)
	h.add(cell(v), n-1)
	h.n += n - 1
	f := float64(v)
	h.sum += f * float64(n-1)
	h.sum2 += f * f * float64(n-1)
}

// add counts n values in cell i.
func (h *Histogram) add(i int, n uint64) {
	if h.few != nil {
		if h.few.add(i, n); h.few.many() {
			h.spread()
		}
		return
	}
	if i >= len(h.counts) {
		h.grow(i)
	}
	h.counts[i] += n
}

// grow rounds up to whole octaves, so that it is rarely called.
func (h *Histogram) grow(i int) {
	grown := make([]uint64, min(cells, (i>>subBits+2)<<subBits))
	copy(grown, h.counts)
	h.counts = grown
}

// cell returns the index of v's cell: exact below 2^subBits, then 2^subBits cells an octave.
func cell(v int64) int {
	u := uint64(v)
	e := bits.Len64(u >> subBits)
	if e == 0 {
		return int(u)
	}
	e--
	return (e+1)<<subBits + int(u>>e)&(1<<subBits-1)
}

// bounds returns the smallest value of cell i and the number of values in it.
func bounds(i int) (lo, width int64) {
	e := i >> subBits
	if e == 0 {
		return int64(i), 1
	}
	e--
	return int64(1<<subBits|i&(1<<subBits-1)) << e, 1 << e
}

// Merge adds the values of o. The result is the same in any order of merging.
func (h *Histogram) Merge(o *Histogram) {
	if o == nil || o.n == 0 {
		return
	}
	if h.few == nil && len(o.counts) > len(h.counts) {
		h.grow(len(o.counts) - 1)
	}
	o.each(func(i int, c uint64) bool {
		h.add(i, c)
		return true
	})
	if h.n == 0 || o.minV < h.minV {
		h.minV = o.minV
	}
	h.n += o.n
	h.maxV = max(h.maxV, o.maxV)
	h.sum += o.sum
	h.sum2 += o.sum2
}

// Count returns how many values were recorded.
func (h *Histogram) Count() uint64 { return h.n }

// Min returns the smallest value, exactly; 0 when empty.
func (h *Histogram) Min() int64 { return h.minV }

// Max returns the largest value, exactly; 0 when empty.
func (h *Histogram) Max() int64 { return h.maxV }

// Mean returns the exact mean; NaN when empty.
func (h *Histogram) Mean() float64 {
	if h.n == 0 {
		return math.NaN()
	}
	return h.sum / float64(h.n)
}

// Stddev returns the standard deviation with n − 1; NaN below two values.
func (h *Histogram) Stddev() float64 {
	if h.n < 2 {
		return math.NaN()
	}
	n := float64(h.n)
	return math.Sqrt(max(0, (h.sum2-h.sum*h.sum/n)/(n-1)))
}

// Quantile returns the value at rank ⌈q·n⌉ (nearest rank), to within 0.2 %; NaN when empty. q is clamped to 0…1.
func (h *Histogram) Quantile(q float64) float64 {
	if h.n == 0 {
		return math.NaN()
	}
	rank := max(1, uint64(math.Ceil(min(max(q, 0), 1)*float64(h.n))))
	if rank >= h.n {
		return float64(h.maxV)
	}
	var seen uint64
	at := float64(h.maxV)
	h.each(func(i int, c uint64) bool {
		if seen += c; seen < rank {
			return true
		}
		lo, w := bounds(i)
		at = min(max(float64(lo)+float64(w-1)/2, float64(h.minV)), float64(h.maxV))
		return false
	})
	return at
}

// Each calls f for every cell that is not empty, with the middle of its values and its count, ascending.
func (h *Histogram) Each(f func(value int64, count uint64)) {
	h.each(func(i int, c uint64) bool {
		lo, w := bounds(i)
		f(lo+(w-1)/2, c)
		return true
	})
}
