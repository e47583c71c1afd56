package chart

import (
	"cmp"
	"math"
	"slices"
)

// spanEnds returns the sides of a span on the page, held in the frame; ok is false if nothing of it is inside.
func (p *plot) spanEnds(s Span) (from, to float64, ok bool) {
	if math.IsNaN(s.From) || math.IsNaN(s.To) || s.From > s.To {
		return 0, 0, false
	}
	low, high := p.x.bound(s.From, s.From > 0 && math.IsInf(s.From, 1)), p.x.bound(s.To, s.To > 0)
	if high <= low {
		return 0, 0, false
	}
	return p.left + low*p.width, p.left + high*p.width, true
}

func (p *plot) spans() {
	for i, s := range p.Spans {
		from, to, ok := p.spanEnds(s)
		if !ok {
			continue
		}
		shade := "0.13"
		if i%2 == 1 {
			shade = "0.05" // steps that follow one another differ
		}
		p.out.group("span", s.Kind)
		p.out.open("rect", "x", from, "y", p.top, "width", to-from, "height", p.height, "fill", "currentColor",
			"fill-opacity", shade)
		if s.Label != "" {
			p.out.leaf("title", s.Label)
		}
		p.out.close("rect")
		p.out.line("", from, p.top, from, p.top+p.height, "stroke-opacity", "0.35")
		p.out.close("g")
	}
}

// rules paints the rules, and in the wide layout the labels of the horizontal ones at the right.
func (p *plot) rules() {
	for _, r := range p.Rules {
		axis, x1, y1, x2, y2 := p.X, p.left, p.top, p.left+p.width, p.top+p.height
		if !r.Vertical {
			axis = p.Y
		}
		if !axis.placeable(r.At) {
			continue
		}
		if r.Vertical {
			x1, x2 = p.px(r.At), p.px(r.At)
		} else {
			y1, y2 = p.py(r.At), p.py(r.At)
		}
		p.out.group("rule", r.Kind)
		p.out.open("line", "x1", x1, "y1", y1, "x2", x2, "y2", y2, "stroke", "currentColor", "stroke-width", "1.5",
			"stroke-dasharray", "5 3")
		if r.Label != "" {
			p.out.leaf("title", r.Label)
		}
		p.out.close("line")
		p.out.close("g")
	}
	if !p.narrow {
		p.ruleLabels()
	}
}

// ruleLabel returns the text of a horizontal rule.
func (p *plot) ruleLabel(r Rule) string {
	return arrowed(p.y.pos(r.At), "↓", "↑", withGlyph(r.Label, r.Kind))
}

// marginRight returns the room that the labels of horizontal rules take, at most a quarter of the page.
func (p *plot) marginRight() float64 {
	var room float64
	if p.narrow {
		return 0
	}
	for _, r := range p.Rules {
		if !r.Vertical && r.Label != "" && p.Y.placeable(r.At) {
			room = max(room, textWidth(p.ruleLabel(r), p.font)+p.font)
		}
	}
	return min(room, p.frame.width/4)
}

// ruleLabels writes the labels beside the plot, moved down where two would touch.
func (p *plot) ruleLabels() {
	type label struct {
		y    float64
		text string
	}
	var all []label
	for _, r := range p.Rules {
		if !r.Vertical && r.Label != "" && p.Y.placeable(r.At) {
			all = append(all, label{p.py(r.At) + 0.35*p.font, p.ruleLabel(r)})
		}
	}
	slices.SortStableFunc(all, func(a, b label) int { return cmp.Compare(a.y, b.y) })
	step, bottom := 1.2*p.font, p.top+p.height+0.35*p.font
	if most := int(p.height / step); len(all) > most {
		all = all[:most] // the others keep their titles
	}
	for i := 1; i < len(all); i++ {
		all[i].y = max(all[i].y, all[i-1].y+step)
	}
	for i := len(all) - 1; i >= 0; i-- {
		all[i].y = min(all[i].y, bottom-float64(len(all)-1-i)*step)
	}
	x := p.left + p.width + p.font/2
	for _, l := range all {
		p.out.label("rule-label", "start", x, l.y, p.frame.width-x, p.font, l.text)
	}
}

// diagonal paints y = x over the part that both axes show.
func (p *plot) diagonal() {
	lo, hi := max(p.x.lo, p.y.lo), min(p.x.hi, p.y.hi)
	if p.Diagonal == "" || !p.data || lo >= hi || !p.X.placeable(lo) || !p.Y.placeable(lo) {
		return
	}
	steps := 1
	if p.X.Log != p.Y.Log {
		steps = 64 // a curve then
	}
	var pts []xy
	for i := range steps + 1 {
		share := float64(i) / float64(steps)
		v := lo*(1-share) + hi*share
		pts = append(pts, xy{p.px(v), p.py(v)})
	}
	p.out.group("diagonal", Neutral)
	p.out.empty("path", "class", "line", "d", polyline(pts), "fill", "none", "stroke", "currentColor",
		"stroke-width", "1.5", "stroke-dasharray", "6 4")
	p.out.close("g")
}
