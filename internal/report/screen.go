package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/internal/question"
	"tare/internal/unit"
)

// The first screen of the text format: the answer in words, one table, what makes the numbers doubtful, and where the
// rest is.

const (
	screenLines = 25 // of the whole
	fewestRows  = 6  // of its table, with the lines around them
	remarkLines = 3  // of one sentence
	errorLines  = 8  // of the verdict where something went wrong
	// remarkLength is how many characters one that stands for several keeps.
	remarkLength = 220
)

// screen returns the first screen of a report.
func (s Style) screen(r *Report) printer {
	p, end := printer{Style: s}, printer{Style: s}
	p.say(sanitize(strings.Join(r.title(), " · ")))
	g, isBudgets := r.mainTable(s.Width)
	if t := r.budgets(); !isBudgets {
		end.brief(r.openBudgets(Fail, Inconclusive, NotMeasured))
	} else if t.width() > s.Width { // without the column of reasons
		end.brief(r.openBudgets(r.unexplained()...))
	}
	end.brief(r.doubts())
	for _, next := range r.next()[:min(1, len(r.next()))] {
		end.brief([]remark{{Word: "next", Text: next}})
	}
	end.within(r.verdictLines(), []remark{verdict(r)})
	end.rest(r.leftOut(), s.Rest)
	room := screenLines - 1 - lineCount(&end.buf)
	for _, x := range r.answer() {
		if lineCount(&p.buf) < room-fewestRows {
			p.brief([]remark{x})
		}
	}
	legend := printer{Style: s}
	if _, long := r.effects(); g != nil && g.Marks && !long && len(r.Effects) > 0 {
		legend.legend(r.legend())
	}
	p.firstRows(g, room-lineCount(&p.buf)-lineCount(&legend.buf))
	p.buf.Write(legend.buf.Bytes())
	p.say("")
	p.buf.Write(end.buf.Bytes())
	return p
}

// rest says what the screen leaves out, and which command shows it, on a line of its own that is never cut.
func (p *printer) rest(left, command string) {
	width := max(20, p.Width-labelWidth)
	lines := wrap(left+command, width)
	if len(lines) > 1 && left != "" {
		lines = append(wrap(left, width), command)
	} else if len(lines) > 1 {
		lines = []string{command}
	}
	p.hang(p.label("rest", ""), lines)
}

// firstRows writes a table of at most so many lines.
func (p *printer) firstRows(g *grid, room int) {
	if g == nil {
		return
	}
	room -= 2 + len(g.notes()) // an empty line and the head
	t, rest := g.first(max(1, room))
	if rest > 0 {
		t, rest = g.first(max(1, room-1))
	}
	p.table(&grid{table: t, Marks: g.Marks})
	if rest > 0 {
		p.lines("and " + unit.Count(rest, "more row"))
	}
}

// verdictLines is how many lines the verdict may have: the end of an error says why.
func (r *Report) verdictLines() int {
	if r.Verdict == Invalid || r.Verdict == NotMeasured {
		return errorLines
	}
	return remarkLines
}

// brief writes sentences of at most a few lines each.
func (p *printer) brief(all []remark) { p.within(remarkLines, all) }

// within writes sentences of at most so many lines each.
func (p *printer) within(most int, all []remark) {
	for _, x := range all {
		lines := wrap(sanitize(x.Text), max(20, p.Width-labelWidth))
		if len(lines) > most {
			lines = lines[:most]
			lines[most-1] += " …"
		}
		p.hang(p.label(x.Word, x.Class), lines)
	}
}

// answer returns what was found, in words.
func (r *Report) answer() []remark {
	var out []remark
	if text := r.Status.unfinished(); text != "" {
		out = append(out, remark{"status", text, unsure})
	}
	out = append(out, r.rulingRemarks()...)
	out = append(out, r.diffRemarks()...)
	for _, s := range r.soakedWholes() {
		out = append(out, remark{"soak", r.judgedSoak(s), r.Verdict.class()})
	}
	for i := range r.Guard {
		out = append(out, r.guardRemarks(&r.Guard[i])...)
	}
	if len(r.Capacity) == 1 {
		c := &r.Capacity[0]
		class := ""
		if !c.Valid {
			class = bad
		}
		out = append(out, remark{"capacity", strings.Join(nonEmpty(r.headline(c), c.verified()), " · "), class})
		if text := c.withinObjective(); text != "" {
			out = append(out, remark{"objective", text, ""})
		}
		for _, x := range slices.Concat(c.answers(), c.afterwards()) {
			if x.Word != "" {
				out = append(out, x)
			}
		}
	}
	laws := r.growth()
	if question.Of(r.Question).Answer.GrowthFirst && len(laws) > 0 {
		return append(out, someRemarks("growth", "", laws, maxNamed)...)
	}
	if len(r.Capacity) > 1 {
		out = append(out, remark{Word: "answer", Text: findings(r)})
	}
	return append(out, someRemarks("answer", "", nonEmpty(conclusion(r)), 1)...)
}

