package analyze

import (
	"math"
	"slices"
	"strings"
	"testing"

	"tare/internal/report"
)

// metricOfArm finds one metric of one arm.
func metricOfArm(t *testing.T, rep *report.Report, treatment, name, quantile string) *report.Metric {
	t.Helper()
	for i := range rep.Treatments {
		for k := range rep.Treatments[i].Metrics {
			if m := &rep.Treatments[i].Metrics[k]; rep.Treatments[i].ID == treatment && m.Name == name &&
				m.Quantile == quantile {
				return m
			}
		}
	}
	t.Fatalf("no %s %s under %s", name, quantile, treatment)
	return nil
}

// millisecond is a call of 1 ms that is 10 % slower under seccomp.
func millisecond(treatment, _ string, _ int) float64 {
	if treatment == seccomp {
		return 1.1e-3
	}
	return 1e-3
}

// TestCallsInTheirWindow: warm-up, which is ten times as slow here, does not count, and CPU time is the target's, per
// good call.
func TestCallsInTheirWindow(t *testing.T) {
	t.Parallel()
	x := experiment{blocks: 10, calls: 1000, cost: millisecond, block: .01, seed: 9, operations: []string{"token"}}
	x.fail = func(treatment string, block, call int) bool {
		return treatment == seccomp && block%2 == 0 && call >= 100 && call < 200
	}
	rep := measured(t, x)
	for _, c := range []struct {
		treatment, name, quantile string
		want, tolerance           float64
	}{
		{"enforcer=none", "response", "p50", 1e-3, .05},
		{seccomp, "response", "p50", 1.1e-3, .05},
		{"enforcer=none", "response", "mean", 1e-3 * math.Exp(.045), .06}, // of a lognormal; warm-up would make it 1.9 ms
		{"enforcer=none", "cpu", "", 1e-3, .05},
		{seccomp, "cpu", "", 1.1e-3, .05},
		{seccomp, "upstream_calls", "", .25, .001},
		{seccomp, "error", "", .05, .001}, // 10 % in half of the blocks: a median would say 0 or 10
		{"enforcer=none", "goodput", "", 1000, .001},
		{seccomp, "goodput", "", 950, .001},
	} {
		m := metricOfArm(t, rep, c.treatment, c.name, c.quantile)
		if math.Abs(m.Value/c.want-1) > c.tolerance || m.Operation != "token" || m.N != 10 {
			t.Errorf("%s %s %s: %+v, want %v ± %v", c.treatment, c.name, c.quantile, m, c.want, c.tolerance)
		}
	}
	for _, name := range []string{"token.cpu", "token.response.p50"} {
		if e := effectOn(t, rep.Effects, name); !e.Gating || e.Verdict != report.Regressed || math.Abs(e.Estimate-.1) > .02 {
			t.Errorf("%+v", e)
		}
	}
	if e := effectOn(t, rep.Effects, "token.error"); e.Kind != "difference" || math.Abs(e.Estimate-.05) > .001 ||
		e.Gating {
		t.Errorf("%+v", e)
	}
	i := slices.IndexFunc(rep.Operations, func(o report.Operation) bool { return o.Treatment == seccomp })
	if o := rep.Operations[i]; o.Outcomes != (report.Outcomes{OK: 9500, Failed: 500}) || math.Abs(*o.Offered-1000) > 1 ||
		*o.Response.P50 > 1.3e-3 || len(o.Causes) != 1 {
		t.Errorf("%+v", rep.Operations[i])
	}
	if g := rep.Generator; g == nil || !g.Valid || g.Lateness.P99 > 1e-3 || math.Abs(*g.CPUSeconds-.05*30) > 1e-9 {
		t.Errorf("generator %+v", g)
	}
	k := slices.IndexFunc(rep.Target, func(x report.Target) bool { return x.Treatment == seccomp && x.Name == "endpoint" })
	if x := rep.Target[k]; math.Abs(*x.CPUPerOp/(1.1e-3*.75)-1) > .05 {
		t.Errorf("target %+v", x)
	}
}

