package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"tare/internal/design"
)

// A comparison is all effects on one quantity: those of treatments and, for effectGroup, those of the controls.
type effectGroup struct {
	operation, metric, quantile, kind string
	effects, controls                 []*Effect
}

// name describes the quantity.
func (c *effectGroup) name() string { return Measured(c.operation, c.metric, c.quantile) }

func (c *effectGroup) ratio() bool { return c.kind != "difference" }

func (c *effectGroup) same(e *Effect) bool {
	return c.operation == e.Operation && c.metric == e.Metric && c.quantile == e.Quantile &&
		(c.kind == "difference") == !isRatio(e)
}

// all returns the effects, then the controls.
func (c *effectGroup) all() []*Effect { return slices.Concat(c.effects, c.controls) }

// comparisons groups the deciding effects by quantity, with the treatments in the run's order.
func effectGroups(r *Report) []effectGroup {
	var all []effectGroup
	place := func(e *Effect) *effectGroup {
		i := slices.IndexFunc(all, func(c effectGroup) bool { return c.same(e) })
		if i < 0 {
			i = len(all)
			all = append(all, effectGroup{operation: e.Operation, metric: e.Metric, quantile: e.Quantile, kind: e.Kind})
		}
		return &all[i]
	}
	for i := range r.Effects {
		if e := &r.Effects[i]; e.Primary() {
			c := place(e)
			c.effects = append(c.effects, e)
		}
	}
	if a := r.AA; a != nil {
		for _, set := range [][]Effect{a.NegativeControls, a.Effects} {
			for i := range set {
				c := place(&set[i])
				c.controls = append(c.controls, &set[i])
			}
		}
	}
	order := ranks(r)
	for _, c := range all {
		slices.SortStableFunc(c.effects, func(a, b *Effect) int {
			return cmp.Compare(order(a.Treatment),
				order(b.Treatment))
		})
	}
	return slices.DeleteFunc(all, func(c effectGroup) bool { return len(c.effects) == 0 })
}

// ranks returns the position of each treatment in the run's list.
func ranks(r *Report) func(id string) int {
	place := map[string]int{}
	for i := range r.Treatments {
		place[r.Treatments[i].ID] = i
	}
	return func(id string) int {
		if i, ok := place[id]; ok {
			return i
		}
		return len(place)
	}
}

// effectSection shows what each control costs.
func effectSection(r *Report) section {
	var blocks []block
	invalid := r.Verdict == Invalid && r.Design != nil
	if invalid {
		const text = "not given: the run is invalid"
		blocks = append(blocks, block{In: inWords, Said: []remark{{Word: "effects", Text: text}}}, block{
			In: onPage, Notice: &remark{Text: "this run is invalid, so no effect is given: below is what was measured"},
		})
	}
	groups := effectGroups(r)
	if len(groups) > 0 {
		blocks = append(blocks, block{In: onPage, Text: howToRead(r)})
	}
	blocks = append(blocks, effectBlocks(r)...)
	all := sharedParts(r, groups)
	for i := range groups {
		c := &groups[i]
		if len(groups) > 1 {
			blocks = append(blocks, block{In: onPage, Heading: c.name()})
		}
		blocks = append(blocks, block{Figure: forest(r, c, all, "chart-1-"+strconv.Itoa(i+1))})
	}
	blocks = append(blocks, additionBlocks(r)...)
	blocks = append(blocks, exploratory(r)...)
	switch {
	case len(r.Effects)+len(r.Growth) > 0 || invalid:
		blocks = append(blocks, whenAsked("What was measured under each treatment: medians of the blocks",
			absolutes(r, measured))...)
	case r.Status == Complete && len(r.Capacity)+len(r.Guard) == 0 && !r.soaked(): // nothing is compared: it was imported
		alone := absolutes(r, measuredIn)
		alone.Caption = "Medians of the blocks, with their intervals of confidence"
		blocks = append(blocks, tabular(alone)...)
	}
	return section{Question: "What does each control cost?", Short: "Cost", Blocks: blocks}
}

