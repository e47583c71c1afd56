package chart

import (
	"fmt"
	"math"
	"slices"
)

// row is one line of a bar chart or a forest plot.
type row struct {
	label, text   string
	value, lo, hi float64
	kind          Kind
	apart         bool
}

func (r row) interval() bool { return !math.IsNaN(r.lo) && !math.IsNaN(r.hi) && r.lo < r.hi }

// rowChart is what bars and forest plots have in common.
type rowChart struct {
	title, desc, empty string
	axis               Axis
	rows               []row
	rules              []Rule
	spans              []Span
	bars               bool
	widest             row // for which the columns have room, too
}

func (b Bars) rowChart() rowChart {
	c := rowChart{
		title: b.Title, desc: b.Desc, empty: b.Empty, axis: b.Axis, rules: b.Rules,
		bars: !b.Dots && !b.Axis.Log,
	}
	for _, r := range b.Rows {
		text := oneLine(r.Text)
		if text == "" {
			text = "–"
			if !math.IsNaN(r.Value) {
				text = b.Axis.write(r.Value)
			}
		}
		kind := r.Kind
		if kind == Auto {
			kind = Color(0)
		}
		c.rows = append(c.rows, row{
			label: r.Label, text: withGlyph(text, kind), value: r.Value, lo: r.Lo,
			hi: r.Hi, kind: kind,
		})
	}
	return c
}

func (c Forest) rowChart() rowChart {
	out := rowChart{
		title: c.Title, desc: c.Desc, empty: c.Empty, axis: c.Axis, rules: c.Rules, spans: c.Spans,
		widest: row{label: c.LongestLabel, text: c.LongestText},
	}
	for _, r := range c.Rows {
		kind := r.Verdict
		if r.Apart && kind == Auto {
			kind = Neutral
		}
		out.rows = append(out.rows, row{
			label: r.Label, text: c.Text(r), value: r.Value, lo: r.Lo, hi: r.Hi, kind: kind,
			apart: r.Apart,
		})
	}
	return out
}

// estimate returns the row's value with its interval in words.
func (r ForestRow) estimate(a Axis) string {
	if r.Text != "" {
		return oneLine(r.Text)
	}
	text := "–"
	if !math.IsNaN(r.Value) {
		text = a.write(r.Value)
	}
	if !math.IsNaN(r.Lo) && !math.IsNaN(r.Hi) {
		text += fmt.Sprintf(" [%s, %s]", a.write(r.Lo), a.write(r.Hi))
	}
	return text
}

// table is a row chart with its place on the page: a column of labels, the plot and a column of values, or in the
// narrow layout the label and the value over each row.
type table struct {
	rowChart
	plot
	pitch, textRoom float64
	stacked         bool // in the narrow layout: the value has a line of its own, since some label would have to be cut
}

// rows lays out and paints a row chart.
func rows(f frame, c rowChart) drawing {
	d := drawing{title: c.title, desc: c.desc}
	t := &table{rowChart: c, plot: plot{frame: f, out: &d.body}}
	t.Panel = Panel{X: c.axis, Rules: c.vertical(), Spans: c.spans}
	t.columns()
	t.x, t.data = c.scale()
	t.xTicks = t.x.fitted(baseline{t.left, t.width, f.width, f.font})
	if n := len(t.xTicks); n > 0 && t.narrow {
		half := max(textWidth(t.xTicks[0].label, f.font), textWidth(t.xTicks[n-1].label, f.font)) / 2
		t.left, t.width = t.left+half, t.width-2*half
		t.xTicks = t.x.fitted(baseline{t.left, t.width, f.width, f.font})
	}
	t.marks = t.laneMarks()
	y := t.head(0)
	t.pitch = 2.1 * f.font
	if t.narrow {
		t.pitch = 3 * f.font
	}
	if t.stacked {
		t.pitch += lineHeight * f.font
	}
	t.height = max(float64(len(c.rows)), 1.5) * t.pitch
	t.paint()
	d.height = math.Ceil(t.foot(y + t.height))
	return d
}

// vertical returns the rules, all of which cross the one axis.
func (c rowChart) vertical() []Rule {
	rules := make([]Rule, len(c.rules))
	for i, r := range c.rules {
		r.Vertical = true
		rules[i] = r
	}
	return rules
}

