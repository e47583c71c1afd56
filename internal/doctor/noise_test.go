package doctor

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"tare/internal/stat"
)

// A syntheticWork takes 5 ms times e^N(0, σ) for each sample: a host with known noise. A drift makes it slower and
// slower, and arms differ by effect where the second of the two is known.
type syntheticWork struct {
	now   int64
	rng   *rand.Rand
	sigma float64
	drift float64 // per second
}

func (s *syntheticWork) clock() int64 { return s.now }

func (s *syntheticWork) work() micro {
	return micro{"synthetic", func(context.Context) (effort, error) {
		t := 5e-3 * math.Exp(s.sigma*s.rng.NormFloat64()+s.drift*float64(s.now)/1e9)
		s.now += int64(t * 1e9)
		return effort{wall: t, cpu: 2 * t}, nil
	}}
}

func (s *syntheticWork) floor(t *testing.T, length time.Duration) *Floor {
	t.Helper()
	found := interleave(t.Context(), []micro{s.work()}, length, s.rng, s.clock)
	f := floorOf(found[0].pairs, func(e effort) float64 { return e.wall }, found[0].spent, 1)
	if f == nil {
		t.Fatalf("no floor from %d pairs", len(found[0].pairs))
	}
	return f
}

// trueHalfWidth is the half width of 95 % intervals in a run of 2 minutes on a host with noise σ: 1.96·√2·σ ÷ √pairs.
func trueHalfWidth(sigma float64) float64 {
	pairs := RunLength.Seconds() / 10e-3
	return math.Expm1(1.96 * math.Sqrt2 * sigma / math.Sqrt(pairs))
}

func TestFloorOfKnownNoise(t *testing.T) {
	for _, sigma := range []float64{0.005, 0.05, 0.3} {
		for _, length := range []time.Duration{time.Second, 10 * time.Second} {
			const rounds = 200
			var ratios []float64
			covered := 0
			for seed := range uint64(rounds) {
				s := &syntheticWork{rng: rand.New(rand.NewPCG(seed, 7)), sigma: sigma}
				f := s.floor(t, length)
				ratios = append(ratios, f.Ratio/trueHalfWidth(sigma))
				if math.Abs(math.Log1p(f.Difference)) <= f.HalfWidth {
					covered++
				}
			}
			slices.Sort(ratios)
			// Student's quantile for 19 degrees of freedom is 7 % above the normal one; larger noise takes longer, so there are
			// fewer pairs.
			if mid := stat.SortedQuantile(ratios, .5); mid < 0.9 || mid > 1.25 {
				t.Errorf("σ %v, %v: the floor is %.3f of the truth in the middle", sigma, length, mid)
			}
			if lo, hi := stat.SortedQuantile(ratios, .05), stat.SortedQuantile(ratios, .95); lo < 0.6 || hi > 1.6 {
				t.Errorf("σ %v, %v: nine of ten floors are within %.2f and %.2f of the truth", sigma, length, lo, hi)
			}
			// 95 % of 200, give or take three standard deviations.
			if covered < 181 || covered > 199 {
				t.Errorf("σ %v, %v: the interval holds the true difference of 0 in %d of %d", sigma, length, covered, rounds)
			}
		}
	}
}

// TestFloorIsHalfPower simulates runs of 2 minutes in which one arm is slower: about every other run detects a
// difference of the floor, and hardly any one far below it.
func TestFloorIsHalfPower(t *testing.T) {
	const rounds, sigma = 300, 0.05
	seen := map[float64]int{}
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 8))
		floor := math.Log1p((&syntheticWork{rng: rng, sigma: sigma}).floor(t, 10*time.Second).Ratio)
		for _, times := range []float64{0.25, 1, 1.43, 2} {
			// The mean log ratio of a run of 2 minutes, by its 20 blocks of 600 pairs each.
			x := make([]float64, blocks)
			for k := range x {
				x[k] = times*floor + sigma*math.Sqrt2/math.Sqrt(600)*rng.NormFloat64()
			}
			if e, ok := stat.MeanInterval(x, floorLevel); ok && (e.Lo > 0 || e.Hi < 0) {
				seen[times]++
			}
		}
	}
	for times, want := range map[float64][2]float64{0.25: {0, 0.15}, 1: {0.38, 0.66}, 1.43: {0.68, 0.92}, 2: {0.93, 1}} {
		if got := float64(seen[times]) / rounds; got < want[0] || got > want[1] {
			t.Errorf("a difference of %v floors was seen in %.0f %% of the runs, want %.0f to %.0f %%", times, got*100,
				want[0]*100, want[1]*100)
		}
	}
}

