package analyze

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/report"
)

// TestAnswersOfAComparison: answers are counted by operation, and both sides' counts add up over blocks.
func TestAnswersOfAComparison(t *testing.T) {
	t.Parallel()
	x := experiment{
		blocks: 4, calls: 40, operations: []string{"deny"}, cost: millisecond,
		fail: func(_ string, block, call int) bool { return block == 1 && call == 3 },
	}
	r := opened(t, x.write(t, t.TempDir()))
	for _, trial := range r.Trials {
		trial.TrialBegin.Answers = []string{"deny"}
		trial.Answers = []record.Answers{{
			Treatment: trial.Treatment, Seen: map[string]uint64{"deny": 100}, Before: map[string]float64{"deny": 5},
			After: map[string]float64{"deny": 105, "permit": 0},
		}}
		if trial.Treatment == seccomp && trial.Block == 2 {
			trial.Answers[0].After["permit"] = 7
		}
	}
	rep := analyzedRecord(t, r)
	checks := map[string]report.AnswerCheck{}
	for _, c := range rep.Answers {
		checks[c.Treatment+" "+c.Answer] = c
	}
	if c := checks[seccomp+" deny"]; !c.Agrees || c.Client != 400 || c.Target != 400 {
		t.Errorf("%+v", rep.Answers)
	}
	if c := checks[seccomp+" permit"]; c.Agrees || c.Client != 0 || c.Target != 7 || !warned(rep, `the target counted 7 answers "permit", and its callers got 0`) {
		t.Errorf("%+v, warnings %q", rep.Answers, rep.Warnings)
	}
	for _, op := range rep.Operations {
		if n := op.Answers["deny"]; n == 0 || n != op.Outcomes.Good() {
			t.Errorf("%s %s: %v of %+v", op.Treatment, op.Operation, op.Answers, op.Outcomes)
		}
	}
}

func TestCauseAnswerOf(t *testing.T) {
	t.Parallel()
	trial := &record.Trial{
		TrialBegin: record.TrialBegin{
			Answers: []string{"permit", ""}, CauseAnswers: [][]string{{"deny", "", "not-applicable"}},
		},
	}
	for _, c := range []struct {
		operation int
		cause     load.Cause
		want      string
	}{
		{0, load.OwnCauses, "deny"},
		{0, load.OwnCauses + 1, ""},
		{0, load.OwnCauses + 2, "not-applicable"},
		{0, load.OwnCauses + 3, ""},
		{0, load.CauseTLS, ""},
		{0, 0, ""},
		{1, load.OwnCauses, ""},
		{-1, load.OwnCauses, ""},
	} {
		if got := causeAnswerOf(trial, c.operation, c.cause); got != c.want {
			t.Errorf("operation %d, cause %d: %q, want %q", c.operation, c.cause, got, c.want)
		}
	}
	if answerOf(trial, 0) != "permit" || answerOf(trial, 1) != "" || answerOf(trial, 2) != "" ||
		answerOf(trial, -1) != "" {
		t.Error("answers of operations")
	}
}

