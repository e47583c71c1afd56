package analyze

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"tare/internal/capacity"
	"tare/internal/load"
	"tare/internal/report"
)

// TestObjectivesAreReported: a search that was given a latency objective says what is known of it, or why nothing is.
func TestObjectivesAreReported(t *testing.T) {
	t.Parallel()
	held, missed := true, false
	// tried adds stretches that were made for the objective; one of nil was left open.
	tried := func(all map[float64]*bool) func(string) capacity.Trace {
		return func(string) capacity.Trace {
			tr := limitedTrace(1)
			tr.SLO, tr.SLOShare = 20*time.Millisecond, 0.01
			now := tr.Read
			for _, rate := range []float64{10, 20, 40} {
				passed, ok := all[rate]
				if !ok {
					continue
				}
				first, calls := now, load.CallsOf(tr.Calls)
				for ; now < first+10*time.Second; now += time.Duration(1e9 / rate) {
					calls = append(calls, load.Call{Intended: now, Ready: now, Sent: now, Done: now + 5*time.Millisecond})
				}
				tr.Calls = calls
				n := int(10 * rate)
				tr.Steps = append(tr.Steps, capacity.Step{
					Role: capacity.RoleSLO, Rate: rate, Passed: passed, Attempt: 1,
					Segment: load.Segment{Start: first, End: now, Offered: n, Sent: n},
				})
			}
			tr.Read = now + time.Second
			if len(all) == 0 {
				tr.Stop, tr.Reason = capacity.StopTime, "the search was given 180 s"
			}
			return tr
		}
	}
	const objective = "latency objective (at most 1% of the calls take longer than 20 ms)"
	for name, c := range map[string]struct {
		steps   map[float64]*bool
		budget  []string
		text    string
		verdict report.Verdict
		reason  string
		exit    int
	}{
		"held": {
			steps:   map[float64]*bool{10: &held, 20: &missed},
			text:    "holds its " + objective + " up to 10.00 /s, and misses it at 20.00 /s; in between it is open",
			verdict: report.None, reason: "no budget limits the rate at which the latency objective holds",
		},
		"missed": {
			steps: map[float64]*bool{40: &missed, 20: nil}, text: "misses its " + objective + " at 40.00 /s",
			verdict: report.None, reason: "no budget limits the rate at which the latency objective holds",
		},
		"left open": {
			steps: map[float64]*bool{20: nil, 40: nil}, text: "miss its " + objective + ": noise left it open at 20/s, 40/s",
			verdict: report.Inconclusive, reason: "noise left it open at 20/s, 40/s", exit: ExitInconclusive,
		},
		"not tried": {
			budget: []string{"capacity >= 100/s"}, text: "no rate was tried for it: the search was given 180 s",
			verdict: report.Inconclusive, reason: "no rate was tried for it", exit: ExitInconclusive,
		},
		"not tried, with a budget on it": {
			budget: []string{"slo_capacity >= 5/s"}, text: "next give the search more time",
			verdict: report.Inconclusive, reason: "no rate was tried for it", exit: ExitInconclusive,
		},
	} {
		t.Run(name, func(t *testing.T) {
			rep := measured(t, journal{trace: tried(c.steps), budget: c.budget})
			if rep.Verdict != c.verdict || !strings.Contains(rep.Reason, c.reason) || ExitCode(rep) != c.exit {
				t.Errorf("verdict %s (%s), exit %d", rep.Verdict, rep.Reason, ExitCode(rep))
			}
			var b bytes.Buffer
			if err := report.Encoders()["text"](&b, rep); err != nil {
				t.Fatal(err)
			}
			if text := strings.Join(strings.Fields(b.String()), " "); !strings.Contains(text, c.text) {
				t.Errorf("the text has no %q:\n%s", c.text, b.String())
			}
		})
	}
}
