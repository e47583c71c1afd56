package analyze

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/record"
	"tare/internal/report"
)

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
	a.rep.Treatments[1].Permits = nil
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