// effectBlocks returns the table of costs, the legend of its marks, and the undecided effects.
func effectBlocks(r *Report) []block {
	t, long := r.effects()
	const title = "What each treatment costs"
	blocks := tabular(&grid{table: t, Title: title, Caption: "Change against the baseline", Marks: true, Panels: !long})
	if len(blocks) == 0 {
		return nil
	}
	open, remarks := r.undecidedTable()
	said := only(inWords, listOf(list{Items: remarks})...)
	if long { // its verdicts are spelled out, and it has all effects
		return append(blocks, said...)
	}
	blocks = append(blocks, block{Legend: r.legend()}, block{In: inWords, Said: r.tally()})
	blocks = append(blocks, only(inWords, tabular(&grid{table: open, Title: "Undecided", Marks: true})...)...)
	blocks = append(blocks, said...)
	for _, s := range nonEmpty(r.exploratory()) {
		blocks = append(blocks, block{In: inWords, Said: []remark{{Word: "also", Text: s}}})
	}
	return blocks
}

// additionBlocks returns the table of what each control of several adds in the presence of the others.
func additionBlocks(r *Report) []block {
	labels := r.labels()
	t := table{
		{head: "controls together", left: true},
		{head: "against", left: true},
		{head: "measured", left: true},
		{head: "change"},
		{head: "verdict", left: true, drop: 1},
	}
	for i := range r.Additions {
		x := &r.Additions[i]
		t.add(named(labels, x.Treatment), named(labels, x.Baseline), x.measured(), x.Change(), x.word())
	}
	return tabular(&grid{
		table: t, Title: "What each control adds to the others", Panels: true,
		Caption: "Change of controls together against all but one of them. Exploratory: it decides nothing",
	})
}

// howToRead explains the charts, and the verdicts that occur in them.
func howToRead(r *Report) string {
	against := "the baseline"
	if name := oneBaseline(r); name != "" {
		against = "the baseline, " + r.short(name)
	}
	parts := []string{"Each mark is the change against " + against + ", each bar the interval that the verdict used"}
	if l := levelsOf(r.primary()); l != "" {
		parts[0] += " (" + l + " %)"
	}
	parts[0] += "."
	if d := r.Design; d != nil && d.Margin > 0 {
		parts = append(parts, "The shaded band is the margin of ±"+axisShare(d.Margin)+".")
	}
	parts = append(parts, "A verdict holds for the whole bar: beyond the margin, or within it, which is equivalent.")
	for _, x := range []struct {
		of      func(*Effect) bool
		meaning string
	}{
		{func(e *Effect) bool { return e.Verdict == Equivalent && e.Measurable }, "Measurable: it also excludes zero."},
		{
			func(e *Effect) bool { return e.Verdict == Slower || e.Verdict == Faster },
			"Higher or lower: it excludes zero and reaches into the margin.",
		},
		{
			func(e *Effect) bool { return e.shown() == EffectInconclusive },
			"Inconclusive: it includes zero and reaches beyond the margin; the numbers say how many blocks would decide.",
		},
		{func(e *Effect) bool { return e.Verdict == NotJudged }, "Not judged: too few blocks."},
		{(*Effect).leftOpen, "Not judged though it excludes zero: the reason stands with the numbers."},
	} {
		if slices.ContainsFunc(r.primary(), x.of) {
			parts = append(parts, x.meaning)
		}
	}
	if r.AA != nil {
		parts = append(parts, "Grey, below the line: controls, where any effect is an artefact.")
	}
	return strings.Join(parts, " ")
}

// oneBaseline returns the baseline of all effects, if they have the same one.
func oneBaseline(r *Report) string {
	name := ""
	for i := range r.Effects {
		b := r.Effects[i].Baseline
		if name != "" && b != name {
			return ""
		}
		name = b
	}
	return name
}

// level prints a confidence level.
func level(v float64) string {
	s := strconv.FormatFloat(v*100, 'f', 2, 64)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".") + space + "%"
}

// controlled reports whether an effect belongs to a control.
func controlled(c *effectGroup, e *Effect) bool { return slices.Contains(c.controls, e) }

