package analyze

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tare/internal/design"
	"tare/internal/record"
	"tare/internal/report"
)

// growing is an experiment whose only operation costs f(n).
func growing(sizes []float64, f func(n float64) float64) experiment {
	x := experiment{question: design.Scale, blocks: 12, operations: []string{"create-pod"}, seed: 8, block: .02}
	factor := record.Factor{Name: "policies"}
	for _, n := range sizes {
		level := fmt.Sprint(n)
		factor.Levels = append(factor.Levels, level)
		levels := map[string]string{"policies": level}
		t := design.Treatment{ID: design.ID(levels), Levels: map[string]string{"policies": level, "mechanism": "vap"}}
		x.treatments = append(x.treatments, t)
	}
	x.factors = []record.Factor{factor}
	x.cost = func(treatment, _ string, _ int) float64 {
		if treatment == design.AAArm {
			return f(sizes[0])
		}
		n, err := strconv.ParseFloat(strings.TrimPrefix(treatment, "policies="), 64)
		if err != nil {
			panic(err)
		}
		return f(n)
	}
	return x
}

func TestGrowth(t *testing.T) {
	t.Parallel()
	twelve := []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000}
	linear := func(n float64) float64 { return 1e-3 + 4e-5*n }
	x := growing(twelve, linear)
	x.budget = []string{"create-pod.cpu <= 10ms", "create-pod.cpu <= 300ms"}
	rep := analyzedRecord(t, x.record())
	if len(rep.Growth) != 1 {
		t.Fatalf("growth %+v", rep.Growth)
	}
	g := rep.Growth[0]
	if g.Law != "linear" || g.Best != "linear" || g.Factor != "policies" || g.Treatment != "" || g.Metric != "cpu" ||
		g.Operation != "create-pod" || g.Reason != "" {
		t.Errorf("%+v", g)
	}
	if math.Abs(g.Coefficients.C0/1e-3-1) > .05 || math.Abs(g.Coefficients.C1/4e-5-1) > .05 || *g.Lo > 4e-5 ||
		*g.Hi < 4e-5 {
		t.Errorf("coefficients %+v [%v, %v]", g.Coefficients, *g.Lo, *g.Hi)
	}
	if b := g.BreaksBudgetAt; b == nil || g.Budget != "create-pod.cpu <= 10ms" || math.Abs(b.Value/225-1) > .1 ||
		*b.Lo > 225 || *b.Hi < 225 || b.Extrapolated {
		t.Errorf("breaks at %+v", b)
	}
	if len(g.Points) != 12 || g.Points[3].N != 10 || math.Abs(g.Points[3].Value/linear(10)-1) > .05 ||
		math.Abs(*g.Points[11].Fitted/linear(5000)-1) > .05 || g.Constant == nil || g.Constant.Lo < 10 {
		t.Errorf("points %+v, constant %+v", g.Points, g.Constant)
	}
	if len(rep.Effects) != 0 {
		t.Errorf("effects without a baseline: %+v", rep.Effects)
	}
	if rep.Verdict != report.Fail { // 5000 policies cost 200 ms
		t.Errorf("%s (%s)", rep.Verdict, rep.Reason)
	}

	x = growing(twelve[:7], linear)
	x.budget = []string{"create-pod.cpu <= 10ms"}
	g = analyzedRecord(t, x.record()).Growth[0]
	if g.Law != "" || g.Best != "linear" || !strings.Contains(g.Reason, "7 sizes") {
		t.Errorf("7 sizes: %+v", g)
	}
	if b := g.BreaksBudgetAt; b == nil || !b.Extrapolated {
		t.Errorf("7 sizes to 100, breaks at %+v", b)
	}
	g = analyzedRecord(t, growing(twelve[:5], linear).record()).Growth[0]
	if g.Law != "" || g.Best != "" || len(g.Points) != 5 || !strings.Contains(g.Reason, "5 sizes are too few") ||
		g.Points[0].Fitted != nil {
		t.Errorf("5 sizes: %+v", g)
	}
}

// TestGrowthByGroup: each row of otherwise equal treatments has a law of its own, the baseline's too.
func TestGrowthByGroup(t *testing.T) {
	t.Parallel()
	x := experiment{question: design.Scale, blocks: 10, operations: []string{"open"}, seed: 8, block: .02}
	for _, e := range []string{"none", "landlock"} {
		for _, n := range []string{"1", "2", "4", "8", "16", "32"} {
			levels := map[string]string{"enforcer": e, "rules": n}
			x.treatments = append(x.treatments, design.Treatment{ID: design.ID(levels), Baseline: e == "none", Levels: levels})
		}
	}
	x.factors = []record.Factor{
		{Name: "enforcer", Levels: []string{"none", "landlock"}},
		{Name: "rules", Levels: []string{"1", "2", "4", "8", "16", "32"}},
	}
	x.cost = func(treatment, _ string, _ int) float64 {
		_, n, _ := strings.Cut(treatment, "rules=")
		if v, err := strconv.ParseFloat(n, 64); err == nil && strings.Contains(treatment, "landlock") {
			return 1e-6 + 1e-6*math.Sqrt(v)
		}
		return 1e-6
	}
	rep := analyzedRecord(t, x.record())
	if len(rep.Growth) != 2 || rep.Growth[0].Treatment != "enforcer=none" ||
		rep.Growth[1].Treatment != "enforcer=landlock" {
		t.Fatalf("growth %+v", rep.Growth)
	}
	if g := rep.Growth[1]; g.Law != "" || g.Best != "sqrt" && !slices.Contains(g.Tied, "sqrt") {
		t.Errorf("%+v", g)
	}
	if g := rep.Growth[0]; g.Law != "" || g.Constant == nil || g.Constant.Lo > 0 || g.Constant.Hi < 0 ||
		g.Constant.Hi > .02 {
		t.Errorf("what does not grow: %+v", g)
	}
	if len(rep.Effects) != 12 || !strings.Contains(strings.Join(rep.Notes, "\n"), "growth is of the metric itself") {
		t.Errorf("%d effects, notes %q", len(rep.Effects), rep.Notes)
	}
}

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
