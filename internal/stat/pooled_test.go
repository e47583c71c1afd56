package stat

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// The law school data of Efron, The Jackknife, the Bootstrap and Other Resampling Plans (1982), table 2.1 and chapter
// 3: the correlation of LSAT and GPA is 0.776, its jackknife standard error 0.1425.
func TestJackknifeLawSchool(t *testing.T) {
	lsat := []float64{576, 635, 558, 578, 666, 580, 555, 661, 651, 605, 653, 575, 545, 572, 594}
	gpa := []float64{3.39, 3.30, 2.81, 3.03, 3.44, 3.07, 3.00, 3.43, 3.36, 3.13, 3.12, 2.74, 2.76, 2.88, 2.96}
	correlation := func(x, y []float64) float64 {
		l, _ := Regress(x, y)
		return l.Slope * math.Sqrt(Variance(x)/Variance(y))
	}
	deleted := make([]float64, len(lsat))
	for i := range deleted {
		deleted[i] = correlation(slices.Delete(slices.Clone(lsat), i, i+1), slices.Delete(slices.Clone(gpa), i, i+1))
	}
	e, se := jackknife(correlation(lsat, gpa), deleted, 0.95)
	near(t, "correlation", e.Value, 0.776, 5e-4)
	near(t, "standard error", se, 0.1425, 1e-4)
	near(t, "half width", (e.Hi-e.Lo)/2, 2.1448*0.1425, 1e-3) // t(14)
}

// The jackknife of means is the usual standard error of a mean, exactly (Efron & Tibshirani, section 11.2).
func TestJackknifeOfMeans(t *testing.T) {
	x := []float64{94, 197, 16, 38, 99, 141, 23} // the treated mice of Efron & Tibshirani, table 2.1: mean 86.86, se 25.24
	deleted := make([]float64, len(x))
	for i := range x {
		deleted[i] = Mean(slices.Delete(slices.Clone(x), i, i+1))
	}
	e, se := jackknife(Mean(x), deleted, 0.95)
	near(t, "mean", e.Value, 86.86, 5e-3)
	near(t, "standard error", se, 25.24, 5e-3)
}

func lognormal(r *rand.Rand, blocks, calls int) [][]float64 {
	out := make([][]float64, blocks)
	for b := range out {
		for range calls {
			out[b] = append(out[b], math.Exp(0.25*r.NormFloat64()))
		}
	}
	return out
}

// samples puts each block in order.
func samples(blocks [][]float64) (out []Sample) {
	for _, x := range blocks {
		s := slices.Clone(x)
		slices.Sort(s)
		out = append(out, Values(s))
	}
	return out
}

// Theory knows the answer: the 0.99-quantile of exp(σZ) is exp(2.3263σ), and the standard error of its logarithm is
// σ·√(q(1−q)/n)/φ(2.3263).
func TestPooledQuantileTheory(t *testing.T) {
	r, sum := rand.New(rand.NewPCG(7, 8)), 0.0
	want := 0.25 * math.Sqrt(0.99*0.01/20000) / (math.Exp(-2.3263*2.3263/2) / math.Sqrt(2*math.Pi))
	const runs = 60
	for range runs {
		e, err := PooledQuantile(samples(lognormal(r, 40, 500)), 0.99, 0.95)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "quantile", e.Value, math.Exp(2.3263*0.25), 5*want*e.Value)
		sum += math.Log(e.Hi/e.Lo) / 2 / StudentQuantile(0.975, 39)
	}
	near(t, "mean standard error", sum/runs, want, 0.12*want)
}

// byDefinition pools, sorts and weighs everything from scratch.
func byDefinition(blocks [][]float64, q float64) float64 {
	all := slices.Concat(blocks...)
	slices.Sort(all)
	n, sum, weights := float64(len(all)), 0.0, 0.0
	for i, v := range all {
		z := (float64(i) + 0.5 - q*n) / math.Sqrt(n*q*(1-q))
		if math.Abs(z) <= kernelReach {
			sum, weights = sum+math.Exp(-z*z/2)*v, weights+math.Exp(-z*z/2)
		}
	}
	return sum / weights
}

func TestPoolDeletions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		q := rapid.SampledFrom([]float64{0.1, 0.5, 0.9, 0.95}).Draw(t, "q")
		ties := rapid.Bool().Draw(t, "ties")
		blocks := make([][]float64, 20)
		for b := range blocks {
			for range 110 + r.IntN(80) {
				v := math.Exp(r.NormFloat64() + 0.1*float64(b))
				if ties {
					v = math.Ceil(v)
				}
				blocks[b] = append(blocks[b], v)
			}
		}
		p, err := newPool(samples(blocks), q)
		if err != nil {
			t.Fatal(err)
		}
		full, deleted := p.quantiles(q)
		if want := byDefinition(blocks, q); math.Abs(full-want) > 1e-9*want {
			t.Fatalf("pooled %v, want %v", full, want)
		}
		for b, got := range deleted {
			if want := byDefinition(slices.Delete(slices.Clone(blocks), b, b+1), q); math.Abs(got-want) > 1e-9*want {
				t.Fatalf("without block %d %v, want %v", b, got, want)
			}
		}
	})
}