// TestDriftIsNoDifference: a host that becomes slower and slower gives equal arms, since their order is random.
func TestDriftIsNoDifference(t *testing.T) {
	differs := 0
	for seed := range uint64(100) {
		s := &syntheticWork{rng: rand.New(rand.NewPCG(seed, 9)), sigma: 0.01, drift: 0.05}
		if s.floor(t, 5*time.Second).Differs {
			differs++
		}
	}
	if differs > 12 { // 5 expected; 3 standard deviations more
		t.Errorf("equal arms differ in %d of 100", differs)
	}
}

// TestDifferenceOfEqualArmsIsReported: a host on which equal arms differ is not to be trusted.
func TestDifferenceOfEqualArmsIsReported(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	pairs := make([][2]effort, 400)
	for i := range pairs {
		pairs[i] = [2]effort{{wall: math.Exp(0.02 * rng.NormFloat64())}, {wall: 1.05 * math.Exp(0.02*rng.NormFloat64())}}
	}
	f := floorOf(pairs, func(e effort) float64 { return e.wall }, 4*time.Second, 6)
	if !f.Differs || math.Abs(f.Difference-0.05) > 0.01 {
		t.Errorf("the arms differ by 5 %%, and the floor says %+v", *f)
	}
}

func TestTooFewSamplesGiveNoFloor(t *testing.T) {
	one := [2]effort{{1, 1}, {1, 1}}
	wall := func(e effort) float64 { return e.wall }
	if f := floorOf([][2]effort{one, one, one, one}, wall, time.Second, 1); f != nil {
		t.Errorf("4 pairs give %+v", *f)
	}
	if f := floorOf(slices.Repeat([][2]effort{{{0, 0}, {1, 1}}}, 50), wall, time.Second, 1); f != nil {
		t.Errorf("work that takes no time gives %+v", *f)
	}
	n := summarize([]micro{{name: "x"}}, []series{{}})
	if n.Wall != nil || n.CPU != nil || n.Work[0].Wall != nil {
		t.Errorf("nothing measured gives %+v", n)
	}
}

func TestSumUpTakesTheWorst(t *testing.T) {
	series1 := series{spent: time.Second, pairs: make([][2]effort, 40)}
	series2 := series{spent: time.Second, pairs: make([][2]effort, 40)}
	rng := rand.New(rand.NewPCG(2, 2))
	draw := func(sigma float64) float64 { return math.Exp(sigma * rng.NormFloat64()) }
	for i := range 40 {
		series1.pairs[i] = [2]effort{{draw(.2), draw(.001)}, {draw(.2), draw(.001)}}
		series2.pairs[i] = [2]effort{{draw(.01), draw(.1)}, {draw(.01), draw(.1)}}
	}
	n := summarize([]micro{{name: "a"}, {name: "b"}}, []series{series1, series2})
	if n := summarize([]micro{{name: "a"}, {name: "b"}}, []series{series1, {err: errors.New("bad")}}); n.Wall != nil ||
		n.CPU != nil || n.Work[0].Wall == nil || n.Work[1].Error != "bad" {
		t.Errorf("a floor for all, though half the work failed: %+v", n)
	}
	if *n.Wall != n.Work[0].Wall.Ratio || *n.CPU != n.Work[1].CPU.Ratio {
		t.Errorf("headline wall %v, CPU %v; work %+v and %+v", *n.Wall, *n.CPU, *n.Work[0].Wall, *n.Work[1].CPU)
	}
}

