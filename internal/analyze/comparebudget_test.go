package analyze

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"tare/internal/design"
	"tare/internal/report"
	"tare/internal/stat"
)

// enforcers are three treatments, two of which share a level.
func enforcers() []design.Treatment {
	var out []design.Treatment
	for _, l := range []map[string]string{
		{"enforcer": "none"},
		{"enforcer": "landlock", "rules": "8"},
		{"enforcer": "landlock", "rules": "50"},
		{"enforcer": "seccomp"},
	} {
		out = append(out, design.Treatment{ID: design.ID(l), Baseline: l["enforcer"] == "none", Levels: l})
	}
	return out
}

// TestBudgetsOfComparisons: seccomp adds 10 % to open, landlock 30 % with 8 rules and 60 % with 50; nothing acts on
// exec.
// TestMisfits: a budget of the command line that no such record could decide is a mistake, and not undecided.
func TestMisfits(t *testing.T) {
	t.Parallel()
	before, after := experiment{blocks: 20, seed: 1}.record(), another(experiment{blocks: 20, seed: 2})
	cut := experiment{blocks: 20, seed: 1, drop: func(string, int) bool { return true }}.record()
	isMisfit := func(err error) bool {
		_, ok := errors.AsType[*Misfit](err)
		return ok
	}
	for text, want := range map[string]bool{
		"open.cpu <= +5%": false, "cpu <= +5%": false, "enforcer=seccomp: open.cpu <= +5%": false,
		"opne.cpu <= +5%": true, "open.cup <= +5%": true, "cup <= +5%": true, "open.cpu <= 5": true,
		"secomp: open.cpu <= +5%": true,
	} {
		o := Options{Budget: []string{text}, Fit: true}
		if _, err := Analyze(before, o); isMisfit(err) != want || err != nil && !want {
			t.Errorf("check, %s: %v", text, err)
		}
		if _, err := Analyze(cut, o); err != nil {
			t.Errorf("nothing was measured, %s: %v", text, err)
		}
		arms := []Arms{{Base: "enforcer=none", Treated: seccomp}}
		_, err := CompareRuns(Run{"a", before}, Run{"b", after}, arms, CompareOptions{Budget: []string{text}})
		if isMisfit(err) != want || err != nil && !want {
			t.Errorf("diff, %s: %v", text, err)
		}
		o.Fit = false
		if _, err := Analyze(before, o); err != nil {
			t.Errorf("in a file, %s: %v", text, err)
		}
	}
	search := opened(t, filepath.Join("testdata", "records", "v1-quota"))
	arms, _, err := MatchArms(Run{"a", search}, Run{"b", later(search)}, "", "")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{"capacity >= 5/s": false, "capcity >= 5/s": true, "x: capacity >= 5/s": true} {
		_, err := CompareRuns(Run{"a", search}, Run{"b", later(search)}, arms, CompareOptions{Budget: []string{text}})
		if isMisfit(err) != want || err != nil && !want {
			t.Errorf("diff of searches, %s: %v", text, err)
		}
	}
}

