package analyze

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/report"
)

// policyGrowth is a scale over policies whose calls cost CPU time in two parts of the target, beside simulated nodes
// that cost ten times as much.
func policyGrowth(operations ...string) experiment {
	x := experiment{
		question: design.Scale, blocks: 10, calls: 60, operations: operations, seed: 8, block: .02, area: "gatehouse",
	}
	factor := record.Factor{Name: "policies"}
	for _, n := range []int{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000} {
		level := strconv.Itoa(n)
		factor.Levels = append(factor.Levels, level)
		x.treatments = append(x.treatments, design.Treatment{
			ID: "policies=" + level, Levels: map[string]string{"policies": level, "mechanism": "vap"},
		})
	}
	x.factors = []record.Factor{factor}
	x.cost = func(treatment, _ string, _ int) float64 { return 2e-3 + .33e-3*policiesOf(treatment) }
	x.beside = func(t *testing.T, w *record.Writer, trial design.Trial) {
		must(t,
			w.Samples(
				record.Samples{
					Treatment: trial.Treatment, Block: trial.Block, When: record.Before,
					Samples: []metric.Sample{{Subject: "simulated-nodes", Metric: "cpu", Value: 3}},
				},
			),
			w.Samples(
				record.Samples{
					Treatment: trial.Treatment, Block: trial.Block, When: record.After,
					Samples: []metric.Sample{{Subject: "simulated-nodes", Metric: "cpu", Value: 5}},
				},
			))
	}
	return x
}

func policiesOf(treatment string) float64 {
	n, err := strconv.ParseFloat(strings.TrimPrefix(treatment, "policies="), 64)
	if err != nil {
		return 1 // the A/A arm
	}
	return n
}

// TestPolicyGrowth: the law of CPU time per call is found, with the size at which a budget of the only operation
// breaks; what simulated nodes use is shown and is no part of it.
func TestPolicyGrowth(t *testing.T) {
	t.Parallel()
	for _, op := range []string{"create-pod", "create-pod-dry-run"} {
		x := policyGrowth(op)
		x.budget = []string{"create-pod.cpu <= 10ms"} // also of a dry run: so its file calls it
		rep := analyzed(t, x.write(t, t.TempDir()))
		i := slices.IndexFunc(rep.Growth, func(g report.Growth) bool { return g.Metric == "cpu" })
		if i < 0 {
			t.Fatalf("%s: no growth of CPU time in %+v", op, rep.Growth)
		}
		g := rep.Growth[i]
		if g.Law != "linear" || g.Operation != op || math.Abs(g.Coefficients.C1/.33e-3-1) > .1 || g.Budget != x.budget[0] {
			t.Errorf("%s: %+v", op, g)
		}
		if b := g.BreaksBudgetAt; b == nil || math.Abs(b.Value/24.2-1) > .2 || b.Lo == nil || *b.Lo > 24.3 || *b.Hi < 24.1 {
			t.Errorf("%s breaks at %+v", op, b)
		}
		verdicts := map[report.Verdict]int{}
		for _, b := range rep.Budgets {
			verdicts[b.Verdict]++
		}
		if verdicts[report.Pass] != 5 || verdicts[report.Fail] != 5 { // 20 policies cost 8.6 ms, 50 cost 18.5 ms
			t.Errorf("%s: %v", op, verdicts)
		}
		checkParts(t, rep)
	}
}

