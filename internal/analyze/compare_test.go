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
	"tare/internal/stat"
)

// analyzedRecord analyzes a record in memory, and makes sure that its report can be written.
func analyzedRecord(t testing.TB, r *record.Record) *report.Report {
	t.Helper()
	rep, err := Analyze(r, Options{})
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := report.JSON(&b, rep); err != nil {
		t.Fatal(err)
	}
	return rep
}

// effectOn finds the effect of seccomp on one metric.
func effectOn(t testing.TB, effects []report.Effect, name string) *report.Effect {
	t.Helper()
	for i := range effects {
		if e := &effects[i]; e.Treatment == seccomp && nameOf(e) == name {
			return e
		}
	}
	var have []string
	for i := range effects {
		have = append(have, effects[i].Treatment+" "+nameOf(&effects[i]))
	}
	t.Fatalf("no effect on %s among %q", name, have)
	return nil
}

const seccomp = "enforcer=seccomp"

// TestKnownDifferences: what was planted is found, with its size.
func TestKnownDifferences(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name     string
		x        experiment
		verdict  report.EffectVerdict
		lo, hi   float64 // where the estimate must lie
		measured bool
		stop     bool
	}{
		{"+10 %", experiment{blocks: 20, cost: slower(1.1)}, report.Regressed, .09, .11, true, true},
		{"-10 %", experiment{blocks: 20, cost: slower(.9)}, report.Improved, -.11, -.09, true, true},
		{"nothing", experiment{blocks: 20}, report.Equivalent, -.01, .01, false, true},
		{
			"+1 %, quiet",
			experiment{blocks: 40, cost: slower(1.01), batch: .005, arm: .002},
			report.Equivalent, .008, .012,
			true, true,
		},
		{"+2.5 %", experiment{blocks: 20, cost: slower(1.025), margin: .02}, report.Slower, .02, .03, true, false},
		{"much noise", experiment{blocks: 10, batch: .3, arm: .1}, report.EffectInconclusive, -.3, .3, false, false},
		{"4 blocks", experiment{blocks: 4, cost: slower(1.1)}, report.NotJudged, .08, .12, false, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.x.seed = 7
			rep := analyzedRecord(t, c.x.record())
			e := effectOn(t, rep.Effects, "open.cpu")
			if e.Verdict != c.verdict || e.Estimate < c.lo || e.Estimate > c.hi || e.Measurable != c.measured {
				t.Errorf("%+v, want %s in [%v, %v]", e, c.verdict, c.lo, c.hi)
			}
			if !e.Gating || e.Kind != "ratio" || e.Baseline != "enforcer=none" || e.Lo > e.Estimate || e.Hi < e.Estimate ||
				e.Blocks != c.x.blocks || *e.Margin != .02 {
				t.Errorf("labels %+v", e)
			}
			if undecided := e.Verdict == report.EffectInconclusive ||
				e.Verdict == report.Slower; undecided && (e.MDE == nil || e.BlocksToDecide == nil ||
				*e.BlocksToDecide < c.x.blocks) {
				t.Errorf("%s without what it takes to decide: %+v", e.Verdict, e)
			}
			if !rep.AA.Reliable || len(rep.AA.Effects) != 1 || rep.AA.Effects[0].Control != design.AA {
				t.Errorf("A/A %+v", rep.AA)
			}
			if stop, reason := Decide(rep); stop != c.stop || reason == "" {
				t.Errorf("stop %v: %s", stop, reason)
			}
			if rep.Verdict != report.None || ExitCode(rep) != ExitPass {
				t.Errorf("verdict %s (%s)", rep.Verdict, rep.Reason)
			}
		})
	}
}

