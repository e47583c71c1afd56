package analyze

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/stat"
	"tare/rigs/hosttest"
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
		rep := measured(t, experiment{blocks: 10, cost: millisecond, block: .01, seed: 3, operations: c.operations})
		if got := strings.Contains(strings.Join(rep.Notes, "\n"), "metrics gate for a treatment"); got != c.want {
			t.Errorf("%d operations: notes %q", len(c.operations), rep.Notes)
		}
	}
}

// TestSameInEveryBlock: a count that neither arm ever has is equivalent; one that differs in a single block is not,
// though its interval is [0, 0], and few blocks are too few either way.
func TestSameInEveryBlock(t *testing.T) {
	t.Parallel()
	allocations := metric.Metric{Name: "allocations", Unit: metric.Count, Better: metric.Lower}
	for name, c := range map[string]struct {
		blocks int
		last   float64
		want   report.EffectVerdict
	}{
		"none":             {20, 0, report.Equivalent},
		"one in one block": {20, 1, report.EffectInconclusive},
		"few blocks":       {4, 0, report.NotJudged},
	} {
		base, treated := make([]float64, c.blocks), make([]float64, c.blocks)
		treated[c.blocks-1] = c.last
		x, err := estimator{metric: allocations, blocks: c.blocks}.ofBlocks(base, treated, false)
		if err != nil {
			t.Fatal(err)
		}
		x.setMargin(base, 0.02)
		if err := x.estimate(stat.LookAlpha); err != nil {
			t.Fatal(err)
		}
		x.fill(stat.LookAlpha)
		e := x.effect
		if e.Lo != 0 || e.Hi != 0 || e.Verdict != c.want {
			t.Errorf("%s: %s of [%v, %v] (%s), want %s", name, e.Verdict, e.Lo, e.Hi, e.Reason, c.want)
		}
		if same := e.Reason == "the same in every block"; same != (c.want == report.Equivalent) {
			t.Errorf("%s: the reason is %q", name, e.Reason)
		}
	}
}

