package chart

import (
	"math"
	"slices"
)

// tick is a labelled position.
type tick struct {
	pos   float64 // of the axis, 0 to 1
	at    float64 // of a horizontal axis' label, on the page
	label string
}

// maxTicks is more than any frame can label; a list of ticks that is longer is wrong.
const maxTicks = 60

// ticks proposes at most n values inside the range, one or two more where there would be fewer than two.
func (s scale) ticks(n int) []float64 {
	n = min(max(n, 2), maxTicks)
	if fixed := s.axis.Ticks; len(fixed) > 0 {
		return s.inside(fixed[:min(len(fixed), 20*maxTicks)])
	}
	var all []float64
	for more := 0; more < 4 && len(all) < 2; more++ {
		switch {
		case s.axis.tail:
			return s.inside(s.tailTicks())
		case s.axis.Log:
			all = s.inside(s.logTicks(n + more))
		default:
			all = s.inside(s.evenTicks(n + more))
		}
	}
	return all
}

// inside returns the values that the range holds, in order and once each.
func (s scale) inside(values []float64) []float64 {
	var kept []float64
	const slack = 1e-6
	for _, v := range values {
		if s.axis.placeable(v) && s.pos(v) >= -slack && s.pos(v) <= 1+slack {
			kept = append(kept, v)
		}
	}
	slices.Sort(kept)
	return slices.Compact(kept)
}

// timeSteps are what clocks count in, in seconds.
var timeSteps = []float64{
	1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 2 * 3600, 3 * 3600, 6 * 3600, 12 * 3600, 24 * 3600,
}

// step returns the least round step that gives at most n ticks.
func (s scale) step(n int) float64 {
	span := s.hi - s.lo
	rough := span / float64(max(n-1, 1))
	if s.axis.Time && rough >= 1 && rough <= timeSteps[len(timeSteps)-1] {
		for _, step := range timeSteps {
			if step >= rough {
				return step
			}
		}
	}
	unit := 1.0
	if s.axis.Time && rough > 1 {
		unit = 24 * 3600
	}
	decade := math.Pow(10, math.Floor(math.Log10(rough/unit)))
	for _, m := range []float64{1, 2, 5} {
		if m*decade*unit >= rough*(1-1e-9) {
			return m * decade * unit
		}
	}
	return 10 * decade * unit
}

// evenTicks returns multiples of a round step. Multiplying, not adding, keeps 0.3 from becoming 0.30000000000000004.
func (s scale) evenTicks(n int) []float64 {
	step := s.step(n)
	first, last := math.Ceil(s.lo/step-1e-6), math.Floor(s.hi/step+1e-6)
	if !(last-first <= maxTicks) || step == 0 {
		return []float64{s.lo, s.hi}
	}
	var all []float64
	for i := first; i <= last && len(all) < n; i++ {
		all = append(all, tidy(i*step))
	}
	return all
}

// tidy drops the last bits of a product, so that a format that writes all digits writes 0.3, and never −0.
func tidy(v float64) float64 {
	if v == 0 || math.Abs(v) > limit || math.Abs(v) < 1/limit {
		return v + 0
	}
	scale := math.Pow(10, 12-math.Floor(math.Log10(math.Abs(v))))
	if math.IsInf(scale, 0) || scale == 0 {
		return v
	}
	if r := math.Round(v*scale) / scale; !math.IsInf(r, 0) && !math.IsNaN(r) {
		return r + 0
	}
	return v
}

// logTicks takes the densest of 1-2-5, 1-3 and powers of ten that has at most n ticks. A range within one step of them
// all is so short that even ticks serve.
func (s scale) logTicks(n int) []float64 {
	first, last := int(math.Floor(math.Log10(s.lo))), int(math.Ceil(math.Log10(s.hi)))
	every := max((last-first)/(n+1), 1)
	var best []float64
	for _, mantissas := range [][]float64{{1, 2, 5}, {1, 3}, {1}} {
		if every > 1 && len(mantissas) > 1 {
			continue
		}
		if best = s.decades(first, last, every, mantissas); len(best) <= n {
			break
		}
	}
	for len(best) > n {
		every++
		best = s.decades(first, last, every, []float64{1})
	}
	if len(best) < 3 && s.hi/s.lo < 20 {
		return s.evenTicks(n)
	}
	return best
}

// decades returns the mantissas' multiples of every so many powers of ten, counted from 1 so that 1 itself is among
// them.
func (s scale) decades(first, last, every int, mantissas []float64) []float64 {
	var all []float64
	start := int(math.Ceil(float64(first)/float64(every))) * every
	for d := start; d <= last; d += every {
		for _, m := range mantissas {
			v := tidy(m * math.Pow(10, float64(d)))
			if v >= s.lo*(1-1e-9) && v <= s.hi*(1+1e-9) && v > 0 {
				all = append(all, v)
			}
		}
	}
	return all
}

// tailTicks returns p0, p50, p90, p99, …, without those too close to the lower end.
func (s scale) tailTicks() []float64 {
	all := []float64{0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999, 0.9999999}
	if s.lo < 0.1 {
		all = append([]float64{0}, all...)
	}
	return all
}

// baseline is where the labels of a horizontal axis go: under a plot, on a page, at a font size.
type baseline struct{ left, length, page, size float64 }

// fitted chooses as many ticks as have room for their labels.
func (s scale) fitted(b baseline) []tick {
	for n := int(b.length / (2.5 * b.size)); n > 2; n-- {
		ticks := s.labelled(s.ticks(n))
		kept := b.thinned(ticks)
		if len(kept) == len(ticks) || len(s.axis.Ticks) > 0 || s.axis.tail {
			return kept
		}
	}
	return b.thinned(s.labelled(s.ticks(2)))
}

func (s scale) labelled(values []float64) []tick {
	ticks := make([]tick, len(values))
	for i, v := range values {
		ticks[i] = tick{pos: s.held(v), label: s.axis.write(v)}
	}
	return ticks
}

// gap between labels, in em.
const gap = 1.0

// thinned leaves out ticks whose labels would touch the one after: the upper end of a tail matters more than p0. A
// label wider than half of the axis is cut, and one that would leave the page is moved.
func (b baseline) thinned(ticks []tick) []tick {
	var kept []tick
	end := math.Inf(1)
	for _, t := range slices.Backward(ticks) {
		t.label = cut(t.label, b.length/2, b.size)
		half := textWidth(t.label, b.size) / 2
		t.at = min(max(b.left+t.pos*b.length, half+1), b.page-half-1)
		if t.at+half > end-gap*b.size {
			continue
		}
		end = t.at - half
		kept = append(kept, t)
	}
	slices.Reverse(kept)
	return kept
}