// TestTailsNeedEnough: a tail has an interval only with 20 blocks and 100 calls beyond it in all.
func TestTailsNeedEnough(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		blocks, calls int
		p99, p999     bool
	}{{10, 2000, false, false}, {20, 200, false, false}, {20, 600, true, false}} {
		x := experiment{
			blocks: c.blocks, calls: c.calls, cost: millisecond, block: .01, seed: 9, operations: []string{"token"},
			budget: []string{"response.p99 <= +30%", "response.p99 <= 20ms"},
		}
		rep := measured(t, x)
		has := func(q string) bool {
			return slices.ContainsFunc(
				rep.Effects, func(e report.Effect) bool { return e.Quantile == q && e.Treatment == seccomp },
			)
		}
		if has("p99") != c.p99 || has("p999") != c.p999 {
			t.Errorf("%d blocks of %d: p99 %v, p999 %v", c.blocks, c.calls, has("p99"), has("p999"))
		}
		notes := strings.Join(rep.Notes, "\n")
		if strings.Contains(notes, "not estimable") != (!c.p99 || !c.p999) {
			t.Errorf("notes %q", rep.Notes)
		}
		for _, b := range rep.Budgets {
			want := report.Inconclusive
			if c.p99 {
				want = report.Pass
			}
			if b.Verdict != want || b.Estimate == nil || (b.Lo != nil) != c.p99 ||
				!c.p99 && !strings.Contains(b.Reason, "not estimable") {
				t.Errorf("%d blocks of %d: %s: %s (%s), %v [%v]", c.blocks, c.calls, b.Text, b.Verdict, b.Reason, b.Estimate, b.Lo)
			}
		}
		if stop, reason := Decide(rep); stop != c.p99 {
			t.Errorf("%d blocks of %d: stop %v (%s)", c.blocks, c.calls, stop, reason)
		}
		if c.p99 {
			if e := effectOn(t, rep.Effects, "token.response.p99"); !e.Gating || e.Lo > .1 || e.Hi < .1 {
				t.Errorf("p99 %+v", e)
			}
		}
		i := slices.IndexFunc(rep.Percentiles, func(p report.Percentiles) bool { return p.Treatment == seccomp })
		p := rep.Percentiles[i]
		if p.Of != "calls" || p.N != c.blocks*c.calls || p.Metric != "response" {
			t.Errorf("percentiles %+v", p)
		}
		for k, point := range p.Points {
			if k > 0 && (point.Value < p.Points[k-1].Value || point.Q <= p.Points[k-1].Q) ||
				point.Lo != nil && (*point.Lo > point.Value || *point.Hi < point.Value) {
				t.Errorf("point %+v", point)
			}
			if point.Q == .99 && (point.Lo != nil) != c.p99 {
				t.Errorf("band at p99: %v", point.Lo)
			}
		}
	}
}

// TestLateBlocks: a generator that is late spoils times and nothing else. A run that loses many is invalid if times
// were asked for.
func TestLateBlocks(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		late    int
		budget  string
		verdict report.Verdict
		says    string
	}{
		{0, "cpu <= +20%", report.Pass, ""},
		{2, "cpu <= +20%", report.Pass, "no times are taken from blocks 1, 2"},
		{4, "cpu <= +20%", report.Pass, "no response times are given"},
		{12, "cpu <= +20%", report.Pass, "no response times are given"},
		{2, "response.p50 <= +20%", report.Pass, "no times are taken from blocks 1, 2"},
		{4, "response.p50 <= +20%", report.Invalid, ""},
		{12, "response.p99 <= +20%", report.Invalid, ""},
	} {
		x := experiment{
			blocks: 12, calls: 200, cost: millisecond, block: .01, seed: 9, operations: []string{"token"},
			budget: []string{c.budget},
		}
		x.spoil = func(treatment string, block int) bool { return block < c.late && treatment == seccomp }
		rep := measured(t, x)
		if rep.Verdict != c.verdict || rep.Design.Blocks != 12 || rep.Generator.Valid != (c.verdict != report.Invalid) {
			t.Errorf(
				"%d late blocks, %s: %s (%s), %d blocks, %+v", c.late, c.budget, rep.Verdict, rep.Reason, rep.Design.Blocks,
				rep.Generator,
			)
		}
		if said := strings.Join(rep.Warnings, "\n"); !strings.Contains(said, c.says) ||
			c.late == 0 && strings.Contains(said, "late") {
			t.Errorf("%d late blocks: warnings %q", c.late, said)
		}
		if c.late >= 4 && slices.ContainsFunc(
			rep.Effects, func(e report.Effect) bool { return e.Metric == "response" || e.Metric == "service" },
		) {
			t.Errorf("%d late blocks: there are effects on times", c.late)
		}
		if c.late >= 4 && rep.Operations[0].Response != nil {
			t.Errorf("%d late blocks: there are times %+v", c.late, rep.Operations[0].Response)
		}
		if want := c.verdict == report.Invalid; want != (ExitCode(rep) == ExitInvalid) {
			t.Errorf("exit %d", ExitCode(rep))
		}
		if why := rep.Budgets[0].Reason; c.verdict == report.Invalid &&
			why != "no times are given, since the generator sent late" {
			t.Errorf("%d late blocks: the budget is not measured because %q", c.late, why)
		}
	}
}

// TestMixes: with several operations there is each of them, and all together.
func TestMixes(t *testing.T) {
	t.Parallel()
	x := experiment{
		blocks: 10, calls: 400, block: .01, seed: 9, operations: []string{"fast", "slow"},
		budget: []string{"response.p50 <= 10ms", "slow.response.p50 <= 10ms", "fast.response <= 1.2ms"},
	}
	x.cost = func(_, op string, _ int) float64 {
		if op == "slow" {
			return 20e-3
		}
		return 1e-3
	}
	rep := measured(t, x)
	want := []report.Verdict{report.Inconclusive, report.Fail, report.Pass}
	for i, b := range rep.Budgets {
		if i == 0 { // half of the calls take 1 ms and half 20 ms: the median is at one of the edges
			continue
		}
		if b.Verdict != want[i] {
			t.Errorf("%s: %s (%s)", b.Text, b.Verdict, b.Reason)
		}
	}
	if m := metricOfArm(t, rep, seccomp, "cpu", ""); m.Operation != "" {
		t.Errorf("CPU time cannot be told apart by operation: %+v", m)
	}
	if rep.Design.Blocks != 10 || len(rep.Operations) != 6 {
		t.Errorf("%d operations", len(rep.Operations))
	}
}
