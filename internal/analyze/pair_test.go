package analyze

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/budget"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/importer"
	"tare/internal/metric"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/stat"
	"tare/rigs/hosttest"
)

// another makes a record of a second run: started later, with its own seed.
func another(x experiment) *record.Record {
	r := x.record()
	r.Header.Started = r.Header.Started.Add(time.Hour)
	return r
}

func compared(t *testing.T, base, treated *record.Record, x, y string, o CompareOptions) *report.Report {
	t.Helper()
	a, b := Run{Name: "before", Record: base}, Run{Name: "after", Record: treated}
	if SameRun(base, treated) {
		b.Name = a.Name
	}
	arms, _, err := MatchArms(a, b, x, y)
	if err != nil {
		t.Fatal(err)
	}
	rep, err := CompareRuns(a, b, arms, o)
	if err != nil {
		t.Fatal(err)
	}
	return rep
}

func effectOf(t *testing.T, rep *report.Report, treatment string) report.Effect {
	t.Helper()
	for _, e := range rep.Effects {
		if e.Treatment == treatment && e.Operation == "open" && e.Metric == "cpu" {
			return e
		}
	}
	t.Fatalf("no effect of %s on open.cpu among %+v; notes %q", treatment, rep.Effects, rep.Notes)
	return report.Effect{}
}

func costlier(by float64) func(string, string, int) float64 {
	return func(arm, _ string, _ int) float64 {
		if arm == "enforcer=seccomp" {
			return 1e-6 * (1 + by)
		}
		return 1e-6
	}
}

// TestCompareWithinARun: two arms of one run are compared block by block, with what the run's own report says of them.
func TestCompareWithinARun(t *testing.T) {
	t.Parallel()
	rec := experiment{blocks: 20, seed: 3, cost: costlier(.05), block: .3}.record()
	own := reportOf(t, rec)
	rep := compared(t, rec, rec, "", "enforcer=seccomp", CompareOptions{})
	got, want := effectOf(t, rep, "enforcer=seccomp"), effectOf(t, own, "enforcer=seccomp")
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("not what the run's report says (-run +compare)\n%s", diff)
	}
	if got.Verdict != report.Regressed || math.Abs(got.Estimate-.05) > .01 || rep.Design.Unblocked || rep.AA == nil ||
		len(rep.AA.Effects) == 0 {
		t.Errorf("%+v, design %+v, A/A %+v", got, rep.Design, rep.AA)
	}
	// The other way round it is the inverse.
	back := effectOf(t, compared(t, rec, rec, "enforcer=seccomp", "enforcer=none", CompareOptions{}), "enforcer=none")
	if back.Verdict != report.Improved || math.Abs((1+back.Estimate)*(1+got.Estimate)-1) > 1e-9 {
		t.Errorf("backwards %+v", back)
	}
	for _, x := range rep.Treatments {
		if x.Levels["enforcer"] == "" || len(x.Levels) != 1 {
			t.Errorf("%s has levels %v", x.ID, x.Levels)
		}
	}
}

// TestCompareAAWithinRuns: the A/A arm against the baseline it repeats is quiet, on hosts whose blocks differ by 30 %.
func TestCompareAAWithinRuns(t *testing.T) {
	t.Parallel()
	told, equivalent := 0, 0
	const runs = 60
	for seed := range uint64(runs) {
		rec := experiment{blocks: 20, seed: seed, block: .3}.record()
		e := effectOf(t, compared(t, rec, rec, "enforcer=none", design.AAArm, CompareOptions{}), design.AAArm)
		if e.Measurable {
			told++
		}
		switch e.Verdict {
		case report.Equivalent:
			equivalent++
		case report.EffectInconclusive, report.NotJudged, report.Slower, report.Faster:
		case report.Regressed, report.Improved:
			t.Errorf("seed %d: %+v", seed, e)
		}
	}
	if told > 4 || equivalent < runs*3/4 { // at 1.6 %, 4 or fewer of 60 have probability 0.997
		t.Errorf("%d of %d A/A comparisons found a difference, %d said equivalent", told, runs, equivalent)
	}
}

