package analyze

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"tare/internal/design"
	"tare/internal/record"
	"tare/internal/report"
)

// pulls is a record of checks against an accessor, with an operation that does nothing beside them. The empty call
// takes 5 ns under every arm, but 20 % more under the treatment: were it judged, that would be a regression.
func pulls(budget ...string) experiment {
	return experiment{
		blocks: 12, operations: []string{"empty", "check"}, seed: 7, budget: budget,
		treatments: []design.Treatment{
			{ID: "accessor=disabled", Baseline: true, Levels: map[string]string{"accessor": "disabled"}},
			{ID: "accessor=cached", Levels: map[string]string{"accessor": "cached"}},
		},
		cost: func(treatment, operation string, _ int) float64 {
			switch {
			case operation == "empty" && treatment == "accessor=cached":
				return 6e-9
			case operation == "empty":
				return 5e-9
			case treatment == "accessor=cached":
				return 1e-6
			}
			return 40e-9
		},
	}
}

// withHarness says of every trial that its operation "empty" does nothing, and lets the target count as well: 8 objects
// of 1200 bytes a call, of which 6 in 7 are hits under the treatment; the harness allocates nothing.
func withHarness(r *record.Record) *record.Record {
	for _, t := range r.Trials {
		t.Harness = []string{"empty"}
		for _, op := range t.Operations {
			counted := map[string]float64{"allocations": 8, "allocated": 1200, "hits": 6.0 / 7}
			if t.Treatment != "accessor=cached" {
				counted["hits"] = 1
			}
			if op == "empty" {
				counted = map[string]float64{"allocations": 0, "allocated": 0}
			}
			for _, name := range []string{"allocations", "allocated", "hits"} {
				if v, ok := counted[name]; ok {
					t.Batches = append(t.Batches, record.Batches{
						Treatment: t.Treatment, Block: t.Block, Operation: op, Metric: name, N: 5000,
						Values: slices.Repeat([]float64{v}, 16),
					})
				}
			}
		}
	}
	return r
}

func reportOf(t *testing.T, r *record.Record) *report.Report {
	t.Helper()
	rep, err := Analyze(r, Options{})
	must(t, err)
	return rep
}

func TestWhatDoesNothingIsJudgedNowhere(t *testing.T) {
	t.Parallel()
	for name, budget := range map[string][]string{
		"without budgets": nil, "with one for every operation": {"cpu <= +3000%"},
	} {
		rep := reportOf(t, withHarness(pulls(budget...).record()))
		places := map[string][]string{}
		for _, x := range slices.Concat(rep.Effects, rep.AA.Effects, rep.AA.NegativeControls) {
			places["effects and checks"] = append(places["effects and checks"], x.Operation)
		}
		for i := range rep.Treatments {
			for _, m := range rep.Treatments[i].Metrics {
				places["metrics"] = append(places["metrics"], m.Operation)
			}
		}
		for _, b := range rep.Blocks {
			places["blocks"] = append(places["blocks"], b.Operation)
		}
		for _, p := range rep.Percentiles {
			places["percentiles"] = append(places["percentiles"], p.Operation)
		}
		for where, operations := range places {
			if slices.Contains(operations, "empty") || !slices.Contains(operations, "check") {
				t.Errorf("%s: %s are of %v, want check alone", name, where, operations)
			}
		}
		if len(places) != 4 {
			t.Errorf("%s: only %v were looked at", name, places)
		}
		if budget != nil && rep.Verdict != report.Pass {
			t.Errorf("%s: %s, %s", name, rep.Verdict, rep.Reason)
		}
	}
}

// TestHarnessCorrectsForNothing: Holm's procedure divides by the number of gating effects, in which doing nothing must
// not count.
func TestHarnessCorrectsForNothing(t *testing.T) {
	t.Parallel()
	with := reportOf(t, withHarness(pulls().record()))
	alone := pulls()
	alone.operations = []string{"check"}
	without := reportOf(t, alone.record())
	level := func(rep *report.Report) float64 {
		for _, x := range rep.Effects {
			if x.Gating {
				return x.Level
			}
		}
		return 0
	}
	if a, b := level(with), level(without); a != b || a == 0 {
		t.Errorf("the level is %v beside an operation that does nothing, and %v without", a, b)
	}
	// The same record, of which nobody says so, judges it: the test above can fail.
	if rep := reportOf(t, pulls().record()); !slices.ContainsFunc(rep.Effects, func(x report.Effect) bool {
		return x.Operation == "empty" && x.Gating && x.Verdict == report.Regressed
	}) {
		t.Errorf("without its name in Harness, empty must be an operation as any other: %+v", rep.Effects)
	}
}

