package analyze

import (
	"fmt"
	"slices"
	"strings"

	"tare/internal/budget"
	"tare/internal/report"
	"tare/internal/unit"
)

// The exit codes. They are never renumbered; 2 (usage) and the rest of 1 belong to the command line.
const (
	ExitPass         = 0
	ExitError        = 1
	ExitBudget       = 10
	ExitInconclusive = 11
	ExitInvalid      = 12
	ExitNotInForce   = 13
	ExitPermits      = 14
	ExitInterrupted  = 130
)

// ExitCode is the code with which a command that made this report ends. A run that was cut short is told first, since
// its other findings are of a part only; then what makes it invalid, since that is often why it ended in an error. A
// control that is not in force is no fault of the host, and has a code of its own. So has a treatment that permits what
// the baseline refuses, before any budget: that was seen, whatever of the rest does not count.
func ExitCode(r *report.Report) int {
	switch {
	case r.Status == report.Interrupted, r.Status == report.Killed:
		return ExitInterrupted
	case r.Status == report.Errored && r.Verdict != report.Invalid:
		return ExitError
	case slices.ContainsFunc(r.Treatments, permitsMore):
		return ExitPermits
	case r.Verdict == report.Invalid && slices.ContainsFunc(r.Treatments, isNotInForce):
		return ExitNotInForce
	case r.Verdict == report.Invalid:
		return ExitInvalid
	}
	switch r.Verdict {
	case report.Fail:
		return ExitBudget
	case report.Inconclusive, report.NotMeasured:
		return ExitInconclusive
	case report.Pass, report.None, report.Invalid:
	}
	return ExitPass
}

func isNotInForce(t report.Treatment) bool { return t.NotInForce != "" }

// verdict judges the whole run, with the reason in a sentence.
func verdict(r *report.Report, f flaws) (report.Verdict, string) {
	permits := saidOf(r, (*report.Treatment).PermitsMore)
	switch {
	case len(f.invalid) > 0 && permits != "":
		return report.Invalid, permits + "; " + strings.Join(f.invalid, "; ")
	case len(f.invalid) > 0:
		return report.Invalid, strings.Join(f.invalid, "; ")
	case permits != "":
		return report.Fail, permits
	}
	open := f.open
	if text := saidOf(r, (*report.Treatment).NotShown); text != "" {
		open = append([]string{text}, open...)
	}
	var all []budget.Verdict
	counts := map[report.Verdict]int{}
	for _, b := range r.Budgets {
		all = append(all, budget.Verdict(b.Verdict))
		counts[b.Verdict]++
	}
	overall := report.Verdict(budget.Overall(all))
	switch {
	case overall == report.Fail:
		return overall, fmt.Sprintf("%s of %d broken", unit.Count(counts[report.Fail], "budget"), len(all))
	case r.Status == report.Errored && (len(f.open) > 0 || !f.measured):
		return report.NotMeasured, f.failure
	case r.Status != report.Complete && overall != report.None:
		return report.Inconclusive, "the run did not come to its end"
	case len(open) > 0:
		return report.Inconclusive, strings.Join(open, "; ")
	case overall == report.Inconclusive:
		return overall, fmt.Sprintf(
			"%s of %d undecided or not measured", unit.Count(counts[report.Inconclusive]+counts[report.NotMeasured], "budget"),
			len(all),
		)
	case overall == report.Pass:
		return overall, fmt.Sprintf("%s kept", unit.Count(len(all), "budget"))
	}
	if slices.ContainsFunc(r.Capacity, func(c report.Capacity) bool { return c.Objective != nil }) {
		return report.None, "no budget limits the rate at which the latency objective holds: slo_capacity >= 100/s would"
	}
	return report.None, "no budget was given"
}