// TestCompareRunsUnblocked: of two runs even equals are never equivalent, and true differences are found.
func TestCompareRunsUnblocked(t *testing.T) {
	t.Parallel()
	quiet := experiment{blocks: 40, seed: 1, block: .005, cost: costlier(.3)}
	for seed := range uint64(20) {
		y := quiet
		y.seed = 100 + seed
		rep := compared(t, quiet.record(), another(y), "enforcer=none", "enforcer=none", CompareOptions{Margin: .2})
		for _, e := range rep.Effects {
			if e.Verdict == report.Equivalent {
				t.Errorf("seed %d: equivalent: %+v", seed, e)
			}
		}
		if !rep.Design.Unblocked || !strings.Contains(strings.Join(rep.Warnings, "\n"), "taken at different times") {
			t.Errorf("not marked as unblocked: %+v %q", rep.Design, rep.Warnings)
		}
	}
	e := effectOf(
		t, compared(t, quiet.record(), another(quiet), "enforcer=none", "enforcer=seccomp", CompareOptions{}),
		"enforcer=seccomp",
	)
	if e.Verdict != report.Regressed || e.Lo > .3 || e.Hi < .3 || e.Baseline != "before:enforcer=none" || e.Blocks != 40 {
		t.Errorf("%+v", e)
	}
}

// TestCompareRunsCountsBlocks: the rounds of a block are not values of their own: that the arm stood in one place for
// all of them is what makes them alike. With them as values, two runs of equals would almost always differ.
func TestCompareRunsCountsBlocks(t *testing.T) {
	t.Parallel()
	told := 0
	const runs = 60
	for seed := range uint64(runs) {
		x := experiment{blocks: 10, seed: 2 * seed, block: .1}
		y := x
		y.seed++
		if effectOf(
			t, compared(t, x.record(), another(y), "enforcer=none", "enforcer=none", CompareOptions{}), "enforcer=none",
		).Measurable {
			told++
		}
	}
	if told > 4 {
		t.Errorf("%d of %d comparisons of equals found a difference at 1.6 %%", told, runs)
	}
}

// TestComparePairsTreatments: of two runs, equal treatments are compared with each other, each with its own base.
func TestComparePairsTreatments(t *testing.T) {
	t.Parallel()
	before := experiment{blocks: 20, seed: 1, block: .005}
	after := experiment{blocks: 20, seed: 2, block: .005, cost: func(arm, _ string, _ int) float64 {
		return map[string]float64{"enforcer=none": 1.5e-6, design.AAArm: 1.5e-6, "enforcer=seccomp": 2.5e-6}[arm]
	}}
	rep := compared(
		t, before.record(), another(after), "", "",
		CompareOptions{Budget: []string{"enforcer=none: open.cpu <= +80%", "enforcer=seccomp: open.cpu <= +80%"}},
	)
	for treatment, want := range map[string]float64{"enforcer=none": .5, "enforcer=seccomp": 1.5} {
		e := effectOf(t, rep, treatment)
		if e.Baseline != "before:"+treatment || math.Abs(e.Estimate-want) > .05 {
			t.Errorf("%+v, want %v against before:%s", e, want, treatment)
		}
	}
	var got []string
	for _, b := range rep.Budgets {
		got = append(got, fmt.Sprint(b.Treatment, " ", b.Verdict))
	}
	if want := []string{"enforcer=none pass", "enforcer=seccomp fail"}; !slices.Equal(got, want) ||
		ExitCode(rep) != ExitBudget {
		t.Errorf("budgets %q, exit %d; want %q", got, ExitCode(rep), want)
	}
	if len(rep.Growth) > 0 {
		t.Errorf("growth %+v", rep.Growth)
	}
}

// TestCompareUneven: repetitions of results without blocks need not be equally many, nor is any of them lost.
func TestCompareUneven(t *testing.T) {
	t.Parallel()
	x := experiment{blocks: 12, seed: 1, unblocked: true, block: .01, cost: costlier(.5)}
	rec := x.record()
	rec.Trials = slices.DeleteFunc(
		rec.Trials, func(t *record.Trial) bool { return t.Treatment == "enforcer=none" && t.Block%2 == 0 },
	)
	rep := compared(t, rec, rec, "enforcer=none", "enforcer=seccomp", CompareOptions{})
	if e := effectOf(t, rep, "enforcer=seccomp"); e.Blocks != 6 || e.Verdict != report.Regressed || !rep.Design.Unblocked {
		t.Errorf("%+v %+v", e, rep.Design)
	}
	n := map[string]int{}
	for _, x := range rep.Treatments {
		for _, m := range x.Metrics {
			if m.Name == "cpu" {
				n[x.ID] = m.N
			}
		}
	}
	if want := map[string]int{"enforcer=none": 6, "enforcer=seccomp": 12}; !cmp.Equal(want, n) {
		t.Errorf("values %v, want %v", n, want)
	}
}

