package analyze

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/budget"
	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/signature"
	"tare/internal/stat"
	"tare/rigs/hosttest"
)

// all is the entry of all operations together.
func all(t *testing.T, rep *report.Report) *report.Soak {
	t.Helper()
	i := slices.IndexFunc(rep.Soak, func(s report.Soak) bool { return s.Operation == "" })
	if i < 0 {
		t.Fatal("no entry of all operations")
	}
	return &rep.Soak[i]
}

func near(t *testing.T, what string, got *float64, want, tolerance float64) {
	t.Helper()
	if got == nil || math.Abs(*got-want) > tolerance {
		v := math.NaN()
		if got != nil {
			v = *got
		}
		t.Errorf("%s is %v, want %v ± %v", what, v, want, tolerance)
	}
}

func warned(rep *report.Report, text string) bool {
	return slices.ContainsFunc(rep.Warnings, func(w string) bool { return strings.Contains(w, text) })
}

func budgetOf(t *testing.T, rep *report.Report, text string) *report.Budget {
	t.Helper()
	i := slices.IndexFunc(rep.Budgets, func(b report.Budget) bool { return b.Text == text })
	if i < 0 {
		t.Fatalf("no budget %q", text)
	}
	return &rep.Budgets[i]
}

func verdicts(t *testing.T, rep *report.Report, want map[string]report.Verdict) {
	t.Helper()
	for text, v := range want {
		if b := budgetOf(t, rep, text); b.Verdict != v {
			t.Errorf("%s: %s (%v %v %v, %s), want %s", text, b.Verdict, show(b.Estimate), show(b.Lo), show(b.Hi), b.Reason, v)
		}
	}
}

// judged is the report on a soak with budgets of given verdicts.
func judged(t *testing.T, x endurance, want map[string]report.Verdict) *report.Report {
	t.Helper()
	x.budget = sortedKeys(want)
	rep := measured(t, x)
	verdicts(t, rep, want)
	return rep
}

func show(v *float64) any {
	if v == nil {
		return "–"
	}
	return *v
}

// TestLeak: 1 MiB a minute on 30 MiB with the sawtooth of a collector is found in ten minutes, and nothing else is.
func TestLeak(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	leak := func(at float64) float64 { return 30*mib + sawtooth(at) + at/60*mib }
	for seed := range uint64(4) {
		rep := judged(t, endurance{seed: seed, rss: leak}, map[string]report.Verdict{"rss drift <= 1MiB/h": report.Fail})
		s := all(t, rep)
		d := s.Drift["rss"]
		if d.Verdict != report.Regressed || d.N != 300 || !(*d.Lo <= 60*mib && 60*mib <= *d.Hi) || d.Margin != driftMargin {
			t.Errorf("seed %d: rss drifts by %+v (%v to %v)", seed, d, show(d.Lo), show(d.Hi))
		}
		near(t, "the change", &d.Total, 10*mib, 1*mib)
		near(t, "the start", &d.Start, 30*mib+3*mib+1*mib, 1*mib) // a minute of warm-up has leaked too
		for name, d := range s.Drift {
			if name != "rss" && (d.Verdict == report.Regressed || d.Verdict == report.Improved) {
				t.Errorf("seed %d: %s drifts by %+v", seed, name, d)
			}
		}
		if rep.Verdict != report.Fail || !warned(rep, "looks like a leak") {
			t.Errorf("verdict %s, warnings %q", rep.Verdict, rep.Warnings)
		}
	}
}

// TestNoDrift: a target that holds is told so.
func TestNoDrift(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	rep := judged(t, endurance{}, map[string]report.Verdict{
		"rss drift <= 20MiB/h": report.Pass, "deny.response.mean drift <= 10ms/h": report.Pass,
		"cpu drift <= 1ms/h": report.Pass, "error <= 0.1%": report.Pass,
		"response.p99 <= 50ms": report.Pass, "response.p99 <= 19ms": report.Fail, "permit.response.p50 <= 9ms": report.Fail,
		"cpu <= 3ms": report.Pass, "cpu <= 1ms": report.Fail,
		"rss <= 37.5MiB": report.Pass, "rss <= 30MiB": report.Fail, "goodput >= 90/s": report.Pass,
		"response.p99999 <= 1s": report.NotMeasured, "response.mean <= 9ms": report.Fail,
		"response.max <= 1ms": report.Fail, "heap_used <= 100MiB": report.Pass, "deny.cpu drift <= 1ms/h": report.NotMeasured,
		"none.error <= 1%":             report.NotMeasured,
		"response.p50 <= 20ms at 50/s": report.NotMeasured, "wall <= 1s": report.NotMeasured,
		"rss drift <= 60%/h": report.Pass,
	})
	s := all(t, rep)
	for _, name := range []string{"rss", "cpu", "response.mean"} {
		if d := s.Drift[name]; d.Verdict != report.Equivalent {
			t.Errorf("%s: %+v, %v to %v", name, d, show(d.Lo), show(d.Hi))
		}
	}
	if len(rep.Operations) != 2 || rep.Operations[0].Answers["deny"] != 30000 || rep.Operations[0].Outcomes.OK != 30000 {
		t.Errorf("operations %+v", rep.Operations)
	}
	near(t, "goodput", rep.Operations[0].Goodput, 50, 1e-9)
	near(t, "offered", s.Total.Offered, 100, 1e-9)
	near(t, "cpu per call", s.Total.CPUPerOp, 0.002, 0.0001)
	near(t, "Little's concurrency", &s.Total.Little.Observed, 1, 0.02)
	near(t, "bytes", new(float64(*s.Total.BytesIn)), 12e6, 0)
	if s.Seconds != 600 || s.WarmUpSeconds != 60 || s.Planned != 600 || s.WindowSeconds != 2 || s.Workers != 1 ||
		len(s.Moments) != 330 {
		t.Errorf("%+v", s)
	}
	if len(rep.Warnings) > 0 {
		t.Errorf("warnings %q", rep.Warnings)
	}
	target(t, rep)
}

func target(t *testing.T, rep *report.Report) {
	t.Helper()
	x := rep.Target[0]
	near(t, "CPU time", x.CPUSeconds, 120, 3)
	near(t, "CPU time of a call", x.CPUPerOp, 0.002, 0.0001)
	near(t, "peak", x.RSS.Peak, 36*mib, 4*mib) // and not the 60 MiB that the process had before
	near(t, "start", x.StartSeconds, 0.05, 0)
	near(t, "load", x.LoadSeconds, 0.01, 0)
	near(t, "heap", x.Heap.Committed, 40*mib, 0)
	if x.Name != "pdp" || x.Restarts != 0 || len(x.GC) != 2 || x.GC[1].Name != "young" || x.GC[1].Count != 60 ||
		math.Abs(x.GC[1].Seconds-0.24) > 1e-9 || x.GC[0].Count != 0 {
		t.Errorf("target %+v", x)
	}
	if v := x.Other[`series_total requests{code="200"}`]; v != 60000 {
		t.Errorf("series %v among %v", v, x.Other)
	}
}

