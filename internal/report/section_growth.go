package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/internal/chart"
	"tare/internal/metric"
	"tare/internal/unit"
)

// maxGrowth is how many laws are drawn; all are in the table.
const maxGrowth = 12

// growthSection shows how cost grows with a factor.
func growthSection(r *Report) section {
	s := section{Question: "How does it grow?", Short: "Growth"}
	if len(r.Growth) == 0 {
		return s
	}
	const reading = "Both axes are logarithmic: on them a proportional cost is a straight line at 45°, and a cost that " +
		"does not " +
		"grow is level. Dots are the measured sizes with their intervals; the dashed line is the fitted form with its band."
	s.Blocks = []block{{In: onPage, Text: reading}, {In: inMarkdown, Heading: "How costs grow"}}
	told := false // of the column of 0
	for i := range r.Growth {
		g := &r.Growth[i]
		if len(r.Growth) > 1 {
			s.Blocks = append(s.Blocks, block{In: onPage, Heading: r.growthName(g)})
		}
		f := &figure{Line: &remark{Word: "growth", Text: r.law(g)}}
		if i < maxGrowth {
			f = curveOf(r, g, "chart-3-"+strconv.Itoa(i+1))
		}
		if told {
			f.Caption = ""
		}
		told = told || f.Caption != ""
		s.Blocks = append(s.Blocks, block{Figure: f})
	}
	for _, t := range r.sizes() {
		s.Blocks = append(s.Blocks, only(inWords, tabular(&grid{table: t, Panels: true})...)...)
	}
	if len(r.Growth) > 1 {
		s.Blocks = append(s.Blocks, only(onPage, tabular(laws(r))...)...)
	}
	return s
}

// curveOf draws a law over the measured range.
func curveOf(r *Report, g *Growth, id string) *figure {
	show := Quantity(g.Unit)
	place := zeroColumnFor(g)
	p := chart.Panel{
		Title: r.growthName(g) + " against " + g.Factor, Desc: sentence(r.law(g)), Legend: true, Height: 280,
		X: place.axis(g.Factor), Y: chart.Axis{Label: r.growthName(g), Log: positive(g), Format: show},
	}
	dots := chart.Series{Name: "measured", Kind: chart.Color(0), Dots: true}
	fits := fittedLines(g)
	fit := &fits[0]
	for i := range g.Points {
		x := &g.Points[i]
		dots.X, dots.Y = append(dots.X, place.of(x.N)), append(dots.Y, x.Value)
		dots.Lo, dots.Hi = append(dots.Lo, orNaN(x.Lo)), append(dots.Hi, orNaN(x.Hi))
		if x.Fitted == nil {
			continue
		}
		if x.N == 0 { // the line would cross the break of the axis
			p.Series = append(p.Series, chart.Series{
				Kind: chart.Color(1), Dots: true, X: []float64{place.of(0)},
				Y: []float64{*x.Fitted}, Lo: []float64{orNaN(x.FittedLo)}, Hi: []float64{orNaN(x.FittedHi)},
			})
			continue
		}
		if g.Step != nil && x.N >= g.Step.To {
			fit = &fits[1]
		}
		fit.X, fit.Y = append(fit.X, x.N), append(fit.Y, *x.Fitted)
		fit.Lo, fit.Hi = append(fit.Lo, orNaN(x.FittedLo)), append(fit.Hi, orNaN(x.FittedHi))
	}
	for _, f := range fits {
		if len(f.X) > 0 {
			p.Series = append(p.Series, f)
		}
	}
	p.Series = append(p.Series, dots)
	p.Rules, p.Spans = crossings(r, g)
	if place.at > 0 {
		p.Spans = append(p.Spans, chart.Span{From: place.at / place.step, To: place.at * place.step, Label: ""})
	}
	return &figure{
		Line: &remark{Word: "growth", Text: r.law(g)}, SVG: drawn(p.SVG, id), Caption: place.caption(g.Factor),
		Summary: "The numbers of this chart", Table: sizes(r, g, show),
	}
}

// positive reports whether all values fit on a logarithmic axis.
func positive(g *Growth) bool {
	return !slices.ContainsFunc(g.Points, func(p GrowthPoint) bool { return p.Value <= 0 })
}

// A zeroColumn is the column for the size 0 on a logarithmic axis, separate and left of the others.
type zeroColumn struct {
	at, step float64
	ticks    []float64
}