// TestCompareSays what differs between the runs, what has no counterpart, and what makes one of them worthless.
func TestCompareSays(t *testing.T) {
	t.Parallel()
	a := experiment{blocks: 20, seed: 1, operations: []string{"open", "fork"}}.record()
	b := another(experiment{blocks: 20, seed: 2, operations: []string{"open", "exec"}})
	a.Header.Host, b.Header.Host = record.Host{
		Name: "x", Kernel: "Linux 6.1", CPUs: 2,
	}, record.Host{Name: "y", Kernel: "Linux 6.9", CPUs: 2}
	a.Header.Tool.Version, b.Header.Tool.Version = "0.1.0", "0.2.0"
	a.Header.Experiment.SHA256, b.Header.Experiment.SHA256 = "aaaa", "bbbb"
	rep := compared(t, a, b, "", "", CompareOptions{})
	text := strings.Join(append(rep.Warnings, rep.Notes...), "\n")
	for _, want := range []string{
		"differ in host: x and y", "differ in kernel: Linux 6.1 and Linux 6.9", "differ in tare: 0.1.0 and 0.2.0",
		"differ in experiment file",
		"only under before:enforcer=none, so not compared: fork.cpu, fork.wall", "exec.cpu",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not said:\n%s", want, text)
		}
	}
	if strings.Contains(text, "CPUs") {
		t.Errorf("equal CPUs are said to differ:\n%s", text)
	}

	bad := another(experiment{blocks: 20, seed: 3, cost: func(arm, _ string, _ int) float64 {
		if arm == design.AAArm {
			return 1.2e-6
		}
		return 1e-6
	}})
	rep = compared(
		t, experiment{blocks: 20, seed: 1, block: .01}.record(), bad, "enforcer=seccomp", "enforcer=seccomp",
		CompareOptions{},
	)
	if rep.Verdict != report.Invalid || !strings.Contains(rep.Reason, "after is invalid") || ExitCode(rep) != ExitInvalid {
		t.Errorf("%s: %s", rep.Verdict, rep.Reason)
	}
	if len(rep.Effects) > 0 {
		t.Errorf("an invalid comparison has effects: %+v", rep.Effects)
	}

	cut := experiment{
		blocks: 20, seed: 1, end: record.Interrupted, drop: func(_ string, b int) bool { return b >= 15 },
	}.record()
	rep = compared(t, cut, cut, "", "enforcer=seccomp", CompareOptions{})
	if text := strings.Join(rep.Warnings, "\n"); !strings.Contains(text, "did not come to its end") ||
		rep.Effects[0].Blocks != 15 {
		t.Errorf("%d blocks; %s", rep.Effects[0].Blocks, text)
	}
}

// TestCompareRulings: what B permits and A refuses is said by the comparison of their records, whatever their order and
// whether they are of one run.
func TestCompareRulings(t *testing.T) {
	t.Parallel()
	const none = "enforcer=none"
	ruled := func(r *record.Record) *record.Record {
		r.Prepared = []record.Prepare{
			{Treatment: none, Refused: []string{"a"}, Permitted: []string{"b"}},
			{Treatment: seccomp, Permitted: []string{"a"}, Refused: []string{"b"}, Unasked: []string{"policies differ"}},
		}
		return r
	}
	run := ruled(experiment{blocks: 20, seed: 1}.record())
	other := ruled(another(experiment{blocks: 20, seed: 2}))
	for _, c := range []struct {
		name            string
		treated         *record.Record
		x, y            string
		permits, refuse []string
		unshown         string
		exit            int
	}{
		{"within a run", run, none, seccomp, []string{"a"}, []string{"b"}, "policies differ", ExitPermits},
		{
			"the other way round", run, seccomp, none,
			[]string{"b"},
			[]string{"a"},
			"enforcer=seccomp differs from the baseline of its run: policies differ", ExitPermits,
		},
		{"of two runs", other, none, seccomp, []string{"a"}, []string{"b"}, "policies differ", ExitPermits},
		{"the same of two runs", other, seccomp, seccomp, nil, nil, "", ExitPass},
	} {
		rep := compared(t, run, c.treated, c.x, c.y, CompareOptions{})
		i := slices.IndexFunc(rep.Treatments, func(x report.Treatment) bool { return !x.Baseline })
		if x := rep.Treatments[i]; !slices.Equal(x.Permits, c.permits) || !slices.Equal(x.Refuses, c.refuse) ||
			strings.Join(x.Unshown, "; ") != c.unshown || ExitCode(rep) != c.exit {
			t.Errorf("%s: exit %d, %+v", c.name, ExitCode(rep), x)
		}
	}
	run.Prepared = run.Prepared[1:]
	rep := compared(t, run, run, none, seccomp, CompareOptions{})
	if text := strings.Join(rep.Warnings, "\n"); !strings.Contains(text, "is not known") {
		t.Errorf("the rulings of one treatment are missing: %s", text)
	}
}