// scale covers values, intervals and near rules, and zero for bars.
func (c rowChart) scale() (scale, bool) {
	e := extent{axis: c.axis}
	for _, r := range c.rows {
		e.add(r.value)
		if r.interval() {
			e.add(r.lo)
			e.add(r.hi)
		}
	}
	if c.bars && e.any {
		e.add(0)
	}
	for _, r := range c.rules {
		e.widen(r.At)
	}
	for _, s := range c.spans {
		e.widen(s.From)
		e.widen(s.To)
	}
	return e.scale(8)
}

// columns gives labels and values the room they need: labels at most a third of the page, values at most two fifths.
func (t *table) columns() {
	t.left, t.width = 2, t.frame.width-4
	if t.narrow {
		t.stacked = slices.ContainsFunc(t.rows, func(r row) bool {
			return textWidth(oneLine(r.label), t.font)+t.font+textWidth(oneLine(r.text), t.font) > t.width
		})
		return
	}
	var label, text float64
	for _, r := range slices.Concat(t.rows, []row{t.widest}) {
		label = max(label, textWidth(oneLine(r.label), t.font))
		text = max(text, textWidth(oneLine(r.text), t.font))
	}
	label, text = min(label, t.frame.width/3)+t.font, min(text, 0.4*t.frame.width)+t.font
	t.left, t.textRoom = label, text
	t.width = t.frame.width - label - text
}

func (t *table) paint() {
	t.shades()
	t.out.open("g", "class", "grid", "stroke-opacity", "0.16")
	for _, tick := range t.xTicks {
		t.upright("", t.left+tick.pos*t.width)
	}
	t.out.close("g")
	t.out.line("axis", t.left, t.top+t.height, t.left+t.width, t.top+t.height, "stroke-opacity", "0.5")
	if !t.data {
		t.none()
	}
	t.zero()
	t.uprights()
	for i, r := range t.rows {
		if r.apart && (i == 0 || !t.rows[i-1].apart) {
			t.divider(t.top + float64(i)*t.pitch)
		}
		t.words(r, t.top+float64(i)*t.pitch)
		t.mark(r, t.middle(i))
	}
	if !t.data {
		return
	}
	t.out.open("g", "class", "tick", "fill-opacity", "0.8")
	for _, tick := range t.xTicks {
		t.out.label("", "middle", tick.at, t.top+t.height+1.3*t.font, t.width, t.font, tick.label)
	}
	t.out.close("g")
}

// shades paints the spans; in the narrow layout only behind the marks, as upright does.
func (t *table) shades() {
	for _, s := range t.Spans {
		from, to, ok := t.spanEnds(s)
		if !ok || !t.data {
			continue
		}
		t.out.group("span", s.Kind)
		if t.narrow {
			for i := range t.rows {
				t.shade(s, from, to, t.middle(i)-0.75*t.font, 1.5*t.font)
			}
		} else {
			t.shade(s, from, to, t.top, t.height)
		}
		t.out.close("g")
	}
}

func (t *table) shade(s Span, from, to, y, height float64) {
	t.out.open("rect", "x", from, "y", y, "width", to-from, "height", height, "fill", "currentColor",
		"fill-opacity", "0.16")
	if s.Label != "" {
		t.out.leaf("title", s.Label)
	}
	t.out.close("rect")
}

// divider returns the line over the rows that are apart.
func (t *table) divider(y float64) {
	t.out.line("divider", 2, y, t.frame.width-2, y, "stroke-opacity", "0.35")
}

// none says that there is nothing to draw, below the axis: rows without a value may still stand above it.
func (t *table) none() {
	sentence := t.empty
	if sentence == "" {
		sentence = noData
	}
	t.out.label("none", "middle", t.left+t.width/2, t.top+t.height+1.3*t.font, t.width, t.font, sentence)
}

// zero returns the line from which a linear axis counts.
func (t *table) zero() {
	if !t.data || !t.X.placeable(0) || t.x.pos(0) < 0 || t.x.pos(0) > 1 {
		return
	}
	t.upright("zero", t.px(0), "stroke-opacity", "0.6")
}