func TestQuantileRatioEquivariance(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	base, treated := lognormal(r, 24, 500), lognormal(r, 24, 450)
	q, err := QuantileRatio(samples(base), samples(treated), 0.99, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	if !(q.P > 1e-6 && q.P <= 1 && q.Lo < q.Value && q.Value < q.Hi && q.N == 24) {
		t.Errorf("%+v", q)
	}
	scaled := make([][]float64, len(treated))
	for b, x := range treated {
		for _, v := range x {
			scaled[b] = append(scaled[b], 1.5*v)
		}
	}
	s, _ := QuantileRatio(samples(base), samples(scaled), 0.99, 0.95)
	near(t, "scaled", s.Value, q.Value+math.Log(1.5), 1e-9)
	near(t, "scaled, lo", s.Lo, q.Lo+math.Log(1.5), 1e-9)
	swapped, _ := QuantileRatio(samples(treated), samples(base), 0.99, 0.95)
	near(t, "swapped", swapped.Value, -q.Value, 1e-12)
	near(t, "swapped, lo", swapped.Lo, -q.Hi, 1e-12)
	slices.Reverse(base)
	slices.Reverse(treated)
	back, _ := QuantileRatio(samples(base), samples(treated), 0.99, 0.95)
	near(t, "reversed", back.Lo, q.Lo, 1e-12)
	wide, _ := QuantileRatio(samples(base), samples(treated), 0.99, 0.99)
	if !(wide.Lo < q.Lo && wide.Hi > q.Hi) {
		t.Error("the interval does not widen with its level")
	}
}

// P and the interval must agree: P = 1 − level exactly where the interval ends at 0.
func TestQuantileRatioDual(t *testing.T) {
	r := rand.New(rand.NewPCG(11, 12))
	q, err := QuantileRatio(samples(lognormal(r, 20, 600)), samples(lognormal(r, 20, 600)), 0.99, 0.95)
	if err != nil {
		t.Fatal(err)
	}
	half := StudentQuantile(1-q.P/2, 19) * (q.Hi - q.Lo) / 2 / StudentQuantile(0.975, 19)
	near(t, "end of the interval at 1 − P", math.Abs(q.Value)-half, 0, 1e-6)
}

func TestNotEstimable(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	zeros, lone := lognormal(r, 20, 500), lognormal(r, 20, 0)
	for b := range zeros {
		zeros[b] = make([]float64, 500)
	}
	lone[3] = slices.Concat(lognormal(r, 20, 500)...)
	for name, blocks := range map[string][][]float64{
		"none": nil, "19 blocks": lognormal(r, 19, 1000), "9980 samples": lognormal(r, 20, 499), "zeros": zeros,
		"one block has all": lone,
	} {
		var not *NotEstimable
		if _, err := PooledQuantile(samples(blocks), 0.99, 0.95); !errors.As(err, &not) || not.Reason == "" {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := QuantileRatio(samples(blocks), samples(blocks), 0.99, 0.95); !errors.As(err, &not) {
			t.Errorf("%s: %v", name, err)
		}
	}
	good, bad := lognormal(r, 20, 500), lognormal(r, 20, 500)
	bad[4][7] = math.NaN()
	if _, err := QuantileRatio(samples(good), samples(bad), 0.99, 0.95); !errors.Is(err, ErrNotFinite) {
		t.Errorf("NaN: %v", err)
	}
	if _, err := QuantileRatio(samples(good), samples(good[:19]), 0.99, 0.95); err == nil {
		t.Error("blocks of different numbers")
	}
	for _, q := range []float64{0, 1, math.NaN()} {
		if _, err := PooledQuantile(samples(good), q, 0.95); err == nil {
			t.Errorf("the quantile %v", q)
		}
	}
	if e, err := PooledQuantile(samples(good), 0.99, 0.95); err != nil || !(e.Lo < e.Value && e.Value < e.Hi) {
		t.Errorf("10 000 samples in 20 blocks: %+v, %v", e, err)
	}
	same, err := QuantileRatio(samples(good), samples(good), 0.99, 0.95)
	if err != nil || same.Value != 0 || same.P != 1 || same.Lo != 0 {
		t.Errorf("a ratio to itself: %+v, %v", same, err)
	}
}

func BenchmarkQuantileRatio(b *testing.B) {
	r := rand.New(rand.NewPCG(15, 16))
	base, treated := samples(lognormal(r, 160, 5000)), samples(lognormal(r, 160, 5000))
	for b.Loop() {
		if _, err := QuantileRatio(base, treated, 0.99, 0.95); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkHodgesLehmann160(b *testing.B) {
	r := rand.New(rand.NewPCG(17, 18))
	d := make([]float64, 160)
	for i := range d {
		d[i] = r.NormFloat64()
	}
	for b.Loop() {
		if _, err := HodgesLehmann(d, 0.95); err != nil {
			b.Fatal(err)
		}
	}
}