func TestBudgetsOfComparisons(t *testing.T) {
	t.Parallel()
	x := experiment{blocks: 20, treatments: enforcers(), operations: []string{"open", "exec"}, seed: 6, block: .02}
	x.cost = func(treatment, op string, _ int) float64 {
		v := 1e-6
		if op == "exec" {
			return 1e-3
		}
		return v * map[string]float64{
			"enforcer=seccomp": 1.1, "enforcer=landlock rules=8": 1.3, "enforcer=landlock rules=50": 1.6, "enforcer=none": 1,
			"aa": 1,
		}[treatment]
	}
	const never = "not-measured not-measured not-measured"
	for _, c := range []struct{ budget, want, named, reason string }{ // by treatment, in the order of the file
		{"seccomp: open.cpu <= +20%", "pass", "enforcer=seccomp", "20 blocks"},
		{"seccomp: open.cpu <= +5%", "fail", "", "20 blocks"},
		{"seccomp: open.cpu <= +10%", "inconclusive", "", "blocks in all would decide"},
		{"landlock: open.cpu <= +40%", "pass fail", "enforcer=landlock rules=8, enforcer=landlock rules=50", ""},
		{"rules=8: open.cpu <= +40%", "pass", "enforcer=landlock rules=8", ""},
		{"enforcer=landlock rules=50: open.cpu <= +40%", "fail", "enforcer=landlock rules=50", ""},
		{"open.cpu <= +40%", "pass fail pass", "", ""},
		{"none: open.cpu <= 2us", "pass", "enforcer=none", ""},
		{"none: open.cpu <= +2%", "not-measured", "enforcer=none", "baseline itself"},
		{"open.cpu <= 1.2us", "fail fail pass", "", ""},
		{"open.cpu.p50 <= +40%", "pass fail pass", "", ""},
		{"open.cpu <= +400ns", "pass fail pass", "", ""},
		{"cpu <= +40%", "pass fail pass", "", "open is the worst of 2 operations"},
		{"exec.wall <= +5%", "pass pass pass", "", ""},
		{"exec.wall.max <= 1s", "pass pass pass", "", ""},
		{"fork.cpu <= +5%", never, "", `no operation "fork"; there is open, exec`},
		{"open.rss <= 1MiB", never, "", "it measures cpu, wall"},
		{"open.cpu <= +5% at 10/s", never, "", "own pace"},
		{"open.cpu drift <= 1ms/h", never, "", "soak"},
		{"apparmor: open.cpu <= +5%", "not-measured", "apparmor", "no treatment"},
	} {
		x.budget = []string{c.budget}
		var got, named []string
		for _, b := range analyzedRecord(t, x.record()).Budgets {
			got, named = append(got, string(b.Verdict)), append(named, b.Treatment)
			if b.Text != c.budget || !strings.Contains(b.Reason, c.reason) {
				t.Errorf("%q: reason %q, want %q", b.Text, b.Reason, c.reason)
			}
		}
		if strings.Join(got, " ") != c.want || c.named != "" && strings.Join(named, ", ") != c.named {
			t.Errorf("%q: %q for %q, want %q for %q", c.budget, got, named, c.want, c.named)
		}
	}
}

// TestBudgetsWithoutABlock: of a run that failed in its first block, a budget on what operations at their own pace
// measure says that no block was measured; one on what they never measure is refused.
func TestBudgetsWithoutABlock(t *testing.T) {
	t.Parallel()
	x := experiment{blocks: 5, treatments: enforcers(), operations: []string{"open"}, seed: 6}
	x.cost = func(string, string, int) float64 { return 1e-6 }
	for _, c := range []struct {
		budget string
		rate   float64
		want   string
	}{
		{"open.wall <= 2us", 0, "no complete block was measured"},
		{"open.wall.max <= 2us", 0, "no complete block was measured"},
		{"cpu <= +5%", 0, "no complete block was measured"},
		{"open.wall <= 2us at 10/s", 0, "own pace"},
		{"open.response.p50 <= 2ms", 100, "no complete block was measured"},
		{"open.wall <= 2us", 100, "does not measure wall; it measures response"},
	} {
		x.budget = []string{c.budget}
		rec := until(x.record(), 0)
		rec.Plan.Load.Rate = c.rate
		for _, b := range analyzedRecord(t, rec).Budgets {
			if b.Verdict != report.NotMeasured || !strings.Contains(b.Reason, c.want) {
				t.Errorf("%q at %v/s: %s, %q, want %q", b.Text, c.rate, b.Verdict, b.Reason, c.want)
			}
		}
	}
}