// effectTable returns all that is known of some effects.
func effectTable(r *Report, caption string, effects []*Effect) *grid {
	t := &grid{Caption: caption, table: append(append(wordHeads("treatment", "against", "of"),
		numberHeads("estimate", "interval", "level")...),
		append(append(wordHeads("verdict"), numberHeads("margin", "smallest effect it could see", "blocks",
			"blocks to decide", "adjusted p")...), wordHeads("note")...)...)}
	one := oneBaseline(r)
	for _, e := range effects {
		v := [...]string{
			e.Treatment, "", e.measured(), "", "", "", e.word(),
			e.extent(e.Margin), e.extent(e.MDE), "", "", opt(e.Adjusted, pValue), e.Reason,
		}
		if e.Baseline != one {
			v[1] = e.Baseline
		}
		y, ok := e.inUnits()
		if e.estimated() {
			v[3] = e.Brief()
			if ok {
				v[3] += inBrackets(multiple(1 + e.Estimate))
			}
		}
		if hasInterval(e) {
			v[4] = y.interval()
		}
		if e.Level > 0 {
			v[5] = level(e.Level)
		}
		if e.Blocks > 0 {
			v[9] = strconv.Itoa(e.Blocks)
		}
		switch n := e.BlocksToDecide; {
		case n == nil:
		case *n > design.MaxBlocks:
			v[10] = "more than " + strconv.Itoa(design.MaxBlocks)
		default:
			v[10] = "about " + strconv.Itoa(*n)
		}
		t.add(v[:]...)
	}
	return t
}

// pValue prints a p-value.
func pValue(p float64) string {
	switch {
	case p < 0.0001:
		return "< 0.0001"
	case p < 0.01:
		return strconv.FormatFloat(p, 'f', 4, 64)
	}
	return strconv.FormatFloat(p, 'f', 2, 64)
}

// exploratory returns the table of effects that decide nothing, folded.
func exploratory(r *Report) []block {
	var rest []*Effect
	for i := range r.Effects {
		if e := &r.Effects[i]; !e.Primary() && e.Control == design.None {
			rest = append(rest, e)
		}
	}
	if len(rest) == 0 {
		return nil
	}
	key := func(e *Effect) string {
		return strings.Join([]string{e.Operation, e.Metric, e.Quantile}, "\x00")
	}
	slices.SortStableFunc(rest, func(a, b *Effect) int { return cmp.Compare(key(a), key(b)) })
	const caption = "Exploratory effects: they decide nothing. Student's test, p adjusted by Benjamini and Hochberg, " +
		"intervals at the level at which that procedure ends"
	summary := "Exploratory effects (" + strconv.Itoa(len(rest)) +
		"): wall time, tails and other metrics on which no verdict depends"
	return whenAsked(summary, effectTable(r, caption, rest))
}

// absolutes returns the table of measured values as shown prints them, a row for each treatment and operation.
func absolutes(r *Report, shown func(*Metric) string) *grid {
	t := &grid{
		Caption: "Medians of the blocks; tails are quantiles of all blocks together. Effects are estimates of " +
			"their own: they need not be quotients of these",
		table: wordHeads("treatment", "operation"),
	}
	columns := map[string]int{}
	rows := map[string]int{}
	for i := range r.Treatments {
		for k := range r.Treatments[i].Metrics {
			m := &r.Treatments[i].Metrics[k]
			name := measure(m.Name, m.Quantile)
			if _, ok := columns[name]; !ok {
				columns[name] = len(t.table)
				t.table = append(t.table, numberHeads(name)...)
			}
		}
	}
	for i := range r.Treatments {
		x := &r.Treatments[i]
		for k := range x.Metrics {
			m := &x.Metrics[k]
			key := x.ID + "\x00" + m.Operation
			if _, ok := rows[key]; !ok {
				rows[key] = t.rows()
				values := make([]string, len(t.table))
				values[0], values[1] = x.ID, m.Operation
				t.add(values...)
			}
			t.table[columns[measure(m.Name, m.Quantile)]].cells[rows[key]] = shown(m)
		}
	}
	return t
}