// TestRestarts: what every process used counts, the leak is found within the stretches, and the fall of memory between
// them is no trend.
func TestRestarts(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	rep := judged(t, endurance{
		restarts: []float64{251, 455}, outage: [2]float64{250, 254},
		rss: func(at float64) float64 { return 30*mib + sawtooth(at) + at/60*mib },
	}, map[string]report.Verdict{
		"rss drift <= 1MiB/h": report.Fail, "error <= 0.1%": report.Inconclusive, "goodput >= 99/s": report.Inconclusive,
	})
	s := all(t, rep)
	if len(s.Restarts) != 2 || s.Restarts[0] < 251 || s.Restarts[0] > 257 || s.Restarts[1] != 456 ||
		rep.Target[0].Restarts != 2 {
		t.Errorf("restarts at %v, %d of the target", s.Restarts, rep.Target[0].Restarts)
	}
	if d := s.Drift["rss"]; d.Verdict != report.Regressed || !(*d.Lo <= 60*mib && 60*mib <= *d.Hi) || d.N > 245 ||
		d.N < 200 {
		t.Errorf("rss %+v, %v to %v", d, show(d.Lo), show(d.Hi))
	}
	// The two processes begin with 0.3 CPU-s; what the first used in its last window is lost.
	near(t, "CPU time", rep.Target[0].CPUSeconds, 596*0.2, 4)
	if len(s.Outages) != 1 || s.Outages[0].Start != 250 || s.Outages[0].End != 254 || s.Outages[0].Calls != 40 {
		t.Errorf("outages %+v", s.Outages)
	}
	if s.Total.Little != nil || !warned(rep, "started anew 2 times") || !warned(rep, "no call was answered well") {
		t.Errorf("Little %+v, warnings %q", s.Total.Little, rep.Warnings)
	}
	if !slices.ContainsFunc(rep.Notes, func(n string) bool { return strings.Contains(n, "Little") }) {
		t.Errorf("notes %q", rep.Notes)
	}
	for _, c := range s.Total.Causes {
		if c.Outcome != "conn_failed" || !strings.Contains(c.Cause, "no connection could be made") || c.Calls != 40 {
			t.Errorf("cause %+v", c)
		}
	}
}

// TestRestartIsNoLeak: memory that is small again after a restart is neither a leak nor the end of one.
func TestRestartIsNoLeak(t *testing.T) {
	t.Parallel()
	rep := measured(t, endurance{restarts: []float64{400}, rss: func(at float64) float64 {
		return (30+20*math.Exp(-at/15))*mib + sawtooth(at)
	}})
	if d := all(t, rep).Drift["rss"]; d.Verdict != report.Equivalent && d.Verdict != report.EffectInconclusive {
		t.Errorf("rss %+v, %v to %v", d, show(d.Lo), show(d.Hi))
	}
}

// TestWithoutProbes: a target that cannot be read has no costs, and its calls are told.
func TestWithoutProbes(t *testing.T) {
	t.Parallel()
	rep := judged(t, endurance{noProbes: true}, map[string]report.Verdict{
		"rss drift <= 1MiB/h": report.NotMeasured, "error <= 1%": report.Pass, "cpu <= 1ms": report.NotMeasured,
	})
	s := all(t, rep)
	if len(rep.Target) != 0 || s.Total.CPUPerOp != nil {
		t.Errorf("target %+v", rep.Target)
	}
	if _, ok := s.Drift["rss"]; ok || len(s.Drift) != 2 {
		t.Errorf("drifts %v", s.Drift)
	}
}

// TestWrongAnswers: they are loud, they count as errors, and what they said is counted.
func TestWrongAnswers(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	always := func(float64) uint64 { return 5 }
	rep := judged(t, endurance{wrong: always}, map[string]report.Verdict{"error <= 1%": report.Fail})
	op := rep.Operations[0]
	if op.Outcomes.Wrong != 1500 || op.Answers["deny"] != 28500 || op.Answers["permit"] != 1500 {
		t.Errorf("%+v, answers %v", op.Outcomes, op.Answers)
	}
	if !warned(rep, "deny: 1500 of 30000 answers were wrong") || !warned(rep, "the answer is permit (1500)") {
		t.Errorf("warnings %q", rep.Warnings)
	}
}

// TestTrespassesOfASoak: one that was permitted breaks the budget, and so few of them decide nothing.
func TestTrespassesOfASoak(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	for _, c := range []struct {
		name string
		endurance
		want report.Verdict
		says string
	}{
		{"refused", endurance{}, report.Pass, "0 of 30000 trespasses were permitted: the share is below 0.01 %, at 95 %"},
		{
			"permitted at the end", endurance{wrong: func(at float64) uint64 {
				if at > 650 {
					return 1
				}
				return 0
			}}, report.Fail, "5 of 30000 trespasses were permitted",
		},
		{
			"too few",
			endurance{measured: 60, warm: 6, rate: 3},
			report.Inconclusive,
			"0 of 180 trespasses were permitted; the limit needs 200",
		},
	} {
		c.twin, c.budget = true, []string{"permitted <= 0"}
		rep := measured(t, c.endurance)
		if b := rep.Budgets[0]; b.Verdict != c.want || rep.Verdict != c.want || !strings.Contains(b.Reason, c.says) {
			t.Errorf("%s: %s, %s: %s", c.name, rep.Verdict, b.Verdict, b.Reason)
		}
	}
}

// TestContradictedAnswersAreInvalid: a target whose own counts say that it answered what it did not decide was not
// measured, whatever the budgets say. Permits that nobody here got are others'.
func TestContradictedAnswersAreInvalid(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	for _, c := range []struct {
		name             string
		off              map[string]float64 // counted beyond what callers got
		unanswered       uint64
		invalid, warning bool
	}{
		{"it agrees", nil, 0, false, false},
		// The guards were undeployed in the middle: their requests are permitted, and counted as not applicable.
		{"NotApplicable answered Permit", map[string]float64{"permit": -500, "not-applicable": 500}, 3, true, true},
		{"hidden behind others' permits", map[string]float64{"permit": 40, "not-applicable": 500}, 3, true, true},
		{"something else answered", map[string]float64{"deny": -7}, 3, true, true},
		{"others' permits", map[string]float64{"permit": 40}, 3, false, true},
		{"no more than got no answer", map[string]float64{"permit": -3, "not-applicable": 3}, 3, false, false},
	} {
		rep := measured(t, endurance{
			measured: 60, warm: 6, budget: []string{"error <= 5%"}, answers: func(seen map[string]uint64) record.Answers {
				a := record.Answers{Before: map[string]float64{}, After: map[string]float64{}, Unanswered: c.unanswered}
				for _, word := range []string{"permit", "deny", "not-applicable"} {
					a.After[word] = float64(seen[word]) + c.off[word]
				}
				return a
			},
		})
		want := ExitPass
		if c.invalid {
			want = ExitInvalid
		}
		if got := ExitCode(rep); got != want || c.invalid != strings.Contains(rep.Reason, "contradict its answers") {
			t.Errorf("%s: exit code %d, want %d: %s", c.name, got, want, rep.Reason)
		}
		if (len(rep.Warnings) > 0) != c.warning {
			t.Errorf("%s: warnings %q", c.name, rep.Warnings)
		}
	}
}

