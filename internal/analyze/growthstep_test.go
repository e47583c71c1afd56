package analyze

import (
	"math"
	"strings"
	"testing"

	"tare/internal/report"
)

// TestGrowthStep: a jump between two neighbouring sizes is called one, with its factor, and a budget can break in it.
func TestGrowthStep(t *testing.T) {
	t.Parallel()
	sizes := []float64{10, 50, 100, 200, 500, 1000, 1500, 1999, 2001, 2500, 3500, 5000, 10000}
	x := growing(sizes, func(n float64) float64 {
		if n > 2000 {
			return 4e-6 * 5.6
		}
		return 4e-6
	})
	x.budget = []string{"create-pod.cpu <= 10us"}
	g := analyzedRecord(t, x.record()).Growth[0]
	s := g.Step
	if s == nil || s.From != 1999 || s.To != 2001 || *s.Lo > 5.6 || *s.Hi < 5.6 || *s.Hi/(*s.Lo) > 1.1 {
		t.Fatalf("step %+v: %s", s, g.Reason)
	}
	if g.Law != "" || g.Knee != nil || g.Best != "constant" || g.Coefficients.C0 < 3.9e-6 || g.Coefficients.C0 > 4.1e-6 ||
		s.Before == nil || s.After != nil {
		t.Errorf("%+v, before %+v, after %+v", g, s.Before, s.After)
	}
	if b := g.BreaksBudgetAt; b == nil || !b.InStep || *b.Lo != 1999 || *b.Hi != 2001 || b.Extrapolated {
		t.Errorf("breaks at %+v", b)
	}
	for _, p := range g.Points {
		if ratio := *p.Fitted / p.Value; ratio < .9 || ratio > 1.1 || *p.FittedLo > *p.Fitted || *p.FittedHi < *p.Fitted {
			t.Errorf("at %v: %v is fitted as %v [%v, %v]", p.N, p.Value, *p.Fitted, *p.FittedLo, *p.FittedHi)
		}
	}

	x = growing(sizes, func(n float64) float64 { return 4e-6 + 19e-6*max(0, 1-2000/n) })
	g = analyzedRecord(t, x.record()).Growth[0]
	if g.Step != nil || g.Law != "" || g.Best != "" || g.Knee == nil || g.Knee.Value < 1900 || g.Knee.Value > 2100 ||
		g.Bend == nil || g.Bend.Ceiling == nil || *g.Bend.Ceiling.Lo > 23e-6 || *g.Bend.Ceiling.Hi < 23e-6 {
		t.Errorf("a bend: %+v, step %+v, knee %+v, bend %+v", g, g.Step, g.Knee, g.Bend)
	}

	x = growing(sizes, func(n float64) float64 { return 4e-6 + 4e-6*max(0, math.Copysign(1, n-9999)) })
	x.budget = []string{"create-pod.cpu <= 6us"}
	g = analyzedRecord(t, x.record()).Growth[0]
	if b := g.BreaksBudgetAt; g.Best != "" || g.Step != nil || g.Points[0].Fitted != nil || b == nil || *b.Lo != 5000 ||
		*b.Hi != 10000 {
		t.Errorf("more at the last size alone: best %q, step %+v, breaks at %+v: %s", g.Best, g.Step, b, g.Reason)
	}
}

// fitted is the growth of given costs, by size and block.
func fitted(sizes []float64, values [][]float64) report.Growth {
	out := report.Growth{Range: report.Interval{Lo: sizes[0], Hi: sizes[len(sizes)-1]}}
	for _, n := range sizes {
		out.Points = append(out.Points, report.GrowthPoint{N: n})
	}
	c := comparison{margin: .02}
	c.fit(&out, &line{sizes: sizes}, values, nil)
	return out
}

// TestGrowthOfCounts: what cannot vary, and what is 0 here and there.
func TestGrowthOfCounts(t *testing.T) {
	t.Parallel()
	sizes := []float64{1, 10, 100, 1000, 2000, 5000, 10000}
	per := func(f func(n float64) float64) [][]float64 {
		out := make([][]float64, len(sizes))
		for i, n := range sizes {
			out[i] = []float64{f(n), f(n), f(n), f(n), f(n), f(n), f(n), f(n)}
		}
		return out
	}
	g := fitted(sizes, per(func(float64) float64 { return 8 }))
	if !g.Exact || g.Law != "constant" || *g.C0Lo != 8 || *g.C0Hi != 8 || g.Reason != "" || *g.Points[3].Fitted != 8 ||
		g.Constant == nil || g.Constant.Hi != 0 {
		t.Errorf("always 8: %+v", g)
	}
	if g := fitted(sizes[:3], per(func(float64) float64 { return 8 })[:3]); !g.Exact || g.Law != "constant" {
		t.Errorf("always 8, at three sizes: %+v", g)
	}
	if g := fitted(sizes, per(func(float64) float64 { return 0 })); !g.Exact || *g.C0Hi != 0 || *g.Points[0].Fitted != 0 {
		t.Errorf("always 0: %+v", g)
	}
	half := fitted(sizes, per(func(n float64) float64 {
		if n > 1500 {
			return 0
		}
		return 1
	}))
	if half.Exact || half.Best != "" || half.Step != nil || half.Points[0].Fitted != nil ||
		!strings.HasPrefix(half.Reason, "0 at 3 of 7 sizes (2000, 5000, 10k): ") {
		t.Errorf("hits that vanish: %+v", half)
	}
	line := fitted(sizes, per(func(n float64) float64 { return 97 + 2*n }))
	if line.Best != "linear" || *line.Lo < 1.999 || *line.Hi > 2.001 || *line.C0Lo < 96.99 || *line.C0Hi > 97.01 ||
		line.Step != nil || line.Knee != nil {
		t.Errorf("97 + 2·N: %+v", line)
	}
	miss := fitted(sizes, per(func(n float64) float64 {
		if n > 500 {
			return 66
		}
		return 8
	}))
	if s := miss.Step; s == nil || s.From != 100 || s.To != 1000 || *s.Lo < 8.2499 || *s.Hi > 8.2501 {
		t.Errorf("8 and 66: %+v", miss)
	}
}