// mainTable returns the one table of the first screen, no wider than it can be made, and whether it is that of budgets.
func (r *Report) mainTable(width int) (g *grid, isBudgets bool) {
	budgets := &grid{table: r.budgets()}
	all := []*grid{{table: r.effectsWithin(width), Marks: true}}
	if r.Diff != nil && len(r.Diff.Changes) > 0 {
		all = append(all, &grid{table: r.diffTable(), Marks: true})
	}
	if sizes := r.sizes(); question.Of(r.Question).Answer.GrowthFirst && len(sizes) > 0 {
		all = slices.Insert(all, 0, &grid{table: sizes[0].panels(width)[0]})
	}
	if len(r.Capacity) > 1 && len(r.Guard) == 0 {
		all = append(all, capacities(r))
	}
	if question.Of(r.Question).Answer.BreachesFirst {
		all = append(all, &grid{table: r.guardRates(pointers(r.Guard)...)})
	}
	for i := range r.Capacity {
		all = append(all, &grid{table: ladder(r.Capacity[i].Points)})
	}
	all = append(all, budgets, &grid{table: r.quantiles()}, &grid{table: r.operations()}, &grid{table: r.targets()})
	i := slices.IndexFunc(all, func(g *grid) bool { return len(tabular(g)) > 0 })
	if i >= 0 {
		return all[i], all[i] == budgets
	}
	for _, b := range inOrder(compose(r, nil)) {
		if b.in(inText) && b.Table != nil {
			return &grid{table: b.Table.panels(width)[0], Marks: b.Table.Marks}, false
		}
	}
	return nil, false
}

// inOrder returns the blocks of all sections.
func inOrder(d document) []block {
	var out []block
	for _, s := range d {
		out = append(out, s.Blocks...)
	}
	return out
}

// effectsWithin returns the table of what each treatment costs. If there is no room for all columns, it has those with
// the largest effects; only if there is room for none, it leaves out the intervals.
func (r *Report) effectsWithin(width int) table {
	t, long := r.effects()
	if long || t.width() <= width {
		return t // a long one has columns to leave out
	}
	var first table
	for _, form := range []func(*Effect) string{(*Effect).ranged, (*Effect).size} {
		t = r.matrix(largestFirst(r.primary()), form)
		first = t.panels(width)[0]
		if slices.ContainsFunc(first, func(c *column) bool { return !c.left }) {
			break // there is room for one at least
		}
	}
	if n := len(t) - len(first); n > 0 {
		first[0] = first[0].with(first[0].cells)
		first[0].note = "and " + unit.Count(n, "more column")
	}
	return first
}

// largestFirst orders effects by what was measured: most effects beyond the margin first, then the largest effect.
func largestFirst(effects []*Effect) []*Effect {
	beyond, largest := map[string]int{}, map[string]float64{}
	for _, x := range effects {
		what := x.measured()
		if x.Verdict == Regressed || x.Verdict == Improved {
			beyond[what]++
		}
		if isRatio(x) {
			largest[what] = max(largest[what], math.Abs(x.Estimate))
		}
	}
	out := slices.Clone(effects)
	slices.SortStableFunc(out, func(a, b *Effect) int {
		x, y := a.measured(), b.measured()
		return cmp.Or(cmp.Compare(beyond[y], beyond[x]), cmp.Compare(largest[y], largest[x]))
	})
	return out
}