// TestBudgetsSeeFewBlocks: what falls into 4 of 20 blocks alone, a tenfold cost or the failure of most calls, is seen
// by budgets of means, extremes, percentiles and goodput, though the median block has none of it.
func TestBudgetsSeeFewBlocks(t *testing.T) {
	t.Parallel()
	batches := experiment{blocks: 20, rounds: 40, seed: 6, batch: 1e-9, block: 1e-9, arm: 1e-9}
	batches.cost = func(treatment, _ string, block int) float64 {
		if treatment == seccomp && block%5 == 0 {
			return 10e-3
		}
		return 1e-3
	}
	calls := batches
	calls.calls = 200
	calls.fail = func(treatment string, block, call int) bool {
		return treatment == seccomp && block%5 == 1 && call%4 > 0
	}
	for _, c := range []struct {
		x      experiment
		budget string
		want   report.Verdict
		reason string
	}{
		{batches, "open.cpu <= 2ms", report.Pass, "20 blocks"}, // the median block
		{batches, "open.cpu.mean <= 2ms", report.Inconclusive, "blocks in all would decide"},
		{batches, "open.cpu.mean <= +50%", report.Inconclusive, "blocks in all would decide"},
		{batches, "open.cpu.p85 <= 2ms", report.Fail, "20 blocks"},
		{batches, "open.cpu.p85 <= +50%", report.Fail, "20 blocks"},
		{batches, "open.cpu.max <= 9ms", report.Fail, "of 800 batches"},
		{batches, "open.cpu.max <= 11ms", report.Pass, "of 800 batches"},
		{batches, "open.cpu.min >= 2ms", report.Fail, "of 800 batches"},
		{batches, "open.cpu.max <= +5%", report.NotMeasured, "no change of it can be told"},
		{batches, "open.cpu.stddev <= 1us", report.NotMeasured, "has no interval here"},
		{calls, "response.max <= 2ms", report.Fail, "of 4000 calls"},
		{calls, "cpu <= 2ms", report.Pass, "20 blocks"},
		{calls, "cpu.mean <= 2ms", report.Inconclusive, "20 blocks"},
		{calls, "goodput >= 900/s", report.Inconclusive, "20 blocks"},
		{calls, "goodput >= -10%", report.Inconclusive, "20 blocks"},
		{calls, "goodput.mean >= 900/s", report.Inconclusive, "20 blocks"},
	} {
		c.x.budget = []string{c.budget}
		var rep *report.Report
		if c.x.calls > 0 {
			rep = measured(t, c.x)
		} else {
			rep = analyzedRecord(t, c.x.record())
		}
		b := rep.Budgets[0]
		if b.Verdict != c.want || !strings.Contains(b.Reason, c.reason) {
			t.Errorf("%s: %s (%s) %v [%v, %v], want %s (%q)", b.Text, b.Verdict, b.Reason, show(b.Estimate), show(b.Lo),
				show(b.Hi), c.want, c.reason)
		}
		if !rep.AA.Reliable && c.want != report.NotMeasured {
			t.Errorf("%s: the A/A arm checks nothing: %s", b.Text, rep.AA.Unchecked)
		}
	}
}

// TestSharesOfFewCalls: a share of batches is the mean of these, and no better known than so many calls allow.
func TestSharesOfFewCalls(t *testing.T) {
	t.Parallel()
	x := experiment{blocks: 10, rounds: 8, seed: 3}
	never := func(string, int, int) float64 { return 0 }
	for _, c := range []struct {
		budget string
		share  func(treatment string, block, round int) float64
		want   report.Verdict
		reason string
	}{
		{"error <= 0%", never, report.Inconclusive, "10 blocks"},
		{"error <= 0.01%", never, report.Inconclusive, "10 blocks"},
		{"error <= 2%", never, report.Pass, "10 blocks"}, // none of 400
		{"error >= 99.99%", func(string, int, int) float64 { return 1 }, report.Inconclusive, "10 blocks"},
		{"error <= 10%", func(_ string, _, round int) float64 { return float64(round % 2) }, report.Fail, "10 blocks"},
		{"error <= -99%", func(treatment string, _, round int) float64 {
			if treatment == seccomp || round > 0 {
				return 0
			}
			return 0.2
		}, report.Inconclusive, "10 blocks"},
	} {
		x.share, x.budget = c.share, []string{"open." + c.budget}
		r := x.record()
		b := analyzedRecord(t, r).Budgets[0]
		if b.Verdict != c.want || !strings.Contains(b.Reason, c.reason) {
			t.Errorf("%s: %s (%s) [%v, %v], want %s", b.Text, b.Verdict, b.Reason, show(b.Lo), show(b.Hi), c.want)
		}
		for _, trial := range r.Trials {
			for i := range trial.Batches {
				trial.Batches[i].N = 0
			}
		}
		b = analyzedRecord(t, r).Budgets[0]
		if b.Verdict != report.Inconclusive || !strings.Contains(b.Reason, "nobody knows") {
			t.Errorf("%s of nobody knows how many calls: %s (%s)", b.Text, b.Verdict, b.Reason)
		}
	}
}

