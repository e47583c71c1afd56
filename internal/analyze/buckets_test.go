package analyze

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"tare/area"
)

func ladder(le ...float64) []area.ServedBucket {
	var out []area.ServedBucket
	for i := 0; i+1 < len(le); i += 2 {
		out = append(out, area.ServedBucket{LE: le[i], Count: uint64(le[i+1])})
	}
	return out
}

// TestBucketQuantiles: the values are what Prometheus' histogram_quantile gives for the same buckets, except beyond the
// last one.
func TestBucketQuantiles(t *testing.T) {
	t.Parallel()
	nan, inf := math.NaN(), math.Inf(1)
	same := func(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) || math.Abs(x-y) < 1e-12 }
	for _, c := range []struct {
		in    []area.ServedBucket
		total uint64
		q     float64
		want  between
	}{
		{ladder(.1, 50, .2, 90, .4, 100), 100, .5, between{.1, 0, .1}},
		{ladder(.1, 50, .2, 90, .4, 100), 100, .25, between{.05, 0, .1}},
		{ladder(.1, 50, .2, 90, .4, 100), 100, .9, between{.2, .1, .2}},
		{ladder(.1, 50, .2, 90, .4, 100), 100, .99, between{.38, .2, .4}},
		{ladder(.1, 50, .2, 90), 100, .99, between{nan, .2, inf}},
		{ladder(.1, 50, .2, 90), 100, .9, between{.2, .1, .2}},
		{ladder(.1, 0, .2, 0, .4, 8), 8, .5, between{.3, .2, .4}}, // empty buckets below
		{ladder(.2, 8, .1, 4), 8, .25, between{.05, 0, .1}},       // out of order
		// twice, and falling: what was counted stays counted
		{ladder(.1, 4, .1, 6, .2, 5), 8, .5, between{.1 * 4 / 6, 0, .1}},
		{nil, 10, .5, between{nan, nan, nan}},
		{ladder(.1, 0), 0, .5, between{nan, nan, nan}},
	} {
		b := bucketsOf(c.in, c.total)
		if got := b.quantile(c.q); !same(got.value, c.want.value) || !same(got.lo, c.want.lo) || !same(got.hi, c.want.hi) {
			t.Errorf("%v of %d at %v: %+v, want %+v", c.in, c.total, c.q, got, c.want)
		}
	}
}

// TestBucketsBoundTheTruth: the quantile of any values lies within the bounds that their buckets give, and merging is
// counting together.
func TestBucketsBoundTheTruth(t *testing.T) {
	t.Parallel()
	bounds := []float64{.005, .025, .05, .1, .2, .4, .6, .8, 1, 1.25, 1.5, 2, 3, 4, 5, 6, 8, 10, 15, 20, 30, 45, 60}
	rng := rand.New(rand.NewPCG(1, 2))
	count := func(values []float64) buckets {
		var in []area.ServedBucket
		for _, le := range bounds {
			n := uint64(0)
			for _, v := range values {
				if v <= le {
					n++
				}
			}
			in = append(in, area.ServedBucket{LE: le, Count: n})
		}
		return bucketsOf(in, uint64(len(values)))
	}
	draw := func(n int) []float64 {
		out := make([]float64, n)
		for i := range out {
			out[i] = math.Exp(rng.NormFloat64()*2 - 2)
		}
		return out
	}
	for range 200 {
		x, y := draw(1+rng.IntN(300)), draw(1+rng.IntN(300))
		sum := count(x)
		sum.merge(count(y))
		all := slices.Sorted(slices.Values(slices.Concat(x, y)))
		for _, q := range []float64{.5, .9, .99} {
			truth := all[int(math.Ceil(q*float64(len(all))-1e-9))-1]
			if b := sum.quantile(q); truth < b.lo || truth > b.hi || b.value < b.lo || b.value > b.hi {
				t.Fatalf("p%v is %v, the buckets say %+v", q*100, truth, b)
			}
		}
		if whole := count(all); !slices.Equal(whole.count, sum.count) || whole.total != sum.total {
			t.Fatalf("merged %v, counted %v", sum, whole)
		}
	}
}

// TestMergeOfOtherBounds: what one of two histograms did not count is given up, and the total stays.
func TestMergeOfOtherBounds(t *testing.T) {
	t.Parallel()
	var b buckets
	b.merge(bucketsOf(ladder(.1, 5, .2, 8, .4, 10), 10))
	b.merge(bucketsOf(ladder(.1, 1, .3, 8, .4, 9), 10))
	b.merge(buckets{})
	if !slices.Equal(b.le, []float64{.1, .4}) || !slices.Equal(b.count, []uint64{6, 19}) || b.total != 20 {
		t.Errorf("%+v", b)
	}
}