// unexplained are the verdicts of budgets whose reasons are told below a table that has no room for them: nothing else
// says why one was not measured, nor why one of a guard or a soak is undecided.
func (r *Report) unexplained() []Verdict {
	if len(r.Guard) > 0 || r.soaked() {
		return []Verdict{Inconclusive, NotMeasured}
	}
	return []Verdict{NotMeasured}
}

// openBudgets returns the budgets with some verdicts, each with its treatments.
func (r *Report) openBudgets(verdicts ...Verdict) []remark {
	var out []remark
	labels := r.labels()
	for _, v := range verdicts {
		open := slices.DeleteFunc(pointers(r.Budgets), func(b *Budget) bool { return b.Verdict != v })
		var parts []string
		for _, text := range distinct(open, func(b *Budget) string { return b.Text }) {
			of := slices.DeleteFunc(slices.Clone(open), func(b *Budget) bool { return b.Text != text })
			who := distinct(of, func(b *Budget) string {
				return strings.TrimSpace(strings.TrimSuffix(named(labels, b.Treatment), baselineNote) + " " + b.measured())
			})
			part := text + ": " + strings.Join(who, ", ")
			if len(of) == 1 && v != Fail && of[0].Reason != "" {
				part += ": " + of[0].Reason
			}
			parts = append(parts, part)
		}
		if len(parts) > 0 {
			word := map[Verdict]string{Fail: "broken", Inconclusive: "undecided", NotMeasured: "unmeasured"}[v]
			out = append(out, remark{word, strings.Join(parts, "; "), v.class()})
		}
	}
	return out
}

// doubts returns what makes the numbers doubtful: each kind once, with a count of the others of its kind.
func (r *Report) doubts() []remark {
	var out []remark
	for _, b := range alarms(r) {
		out = append(out, *b.Notice)
	}
	out = firstOf(out)
	switch g := r.Generator; {
	case g == nil:
	case g.RuledOut():
		out = append(out, remark{Word: "checked", Text: "the generator was not the limit"})
	default:
		out = append(out, someRemarks("generator", unsure, nonEmpty(r.generatorLine()), 1)...)
	}
	switch text, reliable := r.trust(); {
	case text == "":
	case !reliable:
		out = append(out, remark{"A/A", text, bad})
	default:
		text, _, _ = strings.Cut(text, "; "+controlsQuiet)
		out = append(out, remark{Word: "A/A", Text: text})
	}
	out = append(out, someRemarks("unblocked", unsure, nonEmpty(r.unblocked()), 1)...)
	out = append(out, someRemarks("undecidable", unsure, r.undecidable(), 1)...)
	return append(out, someRemarks("warning", unsure, r.Warnings, 1)...)
}

// firstOf keeps the first remark of each word, with the number of the others.
func firstOf(all []remark) []remark {
	var out []remark
	for _, word := range distinct(pointers(all), func(x *remark) string { return x.Word }) {
		of := slices.DeleteFunc(slices.Clone(all), func(x remark) bool { return x.Word != word })
		out = append(out, someRemarks(word, of[0].Class, each(of, func(x remark) string { return x.Text }), 1)...)
	}
	return out
}

// someRemarks returns the first texts as remarks; the last one says how many more there are.
func someRemarks(word, class string, texts []string, most int) []remark {
	var out []remark
	for _, text := range texts[:min(most, len(texts))] {
		out = append(out, remark{word, text, class})
	}
	if n := len(texts) - most; n > 0 {
		last := &out[len(out)-1]
		last.Text = shortened(last.Text, remarkLength) + " (and " + strconv.Itoa(n) + " more)"
	}
	return out
}

// shortened cuts a text behind a word.
func shortened(s string, length int) string {
	if r := []rune(s); len(r) > length {
		s = string(r[:length])
		s = s[:max(1, strings.LastIndexByte(s, ' '))] + " …"
	}
	return s
}

// leftOut counts what the first screen leaves out: "7 more tables, 6 notes: ".
func (r *Report) leftOut() string {
	tables := -1
	for _, b := range inOrder(compose(r, nil)) {
		if b.in(inText) && b.Table != nil {
			tables++
		}
	}
	var parts []string
	for _, x := range []struct {
		n    int
		what string
	}{{tables, "more table"}, {len(r.Notes), "note"}, {len(r.Warnings) - 1, "more warning"}} {
		if x.n > 0 {
			parts = append(parts, unit.Count(x.n, x.what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, ", ") + ": "
}
