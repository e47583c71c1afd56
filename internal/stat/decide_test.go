package stat

import (
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// NIST/SEMATECH e-Handbook, 1.3.6.7.1.
func TestNormal(t *testing.T) {
	for p, z := range map[float64]float64{
		0.5: 0, 0.8413: 0.99982, 0.95: 1.64485, 0.975: 1.95996, 0.995: 2.57583,
		0.025: -1.95996, 1e-9: -5.99781,
	} {
		near(t, "quantile", NormalQuantile(p), z, 2e-5)
		near(t, "distribution", NormalCDF(z), p, 1e-5)
	}
	for _, p := range []float64{0, 1, -1, math.NaN()} {
		if !math.IsNaN(NormalQuantile(p)) {
			t.Errorf("a quantile of %v", p)
		}
	}
}

// The ranks are those of Campbell & Gardner, Brit. Med. J. 296 (1988) 1454, table of 95 % intervals for a median.
func TestMedianInterval(t *testing.T) {
	for n, rank := range map[int]int{6: 1, 10: 2, 15: 4, 20: 6, 25: 8, 30: 10, 50: 18, 100: 40} {
		x := make([]float64, n)
		for i := range x {
			x[i] = float64((i*7)%n + 1) // 1 … n in some order: 7 divides none of the sizes
		}
		e, err := MedianInterval(x, 0.95)
		if err != nil || e.Lo != float64(rank) || e.Hi != float64(n+1-rank) || e.Value != float64(n+1)/2 {
			t.Errorf("%d values: %+v, %v; want ranks %d to %d", n, e, err, rank, n+1-rank)
		}
	}
	if e, err := MedianInterval([]float64{5, 1, 2}, 0.95); err != nil || e.Value != 2 || !math.IsInf(e.Lo, -1) ||
		!math.IsInf(e.Hi, 1) {
		t.Errorf("three values: %+v, %v", e, err)
	}
	for name, x := range map[string][]float64{"none": nil, "NaN": {math.NaN()}} {
		if _, err := MedianInterval(x, 0.95); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

// The example of Wikipedia's "Holm–Bonferroni method": at 5 % the hypotheses of 0.005 and 0.01 are rejected, the others
// not.
func TestHolm(t *testing.T) {
	p := []float64{0.01, 0.04, 0.03, 0.005}
	rounded := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-12 })
	if d := cmp.Diff([]float64{0.03, 0.06, 0.06, 0.02}, Holm(p), rounded); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]float64{0.05 / 3, 0.025, 0.025, 0.0125}, HolmLevels(p, 0.05), rounded); d != "" {
		t.Error(d)
	}
	if got := Holm([]float64{math.NaN(), 0.001}); got[0] != 1 || got[1] != 0.002 {
		t.Errorf("with a missing value: %v", got)
	}
}

// Benjamini & Hochberg 1995, section 4.1: of these 15 p-values (Neuhaus et al. 1992) their procedure rejects the four
// smallest at 5 %, Bonferroni's the three smallest.
func TestBenjaminiHochberg(t *testing.T) {
	p := []float64{
		0.0459, 0.0001, 0.3240, 0.0004, 0.4262, 0.0019, 0.5719, 0.0095, 0.6528, 0.0201, 0.7590, 0.0278, 1.0000,
		0.0298, 0.0344,
	}
	bh, holm := BenjaminiHochberg(p), Holm(p)
	var found, holms []float64
	for i := range p {
		if bh[i] <= 0.05 {
			found = append(found, p[i])
		}
		if holm[i] <= 0.05 {
			holms = append(holms, p[i])
		}
	}
	if d := cmp.Diff([]float64{0.0001, 0.0004, 0.0019, 0.0095}, found); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]float64{0.0001, 0.0004, 0.0019}, holms); d != "" {
		t.Error(d)
	}
	near(t, "adjusted 0.0095", bh[7], 0.0095*15/4, 1e-12)
}

func TestMultipleProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := rapid.SliceOfN(rapid.Float64Range(0, 1), 1, 12).Draw(t, "p")
		alpha := rapid.Float64Range(0.001, 0.2).Draw(t, "alpha")
		holm, bh, levels := Holm(p), BenjaminiHochberg(p), HolmLevels(p, alpha)
		for i, v := range p {
			if holm[i] > 1 || holm[i] < bh[i]-1e-12 || bh[i] < v-1e-12 {
				t.Fatalf("p %v: BH %v, Holm %v", v, bh[i], holm[i])
			}
			if math.Abs(holm[i]-alpha) > 1e-12 && (holm[i] <= alpha) != (v <= levels[i]) {
				t.Fatalf("p %v: Holm %v at %v, but its level is %v", v, holm[i], alpha, levels[i])
			}
			for j, w := range p {
				if v < w && (holm[i] > holm[j] || bh[i] > bh[j]+1e-12) {
					t.Fatalf("order of %v and %v is lost", v, w)
				}
			}
		}
	})
}

