package report

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"tare/internal/design"
	"tare/internal/unit"
)

// A comparison is all effects on one quantity: the treatments' and, for effectGroup, those of the controls.
type effectGroup struct {
	operation, metric, quantile, kind string
	effects, controls                 []*Effect
}

// name is the quantity in words.
func (c *effectGroup) name() string { return quantity(c.metric, c.quantile, c.operation) }

func (c *effectGroup) ratio() bool { return c.kind != "difference" }

func (c *effectGroup) same(e *Effect) bool {
	return c.operation == e.Operation && c.metric == e.Metric && c.quantile == e.Quantile && (c.kind == "difference") == !isRatio(e)
}

// all are the effects, then the controls.
func (c *effectGroup) all() []*Effect { return slices.Concat(c.effects, c.controls) }

// comparisons groups the effects that decide; in each the treatments are in the run's order.
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
		slices.SortStableFunc(c.effects, func(a, b *Effect) int { return cmp.Compare(order(a.Treatment), order(b.Treatment)) })
	}
	return slices.DeleteFunc(all, func(c effectGroup) bool { return len(c.effects) == 0 })
}

// ranks gives each treatment its place in the run's list.
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
	s := section{Number: 1, Question: "What does each control cost?", Short: "Cost"}
	groups := effectGroups(r)
	if len(groups) > 0 {
		if r.Verdict == Invalid {
			s.Blocks = append(s.Blocks, block{Notice: "This run is invalid. What follows is what was measured, and no verdict follows from it."})
		}
		s.Blocks = append(s.Blocks, block{Text: reading(r)})
	}
	if len(groups) > 1 {
		s.Blocks = append(s.Blocks, block{Text: "At a glance: ✗ regressed, ✓ improved or equivalent, ? undecided; in brackets the controls."})
		s.Blocks = append(s.Blocks, tabular(glance(r, groups))...)
	}
	all := shared(r, groups)
	for i := range groups {
		c := &groups[i]
		if len(groups) > 1 {
			s.Blocks = append(s.Blocks, block{Heading: upper(c.name())})
		}
		s.Blocks = append(s.Blocks, block{Figure: forest(r, c, all, "chart-1-"+strconv.Itoa(i+1))})
	}
	s.Blocks = append(s.Blocks, exploratory(r)...)
	if t := absolutes(r).used(); t != nil && len(r.Effects)+len(r.Growth) > 0 {
		s.Blocks = append(s.Blocks, block{Figure: &figure{Summary: "What was measured under each treatment: medians of the blocks", Table: t}})
	}
	return s
}

// reading says how the charts are read.
func reading(r *Report) string {
	against := "the baseline"
	if name := oneBaseline(r); name != "" {
		against = "the baseline, " + short(r, name)
	}
	text := "Each mark is the change against " + against + ", each bar the interval that the verdict used"
	if l := primaryLevel(r); l != "" {
		text += " (" + l + ")"
	}
	text += ". "
	if d := r.Design; d != nil && d.Margin > 0 {
		text += "The shaded band is the margin of ±" + axisShare(d.Margin) + ". "
	}
	return text + "Regressed and improved: the whole bar lies beyond the margin. Equivalent: the whole bar lies within it; “measurable” if it also excludes zero. " +
		"Slower and faster: the bar excludes zero and reaches into the margin. Inconclusive: it includes zero; the table says how small an effect this run could have seen and how many blocks would decide. Not judged: there were too few blocks for a verdict, or the run is invalid. " +
		"Below the line, in grey, stand the controls, where any effect is an artefact."
}

// oneBaseline is the baseline that all effects are held against, if it is one.
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

// primaryLevel is the range of levels of the intervals that are drawn.
func primaryLevel(r *Report) string {
	lo, hi := 1.0, 0.0
	for i := range r.Effects {
		if e := &r.Effects[i]; e.Primary() && e.Level > 0 {
			lo, hi = min(lo, e.Level), max(hi, e.Level)
		}
	}
	switch {
	case hi == 0:
		return ""
	case level(lo) == level(hi):
		return level(lo)
	}
	return level(lo) + " to " + level(hi) + ", wider where more is tested"
}

// level writes a level of confidence.
func level(v float64) string {
	s := strconv.FormatFloat(v*100, 'f', 2, 64)
	return strings.TrimRight(strings.TrimRight(s, "0"), ".") + space + "%"
}

// glance has a row for each treatment and a column for each quantity.
func glance(r *Report, groups []effectGroup) *grid {
	caption := "Change against the baseline"
	bare := sameMeasure(groups)
	if bare {
		caption += ", " + measure(groups[0].metric, groups[0].quantile)
	}
	t := &grid{Caption: caption, Head: wordHeads("treatment")}
	for i := range groups {
		name := groups[i].name()
		if bare && groups[i].operation != "" {
			name = groups[i].operation
		}
		t.Head = append(t.Head, head{Text: name})
	}
	for _, id := range compared(r, groups) {
		values, classes := []string{short(r, id)}, []string{""}
		for i := range groups {
			text, class := glimpse(r, &groups[i], id)
			values, classes = append(values, text), append(classes, class)
		}
		t.add(values...)
		for i, class := range classes {
			t.class(i, class)
		}
	}
	return t
}