// TestTheRunChecksItself: effects where there can be none make the run invalid, and silence it.
func TestTheRunChecksItself(t *testing.T) {
	t.Parallel()
	both := experiment{blocks: 20, operations: []string{"open", "getpid"}, negative: []string{"getpid"}, seed: 3}
	planted := func(arm, op string, by float64) func(string, string, int) float64 {
		return func(treatment, operation string, _ int) float64 {
			if treatment == arm && operation == op {
				return 1e-6 * by
			}
			return 1e-6
		}
	}
	for _, c := range []struct {
		name    string
		cost    func(string, string, int) float64
		invalid string
		warning string
	}{
		{"quiet", nil, "", ""},
		{"A/A differs", planted(design.AAArm, "open", 1.05), "aa differs from enforcer=none in open.cpu by +4.9", ""},
		{
			"A/A differs a little", planted(design.AAArm, "open", 1.007), "", "aa differs from enforcer=none in open.cpu by +0.",
		},
		{
			"negative control", planted(seccomp, "getpid", 1.05),
			"enforcer=seccomp differs from enforcer=none in getpid.cpu by +5", "",
		},
		{"positive", planted(seccomp, "open", 1.05), "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			x := both
			x.cost, x.budget = c.cost, []string{"open.cpu <= +20%", "open.cpu <= 1ms"}
			if c.warning != "" {
				x.batch, x.arm = .004, .001
			}
			rep := analyzedRecord(t, x.record())
			if len(rep.AA.NegativeControls) != 1 || nameOf(&rep.AA.NegativeControls[0]) != "getpid.cpu" && c.invalid == "" {
				t.Errorf("negative controls %+v", rep.AA.NegativeControls)
			}
			for i := range rep.Effects {
				if rep.Effects[i].Operation == "getpid" {
					t.Errorf("a negative control among the effects: %+v", rep.Effects[i])
				}
			}
			if c.invalid == "" {
				if rep.Verdict != report.Pass || !rep.AA.Reliable {
					t.Errorf("verdict %s (%s)", rep.Verdict, rep.Reason)
				}
				if all := strings.Join(rep.Warnings, "\n"); !strings.Contains(all, c.warning) || (c.warning == "") != (all == "") {
					t.Errorf("warnings %q, want %q", rep.Warnings, c.warning)
				}
				return
			}
			if rep.Verdict != report.Invalid || ExitCode(rep) != ExitInvalid || rep.AA.Reliable ||
				!strings.Contains(rep.Reason, c.invalid) || !strings.Contains(rep.Reason, unreliable) {
				t.Errorf("verdict %s (%s), want %q", rep.Verdict, rep.Reason, c.invalid)
			}
			if len(rep.Effects) > 0 {
				t.Errorf("an invalid run has effects: %+v", rep.Effects)
			}
			for _, b := range rep.Budgets {
				if b.Verdict != report.Inconclusive {
					t.Errorf("an invalid run judges budgets: %+v", b)
				}
			}
			if stop, reason := Decide(rep); stop || !strings.Contains(reason, "differs") {
				t.Errorf("stop %v: %s", stop, reason)
			}
		})
	}
}

// TestGatingIsTestedTogether: with Holm's procedure an effect that would be significant alone is not among many.
func TestGatingIsTestedTogether(t *testing.T) {
	t.Parallel()
	ops := []string{"a", "b", "c", "d", "e"}
	cost := func(treatment, op string, _ int) float64 {
		if treatment == seccomp && op == "a" {
			return 1.0105e-6
		}
		return 1e-6
	}
	x := experiment{blocks: 10, operations: ops, cost: cost, seed: 5, batch: .01, arm: .01}
	alone := x
	alone.budget = []string{"a.cpu <= +50%"}
	together := effectOn(t, analyzedRecord(t, x.record()).Effects, "a.cpu")
	single := effectOn(t, analyzedRecord(t, alone.record()).Effects, "a.cpu")
	if *single.P != *together.P || *single.Adjusted != *single.P || *together.Adjusted < 3*(*together.P) {
		t.Errorf("p %v, adjusted alone %v, among five %v", *single.P, *single.Adjusted, *together.Adjusted)
	}
	if single.Level >= together.Level || single.Hi-single.Lo >= together.Hi-together.Lo {
		t.Errorf(
			"alone [%v, %v] at %v, among five [%v, %v] at %v", single.Lo, single.Hi, single.Level, together.Lo, together.Hi,
			together.Level,
		)
	}
	rep := analyzedRecord(t, alone.record())
	for i := range rep.Effects {
		e := &rep.Effects[i]
		if want := e.Operation == "a" && e.Metric == "cpu"; e.Gating != want {
			t.Errorf("%s gating: %v", nameOf(e), e.Gating)
		}
		if e.Adjusted == nil || *e.Adjusted < *e.P {
			t.Errorf("%s: p %v, adjusted %v", nameOf(e), *e.P, e.Adjusted)
		}
	}
}

