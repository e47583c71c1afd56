package chart

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// point is a placeable point of a series, or a gap.
type point struct {
	x, y, lo, hi float64
	label        string
}

// banded reports whether the series has an interval for each point.
func (s Series) banded() bool { return len(s.Lo) >= len(s.Y) && len(s.Hi) >= len(s.Y) && len(s.Y) > 0 }

func (s Series) lined() bool { return s.Line || !s.Dots }

// each calls f with the points that both axes can place.
func (s Series) each(y, x Axis, f func(point)) {
	for _, run := range s.runs(y, x) {
		for _, pt := range run {
			f(pt)
		}
	}
}

// runs cuts the series into stretches without a gap.
func (s Series) runs(y, x Axis) [][]point {
	var all [][]point
	var run []point
	for i := range min(len(s.X), len(s.Y)) {
		if !x.placeable(s.X[i]) || !y.placeable(s.Y[i]) {
			if len(run) > 0 {
				all, run = append(all, run), nil
			}
			continue
		}
		pt := point{x: s.X[i], y: s.Y[i], lo: math.NaN(), hi: math.NaN()}
		if i < len(s.Labels) {
			pt.label = s.Labels[i]
		}
		if s.banded() {
			pt.lo, pt.hi = s.Lo[i], s.Hi[i]
		}
		run = append(run, pt)
	}
	if len(run) > 0 {
		all = append(all, run)
	}
	return all
}

// signed reports whether lines of the panel also need markers, because there are several.
func (p Panel) signed(s Series) bool {
	several := 0
	for _, o := range p.Series {
		if o.lined() && !o.Dash && o.Name != "" {
			several++
		}
	}
	return several > 1 && s.lined() && !s.Dash && !s.Dots && s.Name != ""
}

// signs returns the few points of a line that get a marker: those next to evenly spaced places, shifted from series to
// series so that markers of lines that coincide do not.
func (p *plot) signs(s Series, points []point) []point {
	if !p.signed(s) {
		return nil
	}
	index := slices.IndexFunc(p.Series, func(o Series) bool { return o.Name == s.Name && o.Kind == s.Kind })
	count := 5
	if p.narrow {
		count = 3
	}
	var chosen []point
	for i := range count {
		target := (float64(i) + (float64(index)+0.5)/float64(len(p.Series))) / float64(count)
		best, distance := point{}, 0.1/float64(count)
		for _, pt := range points {
			x, y := p.x.pos(pt.x), p.y.pos(pt.y)
			if d := math.Abs(x - target); d < distance && x >= 0 && x <= 1 && y >= 0 && y <= 1 {
				best, distance = pt, d
			}
		}
		if distance < 0.1/float64(count) {
			chosen = append(chosen, best)
		}
	}
	return chosen
}

// xy is a position on the page.
type xy struct{ x, y float64 }

// unheld returns the positions of a stretch, which may lie outside the frame, with the corners of a step chart put in.
func (p *plot) unheld(run []point, step bool) []xy {
	pts := make([]xy, 0, len(run))
	for _, pt := range run {
		q := xy{p.left + near(p.x.pos(pt.x))*p.width, p.top + (1-near(p.y.pos(pt.y)))*p.height}
		if step && len(pts) > 0 {
			pts = append(pts, xy{q.x, pts[len(pts)-1].y})
		}
		pts = append(pts, q)
	}
	return pts
}

// near keeps a position within a thousand million plots, where cutting at the frame still has digits to work with.
func near(pos float64) float64 { return min(max(pos, -1e9), 1e9) }

// series paints a series' line and dots.
func (p *plot) series(s Series) {
	runs := s.runs(p.Y, p.X)
	if len(runs) == 0 {
		return
	}
	p.out.group("series", s.Kind)
	if s.lined() {
		p.lines(s, runs)
	}
	points := slices.Concat(runs...)
	if !s.Dots {
		points = p.signs(s, points)
	}
	for _, pt := range points {
		p.dot(s, pt)
	}
	p.out.close("g")
	p.dotLabels(points) // in the colour of text, which can be read on every band
}

// dotLabels writes the labels of dots above them, those that would touch no earlier one.
func (p *plot) dotLabels(points []point) {
	var placed []xy
	for _, pt := range points {
		if pt.label == "" {
			continue
		}
		width := textWidth(pt.label, p.font)
		at := xy{min(max(p.px(pt.x), width/2), p.frame.width-width/2), max(p.py(pt.y)-0.55*p.font, p.top+p.font)}
		if slices.ContainsFunc(placed, func(o xy) bool {
			return math.Abs(o.x-at.x) < width+0.3*p.font && math.Abs(o.y-at.y) < p.font
		}) {
			continue // its title names it
		}
		placed = append(placed, at)
		p.out.label("dot-label", "middle", at.x, at.y, p.frame.width, p.font, pt.label)
	}
}

func (p *plot) lines(s Series, runs [][]point) {
	var path strings.Builder
	for _, run := range runs {
		pts := thin(p.unheld(run, s.Step), p.left)
		if len(pts) == 1 && !s.Dots {
			p.dot(s, run[0]) // a line of one point would be invisible
			continue
		}
		p.clipped(&path, pts)
	}
	if path.Len() == 0 {
		return
	}
	p.out.empty("path", "class", "line", "d", path.String(), "fill", "none", "stroke", "currentColor",
		"stroke-width", "2", "stroke-linejoin", "round", "stroke-dasharray", dash(s.Dash))
}

func dash(on bool) string {
	if on {
		return "6 4"
	}
	return ""
}