// TestCompareRefuses records of different questions.
func TestCompareRefuses(t *testing.T) {
	t.Parallel()
	blocks, search := experiment{blocks: 2, seed: 1}.record(), another(experiment{blocks: 2, seed: 1})
	search.Header.Question = design.Capacity
	arms := []Arms{{Base: "enforcer=none", Treated: "enforcer=none"}}
	_, err := CompareRuns(Run{"x", blocks}, Run{"y", search}, arms, CompareOptions{})
	if err == nil || !strings.Contains(err.Error(), "x asks for compare, and y for capacity") {
		t.Errorf("%v", err)
	}
}

func TestMatchArms(t *testing.T) {
	t.Parallel()
	of := func(start int, ids ...string) Run {
		r := &record.Record{}
		r.Header.Started = epoch.Add(time.Duration(start) * time.Hour)
		for i, id := range ids {
			x := design.Treatment{ID: id, Baseline: i == 0}
			if id == design.AAArm {
				x = design.Treatment{ID: id, Control: design.AA, Of: ids[0]}
			}
			r.Plan.Treatments = append(r.Plan.Treatments, x)
		}
		return Run{Name: fmt.Sprint("run", start), Record: r}
	}
	one := of(1, "none", "seccomp", "aa")
	pairs := func(ids ...string) (out []Arms) {
		for i := 0; i < len(ids); i += 2 {
			out = append(out, Arms{Base: ids[i], Treated: ids[i+1]})
		}
		return out
	}
	likely := func(of []Arms) []Arms {
		for i := range of {
			of[i].Likely = of[i].Base != of[i].Treated
		}
		return of
	}
	// levels are of treatments like "wall=brick size=10".
	levels := func(r Run) Run {
		for i := range r.Record.Plan.Treatments {
			x := &r.Record.Plan.Treatments[i]
			x.Levels = map[string]string{}
			for word := range strings.FieldsSeq(x.ID) {
				factor, level, _ := strings.Cut(word, "=")
				x.Levels[factor] = level
			}
		}
		return r
	}
	for _, c := range []struct {
		name          string
		base, treated Run
		x, y          string
		want          []Arms
		alone         []string
		err           string
		candidates    []Arms
	}{
		{
			name: "common ones", base: one, treated: of(2, "none", "seccomp", "aa"),
			want: pairs("none", "none", "seccomp", "seccomp"),
		},
		{
			name: "what only one has", base: one, treated: of(2, "none", "seccomp", "landlock"),
			want: pairs("none", "none", "seccomp", "seccomp"), alone: []string{"run2:landlock"},
		},
		{
			name: "the only ones left", base: one, treated: of(2, "none", "landlock"),
			want: likely(pairs("none", "none", "seccomp", "landlock")),
		},
		{
			name: "several may be meant", base: one, treated: of(2, "none", "landlock", "bpf"), err: "it is not clear which",
			candidates: likely(pairs("seccomp", "landlock", "seccomp", "bpf")),
		},
		{
			name: "levels in another order", base: levels(of(1, "wall=none", "wall=brick size=1")),
			treated: levels(of(2, "wall=none", "size=1 wall=brick")),
			want:    pairs("wall=none", "wall=none", "wall=brick size=1", "size=1 wall=brick"),
		},
		{
			name: "sizes are no namesakes", base: levels(of(1, "size=1", "size=10", "size=100")),
			treated: levels(of(2, "size=1", "size=10", "size=1000")), want: pairs("size=1", "size=1", "size=10", "size=10"),
			alone: []string{"run2:size=1000", "run1:size=100"},
		},
		{
			name: "renamed factors", base: levels(of(1, "wall=none", "wall=brick")),
			treated: levels(of(2, "fence=none", "fence=brick")), err: "it is not clear which",
			candidates: likely(pairs("wall=none", "fence=none", "wall=brick", "fence=brick")),
		},
		{
			name: "other addresses", base: levels(of(1, "at=a", "at=b")), treated: levels(of(2, "at=a", "at=c")),
			want: likely(pairs("at=a", "at=a", "at=b", "at=c")),
		},
		{name: "the only ones", base: of(1, "a"), treated: of(2, "b"), want: likely(pairs("a", "b"))},
		{
			name: "none in common", base: levels(of(1, "size=1", "size=2")), treated: levels(of(2, "size=3", "size=4")),
			err: "no treatment is in both", candidates: pairs("size=1", "size=3"),
		},
		{name: "named", base: one, treated: of(2, "x", "y"), x: "seccomp", y: "y", want: pairs("seccomp", "y")},
		{
			name: "named once", base: one, treated: of(2, "none", "seccomp"), y: "seccomp", want: pairs("seccomp", "seccomp"),
		},
		{
			name: "no such", base: one, treated: one, x: "bpf", y: "none",
			err: "no treatment \"bpf\"; it has: none, seccomp, aa",
		},
		{name: "one run", base: one, treated: one, x: "none", y: "seccomp", want: pairs("none", "seccomp")},
		{name: "one run, against its baseline", base: one, treated: one, y: "seccomp", want: pairs("none", "seccomp")},
		{name: "one run, the first named", base: one, treated: one, x: "aa", want: pairs("none", "aa")},
		{name: "one run, nothing named", base: one, treated: one, err: "name two of its treatments"},
		{
			name: "one run, the same twice", base: one, treated: one, x: "seccomp", y: "seccomp",
			err: "name two of its treatments",
		},
		{name: "empty", base: of(1), treated: of(2, "x", "y"), err: "no treatment is in both"},
	} {
		got, alone, err := MatchArms(c.base, c.treated, c.x, c.y)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %v, error %v; want one with %q", c.name, got, err, c.err)
			}
			if u := (*Unmatched)(nil); errors.As(err, &u) && !cmp.Equal(c.candidates, u.Candidates) {
				t.Errorf("%s: candidates %v, want %v", c.name, u.Candidates, c.candidates)
			}
			continue
		}
		if err != nil || !cmp.Equal(c.want, got) || !cmp.Equal(c.alone, alone) {
			t.Errorf("%s: %v, alone %q, %v; want %v, %q", c.name, got, alone, err, c.want, c.alone)
		}
	}
}

