package analyze

import (
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tare/internal/design"
	"tare/internal/record"
	"tare/internal/report"
)

// tenfold are the ways in which a form can say that something takes eleven times as long.
var tenfold = regexp.MustCompile(`×1[01]|\+(9\d\d|1[01]\d\d)\b|"?effects"?: (\[ \{|-) "?treatment"?: "?enforcer=seccomp` +
	`|tare_effect_estimate\{[^}]*treatment="enforcer=seccomp"`)

// notInForce lets the last treatment's proof fail.
func notInForce(r *record.Record) *record.Record {
	last := r.Plan.Treatments[len(r.Plan.Treatments)-1].ID
	r.Verified = append(r.Verified, record.Verify{Treatment: last, Error: "a call that must fail succeeded"})
	return r
}

// TestInvalidRunsGiveNoEffect: no form of the report of an invalid run says what a treatment adds to its baseline, nor
// how that grows, whatever made the run invalid.
func TestInvalidRunsGiveNoEffect(t *testing.T) {
	t.Parallel()
	forms := map[string]func(io.Writer, *report.Report) error{
		"text": report.Text, "json": report.JSON, "yaml": report.YAML, "page": report.HTML, "markdown": report.Markdown,
		"junit": report.JUnit, "sarif": report.SARIF, "openmetrics": report.OpenMetrics, "action": report.ActionBenchmark,
		"annotations": report.Annotations, "summary": report.StepSummary,
	}
	sound := experiment{
		blocks: 20, seed: 5, budget: []string{"cpu <= +2000%", "cpu <= 1s"},
		cost: func(treatment, _ string, _ int) float64 {
			if treatment == "enforcer=seccomp" {
				return 11e-6
			}
			return 1e-6
		},
	}
	differs := sound
	differs.cost = func(treatment, operation string, block int) float64 {
		if treatment == design.AAArm {
			return 1.3e-6
		}
		return sound.cost(treatment, operation, block)
	}
	calls := sound
	calls.area, calls.calls, calls.budget = "turnpike", 400, []string{"response.p50 <= +2000%"}
	late := calls
	late.spoil = func(string, int) bool { return true }
	seen := map[string]bool{}
	for name, c := range map[string]struct {
		report  *report.Report
		invalid bool
	}{
		"sound": {analyzedRecord(t, sound.record()), false}, "sound calls": {measured(t, calls), false},
		"A/A differs":    {analyzedRecord(t, differs.record()), true},
		"generator late": {measured(t, late), true},
		"not in force":   {analyzedRecord(t, notInForce(sound.record())), true},
	} {
		rep := c.report
		if (rep.Verdict == report.Invalid) != c.invalid {
			t.Fatalf("%s: %s (%s)", name, rep.Verdict, rep.Reason)
		}
		for form, write := range forms {
			var b strings.Builder
			if err := write(&b, rep); err != nil {
				t.Fatalf("%s, %s: %v", name, form, err)
			}
			found := tenfold.FindString(regexp.MustCompile(`\s+`).ReplaceAllString(b.String(), " "))
			if c.invalid && found != "" {
				t.Errorf("%s: the %s of an invalid run says %q", name, form, found)
			}
			seen[form] = seen[form] || !c.invalid && found != ""
		}
		if !c.invalid {
			continue
		}
		if len(rep.Treatments) == 0 || len(rep.Treatments[0].Metrics) == 0 {
			t.Errorf("%s: what was measured is gone", name)
		}
		for _, b := range rep.Budgets {
			judged := b.Verdict != report.Inconclusive && b.Verdict != report.NotMeasured
			if judged || strings.Contains(b.Text, "%") && b.Estimate != nil {
				t.Errorf("%s: %+v", name, b)
			}
		}
	}
	for form := range forms {
		if !seen[form] && form != "sarif" && form != "annotations" { // these two report broken budgets only
			t.Errorf("the %s of a sound run does not say the effect: this test looks for the wrong text", form)
		}
	}
}

// TestInvalidRunsGiveNoLaw of growth: the points that were measured stay.
func TestInvalidRunsGiveNoLaw(t *testing.T) {
	t.Parallel()
	x := growing([]float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000}, func(n float64) float64 { return 1e-6 * (1 + n) })
	before, after := analyzedRecord(t, x.record()), analyzedRecord(t, notInForce(x.record()))
	if len(before.Growth) == 0 || before.Growth[0].Best == "" || before.Growth[0].Points[0].Fitted == nil {
		t.Fatalf("a sound run has no law: %+v", before.Growth)
	}
	if after.Verdict != report.Invalid || len(after.Growth) != len(before.Growth) {
		t.Fatalf("%s: %d rows of sizes, want %d", after.Verdict, len(after.Growth), len(before.Growth))
	}
	g := after.Growth[0]
	if g.Law+g.Best != "" || g.Lo != nil || g.BreaksBudgetAt != nil || g.Constant != nil || g.Step != nil ||
		g.Knee != nil || g.Reason != runInvalid || len(g.Points) != len(before.Growth[0].Points) ||
		g.Points[0].Fitted != nil {
		t.Errorf("an invalid run has a law: %+v", g)
	}
}

// TestUnprovedTreatments: a treatment of which nothing that must be refused was asked is not called proved in force,
// and the run counts; a proof that fails later is still seen.
func TestUnprovedTreatments(t *testing.T) {
	t.Parallel()
	const said = "the endpoint answers as expected; nothing that must be refused was asked"
	seen := func(treatment string, unproved, failed string) record.Verify {
		return record.Verify{Treatment: treatment, OK: failed == "", Unproved: unproved, Error: failed}
	}
	for name, c := range map[string]struct {
		verified []record.Verify
		proved   bool // that a is
		unproved string
		notes    []string
		invalid  bool
	}{
		"proved": {verified: []record.Verify{seen("a", "", ""), seen("b", "", "")}, proved: true},
		"one is not": {
			verified: []record.Verify{seen("a", said, ""), seen("b", "", ""), seen("a", said, "")}, unproved: said,
			notes: []string{"a: " + said},
		},
		"none is": {
			verified: []record.Verify{seen("a", said, ""), seen("b", said, "")}, unproved: said, notes: []string{said},
		},
		"one is not, and fails later": {
			verified: []record.Verify{seen("a", said, ""), seen("b", "", ""), seen("a", "", "it is gone")}, unproved: said,
			notes: []string{"a: " + said}, invalid: true,
		},
	} {
		a := &analysis{rec: &record.Record{Verified: c.verified}, rep: &report.Report{}}
		a.rec.Plan.Treatments = []design.Treatment{{ID: "a"}, {ID: "b"}}
		a.treatments()
		if got := a.rep.Treatments[0]; got.Verified != c.proved || got.Unproved != c.unproved {
			t.Errorf("%s: %+v", name, got)
		}
		if !slices.Equal(a.rep.Notes, c.notes) || len(a.flaws.invalid) > 0 != c.invalid {
			t.Errorf("%s: notes %q, flaws %q", name, a.rep.Notes, a.flaws.invalid)
		}
	}
}