// upright returns a line down the plot; in the narrow layout only through the marks, not through the text over them.
func (t *table) upright(class string, x float64, attrs ...any) {
	if !t.narrow {
		t.out.line(class, x, t.top, x, t.top+t.height, attrs...)
		return
	}
	for i := range t.rows {
		mid := t.middle(i)
		t.out.line(class, x, mid-0.75*t.font, x, mid+0.75*t.font, attrs...)
	}
}

// middle returns where the i-th row's mark is.
func (t *table) middle(i int) float64 {
	y := t.top + float64(i)*t.pitch
	switch {
	case t.stacked:
		return y + (2.1+lineHeight)*t.font
	case t.narrow:
		return y + 2.1*t.font
	}
	return y + t.pitch/2
}

func (t *table) uprights() {
	for _, r := range t.Rules {
		if t.data && t.X.placeable(r.At) {
			t.out.group("rule", r.Kind)
			t.upright("", t.px(r.At), "stroke-width", "1.5", "stroke-dasharray", "5 3")
			t.out.close("g")
		}
	}
}

// words writes a row's label and value.
func (t *table) words(r row, y float64) {
	base := y + t.pitch/2 + 0.35*t.font
	switch {
	case t.stacked:
		t.out.label("row", "start", 2, y+1.2*t.font, t.frame.width-4, t.font, r.label)
		t.out.label("value", "start", 2, y+(1.2+lineHeight)*t.font, t.frame.width-4, t.font, r.text)
	case t.narrow:
		base = y + 1.2*t.font
		room := t.frame.width - 4 - textWidth(oneLine(r.text), t.font) - t.font
		t.out.label("row", "start", 2, base, room, t.font, r.label)
		t.out.label("value", "end", t.frame.width-2, base, t.frame.width-4, t.font, r.text)
	default:
		t.out.label("row", "end", t.left-t.font/2, base, t.left-t.font, t.font, r.label)
		t.out.label("value", "start", t.left+t.width+t.font/2, base, t.textRoom-t.font/2, t.font, r.text)
	}
}

// mark paints a row's value and its interval.
func (t *table) mark(r row, mid float64) {
	if !t.data {
		return
	}
	t.out.group("series", r.kind)
	if t.bars && t.X.placeable(r.value) {
		from, to := min(t.px(0), t.px(r.value)), max(t.px(0), t.px(r.value))
		t.out.open("rect", "class", "bar", "x", from, "y", mid-0.4*t.font, "width", max(to-from, 0.5), "height", 0.8*t.font,
			"fill", "currentColor", "fill-opacity", "0.75")
		t.out.leaf("title", r.label+": "+r.text)
		t.out.close("rect")
	}
	if r.interval() && !t.bars {
		t.whisker(r, mid)
	}
	if !t.bars && t.X.placeable(r.value) {
		at := t.x.pos(r.value)
		outside := at < -1e-6 || at > 1+1e-6
		t.out.marker(t.marker(r.kind), t.px(r.value), mid, 0.38*t.font, outside, r.label+": "+r.text)
	}
	t.out.close("g")
	if r.interval() && t.bars {
		t.whisker(r, mid) // in the colour of text: on the bar its own would not show
	}
}

func (t *table) marker(k Kind) shape {
	if k == Auto || k == Neutral || k == Good {
		return square
	}
	return k.look().marker
}

// whisker returns the interval, with an arrow where it goes on beyond the frame.
func (t *table) whisker(r row, y float64) {
	lo, hi := t.left+t.x.bound(r.lo, false)*t.width, t.left+t.x.bound(r.hi, true)*t.width
	t.out.line("whisker", lo, y, hi, y, "stroke-width", "2")
	t.tip(lo, y, -1, !t.X.placeable(r.lo) || t.x.pos(r.lo) < -1e-6)
	t.tip(hi, y, 1, !t.X.placeable(r.hi) || t.x.pos(r.hi) > 1+1e-6)
}

// tip ends a whisker: a bar, or an arrow in the given direction.
func (t *table) tip(x, y, direction float64, arrow bool) {
	r := 0.3 * t.font
	if !arrow {
		t.out.line("whisker", x, y-r, x, y+r, "stroke-width", "1.5")
		return
	}
	t.out.empty("path", "class", "whisker", "d",
		polyline([]xy{{x - direction*r, y - r}, {x, y}, {x - direction*r, y + r}}),
		"fill", "none", "stroke", "currentColor", "stroke-width", "2")
}
