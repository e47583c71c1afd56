package sequence

import (
	"container/list"
	"math"
	"slices"
	"testing"
)

func draw(t *testing.T, c Config, seed uint64, calls int) ([]int32, []int32) {
	t.Helper()
	s, err := New(c, seed)
	if err != nil {
		t.Fatal(err)
	}
	images, secrets := make([]int32, calls), make([]int32, calls)
	s.Fill(images, secrets)
	return images, secrets
}

// lruHits is the share of calls that a least-recently-used cache answers, once it is warm.
func lruHits(images []int32, size int) float64 {
	order, at, hits := list.New(), map[int32]*list.Element{}, 0
	for i, m := range images {
		if e, ok := at[m]; ok {
			order.MoveToFront(e)
			if i >= len(images)/2 {
				hits++
			}
			continue
		}
		at[m] = order.PushFront(m)
		if order.Len() > size {
			delete(at, order.Remove(order.Back()).(int32))
		}
	}
	return float64(hits) / float64(len(images)-len(images)/2)
}

// TestPatterns: under a cache of a quarter of the records each pattern has the hit rate that it is known by: uniform a
// quarter, a cyclic scan none, a working set that fits nearly its share and a quarter of the rest, Zipf far more than
// uniform, pods that stay more than Zipf alone.
func TestPatterns(t *testing.T) {
	want := map[string][2]float64{
		Uniform: {0.23, 0.27}, Scan: {0, 0}, WorkingSet: {0.955, 0.97}, Zipf: {0.75, 0.90}, Churn: {0.80, 1},
	}
	for _, p := range Patterns() {
		images, _ := draw(t, Config{Pattern: p, Records: 400, Hits: 1, Exponent: 1.1, Window: 50, Turnover: 0.1, Secrets: 1},
			1, 100_000)
		if lo, hi := slices.Min(images), slices.Max(images); lo < 0 || hi >= 400 {
			t.Errorf("%s: images %d to %d", p, lo, hi)
		}
		if got := lruHits(images, 100); got < want[p][0] || got > want[p][1] {
			t.Errorf("%s: a cache of a quarter answers %.3f, want %v", p, got, want[p])
		}
	}
}

// TestHits: the share is exact in every batch, spread evenly, and unknown images come one after the other.
func TestHits(t *testing.T) {
	for _, hits := range []float64{0, 0.1, 0.2, 0.5, 0.75, 1} {
		for _, pattern := range Patterns() {
			s, err := New(Config{
				Pattern: pattern, Records: 10, Unknown: 7, Hits: hits, Exponent: 1.1, Window: 5, Turnover: 0.1,
				Secrets: 1,
			}, 3)
			if err != nil {
				t.Fatal(err)
			}
			images, secrets := make([]int32, 1000), make([]int32, 1000)
			last := -1
			for range 3 {
				s.Fill(images, secrets)
				known := 0
				for i, m := range images {
					switch {
					case m < 10:
						known++
					case m != int32(10+(last+1)%7):
						t.Fatalf("%s: after unknown image %d comes %d", pattern, last, m-10)
					default:
						last = int(m - 10)
					}
					if off := math.Abs(float64(known) - hits*float64(i+1)); off >= 1 {
						t.Fatalf("%s, %v: %d of the first %d", pattern, hits, known, i+1)
					}
				}
			}
		}
	}
}

// TestSeed: the same seed draws the same, another one another, and the next batch goes on.
func TestSeed(t *testing.T) {
	c := Config{Pattern: Zipf, Records: 1000, Hits: 1, Exponent: 1.1, Secrets: 5}
	a, sa := draw(t, c, 1, 500)
	b, sb := draw(t, c, 1, 500)
	other, _ := draw(t, c, 2, 500)
	if !slices.Equal(a, b) || !slices.Equal(sa, sb) || slices.Equal(a, other) {
		t.Error("a seed does not say what is drawn")
	}
	if slices.Min(sa) != 0 || slices.Max(sa) != 4 {
		t.Errorf("secrets %d to %d", slices.Min(sa), slices.Max(sa))
	}
	s, _ := New(Config{Pattern: Scan, Records: 10, Hits: 1, Secrets: 1}, 1)
	images, secrets := make([]int32, 4), make([]int32, 4)
	s.Fill(images, secrets)
	s.Fill(images, secrets)
	if !slices.Equal(images, []int32{4, 5, 6, 7}) {
		t.Errorf("second batch %v", images)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, c := range map[string]Config{
		"no records": {Pattern: Uniform, Hits: 1, Secrets: 1}, "no secret": {Pattern: Uniform, Records: 1, Hits: 1},
		"pattern": {Pattern: "x", Records: 1, Hits: 1, Secrets: 1},
		"hits":    {Pattern: Uniform, Records: 1, Hits: math.NaN(), Secrets: 1}, "no unknown": {
			Pattern: Uniform, Records: 1,
			Hits: 0.5, Secrets: 1,
		},
		"exponent": {Pattern: Zipf, Records: 9, Hits: 1, Secrets: 1, Exponent: 1},
		"churn":    {Pattern: Churn, Records: 9, Hits: 1, Secrets: 1, Exponent: 1},
	} {
		if _, err := New(c, 1); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