// TestFactorsAreCrossed: a treatment is compared with the baseline at its own levels of the crossed factors.
func TestFactorsAreCrossed(t *testing.T) {
	t.Parallel()
	var arms []design.Treatment
	for _, e := range []string{"none", "landlock"} {
		for _, load := range []string{"1", "10"} {
			levels := map[string]string{"enforcer": e, "threads": load}
			arms = append(arms, design.Treatment{ID: design.ID(levels), Baseline: e == "none", Levels: levels})
		}
	}
	x := experiment{blocks: 10, treatments: arms, seed: 1, cost: func(treatment, _ string, _ int) float64 {
		v := 1e-6
		if strings.Contains(treatment, "threads=10") {
			v *= 10
		}
		if strings.Contains(treatment, "landlock") {
			v *= 1.2
		}
		return v
	}}
	rep := analyzedRecord(t, x.record())
	if n := len(rep.Effects); n != 4 {
		t.Fatalf("%d effects, want cpu and wall of two treatments", n)
	}
	for i := range rep.Effects {
		e := &rep.Effects[i]
		if want := strings.Replace(e.Treatment, "landlock", "none", 1); e.Baseline != want || e.Estimate < .15 ||
			e.Estimate > .25 {
			t.Errorf("%s against %s: %v", e.Treatment, e.Baseline, e.Estimate)
		}
	}
}

// TestControlsTogether: what each of two controls adds to the other is found with its size.
func TestControlsTogether(t *testing.T) {
	t.Parallel()
	with := func(enforcer string) design.Treatment {
		return design.Treatment{
			ID: "enforcer=" + enforcer, Levels: map[string]string{"enforcer": enforcer}, Baseline: enforcer == "none",
		}
	}
	costs := map[string]float64{
		"enforcer=none": 1e-6, seccomp: 1.1e-6, "enforcer=landlock": 1.3e-6, "enforcer=landlock+seccomp": 1.43e-6,
	}
	x := experiment{
		blocks: 20, treatments: []design.Treatment{with("none"), with("seccomp"), with("landlock"), with("landlock+seccomp")},
		cost: func(arm, _ string, _ int) float64 {
			if arm == design.AAArm {
				arm = "enforcer=none"
			}
			return costs[arm]
		},
	}
	rep := analyzedRecord(t, x.record())
	want := map[string]float64{seccomp: .3, "enforcer=landlock": .1}
	if len(rep.Additions) != len(want) {
		t.Fatalf("%d additions", len(rep.Additions))
	}
	for _, e := range rep.Additions {
		if e.Treatment != "enforcer=landlock+seccomp" || e.Gating || math.Abs(e.Estimate-want[e.Baseline]) > .01 ||
			e.Lo > want[e.Baseline] || e.Hi < want[e.Baseline] || e.Adjusted == nil {
			t.Errorf("addition %+v, want an estimate of %g", e, want[e.Baseline])
		}
	}
}

// TestBlocksAreComplete: what is left of a block that lacks an arm does not count.
func TestBlocksAreComplete(t *testing.T) {
	t.Parallel()
	x := experiment{blocks: 12, seed: 2, cost: func(treatment, _ string, block int) float64 {
		if treatment == seccomp && block == 4 {
			return 1 // absurd, but dropped
		}
		return 1e-6
	}}
	x.drop = func(treatment string, block int) bool { return block == 4 && treatment == "enforcer=none" }
	rep := analyzedRecord(t, x.record())
	if rep.Design.Blocks != 11 || rep.Design.Planned != 12 || len(rep.Design.Looks) == 0 {
		t.Errorf("design %+v", rep.Design)
	}
	e := effectOn(t, rep.Effects, "open.cpu")
	if e.Blocks != 11 || math.Abs(e.Estimate) > .02 {
		t.Errorf("%+v", e)
	}
	i := slices.IndexFunc(
		rep.Blocks, func(b report.BlockValues) bool { return b.Treatment == seccomp && b.Metric == "cpu" },
	)
	if i < 0 || len(rep.Blocks[i].Values) != 12 || rep.Blocks[i].Values[4] != nil || rep.Blocks[i].Values[5] == nil {
		t.Fatalf("blocks %+v", rep.Blocks)
	}
	if !strings.Contains(strings.Join(rep.Warnings, "\n"), "1 block left out") {
		t.Errorf("warnings %q", rep.Warnings)
	}
	for _, treatment := range []string{"enforcer=none", seccomp, design.AAArm} {
		if !slices.ContainsFunc(
			rep.Blocks, func(b report.BlockValues) bool { return b.Treatment == treatment && b.Metric == "wall" },
		) {
			t.Errorf("no elapsed times of %s", treatment)
		}
	}
}