func TestHarnessCost(t *testing.T) {
	t.Parallel()
	rep := reportOf(t, withHarness(pulls().record()))
	got := map[string]report.Harness{}
	for _, h := range rep.Harness {
		got[h.Treatment+" "+h.Metric] = h
	}
	for key, want := range map[string]float64{
		"accessor=disabled cpu": 5e-9, "accessor=disabled wall": 5.5e-9, "accessor=cached cpu": 6e-9, "aa cpu": 5e-9,
		"accessor=cached allocations": 0, "accessor=cached allocated": 0,
	} {
		h, ok := got[key]
		if !ok || math.Abs(h.Value-want) > .15*want || h.N != 12 || h.Operation != "empty" || h.Lo == nil || h.Hi == nil ||
			*h.Lo > h.Value || *h.Hi < h.Value {
			t.Errorf("%s is %+v, want about %v with an interval over 12 blocks", key, h, want)
		}
	}
	if len(rep.Harness) != 12 {
		t.Errorf("%d entries, want wall, cpu, allocations and allocated of 3 arms: %+v", len(rep.Harness), rep.Harness)
	}
	shares := map[string]float64{}
	for i := range rep.Treatments {
		for _, m := range rep.Treatments[i].Metrics {
			if m.Harness != nil {
				shares[rep.Treatments[i].ID+" "+m.Name] = *m.Harness
			}
		}
	}
	if s := shares["accessor=disabled cpu"]; math.Abs(s-.125) > .02 {
		t.Errorf("the harness is %v of what a check takes when disabled, want 5 ns of 40 ns", s)
	}
	if s := shares["accessor=cached cpu"]; math.Abs(s-.006) > .002 {
		t.Errorf("the harness is %v of what a check takes when cached, want 6 ns of 1 µs", s)
	}
	if _, ok := shares["accessor=cached hits"]; ok {
		t.Error("a share of calls has no part that is the harness's")
	}
}

func TestFiguresThatAreMostlyHarnessAreNoted(t *testing.T) {
	t.Parallel()
	rep := reportOf(t, withHarness(pulls().record()))
	var noted []string
	for _, n := range rep.Notes {
		if strings.Contains(n, "harness's own cost") {
			noted = append(noted, n)
		}
	}
	if len(noted) != 1 || !strings.Contains(noted[0], "% of check.cpu (") ||
		!strings.Contains(noted[0], "% of check.wall (") ||
		!strings.Contains(noted[0], "under accessor=disabled; it is not subtracted") {
		t.Errorf("notes %q, want one on check.cpu and check.wall, under the baseline alone", noted)
	}
	// The figures themselves keep what they were.
	for i := range rep.Treatments {
		for _, m := range rep.Treatments[i].Metrics {
			if rep.Treatments[i].ID == "accessor=disabled" && m.Name == "cpu" && math.Abs(m.Value-40e-9) > 4e-9 {
				t.Errorf("check.cpu is %v, want 40 ns: the harness must not be subtracted", m.Value)
			}
		}
	}
	var text bytes.Buffer
	must(t, report.Style{Width: 160}.Text(&text, rep))
	for _, want := range []string{
		"harness    a call of empty, which does nothing, takes 5", " CPU, ", " 0 objects, 0 B allocated", "% harness)",
		"8 objects", "1.17 KiB",
	} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, text.String())
		}
	}
}

func TestBudgetOnTheHarnessIsRefused(t *testing.T) {
	t.Parallel()
	rep := reportOf(t, withHarness(pulls("empty.cpu <= +5%").record()))
	if len(rep.Budgets) != 1 || rep.Budgets[0].Verdict != report.NotMeasured ||
		!strings.Contains(rep.Budgets[0].Reason, "empty does nothing") {
		t.Errorf("%+v, want a budget that is not measured, and why", rep.Budgets)
	}
}

// TestHarnessDoesNotGrow: with sizes, growth is fitted to the check alone.
func TestHarnessDoesNotGrow(t *testing.T) {
	t.Parallel()
	x := experiment{question: design.Scale, blocks: 4, operations: []string{"empty", "check"}, seed: 3}
	var levels []string
	for _, n := range []string{"1", "10", "20", "50", "100", "200", "500", "1000"} {
		levels = append(levels, n)
		x.treatments = append(x.treatments, design.Treatment{
			ID: "records=" + n, Baseline: n == "1", Levels: map[string]string{"records": n},
		})
	}
	x.factors = []record.Factor{{Name: "records", Levels: levels}}
	rep := reportOf(t, withHarness(x.record()))
	if len(rep.Growth) == 0 || slices.ContainsFunc(
		rep.Growth, func(g report.Growth) bool { return g.Operation != "check" },
	) {
		t.Errorf("growth of %+v, want of check alone", rep.Growth)
	}
}