// TestMeter: counters add up over readings, parts apart; what was replaced counts from 0, and what could not be read
// waits.
func TestMeter(t *testing.T) {
	t.Parallel()
	s := func(name, part string, v float64) metric.Sample {
		return metric.Sample{Subject: "pdp", Metric: name, Part: part, Value: v}
	}
	at := func(born, cpu, young, full, rss float64) []metric.Sample {
		return []metric.Sample{
			s(probe.Started.Name, "", born), s(probe.CPU.Name, "", cpu), s(probe.GCCount.Name, "young", young),
			s(probe.GCCount.Name, "full", full), s(probe.RSS.Name, "", rss),
		}
	}
	m := newMeter()
	var replaced []bool
	for _, reading := range [][]metric.Sample{
		at(1, 10, 5, 2, 100), at(1, 12, 8, 2, 300), nil, at(1, 15, 9, 3, 200), at(2, 1, 1, 0, 50), at(2, 4, 2, 0, 60),
	} {
		_, who := m.read(reading)
		replaced = append(replaced, len(who) > 0)
	}
	for k, want := range map[probed]float64{
		{probe.CPU.Name, ""}: 5 + 1 + 3, {probe.GCCount.Name, "young"}: 4 + 1 + 1, {probe.GCCount.Name, "full"}: 1,
		{probe.RSS.Name, ""}: 60,
	} {
		if got := m.sums["pdp"][k]; math.Abs(got-want) > 1e-12 {
			t.Errorf("%s: %v, want %v", k.name(), got, want)
		}
	}
	if m.times["pdp"] != 1 || !replaced[4] || replaced[3] || m.peaks["pdp"] != 300 {
		t.Errorf("replaced %v, %v times, peak %v", replaced, m.times, m.peaks)
	}
	// What a process held at most before that does not count.
	p := newMeter()
	for i, mark := range []float64{900, 900, 950, 80} {
		p.read([]metric.Sample{
			s(probe.Started.Name, "", float64(1+i/3)), s(probe.RSS.Name, "", 70), s(probe.RSSPeak.Name, "", mark),
		})
		if i == 0 {
			p.resetSums()
		}
		if want := []float64{0, 70, 950, 950}[i]; p.peaks["pdp"] != want {
			t.Errorf("reading %d: peak %v, want %v", i, p.peaks["pdp"], want)
		}
	}
	// Without a start, a count that falls tells of another process.
	n := newMeter()
	n.read([]metric.Sample{s(probe.SeriesTotal.Name, "requests", 50)})
	if _, who := n.read([]metric.Sample{s(probe.SeriesTotal.Name, "requests", 20)}); len(who) != 1 ||
		n.sums["pdp"][probed{probe.SeriesTotal.Name, "requests"}] != 20 {
		t.Errorf("replaced %v, %v", who, n.sums)
	}
}

// TestWhatRefusesIsNotFast: a budget on times is decided where it is so as calls ended, and if those that failed were
// never answered.
func TestWhatRefusesIsNotFast(t *testing.T) {
	t.Parallel()
	const pass, fail, open = report.Pass, report.Fail, report.Inconclusive
	for name, c := range map[string]struct {
		base, treated int // in 1,000 calls fail
		took          time.Duration
		cost          float64 // of the treatment's other calls, against the baseline's 1 ms
		want          map[string]report.Verdict
	}{
		"the treatment refuses most": {0, 600, time.Microsecond, 1e-3, map[string]report.Verdict{
			"response.p50 <= +5%": open, "service.p50 <= +5%": open, "response.p50 <= 5ms": open, "response.p90 <= +5%": open,
			"response.p50 <= +1ms": open, "response.mean <= 5ms": open, "error <= 70%": pass,
		}},
		"the treatment refuses some": {0, 300, time.Microsecond, 1e-3, map[string]report.Verdict{
			"response.p50 <= +5%": open, "response.p50 <= 5ms": pass, "response.p90 <= 5ms": open, "response.max <= 1s": open,
		}},
		"the baseline refuses most": {600, 0, time.Microsecond, 1e-3, map[string]report.Verdict{
			"response.p50 <= +50%": open, "response.p50 <= 5ms": pass,
		}},
		"both refuse most": {600, 600, time.Microsecond, 1e-3, map[string]report.Verdict{
			"response.p50 <= +50%": open, "response.p50 >= -50%": open,
		}},
		"both refuse few": {2, 2, time.Microsecond, 1e-3, map[string]report.Verdict{
			"response.p50 <= +5%": pass, "response.p90 <= +10%": pass, "response.p90 <= 5ms": pass, "response.max <= 1s": open,
		}},
		"the rest is slower": {0, 100, time.Microsecond, 3e-3, map[string]report.Verdict{
			"response.p50 <= +5%": fail, "response.p50 <= 1.5ms": fail,
		}},
		"time-outs": {0, 300, time.Second, 1e-3, map[string]report.Verdict{
			"response.p90 <= 900ms": fail, "response.p90 <= 2s": open, "response.max <= 2s": open, "response.p90 <= +5%": fail,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			x := experiment{blocks: 20, calls: 1000, block: .01, seed: 9, operations: []string{"token"}, took: c.took}
			x.budget = sortedKeys(c.want)
			x.cost = func(treatment, _ string, _ int) float64 {
				if treatment == seccomp {
					return c.cost
				}
				return 1e-3
			}
			x.fail = func(treatment string, _, call int) bool {
				n := c.base
				if treatment == seccomp {
					n = c.treated
				}
				return call >= 100 && call*7%1000 < n
			}
			verdicts(t, measured(t, x), c.want)
		})
	}
}