// Chow & Liu, Design and Analysis of Bioavailability and Bioequivalence Studies, example 3.6.1 and section 4.2: 24
// volunteers, mean AUC 80.272 (test) and 82.559 (reference), mean square 167.246 with 22 degrees of freedom; the 90 %
// interval (−8.698, 4.123) lies within ±20 % of the reference, so the two one-sided tests of Schuirmann at 5 % call
// them equivalent.
func TestEquivalent(t *testing.T) {
	diff := 80.272 - 82.559
	half := StudentQuantile(0.95, 22) * math.Sqrt(167.246/2*(1/12.0+1/12.0))
	e := Estimate{Value: diff, Lo: diff - half, Hi: diff + half, Level: 0.9, N: 24}
	near(t, "lo", e.Lo, -8.698, 2e-3)
	near(t, "hi", e.Hi, 4.123, 2e-3)
	if m := 0.2 * 82.559; !Equivalent(e, -m, m) {
		t.Error("not equivalent within 20 %")
	}
	if m := 0.1 * 82.559; Equivalent(e, -m, m) {
		t.Error("equivalent within 10 %")
	}
	if Equivalent(e, e.Lo, 10) || Equivalent(Estimate{Lo: math.NaN(), Hi: 1}, -2, 2) ||
		Equivalent(Estimate{Lo: math.Inf(-1), Hi: 1}, -2, 2) {
		t.Error("an interval that touches a margin, is missing or endless is called equivalent")
	}
}

// NIST/SEMATECH e-Handbook, 7.2.2.2: to detect a shift of one standard deviation with one-sided α = 0.05 and β = 0.10
// takes (1.645 + 1.282)² = 8.567, so 9 observations.
func TestSampleSize(t *testing.T) {
	near(t, "detectable", DetectableEffect(1/math.Sqrt(8.567), 0.1, 0.9), 1, 2e-4)
	for n, enough := range map[float64]bool{8: false, 9: true} {
		if got := decisionPower(1, 0, 0.1, 1/math.Sqrt(n)) >= 0.9; got != enough {
			t.Errorf("%v observations: enough is %v", n, got)
		}
	}
	near(t, "at a look", DetectableEffect(1, LookAlpha, 0.8), 3.33, 5e-3)
	if !math.IsNaN(DetectableEffect(1, 0, 0.8)) || !math.IsNaN(DetectableEffect(1, 0.05, 1)) {
		t.Error("an effect that is detected with certainty")
	}
}

func TestStandardError(t *testing.T) {
	e := Estimate{Value: 1, Lo: 1 - 1.95996, Hi: 1 + 1.95996, Level: 0.95, N: 100}
	near(t, "standard error", StandardError(e), 1.01, 1e-4)
	if !math.IsInf(StandardError(Estimate{Lo: math.Inf(-1), Hi: 3, Level: 0.95, N: 4}), 1) {
		t.Error("the standard error of half a line is finite")
	}
}

func TestBlocksToDecide(t *testing.T) {
	const alpha, power = 0.05, 0.8
	around := func(v, half float64, n int) Estimate {
		return Estimate{Value: v, Lo: v - half, Hi: v + half, Level: 0.95, N: n}
	}
	// Beyond the margin by d: n·((z + z')·se/d)², z + z' = 1.95996 + 0.84162.
	n, ok := BlocksToDecide(around(0.05, 1.95996*0.02, 1000), 0.02, alpha, power)
	if want := int(math.Ceil(1000 * square(2.80158*0.02*1.001/0.03))); !ok || n != want {
		t.Errorf("%d blocks, want %d", n, want)
	}
	// In the middle both ends of the interval must lie inside: z = 1.95996 + 1.28155 for power 0.8.
	n, ok = BlocksToDecide(around(0, 1.95996*0.02, 1000), 0.02, alpha, power)
	if want := int(math.Ceil(1000 * square(3.24151*0.02*1.001/0.02))); !ok || n != want {
		t.Errorf("%d blocks to be equivalent, want %d", n, want)
	}
	for name, e := range map[string]Estimate{
		"at the margin": around(0.02, 0.01, 10),
		"no interval":   {Value: 1, Lo: math.Inf(-1), Hi: math.Inf(1), Level: 0.95, N: 5},
		"no block":      around(0.05, 0.01, 0),
		"NaN":           around(math.NaN(), 1, 10),
		"far too many":  around(0.0200001, 1, 10),
	} {
		if n, ok := BlocksToDecide(e, 0.02, alpha, power); ok {
			t.Errorf("%s: %d blocks", name, n)
		}
	}
	if n, ok := BlocksToDecide(around(0.5, 0.01, 10), 0.02, alpha, power); !ok || n != 10 {
		t.Errorf("decided already: %d, %v", n, ok)
	}
}

func square(v float64) float64 { return v * v }
