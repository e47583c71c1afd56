package chart

import "math"

// The plots' heights in the wide layout, and the share of it that the narrow one keeps.
const (
	panelHeight, lowerHeight = 240, 160
	narrowShare              = 0.85
	noData                   = "No data to draw."
)

// plot is one panel with its place on the page.
type plot struct {
	Panel
	frame
	x, y                     scale
	left, top, width, height float64
	xTicks, yTicks           []tick
	marks                    []mark
	data                     bool
	out                      *canvas
}

// stack lays panels out from top to bottom.
func stack(f frame, panels []Panel) drawing {
	if len(panels) == 0 {
		panels = []Panel{{}}
	}
	d := drawing{title: panels[0].Title}
	plots := arrange(f, panels, &d)
	var y float64
	for i := range plots {
		p := &plots[i]
		y = p.head(y)
		p.draw(i == len(plots)-1)
		y += p.height
		if i < len(plots)-1 {
			y += 2 * f.font
		}
	}
	d.height = math.Ceil(plots[len(plots)-1].foot(y))
	return d
}

// arrange gives every panel its scales, and all of them one left and one right edge.
func arrange(f frame, panels []Panel, d *drawing) []plot {
	plots := make([]plot, len(panels))
	panels = coloured(panels)
	x, _ := sharedX(panels)
	left, right := 2*f.font, f.font
	for i, p := range panels {
		if p.Desc != "" && i > 0 && d.desc != "" {
			d.desc += " "
		}
		d.desc += p.Desc
		q := plot{Panel: p, frame: f, x: x, out: &d.body}
		q.X = x.axis
		q.height = plotHeight(f, p.Height, i)
		if q.y, q.data = p.rangeY(x, f.uprightTicks(q.height)); q.data {
			q.yTicks = q.y.upright(q.height, f.font)
		} else {
			q.height = min(q.height, 8*f.font)
		}
		for _, t := range q.yTicks {
			left = max(left, min(textWidth(t.label, f.font), f.width/4)+f.font)
		}
		right = max(right, q.marginRight())
		plots[i] = q
	}
	left, width, ticks := edges(f, x, left, right)
	for i := range plots {
		plots[i].left, plots[i].width, plots[i].xTicks = left, width, ticks
		plots[i].marks = plots[i].laneMarks()
	}
	for i := range plots[1:] {
		plots[i+1].share(plots[0])
	}
	return plots
}

// edges moves the margins in so far that the first and the last label of X stay on the page, and chooses its ticks.
func edges(f frame, x scale, left, right float64) (newLeft, width float64, ticks []tick) {
	width = f.width - left - right
	ticks = x.fitted(baseline{left, width, f.width, f.font})
	if n := len(ticks); n > 0 {
		over := textWidth(ticks[n-1].label, f.font)/2 - (1-ticks[n-1].pos)*width
		right = max(right, over+2)
		left = max(left, textWidth(ticks[0].label, f.font)/2-ticks[0].pos*width+2)
		width = f.width - left - right
		ticks = x.fitted(baseline{left, width, f.width, f.font})
	}
	return left, width, ticks
}

// share takes over what the first panel has along X.
func (p *plot) share(first plot) {
	var rules []Rule
	for _, r := range first.Rules {
		if r.Vertical {
			r.Label = ""
			rules = append(rules, r)
		}
	}
	p.Rules = append(rules, p.Rules...)
	spans := make([]Span, 0, len(first.Spans)+len(p.Spans))
	for _, s := range first.Spans {
		s.Label = ""
		spans = append(spans, s)
	}
	p.Spans = append(spans, p.Spans...)
}

func plotHeight(f frame, asked, index int) float64 {
	h := float64(asked)
	if asked <= 0 || asked > 4000 {
		h = panelHeight
		if index > 0 {
			h = lowerHeight
		}
	}
	if f.narrow {
		h *= narrowShare
	}
	return max(math.Round(h), 6*f.font)
}

// coloured resolves Auto: the same name has the same colour in all panels.
func coloured(panels []Panel) []Panel {
	next, known := 0, map[string]Kind{}
	out := make([]Panel, len(panels))
	for i, p := range panels {
		series := make([]Series, len(p.Series))
		for j, s := range p.Series {
			if s.Kind == Auto {
				k, ok := known[s.Name]
				if !ok {
					k = Color(next)
					next++
					known[s.Name] = k
				}
				s.Kind = k
			}
			series[j] = s
		}
		p.Series = series
		out[i] = p
	}
	return out
}

