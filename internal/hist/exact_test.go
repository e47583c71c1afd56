package hist

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"pgregory.net/rapid"
)

// sorted returns values by way of a Sorter.
func sorted(values []int64) *Exact {
	var s Sorter
	for _, v := range values {
		s.Add(v)
	}
	return s.Sorted()
}

func listed(e *Exact, from int) (out []int64) {
	e.Each(from, func(v int64) bool {
		out = append(out, v)
		return true
	})
	return out
}

// TestExactIsASortedList: an Exact answers as the sorted list of its values, alone and merged from parts.
func TestExactIsASortedList(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		bound := rapid.SampledFrom([]int64{3, 1 << 12, 1 << 40, math.MaxInt64}).Draw(t, "bound")
		some := rapid.SliceOfN(rapid.Int64Range(-bound, bound), 0, 3*fewValues)
		x, y := some.Draw(t, "x"), some.Draw(t, "y")
		want := slices.Sorted(slices.Values(slices.Concat(x, y)))
		for name, e := range map[string]*Exact{
			"sorted": sorted(slices.Concat(x, y)), "merged": MergeExact(sorted(x), sorted(y), sorted(nil)),
		} {
			if e.Len() != len(want) || !slices.Equal(listed(e, 0), want) {
				t.Fatalf("%s: %v, want %v", name, listed(e, 0), want)
			}
			if len(want) == 0 {
				continue
			}
			i := rapid.IntRange(0, len(want)-1).Draw(t, "i")
			if got := e.At(i); got != want[i] || !slices.Equal(listed(e, i), want[i:]) {
				t.Fatalf("%s: value %d is %d, want %d", name, i, got, want[i])
			}
			for _, v := range []int64{want[i], want[i] + 1, want[i] - 1, math.MinInt64, math.MaxInt64} {
				atMost := sort.Search(len(want), func(k int) bool { return want[k] > v })
				if got := e.AtMost(v); got != atMost {
					t.Fatalf("%s: %d are at most %d, want %d", name, got, v, atMost)
				}
			}
		}
	})
}

// TestExactIsSmall: of a million times within some milliseconds each takes little more than a byte, and a Sorter of
// several runs gives them all.
func TestExactIsSmall(t *testing.T) {
	const n = 3*sorterRun + 5
	r := rand.New(rand.NewPCG(1, 2))
	values := make([]int64, n)
	for i := range values {
		values[i] = 1_000_000 + int64(math.Abs(r.NormFloat64())*5_000_000)
	}
	e := sorted(values)
	slices.Sort(values)
	if !slices.Equal(listed(e, 0), values) {
		t.Fatal("not the values that were added")
	}
	if size := len(e.distances) + 16*len(e.marks); float64(size) > 1.3*n {
		t.Errorf("%d values take %d bytes", n, size)
	}
}

func BenchmarkSorter(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	values := make([]int64, 1<<20)
	for i := range values {
		values[i] = 1_000_000 + int64(r.ExpFloat64()*1_000_000)
	}
	b.ReportAllocs()
	for b.Loop() {
		sorted(values)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(values)), "ns/value")
}