// correlated writes what a load generator says of a stream whose times are correlated, as those of queues are: the
// logarithm follows an autoregressive process with coefficient 0.9.
func correlated(median float64, rng *rand.Rand) string {
	var b strings.Builder
	x := rng.NormFloat64() * .3
	at := epoch
	for range 2000 {
		x = .9*x + math.Sqrt(1-.9*.9)*.3*rng.NormFloat64()
		at = at.Add(10 * time.Millisecond)
		fmt.Fprintf(
			&b, "{\"code\":200,\"timestamp\":%q,\"latency\":%d}\n", at.Format(time.RFC3339Nano), int64(median*1e9*math.Exp(x)),
		)
	}
	return b.String()
}

// imported reads a tool's file and opens the record that becomes of it.
func imported(t *testing.T, name, src string) Run {
	t.Helper()
	d, err := importer.Read(strings.NewReader(src), name, "")
	if err != nil {
		t.Fatal(err)
	}
	dir, err := d.Write(
		t.TempDir(), record.Header{Experiment: record.Experiment{Name: name, SHA256: name}}, clock.System{},
	)
	if err != nil {
		t.Fatal(err)
	}
	return Run{Name: name, Record: opened(t, dir)}
}

func serviceEffect(t *testing.T, a, b Run) report.Effect {
	t.Helper()
	arms, _, err := MatchArms(a, b, "", "")
	if err != nil {
		t.Fatal(err)
	}
	rep, err := CompareRuns(a, b, arms, CompareOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range rep.Effects {
		if e.Metric == "service" {
			return e
		}
	}
	t.Fatalf("no effect on service among %+v: %q", rep.Effects, rep.Notes)
	return report.Effect{}
}

// TestImportedCalls: calls that follow one another are no independent values. With each call as a value of its own, 118
// of 200 comparisons of equals found a difference on these streams, at a nominal 1.3 %.
func TestImportedCalls(t *testing.T) {
	t.Parallel()
	hosttest.SkipIfShort(t)
	rng := rand.New(rand.NewPCG(5, 6))
	told := 0
	const runs = 20
	for i := range runs {
		e := serviceEffect(
			t, imported(t, fmt.Sprint("a", i), correlated(.01, rng)), imported(t, fmt.Sprint("b", i), correlated(.01, rng)),
		)
		if e.Measurable {
			told++
		}
		if e.Verdict == report.Equivalent || e.Blocks != 20 {
			t.Fatalf("%+v", e)
		}
	}
	if told > 3 {
		t.Errorf("%d of %d comparisons of equals found a difference", told, runs)
	}
	e := serviceEffect(t, imported(t, "a", correlated(.01, rng)), imported(t, "b", correlated(.013, rng)))
	if e.Verdict != report.Regressed || e.Lo > .3 || e.Hi < .3 {
		t.Errorf("a true +30 %%: %+v", e)
	}
	t.Logf("%d of %d comparisons of equals found a difference", told, runs)
}

// TestStepsOfClocks: times in whole milliseconds are up to one longer or shorter than they say, so that no interval and
// no verdict tells them apart within that, however many calls there are.
func TestStepsOfClocks(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(7, 8))
	jmeter := func(name string, milliseconds float64) Run {
		var b strings.Builder
		b.WriteString("timeStamp,elapsed,label,success\n")
		for i := range 2000 {
			fmt.Fprintf(&b, "%d,%d,check,true\n", 1_700_000_000_000+50*i, int(milliseconds+.02*rng.NormFloat64()))
		}
		return imported(t, name, b.String())
	}
	vegeta := func(name string, milliseconds float64, step time.Duration) Run {
		var b strings.Builder
		for i := range 2000 {
			took := time.Duration((milliseconds + .02*rng.NormFloat64()) * 1e6).Truncate(step)
			fmt.Fprintf(&b, "{\"code\":200,\"timestamp\":%q,\"latency\":%d}\n",
				epoch.Add(time.Duration(i)*50*time.Millisecond).Format(time.RFC3339Nano), took)
		}
		return imported(t, name, b.String())
	}
	for _, c := range []struct {
		name    string
		a, b    Run
		truth   float64
		verdict report.EffectVerdict
		warns   bool
	}{
		{"39.9 and 40.1 ms", jmeter("a", 39.9), jmeter("b", 40.1), 40.1/39.9 - 1, report.EffectInconclusive, true},
		{"39.1 and 39.9 ms", jmeter("a", 39.1), jmeter("b", 39.9), 39.9/39.1 - 1, report.EffectInconclusive, true},
		{"39.9 and 52 ms", jmeter("a", 39.9), jmeter("b", 52), 52/39.9 - 1, report.Regressed, false},
		{"399.9 and 440 ms", jmeter("a", 399.9), jmeter("b", 440), 440/399.9 - 1, report.Regressed, false},
		{
			"another tool", vegeta("a", 39.9, time.Millisecond), vegeta("b", 40.1, time.Millisecond), 40.1/39.9 - 1,
			report.EffectInconclusive, true,
		},
		{"a finer clock", vegeta("a", 39.9, 1), vegeta("b", 42, 1), 42/39.9 - 1, report.Regressed, false},
	} {
		e := serviceEffect(t, c.a, c.b)
		shown := c.verdict == report.Regressed
		if e.Lo > c.truth || e.Hi < c.truth || e.Verdict != c.verdict || *e.P > stat.LookAlpha == shown {
			t.Errorf("%s: %s, %+.4f [%.4f, %.4f], p %v; true %.4f", c.name, e.Verdict, e.Estimate, e.Lo, e.Hi, *e.P, c.truth)
		}
		rep, err := Analyze(c.b.Record, Options{})
		if err != nil {
			t.Fatal(err)
		}
		said := strings.Join(rep.Warnings, "; ")
		if strings.Contains(said, "service: the clock has steps of 1 ms, 2.") != c.warns {
			t.Errorf("%s: warnings %q", c.name, said)
		}
	}
	for limit, want := range map[string]report.Verdict{
		"service.p50 <= 39.5ms": report.Inconclusive, "service.p50 <= 38.1ms": report.Inconclusive,
		"service.p50 <= 41ms": report.Pass, "service.p50 <= 37ms": report.Fail, "service.max <= 39.5ms": report.Inconclusive,
		"service.p99 <= 39.5ms": report.Inconclusive,
	} {
		rep, err := Analyze(jmeter("a", 39.9).Record, Options{Budget: []string{limit}})
		if err != nil {
			t.Fatal(err)
		}
		if b := rep.Budgets[0]; b.Verdict != want {
			t.Errorf("%s: %s, %+v", limit, b.Verdict, b)
		}
	}
	a, b := jmeter("a", .4), jmeter("b", 1.4)
	arms, _, err := MatchArms(a, b, "", "")
	if err != nil {
		t.Fatal(err)
	}
	rep, err := CompareRuns(a, b, arms, CompareOptions{Budget: []string{"service.p50 <= +1000%"}})
	if err != nil || rep.Budgets[0].Verdict == report.Pass || rep.Budgets[0].Verdict == report.Fail {
		t.Errorf("times of a step: %v, %+v", err, rep.Budgets)
	}
}

