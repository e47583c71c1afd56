package stat

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

func TestTurnMedian(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		calls []float64
		want  float64
	}{
		{[]float64{3, 1, 2}, 2},
		{[]float64{4, 1, 2, 3}, 2.5},
		{[]float64{3, nan, 1, inf, 2}, 2},
		{[]float64{1, 2}, nan},
		{[]float64{1, 2, nan}, nan},
		{nil, nan},
	} {
		calls := slices.Clone(c.calls)
		got := TurnMedian(calls)
		if got != c.want && !(math.IsNaN(got) && math.IsNaN(c.want)) {
			t.Errorf("TurnMedian(%v) = %v, want %v", c.calls, got, c.want)
		}
		if !slices.EqualFunc(calls, c.calls, func(x, y float64) bool { return x == y || math.IsNaN(x) && math.IsNaN(y) }) {
			t.Errorf("TurnMedian changed its argument from %v to %v", c.calls, calls)
		}
	}
}

func TestRoundRatio(t *testing.T) {
	nan, inf := math.NaN(), math.Inf(1)
	for _, c := range []struct {
		name          string
		base, treated []float64
		want          float64
		ok            bool
	}{
		{"the middle round", []float64{1, 1, 1, 1, 1}, []float64{1.1, 1.3, 1.2, 90, 0.1}, math.Log(1.2), true},
		{"the host's speed cancels", []float64{1, 2, 4, 8, 16}, []float64{3, 6, 12, 24, 48}, math.Log(3), true},
		{
			"rounds without a value",
			[]float64{1, nan, 1, 1, 0, 1, 1, -1, 1, 1},
			[]float64{2, 9, 2, 2, 9, 2, 2, 9, inf, nan},
			math.Log(2), true,
		},
		{"rounds of one arm only", []float64{1, 1, 1, 1, 1, 7}, []float64{2, 2, 2, 2, 2}, math.Log(2), true},
		{
			"the range of numbers",
			slices.Repeat([]float64{math.SmallestNonzeroFloat64}, 5),
			slices.Repeat([]float64{math.MaxFloat64}, 5),
			math.Log(math.MaxFloat64) - math.Log(math.SmallestNonzeroFloat64), true,
		},
		{"too few rounds", []float64{1, 1, 1, 1, nan}, []float64{2, 2, 2, 2, 2}, nan, false},
		{"nothing", nil, nil, nan, false},
	} {
		got, ok := RoundRatio(c.base, c.treated)
		if ok != c.ok || (ok && math.Abs(got-c.want) > 1e-12) || (!ok && !math.IsNaN(got)) {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

// TestRoundRatioSwapped: values of equal arms are symmetric around 0 only if a swap changes nothing but the sign.
func TestRoundRatioSwapped(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := FewestRounds; n < 40; n++ {
		x, y := make([]float64, n), make([]float64, n)
		for i := range x {
			x[i], y[i] = r.ExpFloat64(), r.ExpFloat64()
		}
		there, _ := RoundRatio(x, y)
		back, _ := RoundRatio(y, x)
		if math.Abs(there+back) > 1e-12 {
			t.Errorf("%d rounds: %v, swapped %v", n, there, back)
		}
	}
}

func TestCarryover(t *testing.T) {
	const lasting, slower = 1.5, 1.2 // a against b, and a turn after the third arm's against another
	var a, b []float64
	var after []int
	for r := range 20 {
		x, y := lasting, 1.0
		z := r%3 - 1
		switch z {
		case 1:
			x *= slower
		case -1:
			y *= slower
		}
		a, b, after = append(a, x), append(b, y), append(after, z)
	}
	a[4], b[5] = math.NaN(), 0
	got, ok := Carryover(a, b, after)
	if want := math.Log(slower); !ok || math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, %v; want %v", got, ok, want)
	}
	for name, few := range map[string][]int{"none": nil, "one kind": slices.Repeat([]int{1}, 20), "two of the second": {
		1, 1, 1, 1, -1, -1,
	}} {
		if got, ok := Carryover(a, b, few); ok || !math.IsNaN(got) {
			t.Errorf("%s: %v, %v; want no estimate", name, got, ok)
		}
	}
}

func FuzzRoundRatio(f *testing.F) {
	f.Add(bytesOf(1, 2, 3, 4, 5, 6, 7, 8, 9, 10))
	f.Add(bytesOf(math.NaN(), 0, -1, math.Inf(1), math.MaxFloat64, 1, 1, 1, 1, 1, 1, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		x := floats(b)
		half := len(x) / 2
		if log, ok := RoundRatio(x[:half], x[half:]); ok == math.IsNaN(log) || math.IsInf(log, 0) {
			t.Errorf("RoundRatio gives %v, %v", log, ok)
		}
	})
}
