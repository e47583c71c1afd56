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
	rounds := func(n int, calls ...float64) [][]float64 { return slices.Repeat([][]float64{calls}, n) }
	scaled := func(calls ...float64) (out [][]float64) { // on a host that is slower in each round
		for r := range 6 {
			var turn []float64
			for _, v := range calls {
				turn = append(turn, v*math.Exp2(float64(r)))
			}
			out = append(out, turn)
		}
		return out
	}
	for _, c := range []struct {
		name          string
		base, treated [][]float64
		want          float64
		ok            bool
	}{
		{"a factor", rounds(5, 1, 2, 3), rounds(5, 1.2, 2.4, 3.6), math.Log(1.2), true},
		{"the host's speed cancels", scaled(1, 2, 4), scaled(3, 6, 12), math.Log(3), true},
		{
			"a stall in one turn",
			append(rounds(9, 1, 1, 1), []float64{9, 9, 9}),
			rounds(10, 1.5, 1.5, 1.5), math.Log(1.5), true,
		},
		{"a few slow calls", rounds(5, 1, 1, 1, 1, 1), rounds(5, 1, 1, 1, 80, 90), 0, true},
		{"more than half of the calls", rounds(5, 1, 1, 1, 1, 1), rounds(5, 1, 1, 2, 2, 2), math.Log(2), true},
		{
			"calls without a time",
			rounds(5, 1, nan, 1, inf, 1), rounds(5, 0, 2, 2, 2, -1), math.Log(2), true,
		},
		{
			"rounds that one arm lacks",
			append(rounds(5, 1, 1, 1), nil, []float64{7, 7, 7}, []float64{7, 7, 7}),
			append(rounds(5, 2, 2, 2), []float64{7, 7, 7}, []float64{3, 3, nan}), math.Log(2), true,
		},
		{
			"the range of numbers",
			rounds(5, math.SmallestNonzeroFloat64, math.SmallestNonzeroFloat64, math.SmallestNonzeroFloat64),
			rounds(5, math.MaxFloat64, math.MaxFloat64, math.MaxFloat64),
			math.Log(math.MaxFloat64) - math.Log(math.SmallestNonzeroFloat64), true,
		},
		{"too few rounds", append(rounds(4, 1, 1, 1), []float64{1, 1}), rounds(5, 2, 2, 2), nan, false},
		{"nothing", nil, nil, nan, false},
	} {
		got, ok := RoundRatio(c.base, c.treated)
		if ok != c.ok || (ok && math.Abs(got-c.want) > 1e-12) || (!ok && !math.IsNaN(got)) {
			t.Errorf("%s: %v, %v; want %v, %v", c.name, got, ok, c.want, c.ok)
		}
	}
}

// TestRoundRatioKeeps: the calls stay in the order in which they were made.
func TestRoundRatioKeeps(t *testing.T) {
	x, y := [][]float64{{3, 1, 2}}, [][]float64{{6, 4, 5}}
	RoundRatio(slices.Repeat(x, FewestRounds), slices.Repeat(y, FewestRounds))
	if !slices.Equal(x[0], []float64{3, 1, 2}) || !slices.Equal(y[0], []float64{6, 4, 5}) {
		t.Errorf("RoundRatio changed its arguments: %v, %v", x, y)
	}
}

// TestRoundRatioSwapped: values of equal arms are symmetric around 0 only if a swap changes nothing but the sign.
func TestRoundRatioSwapped(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for n := FewestRounds; n < 40; n++ {
		x, y := make([][]float64, n), make([][]float64, n)
		for i := range x {
			for range 3 + r.IntN(8) {
				x[i], y[i] = append(x[i], r.ExpFloat64()), append(y[i], r.ExpFloat64())
			}
		}
		there, _ := RoundRatio(x, y)
		back, _ := RoundRatio(y, x)
		if there == 0 || math.Abs(there+back) > 1e-12 {
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
	f.Add(bytesOf(slices.Repeat([]float64{1, 2, 3, 4}, 10)...), 4)
	f.Add(bytesOf(math.NaN(), 0, -1, math.Inf(1), math.MaxFloat64, 1, 1, 1, 1, 1, 1, 1), 1)
	f.Fuzz(func(t *testing.T, b []byte, calls int) {
		x := floats(b)
		half, size := len(x)/2, min(max(calls, 1), 100)
		base, treated := slices.Collect(slices.Chunk(x[:half], size)), slices.Collect(slices.Chunk(x[half:], size))
		if log, ok := RoundRatio(base, treated); ok == math.IsNaN(log) || math.IsInf(log, 0) {
			t.Errorf("RoundRatio gives %v, %v", log, ok)
		}
	})
}

// TestRoundRatioOfTwoKinds: of calls of two kinds, such as hits and misses of a cache, the ratio of medians is that of
// the kinds where one arm has more slow ones than fast ones, however near its share is to one half.
func TestRoundRatioOfTwoKinds(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct{ base, treated, want float64 }{
		{0.43, 0.57, 10}, {0.4, 0.6, 10}, {0.3, 0.7, 10}, {0.2, 0.57, 10}, {0.43, 0.8, 10}, {0.2, 0.3, 1}, {0.1, 0.1, 1},
	} {
		turn := func(slow float64) (calls []float64) {
			for range 30 {
				v := 0.002 * math.Exp(0.03*r.NormFloat64())
				if r.Float64() < slow {
					v *= 10
				}
				calls = append(calls, v)
			}
			return calls
		}
		var logs []float64
		for range 40 {
			var base, treated [][]float64
			for range 18 {
				base, treated = append(base, turn(c.base)), append(treated, turn(c.treated))
			}
			log, ok := RoundRatio(base, treated)
			if !ok {
				t.Fatal("no ratio of 18 rounds")
			}
			logs = append(logs, log)
		}
		if got := math.Exp(Quantile(logs, 0.5)); got < 0.85*c.want || got > 1.15*c.want {
			t.Errorf("slow %.0f %% and %.0f %% of the calls: a ratio of %.2f, want %.0f", 100*c.base, 100*c.treated, got, c.want)
		}
	}
}