// TestEffectsOfRefusal: calls that are refused at once make an effect on times open, and few of them do not.
func TestEffectsOfRefusal(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		factor float64
		refuse int
		want   report.EffectVerdict // "": none is given
	}{
		{1, 0, report.Equivalent},
		{.98, 3, report.EffectInconclusive},
		{.5, 3, report.Improved},
		{.9, 1, ""},
		{2, 10, report.Regressed},
	} {
		rep := analyzedRecord(t, turned{blocks: 10, factor: c.factor, refuse: c.refuse, seed: 3}.record(t))
		i := slices.IndexFunc(rep.Effects, func(e report.Effect) bool { return nameOf(&e) == "get.response.p50" })
		got := report.EffectVerdict("")
		if i >= 0 {
			got = rep.Effects[i].Verdict
		}
		said := strings.Contains(rep.Reason, "get.response.p50 under on cannot be told")
		if left := c.want == "" || c.want == report.EffectInconclusive; got != c.want || said != left {
			t.Errorf("one in %d is refused: %q, want %q; %s (%s)", c.refuse, got, c.want, rep.Verdict, rep.Reason)
		}
	}
}

// TestNothingAnsweredChecksNothing: a baseline that refuses every call is not quiet against itself.
func TestNothingAnsweredChecksNothing(t *testing.T) {
	t.Parallel()
	r := turned{blocks: 10, factor: 1, down: true, seed: 3}.record(t)
	for _, trial := range r.Trials {
		trial.Samples = nil // CPU time could be judged
	}
	rep := analyzedRecord(t, r)
	if aa := rep.AA; aa == nil || aa.Reliable || len(aa.Effects) > 0 ||
		!strings.Contains(aa.Unchecked, "100% of the calls") {
		t.Errorf("%+v", aa)
	}
	if slices.ContainsFunc(rep.Effects, func(e report.Effect) bool { return e.Metric == "response" }) {
		t.Errorf("%+v", rep.Effects)
	}
}

// TestImportedFailures: another tool's calls that failed at once are not the faster ones.
func TestImportedFailures(t *testing.T) {
	t.Parallel()
	stream := func(refused int) string {
		var b strings.Builder
		for i := range 1000 {
			code, took := 200, 2e6+1e4*float64(i%7)
			if i%100 < refused {
				code, took = 503, 1e5
			}
			fmt.Fprintf(&b, "{\"code\":%d,\"timestamp\":%q,\"latency\":%.0f}\n", code,
				epoch.Add(time.Duration(i)*10*time.Millisecond).Format(time.RFC3339Nano), took)
		}
		return b.String()
	}
	for refused, want := range map[int]report.Verdict{0: report.Pass, 5: report.Pass, 59: report.Inconclusive} {
		a, b := imported(t, "a", stream(0)), imported(t, fmt.Sprint("b", refused), stream(refused))
		arms, _, err := MatchArms(a, b, "", "")
		must(t, err)
		rep, err := CompareRuns(a, b, arms, CompareOptions{Budget: []string{"service <= +5%"}})
		must(t, err)
		said := "0% of the calls failed under a:imported and " + fmt.Sprint(refused) + "% under imported"
		got := rep.Budgets[0]
		if got.Verdict != want || want != report.Pass && !strings.Contains(got.Reason, said) {
			t.Errorf("%d %% refused: %s (%s), want %s (%s)", refused, got.Verdict, got.Reason, want, said)
		}
	}
}