// TestShortSoaksAreNotJudged: less than the time that a trend needs shows no trend, and no absence of one.
func TestShortSoaksAreNotJudged(t *testing.T) {
	t.Parallel()
	rep := measured(t, endurance{measured: 60, warm: 6})
	for name, d := range all(t, rep).Drift {
		if d.Verdict != report.EffectInconclusive || d.Reason == "" {
			t.Errorf("%s is %s: %s", name, d.Verdict, d.Reason)
		}
	}
	if s := all(t, rep).Sentence(); strings.Contains(s, "no drift") {
		t.Error(s)
	}
}

// TestAnswerChecks holds both sides' counts against each other.
func TestAnswerChecks(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	counts := func(off float64, unanswered uint64) func(map[string]uint64) record.Answers {
		return func(seen map[string]uint64) record.Answers {
			return record.Answers{
				Before: map[string]float64{"permit": 7, "deny": 0}, Unanswered: unanswered,
				After: map[string]float64{
					"permit": 7 + float64(seen["permit"]) - off, "deny": float64(seen["deny"]), "not-applicable": off,
				},
			}
		}
	}
	rep := measured(t, endurance{measured: 120, answers: counts(0, 0)})
	if len(rep.Answers) != 2 || !rep.Answers[0].Agrees || !rep.Answers[1].Agrees || rep.Answers[1].Client != 9000 ||
		len(rep.Warnings) > 0 {
		t.Errorf("%+v, warnings %q", rep.Answers, rep.Warnings)
	}
	rep = measured(t, endurance{measured: 120, answers: counts(500, 3), budget: []string{"error <= 0.1%", "error <= 5%"}})
	verdicts(t, rep, map[string]report.Verdict{"error <= 0.1%": report.Inconclusive, "error <= 5%": report.Inconclusive})
	if b := rep.Budgets[1]; b.Hi == nil || *b.Hi < 500./12000 || b.Reason != runInvalid {
		t.Errorf("a budget of a run whose counts contradict each other: %+v", b)
	}
	if s := all(t, rep); s.Disputed != 500 ||
		!strings.Contains(s.Sentence(), "errors 0% by its callers' count, from which the target's differs by 500 answers") {
		t.Errorf("%v are disputed: %s", s.Disputed, s.Sentence())
	}
	if len(rep.Answers) != 3 || rep.Answers[1].Agrees || rep.Answers[2].Agrees || rep.Answers[1].Target != 500 ||
		rep.Answers[1].Client != 0 {
		t.Errorf("%+v", rep.Answers)
	}
	if !warned(rep, `the target counted 500 answers "not-applicable", and its callers got 0 (and 3 calls got none)`) || !warned(rep, `counted 8500 answers "permit", and its callers got 9000`) {
		t.Errorf("warnings %q", rep.Warnings)
	}
	rep = measured(t, endurance{measured: 120, answers: counts(3, 3)})
	if !rep.Answers[0].Agrees || !rep.Answers[1].Agrees || !rep.Answers[2].Agrees || len(rep.Warnings) > 0 {
		t.Errorf("%+v, warnings %q", rep.Answers, rep.Warnings)
	}
	rep = measured(t, endurance{measured: 120, answers: counts(0, 0), restarts: []float64{101}})
	if rep.Answers[0].Agrees || rep.Answers[0].Reason == "" || !warned(rep, "cannot be compared with") {
		t.Errorf("%+v, warnings %q", rep.Answers, rep.Warnings)
	}
	rep = measured(t, endurance{measured: 60, answers: func(map[string]uint64) record.Answers {
		return record.Answers{Error: "status 401"}
	}})
	if len(rep.Answers) != 0 || !warned(rep, "could not be read: status 401") {
		t.Errorf("%+v, warnings %q", rep.Answers, rep.Warnings)
	}
}

// TestPartOfASoak: what an interrupted or a killed run measured is told, and promises nothing for the rest.
func TestPartOfASoak(t *testing.T) {
	t.Parallel()
	for name, x := range map[string]endurance{
		"interrupted": {measured: 500, planned: 3600, status: record.Interrupted},
		"killed":      {measured: 500, planned: 3600, killed: true},
	} {
		x.rss = func(at float64) float64 { return 30*mib + at/60*mib }
		rep := judged(
			t, x, map[string]report.Verdict{"error <= 1%": report.Inconclusive, "rss drift <= 1MiB/h": report.Fail},
		)
		if string(rep.Status) != name || rep.Verdict != report.Fail {
			t.Errorf("%s: status %s, verdict %s", name, rep.Status, rep.Verdict)
		}
		s := all(t, rep)
		if s.Seconds != 500 || s.Planned != 3600 || s.Total.Outcomes.OK != 50000 ||
			!warned(rep, "8m20s of the 1h that were planned") {
			t.Errorf("%s: %v of %v s, %+v, warnings %q", name, s.Seconds, s.Planned, s.Total.Outcomes, rep.Warnings)
		}
		want := uint64(50000)
		if name == "killed" {
			want = 30000 // up to the flush
			if !warned(rep, "the times of 20000 of 50000 calls") {
				t.Errorf("warnings %q", rep.Warnings)
			}
		}
		if s.Total.Response.N != want {
			t.Errorf("%s: times of %d calls, want %d", name, s.Total.Response.N, want)
		}
	}
}

func TestSpan(t *testing.T) {
	t.Parallel()
	for v, want := range map[float64]string{
		600: "10m", 3600: "1h", 36000: "10h", 400: "6m40s", 30: "30s", 4.04: "4s", 0.0041: "4ms", 3660: "1h1m", 86400: "24h",
		0: "0s",
	} {
		if got := span(v); got != want {
			t.Errorf("%v s is written %q, want %q", v, got, want)
		}
	}
}