func TestMetricsOfTheHeapAndOfHits(t *testing.T) {
	t.Parallel()
	rep := reportOf(t, withHarness(pulls().record()))
	found := map[string]report.Effect{}
	for _, x := range rep.Effects {
		found[x.Metric] = x
	}
	for _, name := range []string{"allocations", "allocated", "hits"} {
		if x, ok := found[name]; !ok || x.Gating {
			t.Errorf("%s: %+v, want an exploratory effect", name, x)
		}
	}
	if x := found["hits"]; x.Kind != kindDifference || math.Abs(x.Estimate+1.0/7) > 1e-9 || x.Verdict != report.Regressed {
		t.Errorf("fewer hits are %+v, want a difference of −1/7 that is worse", x)
	}
	if x := found["allocations"]; x.Estimate != 0 || x.Verdict != report.Equivalent {
		t.Errorf("as many objects are %+v, want equivalent", x)
	}
	// A budget that names them makes them gate.
	rep = reportOf(t, withHarness(pulls("hits >= 95%", "allocations <= 10").record()))
	verdicts := map[string]report.Verdict{}
	for _, b := range rep.Budgets {
		verdicts[b.Text] = b.Verdict
	}
	if len(verdicts) != 2 || verdicts["hits >= 95%"] != report.Fail || verdicts["allocations <= 10"] != report.Pass {
		t.Errorf("budgets %+v, want too few hits and few enough objects", rep.Budgets)
	}
}

func TestSkewedBatchesAreNoted(t *testing.T) {
	t.Parallel()
	slow := func(every int, factor float64) func(string, string, int) float64 {
		return func(treatment, _ string, block int) float64 {
			if treatment == "accessor=cached" && block%every == 6 {
				return factor * 1e-6
			}
			return 1e-6
		}
	}
	for name, c := range map[string]struct {
		heavy  float64 // one batch in five takes three times as long: the mean is about 40 % above the median
		cost   func(treatment, operation string, block int) float64
		budget []string
		want   []string // of the note; nil: there is none
	}{
		"even":          {cost: slow(20, 1)},
		"heavy batches": {heavy: .2, want: []string{"batches of check.cpu are skewed", "under 1 further treatment"}},
		"one slow block": {cost: slow(20, 10), want: []string{
			"blocks of check.cpu are skewed: under accessor=cached their mean is 4", "by block 7; ", "check.cpu.mean judges",
		}},
		"two slow blocks": {cost: slow(7, 10), want: []string{"by blocks 7, 14; "}},
		"little slower":   {cost: slow(20, 1.3)},
		"the mean is judged": {
			cost: slow(20, 10), budget: []string{"check.cpu.mean <= 1ms"},
		},
	} {
		x := pulls(c.budget...)
		x.operations, x.heavy, x.blocks = []string{"check"}, c.heavy, 20
		if c.cost != nil {
			x.cost = c.cost
		}
		said := ""
		for _, n := range reportOf(t, x.record()).Notes {
			if strings.Contains(n, "are skewed") {
				said += n + "\n"
			}
		}
		if (said == "") != (c.want == nil) {
			t.Errorf("%s: %q", name, said)
		}
		for _, want := range c.want {
			if !strings.Contains(said, want) {
				t.Errorf("%s: %q lacks %q", name, said, want)
			}
		}
	}
}

// TestOwnHarness: where a target says which operation that does nothing is in an operation's figures, no other counts,
// even if it costs more.
func TestOwnHarness(t *testing.T) {
	t.Parallel()
	e := pulls()
	e.operations = []string{"empty", "empty-timed", "check", "pull"}
	e.cost = func(_, operation string, _ int) float64 {
		return map[string]float64{"empty": 5e-9, "empty-timed": 500e-9, "check": 50e-9, "pull": 1e-6}[operation]
	}
	for title, c := range map[string]struct {
		overhead map[string]string
		want     map[string]float64
	}{
		"both say": {map[string]string{
			"check": "empty", "pull": "empty-timed",
		}, map[string]float64{"check": 0.1, "pull": 0.5}},
		"one says":        {map[string]string{"check": "empty"}, map[string]float64{"check": 0.1, "pull": 0.5}},
		"none says":       {nil, map[string]float64{"check": 10, "pull": 0.5}},
		"it is not there": {map[string]string{"check": "empty-cold"}, map[string]float64{"check": 10, "pull": 0.5}},
	} {
		r := e.record()
		for _, x := range r.Trials {
			x.Harness, x.Overhead = []string{"empty", "empty-timed"}, c.overhead
		}
		rep := reportOf(t, r)
		got := map[string]float64{}
		for _, m := range rep.Treatments[0].Metrics {
			if m.Name == "cpu" && m.Harness != nil {
				got[m.Operation] = *m.Harness
			}
		}
		for op, want := range c.want {
			if math.Abs(got[op]-want) > 0.2*want {
				t.Errorf("%s: the harness is %v of %s, want %v", title, got[op], op, want)
			}
		}
	}
}
