package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
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
	p("| server | its limit | truth | answer | class | besides | seconds | ≥ %g × | ≥ %g × |", below, above)
	p(" number | class | findings | budgets |\n")
	p("|---|---|--:|--:|---|---|--:|---|---|---|---|---|---|\n")
	var seconds []float64
	late := 0
	counts := map[string]map[mark]int{"number": {}, "class": {}, "findings": {}, "budgets": {}, "all": {}}
	for i, a := range s.answers {
		if a == nil {
			t := s.todo[i]
			p("| %s | %s | %s | no report | | | | | | | | | |\n", t.Name, t.Truth.Formula, number(t.Truth.Rate))
			continue
		}
		p("| %s | %s | %s | %s | %s | %s | %.0f |", a.Server, a.Formula, number(a.Truth), a.said(), a.Class, a.besides(),
			a.Seconds)
		if a.Late > servers.MostLate {
			p(" not judged | | | | | |\n")
			late++
			continue
		}
		p(" %s | %s | %s | %s | %s | %s |\n", word(a.Below), word(a.Above), a.Number, a.Named, a.Beside, a.Budgets)
		seconds = append(seconds, a.Seconds)
		counts["number"][a.Number]++
		counts["class"][a.Named]++
		counts["findings"][a.Beside]++
		counts["budgets"][a.Budgets]++
		counts["all"][worst(a.Number, a.Named, a.Beside, a.Budgets)]++
	}
	p("\n| of %d searches | right | unknown | wrong |\n|---|--:|--:|--:|\n", len(seconds))
	for _, what := range []string{"number", "class", "findings", "budgets", "all"} {
		p("| %s | %d | %d | %d |\n", what, counts[what][right], counts[what][unknown], counts[what][wrong])
	}
	if len(seconds) > 0 {
		p("\nSeconds: median %.0f, 95 %% within %.0f.\n", stat.Quantile(seconds, .5), stat.Quantile(seconds, .95))
	}
	if late > 0 {
		p("\n%d searches cannot be judged: the host held up the server, three times in a row.\n", late)
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
