package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tare/internal/report"
	"tare/internal/stat"
	"tare/rigs/servers"
)

// write prints the answers in Markdown, and how many are right.
func (s *survey) write(w io.Writer) error {
	var b bytes.Buffer
	p := func(format string, args ...any) { fmt.Fprintf(&b, format, args...) }
	p("| server | its limit | truth | answer | limit | fails as | besides | seconds | ≥ %g × | ≥ %g × |", below, above)
	p(" number | limit | failure | findings | budgets |\n")
	p("|---|---|--:|--:|---|---|---|--:|---|---|---|---|---|---|---|\n")
	var seconds []float64
	var judged []int // answers, by number of the task
	late := 0
	counts := map[string]map[mark]int{"number": {}, "limit": {}, "failure": {}, "findings": {}, "budgets": {}, "all": {}}
	for i, a := range s.answers {
		if a == nil {
			t := s.todo[i]
			p("| %s | %s | %s | no report | | | | | | | | | | | |\n", t.Name, t.Truth.Formula, number(t.Truth.Rate))
			continue
		}
		p("| %s | %s | %s | %s | %s | %s | %s | %.0f |", a.Server, a.Formula, number(a.Truth), a.said(), a.Limit, a.Class,
			a.besides(), a.Seconds)
		if a.Late > servers.MostLate {
			p(" not judged | | | | | | |\n")
			late++
			continue
		}
		p(" %s | %s | %s | %s | %s | %s | %s |\n", word(a.Below), word(a.Above), a.Number, a.Limited, a.Named, a.Beside,
			a.Budgets)
		judged = append(judged, i)
		seconds = append(seconds, a.Seconds)
		counts["number"][a.Number]++
		counts["limit"][a.Limited]++
		counts["failure"][a.Named]++
		counts["findings"][a.Beside]++
		counts["budgets"][a.Budgets]++
		counts["all"][worst(a.Number, a.Limited, a.Named, a.Beside, a.Budgets)]++
	}
	p("\n| of %d searches | right | unknown | wrong |\n|---|--:|--:|--:|\n", len(seconds))
	for _, what := range []string{"number", "limit", "failure", "findings", "budgets", "all"} {
		p("| %s | %d | %d | %d |\n", what, counts[what][right], counts[what][unknown], counts[what][wrong])
	}
	if len(seconds) > 0 {
		p("\nSeconds: median %.0f, 95 %% within %.0f.\n", stat.Quantile(seconds, .5), stat.Quantile(seconds, .95))
	}
	if len(judged) > 0 {
		s.confusion(p, "Limit", judged, func(i int) (truth, answer string, m mark) {
			return first(s.todo[i].Truth.Limits), string(s.answers[i].Limit), s.answers[i].Limited
		})
		s.confusion(p, "Failure", judged, func(i int) (truth, answer string, m mark) {
			return first(s.todo[i].Truth.Classes), string(s.answers[i].Class), s.answers[i].Named
		})
		s.effort(p, judged)
	}
	if late > 0 {
		p("\n%d searches cannot be judged: the host held up the server, in each of %d attempts.\n", late, s.retries+1)
	}
	if s.spoiled > 0 {
		p("\n%d further searches were repeated: the host held up the server, or tare itself.\n", s.spoiled)
	}
	for _, line := range s.skipped {
		p("\n%s\n", line)
	}
	_, err := w.Write(b.Bytes())
	return err
}

// first is the best of the right names; "nothing that has a name" if there is none.
func first[T ~string](names []T) string {
	if len(names) == 0 {
		return "nothing that has a name"
	}
	return string(names[0])
}