// sharedX returns the range of X over the data of all panels.
func sharedX(panels []Panel) (scale, bool) {
	e := extent{axis: panels[0].X}
	for _, p := range panels {
		for _, s := range p.Series {
			s.each(p.Y, e.axis, func(pt point) { e.add(pt.x) })
		}
	}
	for _, s := range panels[0].Spans {
		e.widen(s.From)
		e.widen(s.To)
	}
	for _, p := range panels {
		for _, r := range p.Rules {
			if r.Vertical {
				e.widen(r.At)
			}
		}
	}
	return e.scale(0)
}

// rangeY returns the panel's range of Y, over the points and intervals that have an X.
func (p Panel) rangeY(x scale, ticks int) (scale, bool) {
	e := extent{axis: p.Y}
	for _, s := range p.Series {
		s.each(p.Y, x.axis, func(pt point) {
			e.add(pt.y)
			if s.banded() {
				e.add(pt.lo)
				e.add(pt.hi)
			}
		})
	}
	for _, r := range p.Rules {
		if !r.Vertical {
			e.widen(r.At)
		}
	}
	return e.scale(ticks)
}

// uprightTicks returns how many labels a vertical axis holds.
func (f frame) uprightTicks(length float64) int { return max(int(length/(2.4*f.font)), 3) }

// upright chooses the ticks of a vertical axis: a label every three lines of text or more.
func (s scale) upright(length, size float64) []tick {
	var kept []tick
	end := math.Inf(-1)
	for _, t := range s.labelled(s.ticks(frame{font: size}.uprightTicks(length))) {
		if at := t.pos * length; at >= end+1.4*size {
			kept, end = append(kept, t), at
		}
	}
	return kept
}

func (p *plot) px(v float64) float64 { return p.left + p.x.held(v)*p.width }
func (p *plot) py(v float64) float64 { return p.top + (1-p.y.held(v))*p.height }

// draw paints the plot in its place, back to front.
func (p *plot) draw(last bool) {
	if !p.data {
		p.nothing()
		return
	}
	p.spans()
	p.grid(last)
	p.diagonal()
	for _, s := range p.Series {
		p.band(s)
	}
	p.rules()
	for _, s := range p.Series {
		p.series(s)
	}
}

// nothing returns an empty frame with a sentence: numbers on the axes of nothing would be invented.
func (p *plot) nothing() {
	sentence := p.Empty
	if sentence == "" {
		sentence = noData
	}
	p.out.empty("rect", "class", "frame", "x", p.left, "y", p.top, "width", p.width, "height", p.height, "fill", "none",
		"stroke", "currentColor", "stroke-opacity", "0.3")
	p.out.label("none", "middle", p.left+p.width/2, p.top+p.height/2+0.35*p.font, p.width, p.font, sentence)
}

func (p *plot) grid(last bool) {
	bottom, right := p.top+p.height, p.left+p.width
	p.out.open("g", "class", "grid", "stroke-opacity", "0.16")
	for _, t := range p.yTicks {
		y := bottom - t.pos*p.height
		p.out.line("", p.left, y, right, y)
	}
	for _, t := range p.xTicks {
		x := p.left + t.pos*p.width
		p.out.line("", x, p.top, x, bottom)
	}
	p.out.close("g")
	p.out.open("g", "class", "axis", "stroke-opacity", "0.5")
	p.out.line("", p.left, bottom, right, bottom)
	p.out.line("", p.left, p.top, p.left, bottom)
	p.out.close("g")
	p.out.open("g", "class", "tick", "fill-opacity", "0.8")
	for _, t := range p.yTicks {
		p.out.label("", "end", p.left-p.font/2, bottom-t.pos*p.height+p.font*0.35, p.left-p.font/2, p.font, t.label)
	}
	if last {
		for _, t := range p.xTicks {
			p.out.label("", "middle", t.at, bottom+1.3*p.font, p.width, p.font, t.label)
		}
	}
	p.out.close("g")
}

// foot writes the label of X below the last panel, and returns the drawing's height.
func (p *plot) foot(y float64) float64 {
	y += 1.6 * p.font
	if label := p.X.Label; label != "" {
		y += 1.2 * p.font
		half := min(textWidth(oneLine(label), p.font), p.frame.width-4) / 2
		x := min(max(p.left+p.width/2, half+2), p.frame.width-half-2)
		p.out.label("axis-label", "middle", x, y, p.frame.width-4, p.font, label)
	}
	return y + p.font/2
}