// zeroColumnFor reserves a sixth of the axis at the left for the size 0, if it was measured.
func zeroColumnFor(g *Growth) zeroColumn {
	least, most, zero := math.Inf(1), 0.0, false
	for i := range g.Points {
		n := g.Points[i].N
		zero = zero || n == 0
		if n > 0 {
			least, most = min(least, n), max(most, n)
		}
	}
	if !zero || most == 0 {
		return zeroColumn{}
	}
	end := max(most, least*10)
	if b := g.BreaksBudgetAt; b != nil && b.Value > end { // the axis goes there unless that doubles it
		end = min(b.Value, most*most/least)
	}
	room := math.Pow(end/least, 1.0/6)
	p := zeroColumn{at: least / room, step: math.Pow(room, 0.25)}
	p.ticks = []float64{p.at}
	dense := most/least < 100
	for d := math.Pow(10, math.Floor(math.Log10(least))); d <= most*1.001; d *= 10 {
		for _, m := range []float64{1, 2, 5} {
			if v := m * d; v >= least*0.999 && v <= most*1.001 && (m == 1 || dense) {
				p.ticks = append(p.ticks, v)
			}
		}
	}
	return p
}

func (p zeroColumn) of(n float64) float64 {
	if n == 0 && p.at > 0 {
		return p.at
	}
	return n
}

func (p zeroColumn) axis(label string) chart.Axis {
	a := chart.Axis{Label: label, Log: true, Format: unit.Number}
	if p.at > 0 {
		a.Ticks = p.ticks
		a.Format = func(v float64) string {
			if v == p.at {
				return "0"
			}
			return unit.Number(v)
		}
	}
	return a
}

func (p zeroColumn) caption(factor string) string {
	if p.at == 0 {
		return ""
	}
	return "A logarithmic axis has no 0: the size " + factor +
		" = 0 stands in the shaded column at its left, where distance means nothing."
}

// limitOf returns the budget's limit in the metric's unit.
func limitOf(r *Report, g *Growth) (float64, bool) {
	if g.Budget == "" {
		return 0, false
	}
	for i := range r.Budgets {
		if b := &r.Budgets[i]; b.Text == g.Budget && b.Limit != nil && b.Unit != metric.Ratio {
			return *b.Limit, true
		}
	}
	return 0, false
}

// sizes returns one row for each size.
func sizes(r *Report, g *Growth, show func(float64) string) *grid {
	t := &grid{Caption: r.growthName(g) + " by " + g.Factor, table: numberHeads(g.Factor, "measured", "interval", "fitted",
		"band")}
	for i := range g.Points {
		p := &g.Points[i]
		t.add(Exactly(p.N), show(p.Value), strings.TrimSpace(interval(p.Lo, p.Hi, show)), opt(p.Fitted, show),
			strings.TrimSpace(interval(p.FittedLo, p.FittedHi, show)))
	}
	return t
}

// laws returns one row for each growth.
func laws(r *Report) *grid {
	t := &grid{Caption: "All growth laws", table: append(wordHeads("what", "factor", "law", "best form", "fit as well"),
		append(numberHeads("c0", "c1", "interval of c1", "breaks the budget at", "interval", "slope changes at", "step"),
			wordHeads("why none is named")...)...)}
	for i := range r.Growth {
		g := &r.Growth[i]
		show := Quantity(g.Unit)
		c0, c1 := "", ""
		if g.Law+g.Best != "" {
			c0, c1 = show(g.Coefficients.C0)+interval(g.C0Lo, g.C0Hi, show), show(g.Coefficients.C1)
		}
		v := []string{
			r.growthName(g), g.Factor, g.Law, g.Best, strings.Join(g.Tied, ", "), c0, c1,
			strings.TrimSpace(interval(g.Lo, g.Hi, show)), "", "", "", "", g.Reason,
		}
		if b := g.BreaksBudgetAt; b != nil {
			v[8], v[9] = unit.Number(b.Value), strings.TrimSpace(interval(b.Lo, b.Hi, unit.Number))
		}
		if k := g.Knee; k != nil {
			v[10] = unit.Number(k.Value)
		}
		if x := g.Step; x != nil {
			v[11] = x.between("") + ": " + factor(x)
		}
		t.add(v...)
	}
	return t
}
