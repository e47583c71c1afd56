package main

import (
	"bytes"
	"strings"
	"testing"

	"tare/internal/report"
)

func TestUntrue(t *testing.T) {
	const margin = 0.02
	for _, c := range []struct {
		verdict report.EffectVerdict
		truth   float64
		want    bool
	}{
		{report.Regressed, 0, true},
		{report.Regressed, 0.02, true}, // at the margin, not beyond it
		{report.Regressed, 0.1, false},
		{report.Improved, 0, true},
		{report.Improved, -0.1, false},
		{report.Slower, 0, true},
		{report.Slower, 0.01, false},
		{report.Faster, 0, true},
		{report.Equivalent, 0.01, false},
		{report.Equivalent, 0.1, true},
		{report.EffectInconclusive, 0.1, false},
	} {
		if got := untrue(c.verdict, c.truth, margin); got != c.want {
			t.Errorf("%s where the truth is %v: untrue %v, want %v", c.verdict, c.truth, got, c.want)
		}
	}
}

// TestTally counts three experiments: one right, one that calls nothing something, one invalid.
func TestTally(t *testing.T) {
	made := func(overall report.Verdict, v report.EffectVerdict, estimate float64) *report.Report {
		return &report.Report{
			Verdict: overall, Seconds: 10, Design: &report.Design{Blocks: 20},
			Treatments: []report.Treatment{{ID: "x", Levels: map[string]string{"planted": "10%"}}, {ID: "y"}},
			Effects: []report.Effect{
				{
					Treatment: "x", Operation: "open", Metric: "cpu", Gating: true, Verdict: report.Regressed, Estimate: 0.1, Lo: 0.09,
					Hi: 0.11,
				},
				{
					Treatment: "y", Operation: "open", Metric: "cpu", Gating: true, Verdict: v, Estimate: estimate,
					Lo: estimate - 0.01, Hi: estimate + 0.01,
				},
				{Treatment: "y", Operation: "open", Metric: "wall", Verdict: report.Regressed, Estimate: 1},
			},
		}
	}
	var all tally
	all.add(made(report.None, report.Equivalent, 0.005))
	all.add(made(report.None, report.Regressed, 0.05))
	all.add(made(report.Invalid, report.EffectInconclusive, 0))
	if all.n != 3 || all.invalid != 1 || all.wrong != 2 || all.beyond != 1 {
		t.Errorf("%d experiments, %d invalid, %d wrong, %d beyond; want 3, 1, 2, 1", all.n, all.invalid, all.wrong,
			all.beyond)
	}
	var b bytes.Buffer
	if err := all.write(&b, options{file: "f.yaml", n: 3, busy: 2, seed: 1}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"3 experiments of f.yaml, seeds 1 to 3, 2 busy loops beside them.",
		"| x | open.cpu | +10.0 % | +10.00 % | 1.00 % | 3 of 3 | 3 regressed |",
		"| y | open.cpu | +0.0 % | +0.50 % | 1.00 % | 2 of 3 | 1 equivalent, 1 inconclusive, 1 regressed |",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing from\n%s", want, &b)
		}
	}
}