// confusion prints how often each truth got each answer, and how the answers were judged: several names can be right.
func (s *survey) confusion(p func(string, ...any), title string, judged []int,
	of func(int) (truth, answer string, m mark),
) {
	count, marks := map[string]map[string]int{}, map[string]map[mark]int{}
	answers := map[string]bool{}
	for _, i := range judged {
		truth, answer, m := of(i)
		answer = cmp.Or(answer, "no answer")
		if count[truth] == nil {
			count[truth], marks[truth] = map[string]int{}, map[mark]int{}
		}
		count[truth][answer]++
		marks[truth][m]++
		answers[answer] = true
	}
	columns := slices.Sorted(maps.Keys(answers))
	p("\n| %s: truth \\ answer | %s | right | unknown | wrong |\n|---%s|--:|--:|--:|\n", title,
		strings.Join(columns, " | "), strings.Repeat("|--:", len(columns)))
	for _, truth := range slices.Sorted(maps.Keys(count)) {
		p("| %s |", truth)
		for _, answer := range columns {
			p(" %d |", count[truth][answer])
		}
		p(" %d | %d | %d |\n", marks[truth][right], marks[truth][unknown], marks[truth][wrong])
	}
}

// effort prints how often a limit was named that can be, whether what follows from it is so, and what the experiments
// cost and decided.
func (s *survey) effort(p func(string, ...any), judged []int) {
	var seen, named, predictions, with, decided, experiments int
	var seconds float64
	var missed []string // predictions
	for _, i := range judged {
		a := s.answers[i]
		if s.todo[i].Truth.Seen {
			seen++
			if a.Limited == right {
				named++
			}
		}
		m := a.predicted(s.todo[i].Truth)
		if m != unknown {
			predictions++
		}
		if m == wrong {
			missed = append(missed, fmt.Sprintf("%s (%s to %s)", a.Server, number(a.Twice.Lo), number(a.Twice.Hi)))
		}
		if len(a.Tried) > 0 {
			with++
		}
		if a.decided() {
			decided++
		}
		for _, x := range a.Tried {
			experiments++
			seconds += x.Seconds
		}
	}
	p("\nOf %d limits that can be named, %d were.\n", seen, named)
	if predictions > 0 {
		p("\n%d times it was said what twice the limit gives. False is: %s.\n", predictions,
			cmp.Or(strings.Join(missed, ", "), "none"))
	}
	if experiments > 0 {
		p("\n%d searches made %d experiments, measured for %.1f s each in the mean; in %d of these searches an alternative "+
			"was excluded, or a limit named.\n", with, experiments, seconds/float64(experiments), decided)
	}
}

// said is the number with its interval and the burst, or the bounds.
func (a *answer) said() string {
	if a.Rate == nil {
		var bounds []string
		if a.AtLeast != nil {
			bounds = append(bounds, "≥ "+number(*a.AtLeast))
		}
		if a.AtMost != nil {
			bounds = append(bounds, "≤ "+number(*a.AtMost))
		}
		return cmp.Or(strings.Join(bounds, ", "), "–")
	}
	text := number(*a.Rate)
	if a.Lo != nil && a.Hi != nil {
		text += fmt.Sprintf(" [%s, %s]", number(*a.Lo), number(*a.Hi))
	}
	if a.Burst != nil {
		text += ", burst " + number(*a.Burst)
	}
	return text
}

// besides lists the findings, and whether the server was still down at the end.
func (a *answer) besides() string {
	var words []string
	for _, k := range a.Findings {
		words = append(words, string(k))
	}
	if a.Wedged {
		words = append(words, "wedged")
	}
	return strings.Join(words, ", ")
}

// word is a verdict, without the two that say nothing.
func word(v report.Verdict) string {
	if v == report.NotMeasured {
		return "–"
	}
	return string(v)
}

// worst is the least of some marks.
func worst(marks ...mark) mark {
	out := right
	for _, m := range marks {
		switch m {
		case wrong:
			return wrong
		case unknown:
			out = unknown
		case right:
		}
	}
	return out
}

// number prints a rate with four digits.
func number(x float64) string { return strconv.FormatFloat(rounded(x), 'f', -1, 64) }

func rounded(x float64) float64 {
	y, err := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 4, 64), 64)
	if err != nil {
		return x
	}
	return y
}
