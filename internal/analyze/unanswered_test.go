package analyze

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/internal/report"
)

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
			verdicts(t, analyzed(t, x.write(t, t.TempDir())), c.want)
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
