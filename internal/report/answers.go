package report

import (
	"maps"
	"slices"
	"strconv"

	"tare/internal/unit"
)

// What the answers said, and the counts of both sides: sentences and tables.

// maxAlarms limits how many alarms of a kind are printed; the tables have all.
const maxAlarms = 6

// someOf returns the first lines, and the number of lines left out.
func someOf(lines []string) []string {
	if len(lines) <= maxAlarms {
		return lines
	}
	return append(slices.Clip(lines[:maxAlarms-1]), "and "+strconv.Itoa(len(lines)-maxAlarms+1)+" more: see the tables")
}

// An alarm is a sentence about the answers of a treatment: to an operation, or of a kind.
type alarm struct{ treatment, what, text string }

func texts(alarms []alarm) []string {
	var out []string
	for _, x := range alarms {
		out = append(out, x.text)
	}
	return out
}

// mismatches reports, for each operation, how many answers were not the expected ones. It is an alarm: a wrong decision
// outweighs any speed.
func (r *Report) mismatches() []string { return texts(r.wrongAnswers()) }

func (r *Report) wrongAnswers() []alarm {
	var out []alarm
	for i := range r.Operations {
		o := &r.Operations[i]
		if o.Outcomes.Wrong == 0 || len(o.Answers) == 0 && !r.soaked() {
			continue
		}
		out = append(out, alarm{o.Treatment, o.Operation, r.subject(o.Treatment, o.Operation) + ": " +
			strconv.FormatUint(o.Outcomes.Wrong, 10) + " of " + counted(o.Outcomes.Ended(), "answer") +
			" were not what was expected"})
	}
	return out
}

// disagreements describes the answers that the target counted differently from its callers. It omits answers that
// cannot be compared.
func (r *Report) disagreements() []string { return texts(r.countDifferences()) }

func (r *Report) countDifferences() []alarm {
	var out []alarm
	for i := range r.Answers {
		c := &r.Answers[i]
		if c.Agrees || c.Reason != "" {
			continue
		}
		out = append(out, alarm{c.Treatment, c.Answer, r.subject(c.Treatment, c.Answer) + ": the target counted " +
			exact(c.Target) + ", its callers " + strconv.FormatUint(c.Client, 10) + " (" +
			signed(c.Target-float64(c.Client), exact) + c.unanswered() + ")"})
	}
	return out
}

func (c *AnswerCheck) unanswered() string {
	if c.Unanswered == 0 {
		return ""
	}
	return ", with " + counted(c.Unanswered, "call") + " unanswered"
}

// verdict says whether both sides counted the same.
func (c *AnswerCheck) verdict() string {
	switch {
	case c.Reason != "":
		return "– not comparable"
	case c.Agrees:
		return "✓ agrees"
	}
	return "✗ DISAGREES"
}

// exact prints a count with all its digits.
func exact(v float64) string { return strconv.FormatFloat(v, 'f', -1, 64) }

// checksNote describes what both sides' counts include.
const checksNote = "both sides count the whole load, including the warm-up; the target may or may not have counted " +
	"a call that got no answer"

// decisions returns the table of what the answers said, by operation, and how many were not the expected ones.
func (r *Report) decisions() table {
	words := r.answerWords()
	t := table{
		{head: "operation", left: true},
		{head: "answers"},
		{head: "mismatches", alarming: true},
		{head: "as expected", drop: 1},
	}
	for _, w := range words {
		t = append(t, &column{head: w})
	}
	if len(words) == 0 {
		return t.used()
	}
	for _, row := range r.tallies() {
		cells := []string{row.name(r), whole(row.all), whole(row.wrong), whole(row.good)}
		for _, w := range words {
			cells = append(cells, orElse(count(row.answers[w]), "0"))
		}
		t.add(cells...)
	}
	return t.used()
}

// A tallied is the answers to one operation, or to all of a treatment.
type tallied struct {
	treatment, operation string
	answers              map[string]uint64
	all, good, wrong     uint64
	joined               int // treatments, if there are several in one
}

