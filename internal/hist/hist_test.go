package hist

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

func TestCellsPartitionTheValues(t *testing.T) {
	next := int64(0)
	for i := range cells - 1<<subBits {
		lo, w := bounds(i)
		if lo != next {
			t.Fatalf("cell %d begins at %d, want %d", i, lo, next)
		}
		for _, v := range []int64{lo, lo + w/2, lo + w - 1} {
			if cell(v) != i {
				t.Fatalf("cell(%d) = %d, want %d", v, cell(v), i)
			}
		}
		next = lo + w
		if next < 0 {
			break
		}
	}
}

func TestQuantilesMatchSortedValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		vs := rapid.SliceOfN(rapid.Int64Range(0, 1<<40), 1, 300).Draw(t, "values")
		q := rapid.Float64Range(0, 1).Draw(t, "q")
		split := rapid.IntRange(0, len(vs)).Draw(t, "split")
		var a, b Histogram
		for i, v := range vs {
			if i < split {
				a.Record(v)
			} else {
				b.Record(v)
			}
		}
		a.Merge(&b)
		slices.Sort(vs)
		want := float64(vs[max(1, int(math.Ceil(q*float64(len(vs)))))-1])
		if got := a.Quantile(q); math.Abs(got-want) > want/512+0.5 {
			t.Fatalf("quantile %g of %d values = %g, want %g", q, len(vs), got, want)
		}
		if a.Min() != vs[0] || a.Max() != vs[len(vs)-1] || a.Count() != uint64(len(vs)) {
			t.Fatalf("min %d max %d n %d of %v", a.Min(), a.Max(), a.Count(), vs)
		}
	})
}

// TestRecordN: n times at once is the same as one after another, in each number, and the cells hold all that was
// recorded near where it was.
func TestRecordN(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var one, at Histogram
		sum, n := 0.0, uint64(0)
		for range rapid.IntRange(1, 20).Draw(t, "values") {
			v, times := rapid.Int64Range(0, 1<<30).Draw(t, "v"), rapid.Uint64Range(0, 5).Draw(t, "times")
			for range times {
				one.Record(v)
			}
			at.RecordN(v, times)
			sum, n = sum+float64(v)*float64(times), n+times
		}
		if at.Count() != one.Count() || at.Min() != one.Min() || at.Max() != one.Max() {
			t.Fatalf("%d values from %d to %d, want %d from %d to %d",
				at.Count(), at.Min(), at.Max(), one.Count(), one.Min(), one.Max())
		}
		if n == 0 {
			return
		}
		for _, of := range [][2]float64{{at.Mean(), one.Mean()}, {at.Mean(), sum / float64(n)}} {
			if math.Abs(of[0]-of[1]) > 1e-9*of[1] {
				t.Fatalf("mean %g, want %g", of[0], of[1])
			}
		}
		if a, b := at.Stddev(), one.Stddev(); n > 1 && math.Abs(a-b) > 1e-6*(b+at.Mean()) {
			t.Fatalf("stddev %g, want %g", a, b)
		}
		inCells, cells := 0.0, uint64(0)
		at.Each(func(v int64, count uint64) { inCells, cells = inCells+float64(v)*float64(count), cells+count })
		if cells != n || math.Abs(inCells-sum) > sum/512+float64(n) {
			t.Fatalf("%d values of sum %g in the cells, want %d of %g", cells, inCells, n, sum)
		}
	})
}

func TestEmptyHasNoNumbers(t *testing.T) {
	var h Histogram
	if !math.IsNaN(h.Mean()) || !math.IsNaN(h.Quantile(0.5)) || !math.IsNaN(h.Stddev()) {
		t.Error("an empty histogram reports numbers")
	}
}

func TestMeanAndStddev(t *testing.T) {
	var h Histogram
	for _, v := range []int64{2, 4, 4, 4, 5, 5, 7, 9} {
		h.Record(v)
	}
	if h.Mean() != 5 || math.Abs(h.Stddev()-2.13809) > 1e-5 {
		t.Errorf("mean %g stddev %g, want 5 and 2.13809", h.Mean(), h.Stddev())
	}
}

func BenchmarkRecord(b *testing.B) {
	var h Histogram
	h.Record(1 << 40)
	v := int64(1)
	for b.Loop() {
		v = v*6364136223846793005 + 1442695040888963407
		h.Record(v & (1<<36 - 1))
	}
}