// TestBeforeAnything: a run that ended within its warm-up measured nothing, and is not called anything.
func TestBeforeAnything(t *testing.T) {
	t.Parallel()
	x := endurance{warm: 30, measured: 1e-10, planned: 600, killed: true, budget: []string{"error <= 1%"}}
	rep := analyzedRecord(t, opened(t, x.write(t, t.TempDir())))
	if rep.Verdict != report.Inconclusive || !warned(rep, "nothing was measured") ||
		all(t, rep).Total.Outcomes.Ended() != 0 {
		t.Errorf("%s: %s, warnings %q", rep.Verdict, rep.Reason, rep.Warnings)
	}
	verdicts(t, rep, map[string]report.Verdict{"error <= 1%": report.NotMeasured})
}

// TestFewWindows: below twenty there is no trend.
func TestFewWindows(t *testing.T) {
	t.Parallel()
	rep := judged(
		t, endurance{warm: 2, measured: 30}, map[string]report.Verdict{"rss drift <= 1MiB/h": report.Inconclusive},
	)
	d := all(t, rep).Drift["rss"]
	if d.Verdict != report.EffectInconclusive || d.Lo != nil || !strings.Contains(d.Reason, "15 windows") {
		t.Errorf("%+v", d)
	}
}

// TestLittle: callers whose time is not accounted for are a warning; an open loop has none.
func TestLittle(t *testing.T) {
	t.Parallel()
	rep := measured(t, endurance{workers: 3})
	if l := all(t, rep).Total.Little; l == nil || l.Expected != 3 || !warned(rep, "Little's law") {
		t.Errorf("%+v, warnings %q", l, rep.Warnings)
	}
	rep = judged(t, endurance{open: true}, map[string]report.Verdict{
		"response.p50 <= 20ms at 100/s": report.Pass, "response.p50 <= 20ms at 50/s": report.NotMeasured,
	})
	if s := all(t, rep); s.Total.Little != nil || s.Rate != 100 || len(rep.Warnings) > 0 {
		t.Errorf("%+v, warnings %q", s.Total.Little, rep.Warnings)
	}
}

// TestBadGenerator: one that did not send, or sent most calls late, is no measurement; one that was late now and then
// is.
func TestBadGenerator(t *testing.T) {
	t.Parallel()
	hosttest.SkipIfShort(t)
	for _, c := range []struct {
		name    string
		x       endurance
		verdict report.Verdict
	}{
		{"late, no budget", endurance{lateness: 0.004}, report.Invalid},
		{"late, times asked", endurance{lateness: 0.004, budget: []string{"response.p99 <= 50ms"}}, report.Invalid},
		{
			"late, costs asked",
			endurance{measured: 600, lateness: 0.004, budget: []string{"cpu <= 3ms", "rss drift <= 20MiB/h"}},
			report.Pass,
		},
		{"late within what is allowed", endurance{lateness: 0.0009, budget: []string{"response.p99 <= 50ms"}}, report.Pass},
		{"now and then late, no budget", endurance{open: true, tardy: 0.02}, report.None},
		{
			"now and then late, times asked",
			endurance{open: true, tardy: 0.02, budget: []string{"response.p99 <= 50ms", "error <= 0.1%"}},
			report.Pass,
		},
		{"unsent", endurance{unsent: 0.05, budget: []string{"cpu <= 3ms"}}, report.Invalid},
		{
			"unsent, since no connection is free",
			endurance{unsent: 0.05, poolWait: 25, open: true, budget: []string{"cpu <= 3ms"}},
			report.Pass,
		},
		{
			"unsent, since no connection can be made",
			endurance{outage: [2]float64{80, 84}, refused: true, open: true, budget: []string{"cpu <= 3ms"}},
			report.Pass,
		},
		{"not in force", endurance{unverified: true, budget: []string{"cpu <= 3ms"}}, report.Invalid},
	} {
		c.x.measured = cmp.Or(c.x.measured, 60)
		rep := measured(t, c.x)
		if rep.Verdict != c.verdict {
			t.Errorf("%s: %s (%s), want %s", c.name, rep.Verdict, rep.Reason, c.verdict)
		}
		if all(t, rep).Total.Response == nil {
			t.Errorf("%s: no times", c.name)
		}
		if says := warned(rep, "does not depend on that"); says != (c.name == "late, costs asked") {
			t.Errorf("%s: warnings %q", c.name, rep.Warnings)
		}
	}
}

// TestLateCallsAreABoundBesideTimes: how late calls were sent is inside their times. A limit that is kept is kept; one
// that is broken is broken only if it is without that delay.
func TestLateCallsAreABoundBesideTimes(t *testing.T) {
	t.Parallel()
	rep := judged(t, endurance{open: true, tardy: 0.03}, map[string]report.Verdict{
		"response.p99 <= 50ms": report.Pass, "response.p99 <= 30ms": report.Inconclusive,
		"response.p99 <= 5ms": report.Fail, "deny.response.p99 <= 30ms": report.Inconclusive,
		"response.p99 >= 30ms": report.Inconclusive, "response.p50 <= 20ms": report.Pass,
		"response.max <= 50ms": report.Inconclusive, "response.mean <= 11ms": report.Pass,
		"response.mean <= 10.3ms": report.Inconclusive, "goodput >= 90/s": report.Pass,
	})
	b := budgetOf(t, rep, "response.p99 <= 30ms")
	if !strings.Contains(b.Reason, "broken as measured, but that may be the generator's own delay") ||
		!strings.Contains(b.Reason, "is the generator's own delay") {
		t.Errorf("reason %q", b.Reason)
	}
	d := all(t, rep).Total.Response
	if own := d.OwnAtMost["p99"]; own < 0.015 || own > 0.031 || own >= *d.P99 {
		t.Errorf("of p99 %v at most %v is the generator's", *d.P99, own)
	}
	if own := d.OwnAtMost["p50"]; own > 0.001 {
		t.Errorf("of p50 %v at most %v is the generator's", *d.P50, own)
	}
	if s := all(t, rep).Sentence(); !strings.Contains(s, "of which at most") {
		t.Errorf("sentence %q", s)
	}
	if g := rep.Generator; g.Verdict != signature.Possible || !g.Valid ||
		!slices.ContainsFunc(g.Doubts, func(d string) bool { return strings.Contains(d, "can be its own delay") }) {
		t.Errorf("the generator is %+v", g)
	}
}

// TestBehindForAWhile: a generator that was held up for a while does not end a soak; the report says for how long, and
// what held it up.
func TestBehindForAWhile(t *testing.T) {
	t.Parallel()
	rep := judged(t, endurance{
		open: true, window: 1, warm: 6, measured: 60, held: [2]float64{20, 22}, stolen: 0.3, local: true,
	}, map[string]report.Verdict{"error <= 0.1%": report.Pass})
	s := all(t, rep)
	if s.Behind != 2 || s.BehindWhy != "the hypervisor took 30 % of this host's CPU time meanwhile" ||
		rep.Verdict != report.Pass {
		t.Errorf("%s, behind for %v s: %q", rep.Verdict, s.Behind, s.BehindWhy)
	}
	if text := s.Sentence(); !strings.Contains(text, "for 2 s of it the generator sent most calls late (the hypervisor") {
		t.Errorf("sentence %q", text)
	}
	if rep.Generator.RuledOut() {
		t.Errorf("the generator is %+v", rep.Generator)
	}
}