// TestMemoryGrows: without a budget that names it, too, the memory of the target is fitted like its CPU time, and so is
// that of each of its parts, if there are several.
func TestMemoryGrows(t *testing.T) {
	t.Parallel()
	growths := func(slopes map[string]float64) map[string]report.Growth {
		x := policyGrowth("create-pod")
		x.beside = func(t *testing.T, w *record.Writer, trial design.Trial) {
			var samples []metric.Sample
			for part, slope := range slopes {
				rss := 100*mib + slope*mib*policiesOf(trial.Treatment)*(1+.01*float64(trial.Block%3))
				samples = append(samples, metric.Sample{Subject: part, Metric: probe.RSS.Name, Value: rss})
			}
			for _, when := range []record.When{record.Before, record.After} {
				must(t, w.Samples(record.Samples{
					Treatment: trial.Treatment, Block: trial.Block, When: when, Samples: samples,
				}))
			}
		}
		rep := analyzed(t, x.write(t, t.TempDir()))
		out := map[string]report.Growth{}
		for _, g := range rep.Growth {
			if g.Metric == probe.RSS.Name {
				out[g.Part] = g
			}
		}
		for _, m := range rep.Treatments[1].Metrics {
			if strings.Contains(m.Name, " of ") {
				t.Errorf("the metric %s of a treatment is of a part", m.Name)
			}
		}
		return out
	}
	check := func(g report.Growth, slope float64) {
		t.Helper()
		if g.Law != "linear" || math.Abs(g.Coefficients.C1/(slope*1.01*mib)-1) > .05 {
			t.Errorf("%+v, want %v MiB each", g, slope)
		}
	}
	one := growths(map[string]float64{"plane": .4})
	if len(one) != 1 {
		t.Errorf("a target of one part: %+v", one)
	}
	check(one[""], .4)
	two := growths(map[string]float64{"plane": .4, "etcd": .1, "host": 3})
	if len(two) != 3 {
		t.Errorf("a target of two parts, and the host: %+v", two)
	}
	check(two[""], .5)
	check(two["plane"], .4)
	check(two["etcd"], .1)
}

// checkParts compares CPU time per call with the sum over the parts of the target.
func checkParts(t *testing.T, rep *report.Report) {
	t.Helper()
	for _, arm := range rep.Treatments {
		i := slices.IndexFunc(arm.Metrics, func(m report.Metric) bool { return m.Name == "cpu" })
		sum := 0.0
		for _, x := range rep.Target {
			switch {
			case x.Treatment != arm.ID:
			case x.Name == "simulated-nodes":
				if x.CPUPerOp != nil || x.CPUSeconds == nil || math.Abs(*x.CPUSeconds-20) > 1e-6 {
					t.Errorf("%s: %+v", arm.ID, x)
				}
			case x.CPUPerOp != nil:
				sum += *x.CPUPerOp
			}
		}
		if m := arm.Metrics[i]; math.Abs(sum/m.Value-1) > .05 { // a mean over blocks against their median
			t.Errorf("%s: the parts use %v a call, together %v", arm.ID, sum, m.Value)
		}
	}
}

// TestOperationBudgets: CPU time is of the whole mix. A budget on one of several operations is not measured, and says
// why.
func TestOperationBudgets(t *testing.T) {
	t.Parallel()
	x := policyGrowth("create-pod", "get-pod")
	x.budget = []string{"create-pod.cpu <= 10ms", "cpu <= 10ms", "delete-pod.cpu <= 10ms"}
	rep := analyzed(t, x.write(t, t.TempDir()))
	for _, b := range rep.Budgets {
		var want string
		switch b.Text {
		case "cpu <= 10ms":
			if b.Verdict != report.Pass && b.Verdict != report.Fail {
				t.Errorf("%+v", b)
			}
			continue
		case "create-pod.cpu <= 10ms":
			want = "cannot be told apart by operation"
		case "delete-pod.cpu <= 10ms":
			want = "there is no operation"
		}
		if b.Verdict != report.NotMeasured || !strings.Contains(b.Reason, want) {
			t.Errorf("%s: %s (%s)", b.Text, b.Verdict, b.Reason)
		}
	}
	if i := slices.IndexFunc(
		rep.Growth, func(g report.Growth) bool { return g.Metric == "cpu" && g.Operation == "" && g.Law == "linear" },
	); i < 0 {
		t.Errorf("growth %s", fmt.Sprint(rep.Growth))
	}
}
