package report

import (
	"fmt"
	"strings"

	"tare/internal/chart"
	"tare/internal/unit"
)

// guardFigure draws the share of trespasses that were permitted, and the share of the other calls that were served,
// against the offered rate; nil for fewer than two rates, which the table shows as well.
func guardFigure(r *Report) *figure {
	top := chart.Panel{
		Title: "Trespasses permitted, by offered rate", Desc: strings.TrimSpace(guardFindings(r)),
		X: chart.Axis{Label: "offered (calls/s)", Format: unit.Number},
		Y: chart.Axis{Label: "trespasses permitted", Format: axisShare, Min: new(0.0)}, Height: 200, Legend: several(r),
	}
	below := chart.Panel{
		Title: "Other calls served, by offered rate",
		Desc:  "The share of the calls that the control must allow which ended as expected, by offered rate.",
		X:     top.X, Y: chart.Axis{Label: "other calls served", Format: axisShare, Min: new(0.0), Max: new(1.0)},
		Height: 130,
	}
	widest, narrowest := 0.0, 0.0
	for i := range r.Guard {
		g := &r.Guard[i]
		permitted := chart.Series{Name: orElse(r.withTreatment(g.Treatment), "permitted"), Kind: chart.Color(i), Dots: true}
		served := chart.Series{Name: permitted.Name, Kind: permitted.Kind, Dots: true}
		for _, p := range g.byRate() {
			addShare(&permitted, p.Rate, p.Trespasses.Share)
			addShare(&served, p.Rate, p.ServedShare)
			widest = max(widest, p.Rate)
			if narrowest == 0 || p.Rate < narrowest {
				narrowest = p.Rate
			}
		}
		top.Series, below.Series = append(top.Series, permitted), append(below.Series, served)
		if g.Capacity != nil {
			top.Rules = append(top.Rules, chart.Rule{At: *g.Capacity, Vertical: true, Label: "capacity " + rate(*g.Capacity)})
		}
		if o := g.Onset; o != nil && o.Above != nil && o.Sharp && !o.Later && !several(r) {
			top.Spans = append(top.Spans, chart.Span{From: *o.Above, To: o.Below, Label: "breaches begin", Kind: chart.Bad})
		}
	}
	if widest == narrowest {
		return nil
	}
	if widest > 20*narrowest {
		top.X.Log, below.X.Log = true, true
	}
	return &figure{
		SVG: drawn(chart.Stack{top, below}.SVG, "chart-guard"), Summary: "The numbers of this chart",
		Caption: "Each dot is a rate that was offered, with its 95 % interval. Above: the share of the trespasses that " +
			"were permitted; below: the share of the other calls that were served. A control that fails open leaves the " +
			"bottom of the upper chart where it breaks; one that fails closed leaves the top of the lower one.",
		Table: guardNumbers(r),
	}
}

// guardNumbers are the figure's numbers, for those who cannot see it.
func guardNumbers(r *Report) *grid {
	t := &grid{
		Caption: "Trespasses permitted and other calls served, by rate",
		table: append(wordHeads("treatment"),
			numberHeads("offered", "permitted", "from", "to", "served", "least", "most")...),
	}
	for i := range r.Guard {
		for _, p := range r.Guard[i].byRate() {
			row := []string{r.withTreatment(r.Guard[i].Treatment), unit.PerSecond(p.Rate)}
			t.add(append(append(row, p.Trespasses.Share.cells()...), p.ServedShare.cells()...)...)
		}
	}
	return t
}

// addShare adds a point with its interval, unless the share is not known.
func addShare(s *chart.Series, x float64, share *Share) {
	if share == nil {
		return
	}
	s.X, s.Y = append(s.X, x), append(s.Y, share.Value)
	s.Lo, s.Hi = append(s.Lo, share.Lo), append(s.Hi, share.Hi)
}

// cells are a share and the ends of its interval; empty ones if it is not known.
func (s *Share) cells() []string {
	if s == nil {
		return []string{"", "", ""}
	}
	return []string{fine(s.Value), fine(s.Lo), fine(s.Hi)}
}

// refusedAll says how many trespasses were permitted.
func (g *Guard) refusedAll() string {
	switch n := &g.Trespasses; {
	case n.Share == nil:
		return "the control decided no trespass: nothing is known"
	case n.Permitted == 0 && n.Unclear > 0:
		return fmt.Sprintf("it permitted none of the %d trespasses that it decided, and answered %d others neither way",
			n.Decided(), n.Unclear)
	case n.Permitted == 0 && n.Unanswered > 0:
		return fmt.Sprintf("it permitted none of the %d trespasses that it decided, and did not answer %d others",
			n.Decided(), n.Unanswered)
	case n.Permitted == 0:
		return fmt.Sprintf("it refused all %d trespasses that it decided: below %s are permitted, at 95 %%", n.Refused,
			ShareBelow(n.Share.Hi))
	default:
		named := g.permitted()
		return strings.Join(append([]string{
			fmt.Sprintf("it permitted %d of the %d trespasses that it decided", n.Permitted, n.Decided()),
		}, named[:min(maxNamed, len(named))]...), "; ")
	}
}

// guardFindings says of each treatment whether it guarded.
func guardFindings(r *Report) string {
	var out []string
	for i := range r.Guard {
		g := &r.Guard[i]
		// guardFacts has the rest.
		text := strings.Join(each(nonEmpty(g.refusedAll(), g.mixedUp(), g.Unearned), sentence), " ")
		if name := r.withTreatment(g.Treatment); name != "" {
			text = name + ": " + strings.ToLower(text[:1]) + text[1:]
		}
		out = append(out, text)
	}
	if len(out) > 0 {
		out = append(out, "")
	}
	return strings.Join(out, " ")
}