// TestDeadTarget: a target that is gone for the rest is not the generator's limit, and its errors are decided.
func TestDeadTarget(t *testing.T) {
	t.Parallel()
	for _, refused := range []bool{true, false} {
		rep := measured(t, endurance{
			open: true, window: 1, warm: 2, measured: 20, outage: [2]float64{9, 23}, refused: refused, tardy: 0.02,
			budget: []string{"error <= 0.1%", "response.p99 <= 1s", "goodput >= 90/s", "response.mean <= 20s"},
		})
		s := all(t, rep)
		if rep.Verdict != report.Fail || len(s.Outages) != 1 {
			t.Errorf("%s (%s), outages %+v", rep.Verdict, rep.Reason, s.Outages)
		}
		verdicts(t, rep, map[string]report.Verdict{"error <= 0.1%": report.Fail})
		if b := budgetOf(t, rep, "goodput >= 90/s"); b.Hi == nil || *b.Hi > s.Rate || *b.Hi < *b.Estimate {
			t.Errorf("a goodput of %v up to %v, where %v/s were offered", *b.Estimate, b.Hi, s.Rate)
		}
		for _, text := range []string{"response.p99 <= 1s", "response.mean <= 20s"} {
			if b := budgetOf(t, rep, text); b.Verdict != report.Inconclusive ||
				!strings.Contains(b.Reason, "a failed call is not answered in any time") {
				t.Errorf("the times of a dead target: %s, %s", b.Verdict, b.Reason)
			}
		}
		for _, part := range []string{
			"answered until 9 s after the load began, and no call was answered well in the last 13 s of 20 s",
			"(no connection could be made)",
		} {
			if !strings.Contains(s.Sentence(), part) {
				t.Errorf("%q lacks %q", s.Sentence(), part)
			}
		}
	}
}

// TestStalledTarget: calls that took too long for a while are too many, although windows without an end of a call have
// no quantile.
func TestStalledTarget(t *testing.T) {
	t.Parallel()
	slow := func(at float64) float64 {
		if at > 12 {
			return 5
		}
		return 0.01
	}
	rep := judged(t, endurance{
		open: true, window: 1, warm: 2, measured: 20, response: slow,
	}, map[string]report.Verdict{
		"response.p99 <= 2s": report.Fail, "deny.response.p99 <= 2s": report.Fail,
		"response.p50 <= 2s": report.Inconclusive, // once is not half of the time
	})
	if b := budgetOf(t, rep, "response.p99 <= 2s"); !strings.Contains(b.Reason, "in 1 stretch of the time") {
		t.Errorf("reason %q", b.Reason)
	}
}

// TestWindowsOfFewCalls: windows without a 99th percentile of their own leave that of all calls its interval.
func TestWindowsOfFewCalls(t *testing.T) {
	t.Parallel()
	rep := judged(t, endurance{
		open: true, rate: 25, window: 1, warm: 6, measured: 60,
	}, map[string]report.Verdict{
		"response.p99 <= 50ms": report.Pass, "response.p99 <= 10ms": report.Fail,
		"response.p99.9 <= 50ms": report.Inconclusive,
	})
	if b := budgetOf(t, rep, "response.p99.9 <= 50ms"); !strings.Contains(b.Reason, "do not bound it from above") {
		t.Errorf("reason %q", b.Reason)
	}
}

// TestNoIntervalSaysWhy: a value without an interval is not one from 0 to infinity.
func TestNoIntervalSaysWhy(t *testing.T) {
	t.Parallel()
	rep := measured(t, endurance{
		open: true, rate: 1, window: 2, warm: 2, measured: 30,
		budget: []string{"response.p50 <= 50ms", "response.mean <= 1s"}, noProbes: true, operations: []string{"deny"},
	})
	b := budgetOf(t, rep, "response.p50 <= 50ms")
	if b.Verdict != report.Inconclusive || b.Lo != nil || b.Hi != nil ||
		!strings.Contains(b.Reason, "no interval: 15 windows are too few: it takes 20") {
		t.Errorf("%s [%v, %v] %s", b.Verdict, show(b.Lo), show(b.Hi), b.Reason)
	}
}

// TestInvalidPassesNothing: no budget of an invalid run is passed, or broken.
func TestInvalidPassesNothing(t *testing.T) {
	t.Parallel()
	rep := judged(t, endurance{measured: 60, open: true, unsent: 0.05}, map[string]report.Verdict{
		"cpu <= 3ms": report.Inconclusive, "rss <= 1GiB": report.Inconclusive, "goodput >= 1000/s": report.Inconclusive,
	})
	if rep.Verdict != report.Invalid {
		t.Fatalf("verdict %s", rep.Verdict)
	}
	if b := budgetOf(t, rep, "cpu <= 3ms"); b.Reason != runInvalid {
		t.Errorf("reason %q", b.Reason)
	}
}

// TestSoaksCarryTheirValues: each treatment has what its soak came to, with intervals, for a comparison of two soaks.
func TestSoaksCarryTheirValues(t *testing.T) {
	t.Parallel()
	rep := measured(t, endurance{open: true})
	want := map[string]bool{
		"response.p50": false, "response.p99": false, "response.mean": false, "error.": false, "goodput.": false,
		"cpu.": false, "deny response.p99": false,
	}
	for _, m := range rep.Treatments[0].Metrics {
		if m.Lo != nil && m.Hi != nil && *m.Lo <= m.Value && m.Value <= *m.Hi && m.N == 300 {
			want[strings.TrimSpace(m.Operation+" "+m.Name+"."+m.Quantile)] = true
		}
	}
	for name, found := range want {
		if !found {
			t.Errorf("no %s with an interval among %+v", name, rep.Treatments[0].Metrics)
		}
	}
}

