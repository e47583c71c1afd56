package montecarlo

import (
	"math"
	"slices"

	"tare/internal/stat"
)

// BlockValue is a way to compare two arms within a block: the logarithm of treated/base, NaN for none.
type BlockValue struct {
	Name string
	of   func(base, treated *armBlock) float64
}

// RelativeMedians is the way that tare uses for the median.
func RelativeMedians() BlockValue {
	return BlockValue{
		"**ratio of medians of all calls, relative to the lower of their round's turn medians**",
		func(x, y *armBlock) float64 {
			v, _ := stat.RoundRatio(x.calls, y.calls)
			return v
		},
	}
}

// MedianValues are ways to compare medians.
func MedianValues() []BlockValue {
	return []BlockValue{
		RelativeMedians(),
		{"the same, relative to the mean of their round's turn medians", relativeToMean},
		{"ratio of medians of all calls", func(x, y *armBlock) float64 { return pooledRatio(x, y, 0.5) }},
		{"median over rounds of log ratios of turn medians", func(x, y *armBlock) float64 {
			return stat.Median(ratios(x.medians, y.medians))
		}},
		{"mean of these, 25 % trimmed", func(x, y *armBlock) float64 {
			return trimmed(ratios(x.medians, y.medians), 0.25)
		}},
		{"mean of these", func(x, y *armBlock) float64 { return stat.Mean(ratios(x.medians, y.medians)) }},
		{"ratio of medians of turn medians", func(x, y *armBlock) float64 {
			return math.Log(stat.Median(y.medians) / stat.Median(x.medians))
		}},
	}
}

// MeanOfAll is the way that tare uses for the mean.
func MeanOfAll() BlockValue {
	return BlockValue{"**ratio of means of all calls**", func(x, y *armBlock) float64 {
		return math.Log(stat.Mean(y.pooled) / stat.Mean(x.pooled))
	}}
}

// MeanValues are ways to compare means.
func MeanValues() []BlockValue {
	return []BlockValue{
		MeanOfAll(),
		{"mean over rounds of log ratios of turn means", func(x, y *armBlock) float64 {
			return stat.Mean(ratios(x.means, y.means))
		}},
		{"the same, 25 % trimmed", func(x, y *armBlock) float64 { return trimmed(ratios(x.means, y.means), 0.25) }},
		{"median over rounds of log ratios of turn means", func(x, y *armBlock) float64 {
			return stat.Median(ratios(x.means, y.means))
		}},
	}
}

// ratios are log ratios by round.
func ratios(x, y []float64) []float64 {
	d := make([]float64, len(x))
	for r := range d {
		d[r] = math.Log(y[r] / x[r])
	}
	return d
}

// trimmed is the mean without the share of the smallest values and as many of the largest.
func trimmed(d []float64, part float64) float64 {
	s := slices.Sorted(slices.Values(d))
	k := int(part * float64(len(s)))
	return stat.Mean(s[k : len(s)-k])
}

func pooledRatio(x, y *armBlock, q float64) float64 {
	if q == 0.5 {
		return math.Log(stat.SortedMedian(y.pooled) / stat.SortedMedian(x.pooled))
	}
	return math.Log(stat.SortedQuantile(y.pooled, q) / stat.SortedQuantile(x.pooled, q))
}

// relativeToMean is the ratio of medians of all calls, each divided by the geometric mean of its round's turn medians.
func relativeToMean(x, y *armBlock) float64 {
	var of [2][]float64
	for r := range x.calls {
		level := math.Sqrt(x.medians[r] * y.medians[r])
		for k, b := range []*armBlock{x, y} {
			for _, v := range b.calls[r] {
				of[k] = append(of[k], v/level)
			}
		}
	}
	return math.Log(stat.Median(of[1]) / stat.Median(of[0]))
}

// lateRules are ways to treat a late generator, all with RelativeMedians.
func lateRules() []BlockValue {
	return []BlockValue{
		{"**no rule**", RelativeMedians().of},
		{"rounds with a late call left out", func(x, y *armBlock) float64 {
			v, _ := stat.RoundRatio(onTime(x), onTime(y))
			return v
		}},
		{"blocks with 10 % late calls left out", func(x, y *armBlock) float64 {
			const most = 0.1
			if max(x.lateShare(), y.lateShare()) > most {
				return math.NaN()
			}
			return RelativeMedians().of(x, y)
		}},
	}
}

// onTime are the calls of turns without a late call, none for the others.
func onTime(b *armBlock) [][]float64 {
	out := slices.Clone(b.calls)
	for r, late := range b.late {
		if late > 0 {
			out[r] = nil
		}
	}
	return out
}

func (b *armBlock) lateShare() float64 {
	late, calls := 0, 0
	for r := range b.late {
		late, calls = late+b.late[r], calls+len(b.calls[r])
	}
	return float64(late) / float64(calls)
}
