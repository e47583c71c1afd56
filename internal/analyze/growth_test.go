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