// TestNeighbours: what other work on the host does to a target is not called a drift of the target; a leak is found all
// the same.
func TestNeighbours(t *testing.T) {
	t.Parallel()
	rising := func(at float64) float64 { return 1 + 0.5*at/660 }
	x := endurance{
		cpu:      func(at float64) float64 { return 0.002 * rising(at) },
		response: func(at float64) float64 { return 0.01 * rising(at) },
		rss:      func(at float64) float64 { return 30*mib + at/60*mib },
	}
	x.others = func(at float64) float64 { return 0.1 + 0.5*at/660 }
	rep := judged(t, x, map[string]report.Verdict{
		"rss drift <= 1MiB/h": report.Fail, "cpu drift <= 1us/h": report.Inconclusive,
		"response.mean drift <= 1us/h": report.Inconclusive,
	})
	s := all(t, rep)
	for _, name := range []string{"cpu", "response.mean"} {
		if d := s.Drift[name]; d.Verdict != report.EffectInconclusive ||
			!strings.Contains(d.Reason, "other work on this host went from") || *d.Lo <= 0 {
			t.Errorf("%s beside growing neighbours: %+v", name, d)
		}
	}
	if d := s.Drift["rss"]; d.Verdict != report.Regressed {
		t.Errorf("memory beside growing neighbours: %+v", d)
	}
	if !warned(rep, "other work used") {
		t.Errorf("warnings %q", rep.Warnings)
	}
	x.others = func(float64) float64 { return 0.4 } // busy, but the same throughout
	rep = judged(t, x, map[string]report.Verdict{"cpu drift <= 1us/h": report.Fail})
	if d := all(t, rep).Drift["cpu"]; d.Verdict != report.Regressed {
		t.Errorf("cpu beside steady neighbours: %+v", d)
	}
	x.others = func(float64) float64 { return 0.97 } // they leave no time, and how much of theirs waits is not known
	rep = judged(t, x, map[string]report.Verdict{
		"rss drift <= 1MiB/h": report.Fail, "cpu drift <= 1us/h": report.Inconclusive,
		"response.mean drift <= 1us/h": report.Inconclusive,
	})
	if d := all(t, rep).Drift["response.mean"]; d.Verdict != report.EffectInconclusive ||
		!strings.Contains(d.Reason, "made the target wait") {
		t.Errorf("response.mean on a host without idle time: %+v", d)
	}
}

// TestJumps: what changes at once is said to jump, at its time and by its size, and has no change per hour.
func TestJumps(t *testing.T) {
	t.Parallel()
	rep := judged(t, endurance{
		response: func(at float64) float64 {
			if at < 270 {
				return 0.02
			}
			return 0.04
		},
		rss: func(at float64) float64 { return 30*mib + at/60*mib },
	}, map[string]report.Verdict{
		"response.mean drift <= 1us/h": report.Inconclusive, "response.mean drift <= 1s/h": report.Inconclusive,
		"rss drift <= 1MiB/h": report.Fail,
	})
	s := all(t, rep)
	d := s.Drift["response.mean"]
	if d.Verdict != report.Regressed || d.Lo != nil || d.PerHour != 0 || d.JumpedAt == nil || *d.JumpedAt < 268 ||
		*d.JumpedAt > 272 {
		t.Errorf("a response that doubles at once: %+v at %v", d, show(d.JumpedAt))
	}
	near(t, "the jump", &d.Total, 0.02, 0.001)
	if is := s.Sentence(); !strings.Contains(is, "response.mean jumps by +20.1 ms, at once after 4m30s") {
		t.Errorf("%q", is)
	}
	if d := s.Drift["rss"]; d.Verdict != report.Regressed || d.JumpedAt != nil {
		t.Errorf("memory that grows all the time: %+v", d)
	}
}

// TestClimbsAreNoJumps: what climbs within a part of the time to a level of its own is given the part's bounds.
func TestClimbsAreNoJumps(t *testing.T) {
	t.Parallel()
	rep := judged(t, endurance{response: func(at float64) float64 { return 0.02 + 0.02*min(1, max(0, (at-250)/55)) }},
		map[string]report.Verdict{"response.mean drift <= 1s/h": report.Inconclusive})
	s := all(t, rep)
	d := s.Drift["response.mean"]
	if !d.Jumped() || d.JumpedAt != nil || d.Lo != nil || d.Verdict != report.Regressed {
		t.Fatalf("a climb of 55 s: %+v at %v", d, show(d.JumpedAt))
	}
	near(t, "its begin", d.ChangedFrom, 250, 5)
	near(t, "its end", d.ChangedTo, 305, 5)
	near(t, "its size", &d.Total, 0.02, 0.001)
	if is := s.Sentence(); !strings.Contains(is, "response.mean rises by 20.1 ms between 4m") {
		t.Errorf("%q", is)
	}
}

// TestTooShortForATrend: what grows within two minutes is shown, and not judged.
func TestTooShortForATrend(t *testing.T) {
	t.Parallel()
	rep := judged(t, endurance{
		measured: 120, window: 1, rss: func(at float64) float64 { return 30*mib + at/10*mib },
	}, map[string]report.Verdict{"rss drift <= 1MiB/h": report.Inconclusive})
	d := all(t, rep).Drift["rss"]
	if d.Verdict != report.EffectInconclusive || !strings.Contains(d.Reason, "less than 8m") || d.Lo == nil || *d.Lo <= 0 {
		t.Errorf("rss over two minutes: %+v", d)
	}
}

// TestTrendOfJustTheLeastTime: a soak of the least length for a trend has one although its windows begin a little late;
// a longer one that ended early has none.
func TestTrendOfJustTheLeastTime(t *testing.T) {
	t.Parallel()
	grows := func(at float64) float64 { return 30*mib + at/10*mib }
	d := all(t, judged(t, endurance{measured: 479.7, planned: 480, rss: grows},
		map[string]report.Verdict{"rss drift <= 1MiB/h": report.Fail})).Drift["rss"]
	if d.Verdict != report.Regressed || d.Reason != "" {
		t.Errorf("all of 8 minutes but 0.3 s: %+v", d)
	}
	d = all(t, judged(t, endurance{measured: 479.7, planned: 600, rss: grows, status: record.Interrupted},
		map[string]report.Verdict{"rss drift <= 1MiB/h": report.Inconclusive})).Drift["rss"]
	if d.Verdict != report.EffectInconclusive || !strings.Contains(d.Reason, "less than 8m") {
		t.Errorf("less than 8 of 10 minutes: %+v", d)
	}
}

// TestOwnDelayIsBounded: what the generator's delay has added to a quantile is never more than is said, whether it fell
// on fast or on slow calls, and although calls queue behind those that came late.
func TestOwnDelayIsBounded(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 3))
		const n = 4000
		share, stop := 0.2*rng.Float64(), 0.03*rng.Float64()
		late, without, with := &hist.Histogram{}, make([]float64, n), &hist.Histogram{}
		free := 0.0 // when the only place of the server is free again
		delayed := 0.0
		service := make([]float64, n)
		for i := range service {
			service[i] = 0.0004 * rng.ExpFloat64()
		}
		at := func(i int) float64 { return 0.001 * float64(i) }
		for i := range n {
			start := max(at(i), free)
			free = start + service[i]
			without[i] = free - at(i)
		}
		free = 0
		for i := range n {
			if rng.Float64() < share/20 {
				delayed = max(delayed, at(i)+stop)
			}
			sent := max(at(i), delayed)
			late.Record(int64((sent - at(i)) * 1e9))
			free = max(sent, free) + service[i]
			with.Record(int64((free - at(i)) * 1e9))
		}
		slices.Sort(without)
		o := ownDelayOf(late, n, nil)
		for _, q := range []float64{.5, .9, .99, .999} {
			truth := without[int(math.Ceil(q*n))-1]
			seen, own := with.Quantile(q)/1e9, o.atMost(with, q)
			if seen-own > truth*1.01+1e-6 {
				t.Errorf("seed %d, q %v: %v was measured, of which at most %v own, and without it it is %v", seed, q, seen,
					own, truth)
			}
		}
	}
}