// TestLossHint: a comparison that loses its times says so while it is measured, why, and what would help.
func TestLossHint(t *testing.T) {
	t.Parallel()
	rep := &report.Report{
		Design: &report.Design{Blocks: 10, Late: 2}, Generator: &report.Generator{Reason: "late in 2 blocks"},
		Warnings: []string{"the hypervisor took 9 % of this host's CPU time meanwhile", "something else"},
	}
	if text := LossHint(rep); text != "" {
		t.Errorf("a fifth of the blocks is lost: %q", text)
	}
	rep.Design.Late, rep.Generator.Reason = 8, "the generator sent late in 8 of 10 blocks"
	text := LossHint(rep)
	for _, want := range []string{
		"8 of 10 blocks so far are without times", "sent late in 8 of 10 blocks", "the hypervisor took 9 %", "CAP_SYS_NICE",
		"a budget on cpu",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if text := LossHint(&report.Report{}); text != "" {
		t.Errorf("not a comparison: %q", text)
	}
}

// TestFailedRunIsNotInconclusive: a run that failed before it measured anything says that, and why.
func TestFailedRunIsNotInconclusive(t *testing.T) {
	t.Parallel()
	f := flaws{open: []string{"no capacity was measured"}, failure: "the run failed: nothing listens at 127.0.0.1:1"}
	for _, c := range []struct {
		name    string
		status  report.Status
		f       flaws
		budgets []report.Budget
		want    report.Verdict
		exit    int
	}{
		{"nothing listens", report.Errored, f, nil, report.NotMeasured, ExitError},
		{
			"with a budget", report.Errored, f, []report.Budget{{Verdict: report.NotMeasured}}, report.NotMeasured, ExitError,
		},
		{"it failed after it had measured", report.Errored, flaws{measured: true}, nil, report.None, ExitError},
		{"it found nothing", report.Complete, f, nil, report.Inconclusive, ExitInconclusive},
		{"not in force", report.Errored, flaws{invalid: []string{"x"}, failure: f.failure}, nil, report.Invalid, ExitInvalid},
	} {
		rep := &report.Report{Status: c.status, Budgets: c.budgets}
		rep.Verdict, rep.Reason = verdict(rep, c.f)
		if rep.Verdict != c.want || ExitCode(rep) != c.exit {
			t.Errorf("%s: %s (%s), exit %d; want %s and %d", c.name, rep.Verdict, rep.Reason, ExitCode(rep), c.want, c.exit)
		}
		if c.want == report.NotMeasured && rep.Reason != f.failure {
			t.Errorf("%s: the reason is %q", c.name, rep.Reason)
		}
	}
}

// TestOnlyWholeBlocksCountAsRenewed: where one treatment kept its processes, the block compares with old ones.
func TestOnlyWholeBlocksCountAsRenewed(t *testing.T) {
	t.Parallel()
	trial := func(renewed bool) *record.Trial {
		return &record.Trial{TrialBegin: record.TrialBegin{Renewed: renewed}}
	}
	for _, c := range []struct{ a, b, want bool }{
		{true, true, true}, {true, false, false}, {false, true, false}, {false, false, false},
	} {
		if got := renewed(map[string]*record.Trial{"a": trial(c.a), "b": trial(c.b)}); got != c.want {
			t.Errorf("%v and %v: %v, want %v", c.a, c.b, got, c.want)
		}
	}
}

// successors is a comparison of six treatments of which each makes two operations several times as slow, with few calls
// a block, so that no time gates, and a generator that is late in some blocks.
func successors(blocks int, late ...int) experiment {
	x := experiment{
		blocks: blocks, calls: 120, seed: 5, arm: 0.05, margin: 0.05, operations: []string{"create-pod", "pod-startup"},
		treatments: []design.Treatment{
			{ID: "mechanism=none", Baseline: true, Levels: map[string]string{"mechanism": "none"}},
		},
		spoil: func(treatment string, block int) bool {
			return treatment == "mechanism=m2" && slices.Contains(late, block)
		},
	}
	times := map[string]float64{}
	for i := range 6 {
		level := fmt.Sprintf("m%d", i)
		x.treatments = append(x.treatments, design.Treatment{
			ID: "mechanism=" + level, Levels: map[string]string{"mechanism": level},
		})
		times["mechanism="+level] = 4 + float64(i)/2 // +300 … +650 %
	}
	x.cost = func(treatment, _ string, _ int) float64 { return 200e-6 * max(1, times[treatment]) }
	return x
}

// TestEffectsOfFewBlocksAreDecided: what is several times as slow in each of 8 blocks is decided, though nobody asked
// for it.
func TestEffectsOfFewBlocksAreDecided(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]experiment{
		"8 of 10 have times": successors(10, 3, 7), "3 of 15 were replaced": successors(15, 0, 3, 7),
	} {
		rep := measured(t, x)
		if rep.Verdict == report.Invalid || len(rep.Design.Undecidable) > 0 {
			t.Fatalf("%s: %s: %s, %q", name, rep.Verdict, rep.Reason, rep.Design.Undecidable)
		}
		n, level := 0, 0.0
		for i := range rep.Effects {
			e := &rep.Effects[i]
			if e.Gating || e.Metric != "response" || e.Quantile != "p50" {
				continue
			}
			n++
			if e.Verdict != report.Regressed || e.Lo < 2 || e.Hi > 9 || e.Blocks != x.blocks-rep.Design.Late {
				t.Errorf("%s: %s of %s is %s [%v, %v] in %d blocks", name, nameOf(e), e.Treatment, e.Verdict, e.Lo, e.Hi, e.Blocks)
			}
			if level = e.Level; !strings.Contains(e.Change(), "(×") {
				t.Errorf("%s: no factor in %s", name, e.Change())
			}
		}
		if n < 6 || level < 0.987 || level >= 1 {
			t.Errorf("%s: %d effects at a level of %v", name, n, level)
		}
	}
}

