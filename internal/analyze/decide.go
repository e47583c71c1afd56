package analyze

import (
	"fmt"
	"strings"

	"tare/internal/report"
	"tare/internal/unit"
)

// Decide says whether a growing experiment may stop at this look: every budget is kept or broken, or without budgets
// every gating effect is regressed, improved or equivalent, and the experiment's checks of itself found nothing. Else
// reason lists what is still open, with the number of blocks that would decide it. A budget that this run cannot
// measure is not waited for. It must be asked at the planned looks only: each costs a share of the error that is
// allowed.
func Decide(rep *report.Report) (stop bool, reason string) {
	var open []string
	switch {
	case rep.AA == nil || (len(rep.AA.Effects) == 0 && !rep.AA.Reliable):
		open = append(open, unchecked(rep))
	case !rep.AA.Reliable || rep.Verdict == report.Invalid:
		open = append(open, rep.Reason)
	}
	done, undecided := openBudgets(rep)
	if len(rep.Budgets) == 0 || (done == "" && len(undecided) == 0) {
		done, undecided = openEffects(rep)
	}
	open = append(open, undecided...)
	if len(open) > 0 {
		return false, "not decided: " + strings.Join(shortened(open), "; ")
	}
	if done == "" && rep.Verdict == report.Inconclusive {
		return false, "not decided: " + rep.Reason
	}
	if done == "" {
		return false, "nothing that was measured decides a verdict; set a budget"
	}
	return true, done
}

// unchecked says why the A/A arm does not check the run yet.
func unchecked(rep *report.Report) string {
	if rep.AA == nil || rep.AA.Unchecked == "" {
		return "there are too few blocks to check the run by its A/A arm"
	}
	return rep.AA.Unchecked
}

// mostOpen is how many open questions a reason names; the report has all of them.
const mostOpen = 3

func shortened(open []string) []string {
	if len(open) <= mostOpen+1 {
		return open
	}
	return append(open[:mostOpen:mostOpen], fmt.Sprintf("and %d more", len(open)-mostOpen))
}

// openBudgets lists the budgets that more blocks may decide. done is empty if none could be measured.
func openBudgets(rep *report.Report) (done string, open []string) {
	decided := 0
	for i := range rep.Budgets {
		b := &rep.Budgets[i]
		switch b.Verdict {
		case report.Pass, report.Fail:
			decided++
		case report.NotMeasured:
		case report.Inconclusive, report.Invalid, report.None:
			open = append(open, b.Text+" for "+b.Treatment+because(b.Reason))
		}
	}
	if decided > 0 {
		done = fmt.Sprintf("%s decided", unit.Count(decided, "budget"))
	}
	return done, open
}

// openEffects lists the gating effects that are undecided.
func openEffects(rep *report.Report) (done string, open []string) {
	decided := 0
	for i := range rep.Effects {
		e := &rep.Effects[i]
		if !e.Gating {
			continue
		}
		switch e.Verdict {
		case report.Regressed, report.Improved, report.Equivalent:
			decided++
		case report.Slower, report.Faster, report.EffectInconclusive, report.NotJudged:
			open = append(open, fmt.Sprintf("%s under %s: %s so far, %s%s", nameOf(e), e.Treatment, e.Change(), soFar(e),
				toDecide(e)))
		}
	}
	if decided > 0 {
		done = fmt.Sprintf("%s decided", unit.Count(decided, "effect"))
	}
	return done, open
}

// soFar says what is known of an effect that is undecided.
func soFar(e *report.Effect) string {
	switch e.Verdict {
	case report.Slower, report.Faster:
		return e.Shown() + ", but perhaps by less than the margin"
	case report.NotJudged:
		return "too few blocks to judge"
	case report.EffectInconclusive, report.Regressed, report.Improved, report.Equivalent:
	}
	return "neither a change nor its absence is shown"
}

func toDecide(e *report.Effect) string {
	if e.BlocksToDecide == nil {
		return ""
	}
	return fmt.Sprintf(" (about %d blocks in all would decide)", *e.BlocksToDecide)
}
