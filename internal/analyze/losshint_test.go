package analyze

import (
	"strings"
	"testing"

	"tare/internal/report"
)

// TestLossHint: a comparison that loses its times says so while it is measured, why, and what would help.
func TestLossHint(t *testing.T) {
	t.Parallel()
	rep := &report.Report{
		Design: &report.Design{Blocks: 10, Late: 2}, Generator: &report.Generator{Reason: "late in 2 blocks"},
		Warnings: []string{"the hypervisor took 9 % of this host's CPU time meanwhile", "something else"},
	}
	if text := LossHint(rep); text != "" {
		t.Errorf("a fifth of the blocks is lost: %q", text)
	}
	rep.Design.Late, rep.Generator.Reason = 8, "the generator sent late in 8 of 10 blocks"
	text := LossHint(rep)
	for _, want := range []string{
		"8 of 10 blocks so far are without times", "sent late in 8 of 10 blocks", "the hypervisor took 9 %", "CAP_SYS_NICE",
		"a budget on cpu",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q lacks %q", text, want)
		}
	}
	if text := LossHint(&report.Report{}); text != "" {
		t.Errorf("not a comparison: %q", text)
	}
}

// TestFailedRunIsNotInconclusive: a run that failed before it measured anything says that, and why.
func TestFailedRunIsNotInconclusive(t *testing.T) {
	t.Parallel()
	f := flaws{open: []string{"no capacity was measured"}, failure: "the run failed: nothing listens at 127.0.0.1:1"}
	for _, c := range []struct {
		name    string
		status  report.Status
		f       flaws
		budgets []report.Budget
		want    report.Verdict
		exit    int
	}{
		{"nothing listens", report.Errored, f, nil, report.NotMeasured, ExitError},
		{
			"with a budget", report.Errored, f, []report.Budget{{Verdict: report.NotMeasured}}, report.NotMeasured, ExitError,
		},
		{"it failed after it had measured", report.Errored, flaws{measured: true}, nil, report.None, ExitError},
		{"it found nothing", report.Complete, f, nil, report.Inconclusive, ExitInconclusive},
		{"not in force", report.Errored, flaws{invalid: []string{"x"}, failure: f.failure}, nil, report.Invalid, ExitInvalid},
	} {
		rep := &report.Report{Status: c.status, Budgets: c.budgets}
		rep.Verdict, rep.Reason = verdict(rep, c.f)
		if rep.Verdict != c.want || ExitCode(rep) != c.exit {
			t.Errorf("%s: %s (%s), exit %d; want %s and %d", c.name, rep.Verdict, rep.Reason, ExitCode(rep), c.want, c.exit)
		}
		if c.want == report.NotMeasured && rep.Reason != f.failure {
			t.Errorf("%s: the reason is %q", c.name, rep.Reason)
		}
	}
}
