package chart

import "math"

// maxShade is the opacity of the strongest cell: weak enough that text in the page's own colour stays legible on it.
const (
	minShade, maxShade = 0.05, 0.62
	swatches           = 5
)

// grid is a heat map with its place on the page.
type grid struct {
	Heat
	frame
	out                *canvas
	left, top          float64
	cell, pitch        float64 // a cell's width and height
	least, most        float64 // over the finite values
	any, beyond        bool    // there are some; some are stronger than the limit
	numbered           bool    // each cell has its value in it
	rowCount, colCount int
}

// heat lays out and paints a heat map.
func heat(f frame, h Heat) drawing {
	d := drawing{title: h.Title, desc: h.Desc}
	g := &grid{Heat: h, frame: f, out: &d.body, top: 2}
	g.measure()
	if !g.any {
		d.height = g.nothing()
		return d
	}
	for i := range g.rowCount {
		g.row(i)
	}
	bottom := g.columns(g.top + float64(g.rowCount)*g.pitch)
	d.height = math.Ceil(g.key(bottom))
	return d
}

// measure finds the size of the grid and the range of its values.
func (g *grid) measure() {
	g.rowCount, g.colCount = max(len(g.Rows), len(g.Values)), len(g.Cols)
	for _, row := range g.Values {
		g.colCount = max(g.colCount, len(row))
		for _, v := range row {
			if !placed(v) {
				continue
			}
			if !g.any {
				g.least, g.most, g.any = v, v, true
			}
			g.least, g.most = min(g.least, v), max(g.most, v)
		}
	}
	if g.Diverging {
		g.most = max(math.Abs(g.least), math.Abs(g.most))
		g.least = -g.most
	}
	if g.Limit > 0 && g.Limit <= limit {
		g.beyond = g.least < -g.Limit || g.most > g.Limit
		g.least, g.most = max(g.least, -g.Limit), min(g.most, g.Limit)
	}
	for i := range g.rowCount {
		g.left = max(g.left, textWidth(at(g.Rows, i), g.font))
	}
	g.left = min(g.left, g.width/3) + g.font
	g.cell = (g.width - g.left - 2) / float64(max(g.colCount, 1))
	g.cell = min(g.cell, 6*g.font)
	g.pitch = 2 * g.font
	g.numbered = g.fits()
}

// at returns the i-th label, empty if there are fewer.
func at(labels []string, i int) string {
	if i < len(labels) {
		return oneLine(labels[i])
	}
	return ""
}

func (g *grid) nothing() float64 {
	height := 6 * g.font
	g.out.empty("rect", "class", "frame", "x", 1, "y", 1, "width", g.width-2, "height", height-2, "fill", "none",
		"stroke", "currentColor", "stroke-opacity", "0.3")
	sentence := g.Empty
	if sentence == "" {
		sentence = noData
	}
	g.out.label("none", "middle", g.width/2, height/2+0.35*g.font, g.width-2*g.font, g.font, sentence)
	return height
}

// shade returns a value's kind and opacity.
func (g *grid) shade(v float64) (Kind, float64) {
	if !placed(v) {
		return Neutral, 0
	}
	span := g.most/2 - g.least/2 // halves: the difference of two huge values would overflow
	if span == 0 {
		return Color(0), minShade
	}
	if g.Diverging {
		k := Color(0)
		if v > 0 {
			k = Color(1)
		}
		return k, minShade + (maxShade-minShade)*min(math.Abs(v)/g.most, 1)
	}
	return Color(0), minShade + (maxShade-minShade)*min(max((v/2-g.least/2)/span, 0), 1)
}

// row paints a row of cells: those of one colour in one group, since a page may hold thousands.
func (g *grid) row(i int) {
	y := g.top + float64(i)*g.pitch
	g.out.label("row", "end", g.left-g.font/2, y+g.pitch/2+0.35*g.font, g.left-g.font, g.font, at(g.Rows, i))
	for _, kind := range []Kind{Neutral, Color(0), Color(1)} {
		open := false
		for j := range g.colCount {
			v := g.value(i, j)
			if k, _ := g.shade(v); k != kind {
				continue
			}
			if !open {
				g.out.open("g", "class", "cells "+kind.look().class, "color", kind.look().color, "fill", "currentColor")
				open = true
			}
			g.square(i, j, y, v)
		}
		if open {
			g.out.close("g")
		}
	}
	for j := range g.colCount {
		if v := g.value(i, j); g.numbered && placed(v) {
			g.out.label("cell-value", "middle", g.left+(float64(j)+0.5)*g.cell, y+g.pitch/2+0.35*g.font, g.cell, g.font,
				written(g.Format, v))
		}
	}
}