// TestLostBlocksAreCounted: how many blocks are to be measured in place of those without times.
func TestLostBlocksAreCounted(t *testing.T) {
	t.Parallel()
	hosttest.SkipIfShort(t)
	for _, c := range []struct {
		blocks     int
		late       []int
		look, most int
		lost, more int
	}{
		{10, nil, 10, 10, 0, 0},
		{10, []int{3, 7}, 10, 10, 2, 2},
		{12, []int{3, 7}, 10, 10, 2, 0},
		{10, []int{0, 3, 7}, 10, 20, 3, 3},
		{10, []int{0, 3, 7}, 10, 10, 3, 5}, // 3 of 13 would be more than a fifth
		{15, []int{0, 3, 7}, 10, 10, 3, 0},
		{10, []int{0, 1, 2, 3}, 10, 10, 4, 0}, // more than the spare blocks make up for
	} {
		rep := reportOf(t, opened(t, successors(c.blocks, c.late...).write(t, t.TempDir())))
		if lost, more := LostBlocks(rep, c.look, c.most); lost != c.lost || more != c.more {
			t.Errorf("%+v: %d lost, %d more", c, lost, more)
		}
	}
	if lost, more := LostBlocks(&report.Report{}, 10, 10); lost != 0 || more != 0 {
		t.Error("blocks of a report without any are lost")
	}
}

// TestBusySearch: a capacity that was found on a host with other work to do says so; the target's own work is no
// other's, whether tare has started it or not.
func TestBusySearch(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name                           string
		busy, own, target, gen, stolen float64 // CPU-seconds, of 200
		want                           string
	}{
		{"idle but for a target of ours", 100, 98, 60, 38, 0, ""},
		{"idle but for a target that is not ours", 100, 39, 60, 38, 0, ""},
		{
			"others beside a target that is not ours", 160, 39, 60, 38, 0,
			"other work used 31 % of this host's CPU time during the search",
		},
		{"others beside a target of ours", 160, 98, 60, 38, 0, "other work used 31 %"},
		{"stolen", 100, 98, 60, 38, 10, "the hypervisor took 5 % of this host's CPU time during the search"},
	} {
		sample := func(subject, name string, v float64) metric.Sample {
			return metric.Sample{Subject: subject, Metric: name, Value: v}
		}
		a := &analysis{rep: &report.Report{}, rec: &record.Record{
			Host: []record.Surroundings{{Samples: []metric.Sample{
				sample(probe.HostSubject, probe.HostAll.Name, 200), sample(probe.HostSubject, probe.HostCPU.Name, c.busy),
				sample(probe.HostSubject, probe.Steal.Name, c.stolen), sample("tare", probe.CPU.Name, c.own),
			}}},
			Trials: []*record.Trial{{
				Generator: []record.Generator{{CPUSeconds: c.gen}},
				Samples: []record.Samples{
					{When: record.Before, Samples: []metric.Sample{sample("pdp", probe.CPU.Name, 7)}},
					{When: record.After, Samples: []metric.Sample{sample("pdp", probe.CPU.Name, 7+c.target)}},
				},
			}},
		}}
		a.busySearch()
		if got := strings.Join(a.rep.Warnings, "; "); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
	silent := &analysis{rep: &report.Report{}, rec: &record.Record{Host: []record.Surroundings{{}}}}
	if silent.busySearch(); len(silent.rep.Warnings) > 0 {
		t.Errorf("a host that says nothing: %q", silent.rep.Warnings)
	}
}