// TestTooFewBlocks: no effects, and a reason.
func TestTooFewBlocks(t *testing.T) {
	t.Parallel()
	for blocks := range 2 {
		rep := analyzedRecord(t, experiment{blocks: blocks, budget: []string{"open.cpu <= +5%"}}.record())
		if len(rep.Effects) > 0 || rep.Verdict != report.Inconclusive || !strings.Contains(rep.Reason, "at least 2") {
			t.Errorf("%d blocks: %s (%s), %+v", blocks, rep.Verdict, rep.Reason, rep.Effects)
		}
		if stop, reason := Decide(rep); stop || reason == "" {
			t.Errorf("%d blocks: stop (%s)", blocks, reason)
		}
	}
}

// TestUnblockedIsNeverEquivalent: results without an order of blocks can differ, not be the same.
func TestUnblockedIsNeverEquivalent(t *testing.T) {
	t.Parallel()
	for want, factor := range map[report.EffectVerdict]float64{report.EffectInconclusive: 1, report.Regressed: 1.5} {
		x := experiment{blocks: 50, rounds: 1, block: .01, unblocked: true, cost: slower(factor), seed: 11}
		rep := analyzedRecord(t, x.record())
		e := effectOn(t, rep.Effects, "open.cpu")
		if e.Verdict != want || e.Blocks != 50 || !strings.Contains(e.Reason, "unblocked") ||
			math.Abs(e.Estimate-(factor-1)) > .05*factor {
			t.Errorf("factor %v: %+v", factor, e)
		}
		if !rep.Design.Unblocked || rep.AA != nil {
			t.Errorf("design %+v, A/A %+v", rep.Design, rep.AA)
		}
	}
	for n := 10; n < 2000; n *= 3 {
		x := make([]float64, n)
		for i := range x {
			x[i] = 1 + float64(i%7)/1000
		}
		e, err := judgedAlone(estimator{unblocked: true}, x, x, .5)
		if err != nil || e.Verdict != report.EffectInconclusive || e.BlocksToDecide != nil {
			t.Errorf("%d equal values: %+v, %v", n, e, err)
		}
		if e, err = judgedAlone(estimator{}, x, x, .5); err != nil || e.Verdict != report.Equivalent {
			t.Errorf("%d equal blocks: %+v, %v", n, e, err)
		}
	}
}

// judgedAlone is the effect of values by block, judged as the only one.
func judgedAlone(how estimator, base, treated []float64, margin float64) (report.Effect, error) {
	c, err := how.ofBlocks(base, treated, false)
	if err != nil {
		return report.Effect{}, err
	}
	c.setMargin(base, margin)
	if err := c.estimate(stat.LookAlpha); err != nil {
		return report.Effect{}, err
	}
	c.fill(stat.LookAlpha)
	return c.effect, nil
}

// TestHostNoise: a block that is slow in every arm is told, and leaves the comparison alone.
func TestHostNoise(t *testing.T) {
	t.Parallel()
	slow := func(arms ...string) func(string, string, int) float64 {
		return func(treatment, _ string, block int) float64 {
			if block == 7 && slices.Contains(arms, treatment) {
				return 1.5e-6
			}
			return 1e-6
		}
	}
	x := experiment{blocks: 12, seed: 4, block: .001, cost: slow("enforcer=none", seccomp, design.AAArm)}
	rep := analyzedRecord(t, x.record())
	if all := strings.Join(rep.Warnings, "\n"); !strings.Contains(all, "block 8 slow in every arm (+") ||
		!strings.Contains(all, "host noise") {
		t.Errorf("warnings %q", rep.Warnings)
	}
	if e := effectOn(t, rep.Effects, "open.cpu"); e.Verdict != report.Equivalent {
		t.Errorf("%+v", e)
	}
	x.cost = slow("enforcer=none", seccomp)
	if all := strings.Join(analyzedRecord(t, x.record()).Warnings, "\n"); strings.Contains(all, "slow in every arm") {
		t.Errorf("one arm was not slow, and yet: %s", all)
	}
}

// TestManyGates: a run in which much gates says that this makes all of it harder to decide.
func TestManyGates(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		operations []string
		want       bool
	}{{[]string{"a", "b", "c", "d", "e"}, false}, {[]string{"a", "b", "c", "d", "e", "f"}, true}} {
		rep := analyzed(
			t, experiment{blocks: 10, cost: millisecond, block: .01, seed: 3, operations: c.operations}.write(t, t.TempDir()),
		)
		if got := strings.Contains(strings.Join(rep.Notes, "\n"), "metrics gate for a treatment"); got != c.want {
			t.Errorf("%d operations: notes %q", len(c.operations), rep.Notes)
		}
	}
}
