package analyze

import (
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/internal/budget"
	"tare/internal/metric"
	"tare/internal/record"
	"tare/internal/report"
	"tare/rigs/hosttest"
)

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
		"response.p50 <= 11ms": report.Fail, "cpu <= +20%": report.Pass, "capacity >= 1/s": report.NotMeasured,
	}
	verdicts(t, compared(t, a, b, "", "", CompareOptions{Budget: sortedKeys(want)}), want)
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
