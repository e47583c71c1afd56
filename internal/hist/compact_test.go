package hist

import (
	"testing"

	"pgregory.net/rapid"
)

// TestCompactIsTheSame: a compact histogram answers as any other, before and after it has become large, and merges with
// it either way.
func TestCompactIsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.SampledFrom([]int64{3, 1 << 12, 1 << 30, 1<<63 - 1}).Draw(t, "most")
		vs := rapid.SliceOfN(rapid.Int64Range(-1, most), 1, 300).Draw(t, "values")
		small, dense, merged, back := Compact(), Histogram{}, Compact(), Histogram{}
		for i, v := range vs {
			n := uint64(i % 3)
			small.RecordN(v, n)
			dense.RecordN(v, n)
			small.Record(v)
			dense.Record(v)
		}
		if rapid.Bool().Draw(t, "large") {
			for i := range int64(mostFew + 1) {
				lo, _ := bounds(int(i))
				small.Record(lo)
				dense.Record(lo)
			}
			if small.few != nil {
				t.Fatal("it is still compact")
			}
		}
		merged.Merge(&small)
		merged.Merge(&dense)
		back.Merge(&dense)
		back.Merge(&small)
		same(t, &small, &dense)
		same(t, &merged, &back)
	})
}

func same(t *rapid.T, a, b *Histogram) {
	type pair struct {
		v int64
		n uint64
	}
	list := func(h *Histogram) (out []pair) {
		h.Each(func(v int64, n uint64) { out = append(out, pair{v, n}) })
		return out
	}
	x, y := list(a), list(b)
	if len(x) != len(y) {
		t.Fatalf("%d cells and %d", len(x), len(y))
	}
	for i := range x {
		if x[i] != y[i] {
			t.Fatalf("cell %d: %v and %v", i, x[i], y[i])
		}
	}
	if a.Count() != b.Count() || a.Min() != b.Min() || a.Max() != b.Max() || a.Mean() != b.Mean() {
		t.Fatalf("%d values of %d to %d, mean %g; and %d of %d to %d, mean %g", a.Count(), a.Min(), a.Max(), a.Mean(),
			b.Count(), b.Min(), b.Max(), b.Mean())
	}
	for _, q := range []float64{0, 0.1, 0.5, 0.99, 1} {
		if a.Quantile(q) != b.Quantile(q) {
			t.Fatalf("quantile %g: %g and %g", q, a.Quantile(q), b.Quantile(q))
		}
	}
}

// TestCompactIsSmall: a histogram of one value takes no array of cells.
func TestCompactIsSmall(t *testing.T) {
	h := Compact()
	h.Record(1<<63 - 1)
	if h.counts != nil || cap(h.few.cell) > 16 {
		t.Errorf("%d cells and room for %d", len(h.counts), cap(h.few.cell))
	}
}