// TestMeansCover: blocks that each take ten times as long with a chance of a fifth. The upper end of the mean is below
// the truth hardly more often than so few slow blocks come that nobody could tell.
func TestMeansCover(t *testing.T) {
	t.Parallel()
	const repetitions, blocks, chance, truth = 400, 20, 0.2, 2.8e-3
	below := map[string]int{}
	for i := range repetitions {
		rng := rand.New(rand.NewPCG(7, uint64(i)))
		slow := make([]bool, blocks)
		for k := range slow {
			slow[k] = rng.Float64() < chance
		}
		x := experiment{blocks: blocks, rounds: 4, seed: uint64(i), block: 1e-9}
		x.budget = []string{"open.cpu.mean <= 1s", "open.cpu.mean <= +500%"}
		x.cost = func(treatment, _ string, block int) float64 {
			if treatment == seccomp && slow[block] {
				return 10e-3
			}
			return 1e-3
		}
		rep := reportOf(t, x.record())
		for k, want := range []float64{truth, truth/1e-3 - 1} {
			if *rep.Budgets[k].Hi < want {
				below[rep.Budgets[k].Text]++
			}
		}
	}
	for text, n := range below {
		t.Logf("%s: the upper end is below the truth in %d of %d runs", text, n, repetitions)
		if n > repetitions/10 {
			t.Errorf("%s: the upper end is below the truth in %d of %d runs", text, n, repetitions)
		}
	}
}

// TestBudgetsUseTheInterval of the effect that they limit.
func TestBudgetsUseTheInterval(t *testing.T) {
	t.Parallel()
	x := experiment{
		blocks: 20, cost: slower(1.1), seed: 6, budget: []string{"open.cpu <= +20%", "open.wall <= +20%", "open.cpu <= +1us"},
	}
	rep := analyzedRecord(t, x.record())
	for i, name := range []string{"open.cpu", "open.wall"} {
		e, b := effectOn(t, rep.Effects, name), rep.Budgets[i]
		if !e.Gating || *b.Lo != e.Lo || *b.Hi != e.Hi || *b.Estimate != e.Estimate || b.Unit != "ratio" {
			t.Errorf("budget [%v, %v], effect %+v", *b.Lo, *b.Hi, e)
		}
	}
	if b := rep.Budgets[2]; math.Abs(*b.Estimate-1e-7) > 1e-8 || *b.Lo > 1e-7 || *b.Hi < 1e-7 || b.Unit != "s" {
		t.Errorf("difference %v [%v, %v]", *b.Estimate, *b.Lo, *b.Hi)
	}
}

// TestAtTheOfferedRate: a comparison offers one rate, and a budget at another is not judged.
func TestAtTheOfferedRate(t *testing.T) {
	t.Parallel()
	x := experiment{blocks: 10, calls: 200, cost: millisecond, block: .01, operations: []string{"token"}, seed: 2}
	want := map[string]report.Verdict{
		"response.p50 <= 2ms at 1000/s": report.Pass, "response.p50 <= 2ms at 50/s": report.NotMeasured,
		"error <= 0.1%": report.Inconclusive, "error <= 1%": report.Pass, "error <= +1%": report.NotMeasured,
		"cpu <= +15%": report.Pass, "response.p50 <= +300us": report.Pass,
	}
	x.budget = sortedKeys(want)
	rep := measured(t, x)
	verdicts(t, rep, want)
	if r := budgetOf(t, rep, "response.p50 <= 2ms at 50/s").Reason; !strings.Contains(r, "not 50") {
		t.Errorf("reason %q", r)
	}
	// 2000 calls without a failure do not show that fewer than 1 in 1000 fail: 5.8 in 2000 are within the interval.
	if hi := budgetOf(t, rep, "error <= 0.1%").Hi; hi == nil || *hi < .002 || *hi > .004 {
		t.Errorf("error at most %v", *hi)
	}
}

