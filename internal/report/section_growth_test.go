package report

import (
	"fmt"
	"strings"
	"testing"

	"tare/internal/metric"
)

// turned are growths that are not one law with noise.
func turned() *Report {
	r := pageBase("records")
	sizes := []float64{100, 500, 1999, 2001, 5000, 10000}
	grow := func(g Growth, f func(n float64) float64) Growth {
		g.Factor, g.Operation, g.Range = "records", "check", Interval{Lo: 100, Hi: 10000}
		for _, n := range sizes {
			g.Points = append(g.Points, GrowthPoint{
				N: n, Value: f(n), Lo: new(f(n) * .98), Hi: new(f(n) * 1.02),
				Fitted: new(f(n)), FittedLo: new(f(n) * .99), FittedHi: new(f(n) * 1.01),
			})
		}
		return g
	}
	jump := func(n float64) float64 {
		if n > 2000 {
			return 23e-6
		}
		return 4.1e-6
	}
	r.Growth = []Growth{
		grow(Growth{
			Metric: "cpu", Unit: metric.CPUSeconds, Best: "constant", Tied: []string{"log"},
			Reason:       "a step fits better than any one law",
			Coefficients: Coefficients{C0: 4.1e-6}, C0Lo: new(4.05e-6), C0Hi: new(4.16e-6), Budget: "check.cpu <= 10us",
			Step: &Step{
				From: 1999, To: 2001, Factor: 5.6, Lo: new(5.2), Hi: new(6.0), Across: new(5.4), AcrossLo: new(5.1),
				AcrossHi: new(5.7), After: &GrowthSide{
					Range: Interval{Lo: 2001, Hi: 10000}, Best: "linear", Coefficients: Coefficients{C0: 23e-6, C1: 1e-12},
				},
			},
			BreaksBudgetAt: &Crossing{Value: 2000, Lo: new(1999.0), Hi: new(2001.0), InStep: true},
		}, jump),
		grow(Growth{
			Metric: "wall", Unit: metric.Seconds, Reason: "a cost that is constant up to a bend fits better than any one law",
			Knee: &Crossing{Value: 2004, Lo: new(1992.0), Hi: new(2018.0)},
			Bend: &Bend{Base: Coefficient{Value: 4e-6}, Ceiling: &Coefficient{Value: 23e-6, Lo: new(22.5e-6), Hi: new(23.4e-6)}},
		}, func(n float64) float64 { return 4e-6 + 19e-6*max(0, 1-2000/n) }),
		grow(Growth{
			Metric: "allocations", Unit: metric.Count, Law: "constant", Best: "constant", Exact: true,
			Coefficients: Coefficients{C0: 8}, C0Lo: new(8.0), C0Hi: new(8.0), Constant: &Interval{},
		}, func(float64) float64 { return 8 }),
		grow(Growth{
			Metric: "allocated", Unit: metric.Bytes, Law: "linear", Best: "linear",
			Coefficients: Coefficients{C0: 1024, C1: 512}, C0Lo: new(1000.0), C0Hi: new(1048.0), Lo: new(511.0), Hi: new(513.0),
		}, func(n float64) float64 { return 1024 + 512*n }),
	}
	return r
}

func TestGrowthForms(t *testing.T) {
	r := turned()
	for i, want := range []string{
		"check.cpu: no single law: step between records = 1999 and 2001: ×5.4 [5.1, 5.7]; up to there constant, 4.1 µs " +
			"[4.05, 4.16] (log fits as well), " +
			"beyond it ×5.6 [5.2, 6] that, over 100–10000; breaks check.cpu <= 10us between records = 1999 and 2001, in the " +
			"step; " +
			"by themselves, 2001–10000: best linear, 23 µs + 0.001 ns·records",
		"check.wall: no single law: bends at records = 2004 [1992, 2018]: 4 µs up to there, beyond it rises as 1 − " +
			"2004/records towards 23 µs [22.5, 23.4], over 100–10000",
		"check.allocations: constant, exactly 8 at every size, over 100–10000",
		"check.allocated: linear, 1 KiB [1000 B, 1.02 KiB] + 512 B·records [511, 513], over 100–10000",
	} {
		if got := r.law(&r.Growth[i]); got != want {
			t.Errorf("\n%s\n, want\n%s", got, want)
		}
	}
	const misses = "no form fits: the best, quadratic, misses the cost at 1000 by 35 %"
	unfit := Growth{
		Operation: "load", Metric: "cpu", Factor: "n", Unit: metric.CPUSeconds, Range: Interval{1, 3000}, Reason: misses,
		BreaksBudgetAt: &Crossing{Value: 2000, Lo: new(1000.0), Hi: new(3000.0)}, Budget: "load.cpu <= 12us",
		Constant: &Interval{-0.001, 0.002},
	}
	stepped := unfit
	stepped.Step, stepped.BreaksBudgetAt = &Step{From: 30, To: 100, Factor: 3}, nil
	stepped.Reason += "; the budget is exceeded from the smallest size on"
	for want, g := range map[string]Growth{
		"load.cpu: no law is named: " + misses + "; over 1–3000; breaks load.cpu <= 12us between n = 1000 and 3000; its " +
			"growth from the smallest to the largest size lies between -0.1 % and 0.2 %": unfit,
		"load.cpu: no single law: step between n = 30 and 100: ×3; " + misses + "; the budget is exceeded from the " +
			"smallest size on, over 1–3000; its growth from the smallest to the largest size lies between -0.1 % and " +
			"0.2 %": stepped,
	} {
		if got := (&Report{}).law(&g); got != want {
			t.Errorf("\n%s\n, want\n%s", got, want)
		}
	}
	if got, want := (&Growth{Law: "log", Factor: "rules"}).formula("log"), "0 + 0·log₂(1+rules)"; got != want {
		t.Errorf("a law in log₂ reads %q, want %q", got, want)
	}
	svg := string(curveOf(r, &r.Growth[0], "x").SVG)
	if !strings.Contains(svg, "step ×5.4, breaks the budget") || !strings.Contains(svg, "fitted: constant with a step") ||
		strings.Contains(svg, "breaks the budget at") {
		t.Error("the chart does not mark the step")
	}
	if lines := fittedLines(&r.Growth[0]); len(lines) != 2 {
		t.Errorf("%d lines for a cost with a step", len(lines))
	}
	if svg := string(curveOf(r, &r.Growth[1], "x").SVG); !strings.Contains(svg, "slope changes at 2004") ||
		!strings.Contains(svg, "fitted: with a bend") {
		t.Error("the chart does not mark the bend")
	}
	table := laws(r)
	if row := fmt.Sprint(rowsOf(table.table)[0]); !strings.Contains(row, "1999 and 2001: ×5.6 [5.2, 6]") {
		t.Errorf("the table of laws: %s", row)
	}
}