// TestTheServerIsNoOtherWork: what the target of a comparison used is not other work; where it is hidden, that is said.
func TestTheServerIsNoOtherWork(t *testing.T) {
	t.Parallel()
	sample := func(subject, name string, v float64) metric.Sample {
		return metric.Sample{Subject: subject, Metric: name, Value: v}
	}
	for _, c := range []struct {
		name         string
		target       float64 // CPU-seconds; NaN: hidden
		local        bool
		busy         float64
		want, absent string
	}{
		{name: "its own", target: 60, local: true, busy: 100, absent: "used"},
		{name: "beside others", target: 60, local: true, busy: 160, want: "other work used 31 %"},
		{
			name: "hidden", target: math.NaN(), local: true, busy: 100,
			want: "other processes, the server under test among them, used 30 %",
		},
		{name: "elsewhere", target: math.NaN(), busy: 100, want: "other work used 30 %"},
	} {
		trial := &record.Trial{
			TrialBegin: record.TrialBegin{Trial: design.Trial{Treatment: "a", Block: 3}},
			Generator:  []record.Generator{{CPUSeconds: 38, Placement: &record.Placement{Local: c.local}}},
		}
		if !math.IsNaN(c.target) {
			trial.Samples = []record.Samples{
				{When: record.Before, Samples: []metric.Sample{sample("pdp", probe.CPU.Name, 7)}},
				{When: record.After, Samples: []metric.Sample{sample("pdp", probe.CPU.Name, 7+c.target)}},
			}
		}
		a := &analysis{rep: &report.Report{}, rec: &record.Record{
			Host: []record.Surroundings{{Block: 3, Samples: []metric.Sample{
				sample(probe.HostSubject, probe.HostAll.Name, 200), sample(probe.HostSubject, probe.HostCPU.Name, c.busy),
				sample(probe.HostSubject, probe.Steal.Name, 0), sample("tare", probe.CPU.Name, 39),
			}}},
			Trials: []*record.Trial{trial},
		}}
		for what, do := range map[string]func(){"comparison": a.surroundings, "search": a.busySearch} {
			a.rep.Warnings = nil
			do()
			got := strings.Join(a.rep.Warnings, "; ")
			if !strings.Contains(got, c.want) || c.absent != "" && strings.Contains(got, c.absent) {
				t.Errorf("%s, %s: %q, want %q", c.name, what, got, c.want)
			}
		}
	}
}

