package chart

import (
	"cmp"
	"math"
	"slices"
)

// lineHeight is the distance between lines of text, in em.
const lineHeight = 1.45

// mark is a label over the plot, of a vertical rule or a span, in one of the lanes.
type mark struct {
	x, width float64 // its middle and its width
	lane     int
	label    string
	kind     Kind
	rule     bool // it has a tick in its rule's colour, since several rules may stand close together
}

// flagRoom is the room for that tick, in em.
const flagRoom = 0.6

// maxLanes is how many lines of marks may stand above a plot; further labels stay in the titles of their marks.
const maxLanes = 4

// laneMarks places the labels of vertical rules and spans above the plot, in lanes so that none touch. Rules go first;
// spans, which may be many steps of a load, share the rest of the first lanes.
func (p *plot) laneMarks() []mark {
	var marks []mark
	for _, r := range p.Rules {
		if r.Vertical && r.Label != "" && p.X.placeable(r.At) {
			marks = append(marks, p.newMark(p.px(r.At), arrowed(p.x.pos(r.At), "←", "→", r.Label), r.Kind, true))
		}
	}
	slices.SortStableFunc(marks, func(a, b mark) int { return cmp.Compare(a.x, b.x) })
	placed := lanes(marks, p.font)
	steps := p.spanMarks()
	for lane := range maxLanes {
		if !slices.ContainsFunc(placed, func(o mark) bool {
			return o.lane == lane && slices.ContainsFunc(steps, func(m mark) bool { return touch(o, m, p.font) })
		}) {
			for _, m := range steps {
				m.lane = lane
				placed = append(placed, m)
			}
			break
		}
	}
	return placed
}

// lanes puts each mark into the lowest lane where it touches no other.
func lanes(marks []mark, size float64) []mark {
	var placed []mark
	for _, m := range marks {
		for m.lane = 0; m.lane < maxLanes; m.lane++ {
			if !slices.ContainsFunc(placed, func(o mark) bool { return o.lane == m.lane && touch(o, m, size) }) {
				placed = append(placed, m)
				break
			}
		}
	}
	return placed
}

// spanMarks returns the labels of the spans as far as they fit into one line, those of the longest spans first.
func (p *plot) spanMarks() []mark {
	type wide struct {
		mark
		width float64
	}
	var all []wide
	for _, s := range p.Spans {
		if from, to, ok := p.spanEnds(s); ok && s.Label != "" {
			all = append(all, wide{p.newMark((from+to)/2, s.Label, s.Kind, false), to - from})
		}
	}
	slices.SortStableFunc(all, func(a, b wide) int { return cmp.Compare(math.Round(b.width), math.Round(a.width)) })
	var kept []mark
	for _, w := range all {
		if !slices.ContainsFunc(kept, func(o mark) bool { return touch(o, w.mark, p.font) }) {
			kept = append(kept, w.mark)
		}
	}
	return kept
}

func touch(a, b mark, size float64) bool {
	return math.Abs(a.x-b.x) < (a.width+b.width)/2+gap*size*0.6
}

// newMark centres a label on x, moved so that it stays on the page.
func (p *plot) newMark(x float64, label string, k Kind, rule bool) mark {
	label = cut(withGlyph(label, k), p.frame.width-4-2*flagRoom*p.font, p.font)
	m := mark{width: textWidth(label, p.font), label: label, kind: k, rule: rule}
	if rule {
		m.width += 2 * flagRoom * p.font // on both sides, so that the text stays centred
	}
	m.x = min(max(x, m.width/2+2), p.frame.width-m.width/2-2)
	return m
}

func withGlyph(label string, k Kind) string {
	label = oneLine(label)
	if g := k.look().glyph; g != "" && label != "" {
		return g + " " + label
	}
	return label
}

// arrowed points to what lies beyond an edge.
func arrowed(pos float64, below, above, label string) string {
	switch {
	case label == "":
		return ""
	case pos < -1e-9:
		return below + " " + label
	case pos > 1+1e-9:
		return label + " " + above
	}
	return label
}

// head writes what stands above the plot, from y down, and places the plot under it.
func (p *plot) head(y float64) float64 {
	step := lineHeight * p.font
	if p.Y.Label != "" {
		y += step
		p.out.label("axis-label", "start", 2, y-0.35*p.font, p.frame.width-4, p.font, p.Y.Label, "font-weight", "600")
	}
	y = p.legend(y)
	count := 0
	for _, m := range p.marks {
		count = max(count, m.lane+1)
	}
	for _, m := range p.marks {
		// The first lane is the lowest, next to its mark.
		at := y + float64(count-m.lane)*step - 0.35*p.font
		if m.rule {
			p.out.group("flag", m.kind)
			x := m.x - m.width/2 + 1
			p.out.line("", x, at-0.85*p.font, x, at+0.2*p.font, "stroke-width", "3")
			p.out.close("g")
		}
		p.out.label("mark", "middle", m.x, at, p.frame.width, p.font, m.label, "fill-opacity", "0.9")
	}
	y += float64(count) * step
	p.top = y + 0.5*p.font
	return p.top
}

// entry is a name in the legend.
type entry struct {
	label              string
	kind               Kind
	line, dashed, dots bool
}

func (p *plot) entries() []entry {
	var all []entry
	if p.Legend {
		for _, s := range p.Series {
			if s.Name != "" {
				all = append(all, entry{oneLine(s.Name), s.Kind, s.lined(), s.Dash, s.Dots || p.signed(s)})
			}
		}
	}
	if p.Diagonal != "" {
		all = append(all, entry{oneLine(p.Diagonal), Neutral, true, true, false})
	}
	if p.narrow {
		for _, r := range p.Rules {
			if !r.Vertical && r.Label != "" && p.Y.placeable(r.At) {
				all = append(all, entry{p.ruleLabel(r), r.Kind, true, true, false})
			}
		}
	}
	return all
}

// legend lays the entries out in rows, each as wide as its text.
func (p *plot) legend(y float64) float64 {
	const swatch = 22.0
	step, x := lineHeight*p.font, math.Inf(1)
	for _, e := range p.entries() {
		room := p.frame.width - swatch - p.font
		label := cut(e.label, room, p.font)
		width := swatch + 0.5*p.font + textWidth(label, p.font)
		if x+width > p.frame.width {
			x, y = 2, y+step
		}
		p.out.group("key", e.kind)
		mid := y - 0.65*p.font
		if e.line {
			p.out.line("line", x, mid, x+swatch, mid, "stroke-width", "2", "stroke-dasharray", dash(e.dashed))
		}
		if e.dots {
			p.out.marker(e.kind.look().marker, x+swatch/2, mid, p.font*0.3, false, "")
		}
		p.out.close("g")
		p.out.label("legend", "start", x+swatch+0.5*p.font, y-0.3*p.font, room, p.font, e.label)
		x += width + 1.5*p.font
	}
	return y
}