// TestLinesThatCannotBeRead: a line of another tool's file that cannot be read may be a call that failed, or that took
// long. No budget passes that it could break, and each says how many there are.
func TestLinesThatCannotBeRead(t *testing.T) {
	t.Parallel()
	const csv = "timeStamp,elapsed,label,responseCode,responseMessage,success\n"
	of := func(broken int) Run {
		var b strings.Builder
		b.WriteString(csv)
		for i := range 1000 {
			at, took := epoch.Add(time.Duration(i)*10*time.Millisecond).UnixMilli(), 20+i%7
			if i%200 < broken {
				fmt.Fprintf(&b, "%d,%d,get,500,Internal\nServer Error,false\n", at, took)
				continue
			}
			fmt.Fprintf(&b, "%d,%d,get,200,OK,true\n", at, took)
		}
		return imported(t, fmt.Sprint("broken", broken), b.String())
	}
	const pass, open = report.Pass, report.Inconclusive
	for broken, want := range map[int][]report.Verdict{
		0: {pass, pass, pass, pass, pass}, 1: {open, pass, pass, open, open}, 20: {open, pass, pass, open, open},
		110: {open, open, open, open, open},
	} {
		budget := []string{"error <= 1%", "error <= 25%", "service <= 50ms", "service.mean <= 50ms", "service.max <= 50ms"}
		rep, err := Analyze(of(broken).Record, Options{Budget: budget})
		must(t, err)
		for i := range rep.Budgets {
			b := &rep.Budgets[i]
			said := strings.Contains(b.Reason, fmt.Sprintf("(%d more lines could not be read)", 10*broken))
			if b.Verdict != want[i] || said != (broken > 0) || broken > 0 && strings.Contains(b.Reason, "no call failed") {
				t.Errorf("%d of 200 broken: %s %s: %v, %v to %v: %s", broken, b.Verdict, b.Text, b.Estimate, b.Lo, b.Hi, b.Reason)
			}
		}
	}
	a, b := of(0), of(20)
	arms, _, err := MatchArms(a, b, "", "")
	must(t, err)
	rep, err := CompareRuns(a, b, arms, CompareOptions{Budget: []string{"service <= +2%"}})
	must(t, err)
	for i := range rep.Budgets {
		if x := &rep.Budgets[i]; x.Verdict != open || !strings.Contains(x.Reason, "200 more lines could not be read") {
			t.Errorf("%s: %s: %s", x.Text, x.Verdict, x.Reason)
		}
	}
}

// TestFailuresThatAreNotSaid: a limit for all operations is not kept where of one it is not known which calls failed.
func TestFailuresThatAreNotSaid(t *testing.T) {
	t.Parallel()
	const point = `{"type":"Point","metric":"grpc_req_duration","data":{"time":%q,"value":5,"tags":{"name":%q%s}}}` + "\n"
	for name, c := range map[string]struct {
		code string
		want report.Verdict
	}{"said": {`,"status":"0"`, report.Pass}, "not said": {"", report.NotMeasured}} {
		var b strings.Builder
		for i := range 1000 {
			at := epoch.Add(time.Duration(i) * 10 * time.Millisecond).Format(time.RFC3339Nano)
			fmt.Fprintf(&b, point, at, "check", `,"status":"0"`)
			fmt.Fprintf(&b, point, at, "watch", c.code)
		}
		budget := []string{"error <= 1%", "goodput >= 10/s", "check.error <= 1%", "service <= 10ms"}
		rep, err := Analyze(imported(t, name, b.String()).Record, Options{Budget: budget})
		must(t, err)
		verdicts(t, rep, map[string]report.Verdict{
			budget[0]: c.want, budget[1]: c.want, budget[2]: report.Pass, budget[3]: report.Pass,
		})
	}
}

// TestFailedRuns: runs of a command that fails at once keep no limit on their time.
func TestFailedRuns(t *testing.T) {
	t.Parallel()
	const pass, open = report.Pass, report.Inconclusive
	for failed, want := range map[int]report.Verdict{0: pass, 1: pass, 20: open, 30: open} {
		var times, codes []string
		for i := range 30 {
			times, codes = append(times, fmt.Sprint(.05+float64(i)*1e-4)), append(codes, "0")
			if i < failed {
				times[i], codes[i] = fmt.Sprint(1e-3+float64(i)*1e-6), "127"
			}
		}
		src := fmt.Sprintf(`{"results":[{"command":"x","times":[%s],"exit_codes":[%s]}]}`, strings.Join(times, ","),
			strings.Join(codes, ","))
		rep, err := Analyze(imported(t, fmt.Sprint(failed), src).Record, Options{Budget: []string{"command.wall <= 100ms"}})
		must(t, err)
		verdicts(t, rep, map[string]report.Verdict{"command.wall <= 100ms": want})
	}
}