// TestOwnDelayOfAnswers: answers that waited to be read are the generator's delay, too; a generator in time has none.
func TestOwnDelayOfAnswers(t *testing.T) {
	t.Parallel()
	times, late := &hist.Histogram{}, &hist.Histogram{}
	times.RecordN(5e6, 1000)
	late.RecordN(0, 1000)
	if own := ownDelayOf(late, 1000, nil).atMost(times, .99); own > 1e-9 {
		t.Errorf("a generator in time: %v", own)
	}
	unread := &load.Delays{N: 1000, Mean: 1e-4, P99: 1e-3}
	if own := ownDelayOf(late, 1000, unread).atMost(times, .99); math.Abs(own-1e-3) > 1e-5 {
		t.Errorf("answers that waited up to 1 ms: %v", own)
	}
	if own := ownDelayOf(nil, 1000, unread).atMost(times, .99); math.Abs(own-1e-3) > 1e-5 {
		t.Errorf("without lateness: %v", own)
	}
}

// stalling is a minute of calls to a server that now and then stands still for a while, 100 in each second.
func stalling(rng *rand.Rand, windows int, stalls float64) (*soak, *hist.Histogram) {
	const calls = 100
	t := &record.Trial{}
	all := &hist.Histogram{}
	left := 0.0 // of a stall, in seconds
	for w := range windows {
		h := &hist.Histogram{}
		for range calls {
			v := 0.002 * math.Exp(0.2*rng.NormFloat64())
			if rng.Float64() < stalls/calls {
				left = 0.05 * rng.ExpFloat64()
			}
			v += left
			left = max(0, left-1.0/calls)
			h.Record(int64(v * 1e9))
		}
		all.Merge(h)
		t.Slices = append(t.Slices, record.Slice{
			Start: time.Duration(w) * time.Second, End: time.Duration(w+1) * time.Second,
			Operations: []record.SliceOperation{{
				Operation: "get", Outcomes: []record.SliceOutcome{{Outcome: load.OK, Count: calls}},
				Mean: h.Mean() / 1e9, P50: h.Quantile(.5) / 1e9, P90: h.Quantile(.9) / 1e9, Max: float64(h.Max()) / 1e9,
			}},
		})
	}
	s := newSoak(t)
	s.hists = &timings{
		all:  map[record.Measure]*hist.Histogram{record.Response: all},
		good: all, lateness: &hist.Histogram{},
	}
	return s, all
}

// TestTailIntervals: intervals of p99 hold the true value as often as they say, although slow calls come in bunches,
// and one slow window does not open them to infinity, nor those of p90, which is not above p99.
func TestTailIntervals(t *testing.T) {
	t.Parallel()
	hosttest.SkipIfShort(t)
	repetitions := 100
	if hosttest.IsLong() {
		repetitions = 200
	}
	rng := rand.New(rand.NewPCG(7, 7))
	for _, x := range []struct{ stalls, q float64 }{{0.2, .99}, {1, .99}, {3, .99}, {1, .9}} {
		stalls := x.stalls
		_, long := stalling(rng, 20000, stalls)
		truth := long.Quantile(x.q) / 1e9
		held, open := 0, 0
		for range repetitions {
			s, h := stalling(rng, 60, stalls)
			f, _ := s.quantileFinding(&budget.Budget{Metric: metric.Response.Name}, h, x.q)
			if f.verdict != "" {
				t.Fatalf("no interval: %s", f.how)
			}
			if f.Lo <= truth && truth <= f.Hi {
				held++
			}
			if math.IsInf(f.Hi, 1) {
				open++
			}
		}
		t.Logf("%v stalls a window: p%v %.4f held in %d of %d, %d open", stalls, 100*x.q, truth, held, repetitions, open)
		if held < repetitions*88/100 || open > repetitions/5 {
			t.Errorf("%v stalls a window: p%v %.4f held in %d of %d intervals, %d of them open", stalls, 100*x.q, truth,
				held, repetitions, open)
		}
	}
}

// failing is a soak of windows of a second with 200 calls each, of which bad says which ones fail.
func failing(windows int, bad func(call int) bool) *soak {
	const calls = 200
	t := &record.Trial{}
	for w := range windows {
		var counts [2]uint64
		for i := range calls {
			if bad(w*calls + i) {
				counts[1]++
			} else {
				counts[0]++
			}
		}
		outcomes := []record.SliceOutcome{{Outcome: load.OK, Count: counts[0]}, {Outcome: load.Refused, Count: counts[1]}}
		t.Slices = append(t.Slices, record.Slice{
			Start: time.Duration(w) * time.Second, End: time.Duration(w+1) * time.Second,
			Operations: []record.SliceOperation{{Operation: "get", Outcomes: outcomes}},
		})
	}
	return newSoak(t)
}

// outages says which of n calls fall into outages that begin at any time, so many on average. Each lasts for so many
// calls as is drawn, times calls.
func outages(rng *rand.Rand, n int, mean, calls float64, long func() float64) func(call int) bool {
	const before = 0.2 // of a run: outages that began then may last
	down := make([]bool, n)
	for at := rng.ExpFloat64() / mean; at < 1+before; at += rng.ExpFloat64() / mean {
		from := (at - before) * float64(n)
		end := from + calls*long()
		for i := max(0, int(math.Ceil(from))); i < n && float64(i) < end; i++ {
			down[i] = true
		}
	}
	return func(call int) bool { return down[call] }
}