// TestRulingsAreComparedWithTheBaselines: only what both were asked about counts, of the last preparation of each.
func TestRulingsAreComparedWithTheBaselines(t *testing.T) {
	t.Parallel()
	a := &analysis{rec: &record.Record{}, rep: &report.Report{
		Status: report.Complete, Verdict: report.None,
		Treatments: []report.Treatment{
			{ID: "main", Baseline: true}, {ID: "pr"}, {ID: "same"}, {ID: "unasked"}, {ID: "aa", Control: design.AA},
		},
	}}
	asked := func(treatment string, refused, permitted []string, undecided ...string) {
		a.rec.Prepared = append(a.rec.Prepared, record.Prepare{
			Treatment: treatment, Refused: refused, Permitted: permitted, Undecided: undecided,
		})
	}
	asked("main", []string{"a", "b", "c", "lost"}, []string{"d", "e", "varies too"}, "varies", "both")
	asked("pr", nil, []string{"a", "b", "c", "d"})
	asked("pr", []string{"c", "d"}, []string{"a", "e", "only here", "varies"}, "b", "both", "varies too")
	asked("same", []string{"a", "b", "c", "lost", "varies", "both"}, []string{"d", "e"})
	asked("aa", nil, []string{"a"})
	a.rec.Prepared = append(a.rec.Prepared, record.Prepare{Treatment: "pr"}) // a resumed run that was cut short
	changed := func(i int, changes map[string][]string) { a.rec.Prepared[i].Changed = changes }
	changed(0, map[string][]string{"d": {"x = 1", "y = 1"}, "e": {"x = 1", "y = 1"}})
	changed(2, map[string][]string{"a": {"x = 1"}, "e": {"x = 2", "y = 1"}, "only here": {"x = 1"}})
	a.rec.Prepared[2].Unasked = []string{"namespaces differ"}
	changed(3, map[string][]string{"d": {"x = 1", "y = 1", "z = 1"}})
	a.rulings()
	for i, want := range []report.Treatment{
		{ID: "main", Baseline: true},
		{
			ID: "pr", Permits: []string{"a"}, Refuses: []string{"d"},
			Alters: []report.Alteration{{Request: "e", Here: []string{"x = 2"}, Baseline: []string{"x = 1"}}},
			Unshown: []string{"1 request comes back without a value that the baseline gives, and no answer shows what that " +
				"permits: e", "no answer shows whether 4 requests are permitted that the baseline refuses, or may refuse: " +
				"b, lost, varies, both", "namespaces differ"},
		},
		{ID: "same", Alters: []report.Alteration{{Request: "d", Here: []string{"z = 1"}, Baseline: []string{}}}},
		{ID: "unasked"},
		{ID: "aa", Control: design.AA},
	} {
		if d := cmp.Diff(want, a.rep.Treatments[i]); d != "" {
			t.Errorf("%s (-want +got):\n%s", want.ID, d)
		}
	}
	a.rep.Budgets = []report.Budget{{Verdict: report.Pass}}
	var why string
	a.rep.Verdict, why = verdict(a.rep, flaws{})
	if a.rep.Verdict != report.Fail || ExitCode(a.rep) != ExitPermits ||
		!strings.Contains(why, "under pr, 1 request is permitted that the baseline refuses: a") {
		t.Errorf("%s (%s), exit %d", a.rep.Verdict, why, ExitCode(a.rep))
	}
	a.rep.Status, a.rep.Treatments[1].NotInForce = report.Errored, "d is refused"
	a.rep.Verdict, why = verdict(a.rep, flaws{invalid: []string{"pr was not in force: d is refused"}})
	if a.rep.Verdict != report.Invalid || ExitCode(a.rep) != ExitPermits ||
		why != "under pr, 1 request is permitted that the baseline refuses: a; pr was not in force: d is refused" {
		t.Errorf("what is refused as well: %s (%s), exit %d", a.rep.Verdict, why, ExitCode(a.rep))
	}
	a.rep.Treatments[1].Permits = nil
	if code := ExitCode(a.rep); code != ExitNotInForce {
		t.Errorf("nothing is permitted: exit %d", code)
	}
	a.rep.Status, a.rep.Treatments[1].NotInForce = report.Complete, ""
	a.rep.Verdict, why = verdict(a.rep, flaws{open: []string{"and more"}})
	if a.rep.Verdict != report.Inconclusive || ExitCode(a.rep) != ExitInconclusive ||
		!strings.Contains(why, "b, lost, varies, both; namespaces differ; and more") {
		t.Errorf("%s (%s), exit %d", a.rep.Verdict, why, ExitCode(a.rep))
	}
	a.rep.Treatments, a.rec.Prepared = []report.Treatment{{ID: "alone"}}, []record.Prepare{
		{Treatment: "alone", Unasked: []string{"1 policy not tried"}},
	}
	a.rulings()
	a.rep.Verdict, why = verdict(a.rep, flaws{})
	if a.rep.Verdict != report.Inconclusive || why != "under alone, 1 policy not tried" {
		t.Errorf("without a baseline: %s (%s)", a.rep.Verdict, why)
	}
	a.rep.Guard = []report.Guard{{Treatment: "alone", RatesGiven: true, Trespasses: report.Trespasses{
		Refused: 5000, Share: &report.Share{Hi: 0.001},
	}}}
	b, err := budget.Parse("permitted <= 0")
	if err != nil {
		t.Fatal(err)
	}
	a.rec.Header.Question = design.Guard
	f := a.guardFinding(&b, "alone")
	if f.verdict != report.Inconclusive || !strings.Contains(f.how, "1 policy not tried") {
		t.Errorf("a pass about policies that were not tried: %+v", f)
	}
	a.rep.Status = report.Interrupted
	if got := ExitCode(a.rep); got != ExitInterrupted {
		t.Errorf("interrupted: exit %d", got)
	}
}