// fits says whether every value can stand in its cell: numbers in some cells only would draw the eye to those.
func (g *grid) fits() bool {
	for i := range g.rowCount {
		for j := range g.colCount {
			if v := g.value(i, j); placed(v) && textWidth(written(g.Format, v), g.font) > g.cell-2 {
				return false
			}
		}
	}
	return true
}

// value returns the value of a cell, or NaN.
func (g *grid) value(i, j int) float64 {
	if i < len(g.Values) && j < len(g.Values[i]) && placed(g.Values[i][j]) {
		return g.Values[i][j]
	}
	return math.NaN()
}

func placed(v float64) bool { return !math.IsNaN(v) && math.Abs(v) <= limit }

// square paints a cell; one without a value is an outline.
func (g *grid) square(i, j int, y, v float64) {
	inset := min(1, g.cell/8)
	title := at(g.Rows, i) + ", " + at(g.Cols, j) + ": "
	box := []any{
		"x", g.left + float64(j)*g.cell + inset, "y", y + 1, "width", coord(g.cell - 2*inset),
		"height", g.pitch - 2,
	}
	if !placed(v) {
		box = append(box, "fill", "none", "stroke", "currentColor", "stroke-opacity", "0.6", "stroke-dasharray", "2 2")
		title += "no value"
	} else {
		_, shade := g.shade(v)
		box = append(box, "fill-opacity", opacity(shade))
		title += written(g.Format, v)
	}
	g.out.open("rect", box...)
	g.out.leaf("title", title)
	g.out.close("rect")
}

func opacity(v float64) string { return written(nil, math.Round(v*100)/100) }

// columns writes the labels below the grid, as many as have room, and returns what is below them.
func (g *grid) columns(y float64) float64 {
	width := g.cell * float64(g.colCount)
	var ticks []tick
	widest := 0.0
	for j := range g.colCount {
		label := cut(at(g.Cols, j), g.width/4, g.font)
		widest = max(widest, textWidth(label, g.font))
		ticks = append(ticks, tick{pos: (float64(j) + 0.5) / float64(g.colCount), label: label})
	}
	every := max(int(math.Ceil((widest+g.font*0.6)/g.cell)), 1)
	g.out.open("g", "class", "tick", "fill-opacity", "0.8")
	for j := 0; j < len(ticks); j += every {
		x, half := g.left+ticks[j].pos*width, textWidth(ticks[j].label, g.font)/2
		if x+half > g.width || x-half < 0 {
			continue
		}
		g.out.label("", "middle", x, y+1.2*g.font, g.width, g.font, ticks[j].label)
	}
	g.out.close("g")
	y += 1.5 * g.font
	if g.ColLabel != "" {
		y += 1.2 * g.font
		g.out.label("axis-label", "start", g.left, y, g.width-g.left, g.font, g.ColLabel)
	}
	return y
}

// key shows what the shades mean: the least value, some swatches, the greatest.
func (g *grid) key(y float64) float64 {
	y += 0.8 * g.font
	low, high := written(g.Format, g.least), written(g.Format, g.most)
	if g.beyond {
		low, high = "≤ "+low, "≥ "+high
	}
	side := 1.4 * g.font
	room := (g.width - swatches*side) / 3
	low, high = cut(low, room, g.font), cut(high, room, g.font)
	x := min(g.left, g.width-swatches*side-textWidth(low, g.font)-textWidth(high, g.font)-2*g.font)
	x = max(x, 2)
	base := y + 1.05*g.font
	g.out.label("key", "start", x, base, room, g.font, low)
	x += textWidth(low, g.font) + g.font/2
	for i := range swatches {
		share := float64(i) / (swatches - 1)
		kind, shade := g.shade(g.least*(1-share) + g.most*share)
		g.out.group("cells", kind)
		g.out.empty("rect", "class", "cell", "x", x, "y", y, "width", side, "height", side, "fill", "currentColor",
			"fill-opacity", opacity(shade))
		g.out.close("g")
		x += side
	}
	g.out.label("key", "start", x+g.font/2, base, room, g.font, high)
	return y + 2*g.font
}