func TestInterleave(t *testing.T) {
	var now int64
	var order []string
	errBad := errors.New("bad")
	named := func(name string, err error) micro {
		return micro{name, func(context.Context) (effort, error) {
			order = append(order, name)
			now += int64(time.Millisecond)
			return effort{1, 1}, err
		}}
	}
	found := interleave(t.Context(), []micro{named("a", nil), named("b", nil), named("c", errBad)}, 100*time.Millisecond,
		rand.New(rand.NewPCG(3, 3)), func() int64 { return now })
	if a, b := len(found[0].pairs), len(found[1].pairs); a != b || a < 24 || a > 25 {
		t.Errorf("%d and %d pairs in 100 ms of 4 ms a round", a, b)
	}
	if !errors.Is(found[2].err, errBad) || slices.Index(order, "c") != lastIndex(order, "c") {
		t.Errorf("failing work: %v, started again", found[2].err)
	}
	firstOfRound := map[string]int{}
	for i := 4; i+3 < len(order); i += 4 {
		firstOfRound[order[i]]++
	}
	if firstOfRound["a"] < 4 || firstOfRound["b"] < 4 {
		t.Errorf("the order of the work does not vary: %v", firstOfRound)
	}
	// All work failed: it ends, though no time passes.
	still := interleave(t.Context(), []micro{{"d", func(context.Context) (effort, error) { return effort{}, errBad }}},
		time.Hour, rand.New(rand.NewPCG(1, 1)), func() int64 { return 0 })
	if still[0].err == nil {
		t.Error("no error")
	}
}

func lastIndex(all []string, s string) int {
	last := -1
	for i, x := range all {
		if x == s {
			last = i
		}
	}
	return last
}

func TestPairsAreInBothOrders(t *testing.T) {
	calls := 0.0
	m := micro{"x", func(context.Context) (effort, error) { calls++; return effort{wall: calls}, nil }}
	for first := range 2 {
		calls = 0
		p, err := runPair(t.Context(), m, first)
		if err != nil || p[first].wall != 1 || p[1-first].wall != 2 {
			t.Errorf("arm %d first: %v, %v", first, p, err)
		}
	}
}

// TestBurstsAreCovered: a host that is now and then disturbed for half a second at a time, as shared ones are. Floors
// then differ more from one examination to the next, but the interval still holds the truth.
func TestBurstsAreCovered(t *testing.T) {
	const rounds = 200
	covered := 0
	for seed := range uint64(rounds) {
		s := &syntheticWork{rng: rand.New(rand.NewPCG(seed, 10)), sigma: 0.01}
		disturbed := rand.New(rand.NewPCG(seed, 11))
		calm := s.work()
		until, loud := int64(0), false
		work := micro{"bursts", func(ctx context.Context) (effort, error) {
			if s.now >= until {
				until, loud = s.now+int64(500*time.Millisecond), disturbed.IntN(4) == 0
			}
			s.sigma = 0.01
			if loud {
				s.sigma = 0.3
			}
			return calm.run(ctx)
		}}
		found := interleave(t.Context(), []micro{work}, 10*time.Second, s.rng, s.clock)
		f := floorOf(found[0].pairs, func(e effort) float64 { return e.wall }, found[0].spent, 1)
		if math.Abs(math.Log1p(f.Difference)) <= f.HalfWidth {
			covered++
		}
	}
	if covered < 180 {
		t.Errorf("the interval holds the true difference of 0 in %d of %d", covered, rounds)
	}
	t.Logf("covered %d of %d", covered, rounds)
}

// TestBlockNoise: the noise of a block is that of its medians. Of 16 values with a standard deviation of 1 % the median
// has about 1.25 · 1 % ÷ √16, and the ratio of two such √2 times that: 0.44 %.
func TestBlockNoise(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 1))
	pairs := make([][2]effort, 16*400)
	for i := range pairs {
		for arm := range pairs[i] {
			pairs[i][arm].cpu = 0.005 * math.Exp(0.01*rng.NormFloat64())
		}
	}
	if sd := blockNoise(pairs, 16); sd < 0.0038 || sd > 0.0050 {
		t.Errorf("noise %v, want about 0.0044", sd)
	}
	if sd := blockNoise(pairs[:3], 16); !math.IsNaN(sd) {
		t.Errorf("noise %v of three pairs", sd)
	}
}

// TestRehearsalOnABusyHost: where its length allows fewer blocks than it needs, a rehearsal goes on.
func TestRehearsalOnABusyHost(t *testing.T) {
	if noise, err := Rehearse(t.Context(), testBinary(t), 16, time.Nanosecond); err != nil || !math.IsNaN(noise) {
		t.Errorf("%v, %v of no block", noise, err)
	}
	if noise, err := Rehearse(t.Context(), testBinary(t), 16, time.Millisecond); err != nil || math.IsNaN(noise) {
		t.Errorf("%v, %v, where five times the length allows enough", noise, err)
	}
}
