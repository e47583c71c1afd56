package analyze

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"tare/internal/load"
	"tare/internal/probe"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/unit"
)

// answerOf is what an expected answer to an operation says; "" where good and bad are all that is told apart.
func answerOf(t *record.Trial, operation int) string {
	words := t.TrialBegin.Answers
	if operation < 0 || operation >= len(words) {
		return ""
	}
	return words[operation]
}

// causeAnswerOf is what an answer that was not expected says, by its cause; "" where there was none.
func causeAnswerOf(t *record.Trial, operation int, c load.Cause) string {
	words := t.CauseAnswers
	if operation < 0 || operation >= len(words) || c < load.OwnCauses || int(c-load.OwnCauses) >= len(words[operation]) {
		return ""
	}
	return words[operation][c-load.OwnCauses]
}

// A ledger adds up the counts of both sides, over the trials of one treatment.
type ledger struct {
	treatment  string
	client     map[string]uint64
	target     map[string]float64
	unanswered uint64
	anew       bool // the target was started anew in between
}

// answerChecks holds the targets' own counts of answers against those of their callers.
func (a *analysis) answerChecks() {
	var all []*ledger
	for _, t := range a.trials() {
		for i := range t.Answers {
			x := &t.Answers[i]
			if x.Error != "" {
				a.warn(t.Treatment, "the target's own counts of its answers could not be read: %s", x.Error)
				continue
			}
			k := slices.IndexFunc(all, func(l *ledger) bool { return l.treatment == t.Treatment })
			if k < 0 {
				k = len(all)
				all = append(all, &ledger{treatment: t.Treatment, client: map[string]uint64{}, target: map[string]float64{}})
			}
			all[k].add(x, a.replacedDuring(t))
		}
	}
	for _, l := range all {
		a.checkAnswers(l)
	}
}

// replacedDuring reports whether some part of the target was replaced during a trial.
func (a *analysis) replacedDuring(t *record.Trial) bool {
	if s := a.soaked[t.Treatment]; s != nil && s.trial == t {
		return slices.ContainsFunc(s.used, func(u usage) bool { return u.restarted })
	}
	before := reading(t, record.Before, 0)
	for _, x := range reading(t, record.After, 0) {
		if was, ok := find(before, subjectProbed{x.Subject, probed{x.Metric, x.Part}}); ok &&
			x.Metric == probe.Started.Name && was != x.Value {
			return true
		}
	}
	return false
}

// add adds the counts of one trial. Answers of which the target keeps no count are not its to confirm.
func (l *ledger) add(x *record.Answers, replaced bool) {
	l.unanswered += x.Unanswered
	l.anew = l.anew || replaced
	for word, after := range x.After {
		before := x.Before[word]
		if after < before {
			l.anew = true
		}
		l.target[word] += after - before
		l.client[word] += x.Seen[word]
	}
}

// permitted is the answer that lets a request through.
const permitted = "permit"

// checkAnswers judges one treatment's ledger, by word in alphabetical order. The run is invalid where a target counted
// fewer answers of a kind than its callers got, or more that were no permits than they got: it says one thing and
// decides another. More permits are others' requests, since every answer of ours has then been counted as what it was.
func (a *analysis) checkAnswers(l *ledger) {
	var denied []string
	for _, word := range slices.Sorted(maps.Keys(l.target)) {
		c := report.AnswerCheck{
			Treatment: l.treatment, Answer: word, Client: l.client[word], Target: l.target[word], Unanswered: l.unanswered,
		}
		if c.Client == 0 && c.Target == 0 {
			continue
		}
		off := c.Target - float64(c.Client)
		c.Agrees = abs(off) <= float64(l.unanswered)
		switch {
		case l.anew:
			c.Agrees = false
			c.Reason = "the target was started anew in between and counts from 0: the two cannot be compared"
		case !c.Agrees:
			a.noteCountMismatch(l.treatment, abs(off))
			a.warn(
				l.treatment, "the target counted %.0f answers %q, and its callers got %d%s: %s", c.Target, word, c.Client,
				unansweredToo(l.unanswered), whyOff(off),
			)
			if off < 0 || word != permitted {
				denied = append(denied, fmt.Sprintf("%.0f %q for %d", c.Target, word, c.Client))
			}
		}
		a.rep.Answers = append(a.rep.Answers, c)
	}
	if len(denied) > 0 {
		a.flaws.invalid = append(a.flaws.invalid, fmt.Sprintf(
			"%sthe target's own counts contradict its answers (it counted %s that its callers got): its answers were not its "+
				"decisions throughout. Where others ask it too, measure it alone", of(l.treatment), strings.Join(denied, ", "),
		))
	}
	if l.anew {
		a.warn(
			l.treatment, "the target was started anew: its own counts of answers cannot be compared with those of its callers",
		)
	}
}

// noteCountMismatch notes in a treatment's soak that both sides' counts of an answer differ by so many.
func (a *analysis) noteCountMismatch(treatment string, off float64) {
	for i := range a.rep.Soak {
		if s := &a.rep.Soak[i]; s.Treatment == treatment && s.Operation == "" {
			s.Disputed = max(s.Disputed, off)
		}
	}
	if s := a.soaked[treatment]; s != nil {
		s.disputed = max(s.disputed, off)
	}
}

func unansweredToo(n uint64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf(" (and %s got none)", unit.Count(int(n), "call"))
}

func whyOff(off float64) string {
	if off > 0 {
		return "it answers others too, or says one thing and counts another"
	}
	return "something in between answers for it, or it says one thing and counts another"
}

// wrongAnswers says loudly when well-formed answers were not the expected ones: the rest of the numbers is then about
// another decision.
func (a *analysis) wrongAnswers() {
	for i := range a.rep.Operations {
		op := &a.rep.Operations[i]
		if op.Outcomes.Wrong == 0 || !a.expectsAnswers(op.Treatment) {
			continue
		}
		var why []string
		for _, c := range op.Causes {
			if c.Outcome == load.Wrong.String() {
				why = append(why, fmt.Sprintf("%s (%d)", c.Cause, c.Calls))
			}
		}
		a.warn(
			op.Treatment, "%s: %d of %d answers were wrong, well-formed and not the expected ones: %s", op.Operation,
			op.Outcomes.Wrong, op.Outcomes.Ended(), strings.Join(why, ", "),
		)
	}
}

// expectsAnswers reports whether the operations of a treatment say which answers they expect.
func (a *analysis) expectsAnswers(treatment string) bool {
	return slices.ContainsFunc(a.rec.Trials, func(t *record.Trial) bool {
		return t.Treatment == treatment && slices.ContainsFunc(t.TrialBegin.Answers, func(w string) bool { return w != "" })
	})
}