// later returns another run: the same record as if it had been made an hour later.
func later(r *record.Record) *record.Record {
	x := *r
	x.Header.Started = x.Header.Started.Add(time.Hour)
	x.Header.Experiment.Seed++
	return &x
}

func changeOf(t *testing.T, rep *report.Report, name string) report.Change {
	t.Helper()
	for _, c := range rep.Diff.Changes {
		got := report.Measured(c.Operation, c.Metric, c.Quantile)
		if c.Drift {
			got += " drift"
		}
		if got == name {
			return c
		}
	}
	t.Fatalf("no change of %s among %+v", name, rep.Diff.Changes)
	return report.Change{}
}

func openedSoak(t *testing.T, x endurance) *record.Record {
	t.Helper()
	return opened(t, x.write(t, t.TempDir()))
}

// TestCompareSoaks: of two soaks the figures are compared whose intervals are apart, and no others.
func TestCompareSoaks(t *testing.T) {
	t.Parallel()
	hosttest.SkipIfShort(t)
	a := openedSoak(t, endurance{seed: 1})
	slower := endurance{seed: 2, response: func(float64) float64 { return .013 }, rss: func(at float64) float64 {
		return 30*mib + 5*mib*at/60 + sawtooth(at)
	}}
	b := later(openedSoak(t, slower))
	rep := compared(t, a, b, "", "", CompareOptions{})
	c := changeOf(t, rep, "response.p50")
	if c.Verdict != report.ShownHigher || c.Ratio == nil || math.Abs(*c.Ratio-.3) > .05 {
		t.Errorf("a true +30 %%: %+v", c)
	}
	if c := changeOf(t, rep, "rss drift"); c.Verdict != report.ShownHigher || c.Ratio != nil {
		t.Errorf("a leak of 5 MiB a minute: %+v", c)
	}
	if c := changeOf(t, rep, "error"); c.Verdict != report.NotShown || c.A.Hi == nil || *c.A.Hi == 0 {
		t.Errorf("no call failed in either: %+v", c)
	}
	if c := changeOf(t, rep, "cpu"); c.Verdict != report.NotShown || c.Reason != "the intervals overlap" {
		t.Errorf("equal CPU time: %+v", c)
	}
	if text := strings.Join(rep.Warnings, "\n"); !strings.Contains(text, "an interval is of its own run") {
		t.Errorf("the kind of the claim is not said: %s", text)
	}
	if rep.Verdict != report.None {
		t.Errorf("verdict %s: %s", rep.Verdict, rep.Reason)
	}

	want := map[string]report.Verdict{
		"response.p50 <= +10%": report.Fail, "response.p50 <= +50%": report.Pass, "response.p50 <= 1s": report.Pass,
		"response.p50 <= 11ms": report.Fail, "cpu <= +20%": report.Pass,
	}
	verdicts(t, compared(t, a, b, "", "", CompareOptions{Budget: sortedKeys(want)}), want)
	before, after := Run{Name: "before", Record: a}, Run{Name: "after", Record: b}
	arms, _, err := MatchArms(before, after, "", "")
	check(t, err)
	_, err = CompareRuns(before, after, arms, CompareOptions{Budget: []string{"capacity >= 1/s"}})
	if err == nil || !strings.Contains(err.Error(), "the question soak does not measure capacity") {
		t.Errorf("a budget on a capacity of two soaks: %v", err)
	}
}