func (a *tallied) take(b tallied) {
	for w, n := range b.answers {
		a.answers[w] += n
	}
	a.all, a.good, a.wrong = a.all+b.all, a.good+b.good, a.wrong+b.wrong
}

func (a *tallied) count(o *Operation) {
	for w, n := range o.Answers {
		a.answers[w] += n
		a.all += n
	}
	a.good += o.Outcomes.Good()
	a.wrong += o.Outcomes.Wrong
}

// maxTallies limits the rows of answers of a comparison; beyond it, treatments whose answers were all as expected share
// a row.
const maxTallies = 12

// tallies returns the operations whose answers were counted: of a soak with the sum of each treatment below them; of
// many treatments, only those with mismatches separately.
func (r *Report) tallies() []tallied {
	var each []tallied
	for i := range r.Operations {
		if o := &r.Operations[i]; len(o.Answers) > 0 {
			a := tallied{treatment: o.Treatment, operation: o.Operation, answers: map[string]uint64{}}
			a.count(o)
			each = append(each, a)
		}
	}
	switch {
	case r.soaked():
		return withTotals(each)
	case len(each) > maxTallies:
		return mergeExpected(each)
	}
	return each
}

// withTotals adds a total below each treatment that has several operations.
func withTotals(each []tallied) []tallied {
	var out []tallied
	for from := 0; from < len(each); {
		to := from
		sum := tallied{treatment: each[from].treatment, operation: total, answers: map[string]uint64{}}
		for ; to < len(each) && each[to].treatment == sum.treatment; to++ {
			sum.take(each[to])
		}
		out = append(out, each[from:to]...)
		if to-from > 1 {
			out = append(out, sum)
		}
		from = to
	}
	return out
}

// mergeExpected joins the treatments in which all answers to an operation were as expected.
func mergeExpected(each []tallied) []tallied {
	var out []tallied
	at := map[string]int{}
	for _, a := range each {
		if a.wrong > 0 {
			out = append(out, a)
			continue
		}
		i, ok := at[a.operation]
		if !ok {
			i = len(out)
			at[a.operation] = i
			out = append(out, tallied{operation: a.operation, answers: map[string]uint64{}})
		}
		out[i].take(a)
		out[i].joined++
	}
	return out
}

// name returns the row's name in a table.
func (a *tallied) name(r *Report) string {
	if a.joined > 0 {
		return unit.Count(a.joined, "treatment") + ": " + a.operation
	}
	return r.subject(a.treatment, a.operation)
}

// answerWords returns all answers that occurred, the usual ones first.
func (r *Report) answerWords() []string {
	set := map[string]bool{}
	for i := range r.Operations {
		for w := range r.Operations[i].Answers {
			set[w] = true
		}
	}
	var out []string
	for _, w := range []string{"permit", "deny", "not-applicable", "indeterminate", "error"} {
		if set[w] {
			out = append(out, w)
			delete(set, w)
		}
	}
	return append(out, slices.Sorted(maps.Keys(set))...)
}

// checks returns a table of the target's counts beside its callers'. With onlyBad it omits those that agree.
func (r *Report) checks(onlyBad bool) table {
	t := table{
		{head: "answer", left: true},
		{head: "callers"},
		{head: "target"},
		{head: "difference"},
		{head: "unanswered", drop: 2},
		{head: "both counts", left: true, note: checksNote},
		{head: "why", left: true, drop: 1},
	}
	for i := range r.Answers {
		c := &r.Answers[i]
		if onlyBad && c.Agrees {
			continue
		}
		t.add(r.subject(c.Treatment, c.Answer), whole(c.Client), c.counted(), difference(c), count(c.Unanswered), c.verdict(),
			c.Reason)
	}
	return t.used()
}

// counted returns the target's count, or nothing if it is below 0 because the target was restarted in between.
func (c *AnswerCheck) counted() string {
	if c.Target < 0 {
		return ""
	}
	return exact(c.Target)
}

// difference returns how many more answers the target counted than its callers.
func difference(c *AnswerCheck) string {
	if c.Target < 0 {
		return ""
	}
	if d := c.Target - float64(c.Client); d != 0 {
		return signed(d, exact)
	}
	return "0"
}