// sameMeasure says whether the comparisons differ by their operation only.
func sameMeasure(groups []effectGroup) bool {
	for i := range groups {
		if groups[i].metric != groups[0].metric || groups[i].quantile != groups[0].quantile || groups[i].operation == "" {
			return false
		}
	}
	return true
}

// compared are the treatments that have effects, in the run's order.
func compared(r *Report, groups []effectGroup) []string {
	var ids []string
	for i := range groups {
		for _, e := range groups[i].all() {
			if !slices.Contains(ids, e.Treatment) {
				ids = append(ids, e.Treatment)
			}
		}
	}
	order := ranks(r)
	slices.SortStableFunc(ids, func(a, b string) int { return cmp.Compare(order(a), order(b)) })
	return ids
}

// glimpse is one effect in a few characters.
func glimpse(r *Report, c *effectGroup, id string) (text, class string) {
	for _, e := range c.all() {
		if e.Treatment != id {
			continue
		}
		if !estimated(e) {
			return "?", unsure
		}
		text = changesOf(e, unitOf(r, e.Metric)).value(e.Estimate)
		if controlled(c, e) {
			return "(" + text + ")", ""
		}
		word, class := effectWord(e.Verdict)
		glyph, _, _ := strings.Cut(word, " ")
		return glyph + " " + text, class
	}
	return "", ""
}

// controlled says whether an effect is one of the controls'.
func controlled(c *effectGroup, e *Effect) bool { return slices.Contains(c.controls, e) }

// effectTable is all that is known of some effects.
func effectTable(r *Report, caption string, effects []*Effect) *grid {
	t := &grid{Caption: caption, Head: append(append(wordHeads("treatment", "against", "of"), numberHeads("estimate", "interval", "level")...),
		append(append(wordHeads("verdict"), numberHeads("margin", "smallest effect it could see", "blocks", "blocks to decide", "adjusted p")...), wordHeads("note")...)...)}
	one := oneBaseline(r)
	for _, e := range effects {
		c := changesOf(e, unitOf(r, e.Metric))
		v := [...]string{e.Treatment, "", quantity(e.Metric, e.Quantile, e.Operation), "", "", "", "", "", "", "", "", "", e.Reason}
		if e.Baseline != one {
			v[1] = e.Baseline
		}
		if estimated(e) {
			v[3] = c.value(e.Estimate) + manifoldText(e)
		}
		if hasInterval(e) {
			v[4] = c.between(e.Lo, e.Hi)
		}
		if e.Level > 0 {
			v[5] = level(e.Level)
		}
		word, class := effectWord(e.Verdict)
		if e.Measurable && e.Verdict == Equivalent {
			word += ", measurable"
		}
		v[6], v[7], v[8] = word, extent(e.Margin, c), extent(e.MDE, c)
		if e.Blocks > 0 {
			v[9] = strconv.Itoa(e.Blocks)
		}
		if e.BlocksToDecide != nil {
			v[10] = "about " + strconv.Itoa(*e.BlocksToDecide)
		}
		v[11] = opt(e.Adjusted, chance)
		t.add(v[:]...)
		t.class(6, class)
	}
	return t
}

// extent writes a magnitude on the scale of an effect, with digits of its own.
func extent(v *float64, c changes) string {
	switch {
	case v == nil:
		return ""
	case c.show != nil:
		return c.show(*v)
	case c.points:
		return unit.Number(*v*100) + space + "pp"
	}
	return axisShare(*v)
}

// chance writes a p-value.
func chance(p float64) string {
	switch {
	case p < 0.0001:
		return "< 0.0001"
	case p < 0.01:
		return strconv.FormatFloat(p, 'f', 4, 64)
	}
	return strconv.FormatFloat(p, 'f', 2, 64)
}

// exploratory are the effects that decide nothing, folded.
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
	t := effectTable(r, "Exploratory effects: they decide nothing. Student's test, p adjusted by Benjamini and Hochberg, intervals at the level at which that procedure ends", rest).used()
	return []block{{Figure: &figure{Summary: "Exploratory effects (" + strconv.Itoa(len(rest)) + "): wall time, tails and whatever else no verdict hangs on", Table: t}}}
}

// absolutes are the values themselves, a row for each treatment and operation.
func absolutes(r *Report) *grid {
	t := &grid{Caption: "Medians of the blocks; tails are quantiles of all blocks together", Head: wordHeads("treatment", "operation")}
	columns := map[string]int{}
	rows := map[string]int{}
	for i := range r.Treatments {
		for k := range r.Treatments[i].Metrics {
			m := &r.Treatments[i].Metrics[k]
			name := measure(m.Name, m.Quantile)
			if _, ok := columns[name]; !ok {
				columns[name] = len(t.Head)
				t.Head = append(t.Head, numberHeads(name)...)
			}
		}
	}
	for i := range r.Treatments {
		x := &r.Treatments[i]
		for k := range x.Metrics {
			m := &x.Metrics[k]
			key := x.ID + "\x00" + m.Operation
			if _, ok := rows[key]; !ok {
				rows[key] = len(t.Rows)
				values := make([]string, len(t.Head))
				values[0], values[1] = x.ID, m.Operation
				t.add(values...)
			}
			t.Rows[rows[key]][columns[measure(m.Name, m.Quantile)]].Text = measured(m)
		}
	}
	return t
}