// TestCompareInvalidSoak: a run that is invalid decides nothing, and that is said.
func TestCompareInvalidSoak(t *testing.T) {
	t.Parallel()
	a := openedSoak(t, endurance{measured: 60, seed: 1, unverified: true})
	b := later(openedSoak(t, endurance{measured: 60, seed: 2, response: func(float64) float64 { return .02 }}))
	rep := compared(t, a, b, "", "", CompareOptions{Budget: []string{"response.p50 <= +10%"}})
	if rep.Verdict != report.Invalid || !strings.Contains(rep.Reason, "before is invalid") {
		t.Errorf("%s: %s", rep.Verdict, rep.Reason)
	}
	if c := changeOf(t, rep, "response.p50"); c.Verdict != report.NotCompared || c.B.Value == nil || c.Ratio != nil {
		t.Errorf("%+v", c)
	}
	if b := rep.Budgets[0]; b.Verdict != report.Inconclusive || b.Reason != runInvalid || b.Estimate != nil {
		t.Errorf("%+v", b)
	}
}

// TestCompareSearches: two searches are compared by the intervals of their rates, and by how the targets broke.
func TestCompareSearches(t *testing.T) {
	t.Parallel()
	open := func(name string) *record.Record { return opened(t, filepath.Join("testdata", "records", name)) }
	rec := open("v1-quota")
	rep := compared(t, rec, later(open("v1-quota")), "", "", CompareOptions{Budget: []string{"capacity >= -50%"}})
	c := changeOf(t, rep, "capacity")
	if c.Verdict != report.NotShown || c.A.Value == nil || c.Unit != metric.PerSecond {
		t.Errorf("a search and itself: %+v", c)
	}
	if p := rep.Diff.Pairs[0]; p.FailureA == nil || p.LimitA == nil ||
		p.FailureA.Statement() != p.FailureB.Statement() || p.LimitA.Statement() != p.LimitB.Statement() {
		t.Errorf("%+v", p)
	}
	if rep.Budgets[0].Verdict != report.Pass {
		t.Errorf("%+v", rep.Budgets[0])
	}

	limits := []string{"capacity >= -5%", "capacity >= 90/s"}
	rep = compared(t, open("v1-capacity"), rec, "", "", CompareOptions{Budget: limits})
	c = changeOf(t, rep, "capacity")
	if c.Verdict != report.ShownLower || c.Ratio == nil || math.Abs(*c.Ratio+1./3) > .02 || *c.Hi >= 0 {
		t.Errorf("150/s and 100/s: %+v", c)
	}
	if rep.Budgets[0].Verdict != report.Fail || rep.Budgets[1].Verdict != report.Pass || rep.Verdict != report.Fail {
		t.Errorf("%+v", rep.Budgets)
	}
}

