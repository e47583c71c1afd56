package analyze

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/internal/capacity"
	"tare/internal/design"
	"tare/internal/report"
)

func TestBudgetsAgainstTheBaseline(t *testing.T) {
	t.Parallel()
	j := journal{
		treatments: []design.Treatment{{ID: "cache=on", Baseline: true}, {ID: "cache=off"}},
		budget: []string{
			"capacity >= -1%", "capacity >= -10/s", "cache=on: capacity >= 100/s", "nobody: capacity >= 1/s", "capacity >= +50%",
		},
		trace: func(id string) capacity.Trace {
			if id == "cache=on" {
				return limitedTrace(1)
			}
			return limitedTrace(2)
		},
	}
	rep := analyzed(t, j.write(t, t.TempDir()))
	var got []string
	for _, b := range rep.Budgets {
		got = append(got, b.Text+" | "+b.Treatment+" | "+string(b.Verdict))
	}
	want := []string{
		"capacity >= -1% | cache=off | inconclusive", "capacity >= -10/s | cache=off | pass",
		"cache=on: capacity >= 100/s | cache=on | pass",
		"nobody: capacity >= 1/s | nobody | not-measured", "capacity >= +50% | cache=off | fail",
	}
	// Both have a capacity of 150/s to within their intervals, which are wider than 1 % together.
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("budgets (-want +got):\n%s\n%+v", d, rep.Budgets)
	}
}

func TestBudgetsAtARate(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]report.Verdict{
		"response.p50 <= 6ms at 147/s":      report.Pass,         // measured there
		"response.p50 <= 6ms at 100/s":      report.Pass,         // holds at 147/s, so below too
		"response.p50 <= 5ms at 10/s":       report.Fail,         // every good call takes longer
		"response.p50 <= 5ms at 30/s":       report.Fail,         // broken at 20/s, so above too
		"response.p50 <= 5ms at 1/s":        report.Inconclusive, // broken at higher rates only
		"response.p999 <= 6.015ms at 147/s": report.Inconclusive, // 735 calls are too few
		"error <= 1% at 147/s":              report.Pass,
		"error <= 1% at 195/s":              report.Fail,
		"response.p50 >= 1ms at 147/s":      report.Pass,
		"response.p50 >= 1ms at 100/s":      report.NotMeasured, // a lower limit cannot be carried over
		"nothing.response <= 1s at 20/s":    report.NotMeasured,
		"response.p50 <= 6ms":               report.NotMeasured, // at which rate?
		"service.max <= 10ms at 147/s":      report.Pass,
		"pool_wait.mean <= 1ms at 147/s":    report.Pass,
		"cpu <= 1ms":                        report.NotMeasured, // one block
		"rss <= 64MiB":                      report.Pass,
		"goodput >= 1/s":                    report.NotMeasured,
	} {
		rep := analyzed(t, journal{budget: []string{text}}.write(t, t.TempDir()))
		if b := rep.Budgets[0]; b.Verdict != want {
			t.Errorf("%s: %s (%s), want %s: %s", text, b.Verdict, b.Reason, want, mustJSON(t, b))
		}
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	must(t, err)
	return string(b)
}