// TestRelativeBudgetsKnowTheBaselineToAnInterval: a share as a change of the baseline's allows for what the baseline's
// may be, not only for the difference.
func TestRelativeBudgetsKnowTheBaselineToAnInterval(t *testing.T) {
	t.Parallel()
	// How many of 200 calls fail in each of 20 blocks.
	two := []int{1, 2, 4, 0, 2, 3, 1, 2, 5, 1, 0, 2, 3, 2, 1, 4, 2, 1, 3, 1}
	three := []int{2, 4, 2, 3, 3, 5, 1, 4, 3, 2, 4, 2, 4, 3, 5, 2, 1, 4, 3, 3}
	once, many := make([]int, 20), []int{30, 32, 29, 31, 30, 28, 33, 31, 29, 30, 30, 32, 29, 31, 30, 28, 33, 31, 29, 30}
	once[7] = 1
	for _, c := range []struct {
		budget        string
		base, treated []int
		want          report.Verdict
		reason        string
	}{
		{"error <= +110%", two, three, report.Inconclusive, "blocks in all would decide"}, // by the difference alone +106 %
		{"error <= +170%", two, three, report.Pass, "20 blocks, interval at 98.7 %"},
		{"error <= +5%", two, three, report.Inconclusive, "blocks in all would decide"},
		{"error <= +100%", once, many, report.Fail, "the baseline's token.error may be 0"},
		{"error <= +100000%", once, many, report.Inconclusive, "the baseline's token.error may be 0"},
	} {
		x := experiment{
			blocks: 20, calls: 200, cost: millisecond, operations: []string{"token"}, seed: 2, budget: []string{c.budget},
			fail: func(treatment string, block, call int) bool {
				bad := c.base
				if treatment == seccomp {
					bad = c.treated
				}
				return call-100 < bad[block] // after the warm-up
			},
		}
		b := reportOf(t, opened(t, x.write(t, t.TempDir()))).Budgets[0]
		if b.Verdict != c.want || !strings.Contains(b.Reason, c.reason) {
			t.Errorf("%s: %s (%s) [%v, %v], want %s (%q)", b.Text, b.Verdict, b.Reason, show(b.Lo), show(b.Hi), c.want,
				c.reason)
		}
	}
}

// TestOverBase: a difference that is no share's is divided by all that the baseline may be, unless it does not vary.
func TestOverBase(t *testing.T) {
	t.Parallel()
	inf := math.Inf(1)
	for name, c := range map[string]struct {
		lo, hi, from, to float64 // of the difference, and of the baseline, which is 2
		exact            bool
		wantLo, wantHi   float64
	}{
		"around 0":              {-1, 1, 1, 4, false, -1, 1},
		"above 0":               {1, 3, 1, 4, false, .25, 3},
		"below 0":               {-3, -1, 1, 4, false, -3, -.25},
		"the baseline may be 0": {1, 3, -1, 4, false, .25, inf},
		"both may be 0":         {0, 0, 0, 4, false, 0, 0},
		"exactly":               {1, 1, 1, 4, true, .5, .5},
	} {
		x := &contrast{exact: c.exact}
		x.got.Estimate = stat.Estimate{Value: 1, Lo: c.lo, Hi: c.hi, Level: level, N: 20}
		e := x.overBase(stat.Estimate{Value: 2, Lo: c.from, Hi: c.to})
		if e.Value != .5 || e.Lo != c.wantLo || e.Hi != c.wantHi {
			t.Errorf("%s: %+v, want [%v, %v]", name, e, c.wantLo, c.wantHi)
		}
	}
}

// TestManyBudgets: a record from elsewhere can have thousands of operations and a budget for each of them, and for as
// many that there are not. Each is judged on its own, and none says more than a reader can read.
func TestManyBudgets(t *testing.T) {
	t.Parallel()
	const n, longest = 1000, 5000
	x := experiment{blocks: 3, rounds: 3, seed: 1}
	for i := range n {
		x.operations = append(x.operations, fmt.Sprintf("o%d", i))
		x.budget = append(x.budget, fmt.Sprintf("o%d.wall.p%05d <= 1s", i, 10001+i), fmt.Sprintf("x%d.wall <= 1s", i))
	}
	rep := analyzedRecord(t, x.record())
	if len(rep.Budgets) != 2*n {
		t.Fatalf("%d budgets, want %d", len(rep.Budgets), 2*n)
	}
	for i := range rep.Budgets {
		b := &rep.Budgets[i]
		switch {
		case b.Text != x.budget[i] || len(b.Reason) > longest:
			t.Fatalf("budget %d is %q, with a reason of %d characters", i, b.Text, len(b.Reason))
		case i%2 == 0 && b.Verdict != report.Inconclusive: // three blocks are too few for an interval
			t.Fatalf("%q: %s (%s)", b.Text, b.Verdict, b.Reason)
		case i%2 == 1 && (b.Verdict != report.NotMeasured || !strings.Contains(b.Reason, "o199, …")):
			t.Fatalf("%q: %s (%s)", b.Text, b.Verdict, b.Reason)
		}
	}
}
