package analyze

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"tare/internal/hist"
	"tare/internal/stat"
)

// TestDurationsAreTheirSeconds: the times of calls, kept as nanoseconds and by operation, answer as one sorted list of
// their seconds, to the last digit.
func TestDurationsAreTheirSeconds(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		bound := rapid.SampledFrom([]int64{5, 1e6, 1e10, 1e16, 8e18}).Draw(t, "bound")
		var want costs
		var got durations
		for range rapid.IntRange(1, 3).Draw(t, "operations") {
			var s hist.Sorter
			for _, v := range rapid.SliceOfN(rapid.Int64Range(-bound, bound), 0, 300).Draw(t, "times") {
				s.Add(v)
				want.Values = append(want.Values, time.Duration(v).Seconds())
			}
			got = append(got, s.Sorted())
		}
		slices.Sort(want.Values)
		for _, q := range []float64{0, .01, .5, .9, .99, 1} {
			x, y := stat.SampleQuantile(q, got), stat.SortedQuantile(want.Values, q)
			if math.Float64bits(x) != math.Float64bits(y) && !math.IsNaN(y) {
				t.Fatalf("the quantile %v is %v, want %v", q, x, y)
			}
		}
		if x, y := summarize(got, "mean"), stat.Mean(want.Values); x != y && !math.IsNaN(y) {
			t.Fatalf("the mean is %v, want %v", x, y)
		}
		lo, hi := want.beside(t), want.beside(t)
		within := func(s blockSample) (in []float64) {
			s.Within(lo, hi, func(v float64) { in = append(in, v) })
			slices.Sort(in)
			return in
		}
		if got.AtMost(lo) != want.AtMost(lo) || (lo <= hi && !slices.Equal(within(got), within(want))) {
			t.Fatalf("from %v to %v: %v, want %v", lo, hi, within(got), within(want))
		}
	})
}

// beside is a value at or beside one of s.
func (s costs) beside(t *rapid.T) float64 {
	if len(s.Values) == 0 {
		return 0
	}
	v := s.Values[rapid.IntRange(0, len(s.Values)-1).Draw(t, "value")]
	return rapid.SampledFrom([]float64{v, math.Nextafter(v, 9e18), math.Nextafter(v, -9e18)}).Draw(t, "bound")
}

// TestPooledDurationsAreTheirSeconds: quantiles that are pooled over blocks are the same of both, to the last digit.
func TestPooledDurationsAreTheirSeconds(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	var want, got []stat.Sample
	for range 20 {
		var v stat.Values
		parts := durations{}
		for range 2 {
			var s hist.Sorter
			for range 3000 {
				ns := int64(1e6 * math.Exp(r.NormFloat64()))
				s.Add(ns)
				v = append(v, time.Duration(ns).Seconds())
			}
			parts = append(parts, s.Sorted())
		}
		slices.Sort(v)
		want, got = append(want, v), append(got, parts)
	}
	for _, q := range []float64{.1, .5, .9, .99} {
		x, err := stat.PooledQuantile(got, q, .95)
		must(t, err)
		y, err := stat.PooledQuantile(want, q, .95)
		must(t, err)
		if x != y {
			t.Errorf("%v: %+v, want %+v", q, x, y)
		}
		if a, b := stat.SampleQuantile(q, got...), stat.SampleQuantile(q, want...); a != b {
			t.Errorf("%v: %v, want %v", q, a, b)
		}
	}
}