// TestSeparation: intervals that are apart show a difference; bounds count on their side only.
func TestSeparation(t *testing.T) {
	t.Parallel()
	inf := math.Inf(1)
	of := func(v, lo, hi float64) finding { return finding{Interval: budget.Interval{Value: v, Lo: lo, Hi: hi}} }
	for _, c := range []struct {
		name string
		a, b finding
		want report.ChangeVerdict
		why  string
	}{
		{"apart", of(163, 158, 175), of(148, 145, 151), report.ShownLower, ""},
		{"overlapping", of(163, 158, 175), of(160, 150, 165), report.NotShown, "overlap"},
		{"touching", of(163, 158, 175), of(180, 175, 190), report.NotShown, "overlap"},
		{"a bound above", of(163, 158, 175), of(200, 200, inf), report.ShownHigher, ""},
		{"a bound within", of(163, 158, 175), of(150, 150, inf), report.NotShown, "overlap"},
		{"two bounds", of(100, 100, inf), of(200, 200, inf), report.NotShown, "both intervals are open"},
		{"bounds on either side", of(100, 0, 100), of(200, 200, inf), report.ShownHigher, ""},
		{"nothing known", of(math.NaN(), 0, inf), unmeasured("no search"), report.NotCompared, "no search"},
		{"an open interval", of(1, math.Inf(-1), inf), of(2, 1.5, 3), report.NotCompared, "in A"},
	} {
		got, why := separation(c.a, c.b)
		if got != c.want || !strings.Contains(why, c.why) {
			t.Errorf("%s: %s (%s), want %s (%s)", c.name, got, why, c.want, c.why)
		}
	}
}