// TestErrorIntervals: where calls fail in few outages, the upper end of the share is below the truth no more often than
// it says; somewhat more often where few outages, of very different lengths, tell nothing of the longest.
func TestErrorIntervals(t *testing.T) {
	t.Parallel()
	hosttest.SkipIfShort(t)
	const windows, repetitions, truth = 60, 400, 0.0102
	for _, c := range []struct {
		name  string
		mean  float64
		equal bool
		most  int // of the repetitions
	}{
		{"3.4 equal outages", 3.4, true, 16},
		{"5 equal outages", 5, true, 16},
		{"10 equal outages", 10, true, 16},
		{"6 outages of exponential length", 6, false, 40},
		{"20 outages of exponential length", 20, false, 16},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			rng := rand.New(rand.NewPCG(5, uint64(c.mean*10)))
			length := -math.Log(1-truth) / c.mean * windows * 200
			long := rng.ExpFloat64
			if c.equal {
				long = func() float64 { return 1 }
			}
			below, wide, above := 0, 0, 0
			for range repetitions {
				s := failing(windows, outages(rng, windows*200, c.mean, length, long))
				f := s.errorFinding(&budget.Budget{Metric: metric.Error.Name, Op: budget.AtMost})
				if f.Value > 0 && f.Hi < truth {
					below++
				}
				if f.Hi > 8*truth {
					wide++
				}
				g := s.meanFinding(&budget.Budget{Metric: metric.Goodput.Name, Op: budget.AtLeast})
				if f.Value > 0 && g.Lo > 200*(1-truth) {
					above++
				}
			}
			if above > c.most {
				t.Errorf("the lower end of the goodput is above the truth in %d of %d runs, want %d", above, repetitions, c.most)
			}
			t.Logf("the upper end is below the truth in %d of %d runs, and above 8 times it in %d", below, repetitions, wide)
			if below > c.most || wide > repetitions/20 {
				t.Errorf("the upper end is below the truth in %d of %d runs, want %d, and above 8 times it in %d", below,
					repetitions, c.most, wide)
			}
		})
	}
}

// TestErrorIntervalsAtARate: a server that fails for half a second, at any time. What a stretch of a search shows of so
// few outages is not the truth, and its interval allows for that.
func TestErrorIntervalsAtARate(t *testing.T) {
	t.Parallel()
	const rate, seconds, repetitions = 100, 30, 400
	for _, mean := range []float64{0.3, 0.5, 1, 3} { // outages in a stretch
		rng := rand.New(rand.NewPCG(9, uint64(mean*10)))
		truth := 1 - math.Exp(-mean*0.5/seconds)
		below, above := 0, 0
		for range repetitions {
			trace := made(tried{rate: rate, took: time.Millisecond, lasts: seconds * time.Second})
			calls := trace.Calls.(load.Calls)
			bad := outages(rng, len(calls), mean, rate/2, func() float64 { return 1 })
			for i := range calls {
				if bad(i) {
					calls[i].Outcome = load.Refused
				}
			}
			x := stretches(&trace)[0].of(&budget.Budget{Metric: metric.Error.Name})
			if x.Value > 0 && x.Hi < truth {
				below++
			}
			if x.Lo > truth {
				above++
			}
		}
		t.Logf("%v: the upper end is below the truth in %d, the lower end above it in %d of %d runs", mean, below, above,
			repetitions)
		if below > repetitions*4/100 || above > repetitions*4/100 {
			t.Errorf("%v: the upper end is below the truth in %d, the lower end above it in %d of %d runs", mean, below, above,
				repetitions)
		}
	}
}

// TestErrorIntervalsOverBlocks: blocks in which a tenth of the calls fail, and others in which none does.
func TestErrorIntervalsOverBlocks(t *testing.T) {
	t.Parallel()
	const blocks, calls, repetitions = 20, 150, 1000
	for _, mean := range []float64{1, 2, 4, 6} { // bad blocks in a run
		rng := rand.New(rand.NewPCG(10, uint64(mean)))
		below := 0
		for range repetitions {
			m := &measure{metric: metric.Error}
			for range blocks {
				v := 0.0
				if rng.Float64() < mean/blocks {
					v = 0.1
				}
				m.value, m.weight = append(m.value, v), append(m.weight, calls)
			}
			e, why := widened(m, blockMean(m.value, 1-stat.LookAlpha))
			if why != "" {
				t.Fatal(why)
			}
			if e.Value > 0 && e.Hi < 0.1*mean/blocks {
				below++
			}
		}
		t.Logf("%v: the upper end is below the truth in %d of %d runs", mean, below, repetitions)
		if below > repetitions*13/1000 {
			t.Errorf("%v: the upper end is below the truth in %d of %d runs", mean, below, repetitions)
		}
	}
}

// TestErrorsInFewStretches: the upper end is that of so many events, unless failures are in most of the windows. Where
// no call failed, outages may have been missed.
func TestErrorsInFewStretches(t *testing.T) {
	t.Parallel()
	const n = 60 * 200
	each := func(windows ...int) func(int) bool {
		return func(call int) bool {
			for _, w := range windows {
				if call/200 == w && call%200 < 40 {
					return true
				}
			}
			return false
		}
	}
	for name, c := range map[string]struct {
		bad     func(int) bool
		share   float64
		times   float64 // the upper end, of the share
		says    string
		exactly bool
	}{
		"one stretch":                {each(30), 40. / n, 5.5716, "came in 1 stretch", true},
		"two stretches":              {each(10, 40), 80. / n, 3.6123, "came in 2 stretches", true},
		"a long one and a short one": {each(10, 11, 12, 13, 14, 15, 40), 280. / n, 4.5, "came in 2 stretches", false},
		"in every window":            {func(i int) bool { return i%100 == 0 }, .01, 1.3, "60 windows", false},
		"none":                       {each(), 0, 0, "outages that are rarer than a few in such a run", false},
	} {
		f := failing(60, c.bad).errorFinding(&budget.Budget{Metric: metric.Error.Name, Op: budget.AtMost})
		if math.Abs(f.Value-c.share) > 1e-9 || !strings.Contains(f.how, c.says) {
			t.Errorf("%s: %v (%s), want %v (%q)", name, f.Value, f.how, c.share, c.says)
		}
		times := f.Hi / f.Value
		if c.exactly && math.Abs(times-c.times) > 1e-3 || !c.exactly && c.share > 0 && math.Abs(times-c.times) > 0.5 {
			t.Errorf("%s: the upper end is %.3f of the share, want %v", name, times, c.times)
		}
	}
}

// TestEventLimits compares with the exact limits of a Poisson mean.
func TestEventLimits(t *testing.T) {
	t.Parallel()
	for n, want := range map[int][2]float64{
		1: {0.0253, 5.5716}, 2: {0.2422, 7.2247}, 3: {0.6187, 8.7673}, 10: {4.7954, 18.3904}, 100: {81.3640, 121.6274},
	} {
		if lo, hi := fewest(n)*float64(n), most(n)*float64(n); math.Abs(lo-want[0]) > 1e-3 || math.Abs(hi-want[1]) > 1e-3 {
			t.Errorf("%d: %v to %v, want %v", n, lo, hi, want)
		}
	}
	if lo, hi := fewest(101), most(101); lo > 0.814 || lo < 0.5 || hi < 1.216 || hi > 1.5 {
		t.Errorf("101: %v to %v", lo, hi)
	}
	if lo, hi := fewest(0), most(0); lo != 0 || !math.IsInf(hi, 1) {
		t.Errorf("0: %v to %v", lo, hi)
	}
}