// clipped writes the parts of a polyline that lie in the frame (Liang and Barsky, 1984, per segment).
func (p *plot) clipped(path *strings.Builder, pts []xy) {
	var at xy
	open := false
	for i := 1; i < len(pts); i++ {
		a, b, ok := p.clip(pts[i-1], pts[i])
		if !ok {
			open = false
			continue
		}
		if !open || a != at {
			move(path, 'M', a)
		}
		move(path, 'L', b)
		at, open = b, b == pts[i]
	}
}

func move(path *strings.Builder, verb byte, q xy) {
	path.WriteByte(verb)
	path.WriteString(coord(q.x) + " " + coord(q.y))
}

func (p *plot) clip(a, b xy) (from, to xy, inside bool) {
	d := xy{b.x - a.x, b.y - a.y}
	t0, t1 := 0.0, 1.0
	for _, e := range [4][2]float64{
		{-d.x, a.x - p.left},
		{d.x, p.left + p.width - a.x},
		{-d.y, a.y - p.top},
		{d.y, p.top + p.height - a.y},
	} {
		const hair = 1e-7 // of a pixel: an end on the frame's edge is inside, whatever the last bit says
		if e[0] == 0 {
			if e[1] < -hair {
				return a, b, false
			}
			continue
		}
		if t := e[1] / e[0]; e[0] < 0 {
			t0 = max(t0, t)
		} else {
			t1 = min(t1, t)
		}
	}
	if t0 > t1+1e-9 {
		return a, b, false
	}
	from, to = p.inside(a), p.inside(b)
	if t0 > 0 {
		from = p.inside(xy{a.x + t0*d.x, a.y + t0*d.y})
	}
	if t1 < 1 {
		to = p.inside(xy{a.x + t1*d.x, a.y + t1*d.y})
	}
	return from, to, true
}

// inside holds an end in the frame, where the last bits would leave it.
func (p *plot) inside(q xy) xy {
	return xy{min(max(q.x, p.left), p.left+p.width), min(max(q.y, p.top), p.top+p.height)}
}

// thin keeps, of the points that fall into one column of a unit's width, the first, the lowest, the highest and the
// last ("M4", Jugel et al., VLDB 2014): the picture is the same, and an hour at ten points a second fits into a page.
func thin(pts []xy, left float64) []xy {
	const few = 1500
	if len(pts) <= few {
		return pts
	}
	var out []xy
	for i := 0; i < len(pts); {
		column := math.Floor(pts[i].x - left)
		low, high, j := i, i, i
		for ; j < len(pts) && math.Floor(pts[j].x-left) == column; j++ {
			if pts[j].y < pts[low].y {
				low = j
			}
			if pts[j].y > pts[high].y {
				high = j
			}
		}
		last := -1
		for _, k := range []int{i, min(low, high), max(low, high), j - 1} {
			if k != last {
				out, last = append(out, pts[k]), k
			}
		}
		i = j
	}
	return out
}

// band paints the interval around a line.
func (p *plot) band(s Series) {
	if !s.banded() || !s.lined() {
		return
	}
	var path strings.Builder
	for _, run := range s.runs(p.Y, p.X) {
		p.ribbon(&path, run)
	}
	if path.Len() == 0 {
		return
	}
	p.out.group("series", s.Kind)
	p.out.empty("path", "class", "band", "d", path.String(), "fill", "currentColor", "fill-opacity", "0.18")
	p.out.close("g")
}

// ribbon writes the outline of a stretch's interval, broken where a point has none.
func (p *plot) ribbon(path *strings.Builder, run []point) {
	bottom := p.top + p.height
	var upper, lower []xy
	flush := func() {
		for i, q := range upper {
			move(path, "ML"[min(i, 1)], q)
		}
		for _, q := range slices.Backward(lower) {
			move(path, 'L', q)
		}
		if len(upper) > 0 {
			path.WriteByte('Z')
		}
		upper, lower = nil, nil
	}
	for _, pt := range run {
		x := p.x.pos(pt.x)
		if math.IsNaN(pt.lo) || math.IsNaN(pt.hi) || x < 0 || x > 1 {
			flush()
			continue
		}
		upper = append(upper, xy{p.left + x*p.width, bottom - p.y.bound(pt.hi, true)*p.height})
		lower = append(lower, xy{p.left + x*p.width, bottom - p.y.bound(pt.lo, false)*p.height})
	}
	flush()
}

// dot paints a point with its interval and says its numbers on hover. One outside the frame is hollow, at the edge.
func (p *plot) dot(s Series, pt point) {
	bars := s.banded() && !s.lined() && !math.IsNaN(pt.lo) && !math.IsNaN(pt.hi)
	text := p.X.write(pt.x) + ", " + p.Y.write(pt.y)
	if s.Name != "" {
		text = s.Name + ": " + text
	}
	if pt.label != "" {
		text = pt.label + ". " + text
	}
	x, y, bottom := p.px(pt.x), p.py(pt.y), p.top+p.height
	if bars {
		text += fmt.Sprintf(" [%s, %s]", p.Y.write(pt.lo), p.Y.write(pt.hi))
		p.out.line("whisker", x, bottom-p.y.bound(pt.lo, false)*p.height, x, bottom-p.y.bound(pt.hi, true)*p.height,
			"stroke-width", "1.5")
	}
	px, py := p.x.pos(pt.x), p.y.pos(pt.y)
	const edge = 1e-6
	outside := px < -edge || px > 1+edge || py < -edge || py > 1+edge
	p.out.marker(s.Kind.look().marker, x, y, p.font*0.3, outside, text)
}

// polyline returns the path through all points.
func polyline(pts []xy) string {
	var path strings.Builder
	for i, q := range pts {
		move(&path, "ML"[min(i, 1)], q)
	}
	return path.String()
}
