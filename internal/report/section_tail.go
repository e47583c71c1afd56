package report

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/internal/chart"
	"tare/internal/unit"
)

// maxLines is the number of distributions that one chart can distinguish.
const maxLines = 8

// tailSection shows whether the cost is in the typical calls or in the tail.
func tailSection(r *Report) section {
	s := section{Question: "The typical request or the tail?", Short: "Tail"}
	all := spectra(r)
	if len(all) == 0 {
		return s
	}
	lines, left := chosen(r, all)
	text := spectrumText(all)
	if left > 0 {
		text += " Drawn are the baseline, the baseline again (the A/A arm) and the treatments with the largest effects; " +
			"the other " + strconv.Itoa(left) + " are in the tables."
	}
	s.Blocks = append(s.Blocks, block{In: onPage, Text: text})
	for i := range all {
		if len(all) > 1 {
			s.Blocks = append(s.Blocks, block{In: onPage, Heading: all[i].name()})
		}
		s.Blocks = append(s.Blocks, block{Figure: all[i].figure(r, lines, "chart-2-"+strconv.Itoa(i+1))})
	}
	return s
}

// A spectrum is the distribution of one quantity under each treatment.
type spectrum struct {
	operation, metric string
	of                []*Percentiles
}

func (s *spectrum) name() string { return Measured(s.operation, s.metric, "") }

// spectra returns the distributions of time, one spectrum for each operation: of the time that a user waits if it was
// measured, otherwise of the time that is derived least.
func spectra(r *Report) []spectrum {
	var all []spectrum
	rank := func(metric string) int { return slices.Index([]string{"cpu", "service", "wall", "response"}, metric) }
	for i := range r.Percentiles {
		p := &r.Percentiles[i]
		if len(p.Points) == 0 {
			continue
		}
		k := slices.IndexFunc(all, func(s spectrum) bool { return s.operation == p.Operation })
		switch {
		case k < 0:
			all = append(all, spectrum{operation: p.Operation, metric: p.Metric, of: []*Percentiles{p}})
		case all[k].metric == p.Metric:
			all[k].of = append(all[k].of, p)
		case rank(p.Metric) > rank(all[k].metric):
			all[k].metric, all[k].of = p.Metric, []*Percentiles{p}
		}
	}
	order := ranks(r)
	for _, s := range all {
		slices.SortStableFunc(s.of, func(a, b *Percentiles) int {
			return cmp.Compare(order(a.Treatment),
				order(b.Treatment))
		})
	}
	return all
}

func spectrumText(all []spectrum) string {
	text := "Each line is one treatment's distribution, from typical calls at the left to rare ones at the right. " +
		"Shaded: the interval of each quantile, from the spread between blocks. Dashed: too few blocks or values for an " +
		"interval, so differences there are not reliable."
	if batches := slices.ContainsFunc(all, func(s spectrum) bool { return s.of[0].Of == "batches" }); batches {
		text += " Each value is the mean of a batch of calls: this is the tail of batches, not of calls."
	}
	return text
}

// figure draws a spectrum's lines; a treatment has the same colour in every chart.
func (s *spectrum) figure(r *Report, lines []string, id string) *figure {
	show := Quantity(s.of[0].Unit)
	c := chart.Percentiles{
		Title: s.name() + " against percentile", Desc: "The distribution of " + s.name() +
			" under each treatment, on an axis on which p90, p99 and p99.9 stand equally far apart.",
		Y: chart.Axis{Label: measure(s.metric, ""), Format: show}, Legend: true, Height: 260,
	}
	least, most := math.Inf(1), 0.0
	for _, p := range s.of {
		i := slices.Index(lines, p.Treatment)
		if i < 0 {
			continue
		}
		for _, q := range p.Points {
			if q.Value > 0 {
				least, most = min(least, q.Value), max(most, q.Value)
			}
		}
		c.Series = append(c.Series, spectrumLine(r, p, chart.Color(i))...)
	}
	if most < 3*least { // ends at 1, 2 and 5 would leave most of the chart empty
		c.Y.Min, c.Y.Max = new(least*0.97), new(most*1.04)
	}
	return &figure{SVG: drawn(c.SVG, id), Summary: "The numbers of this chart", Table: s.table(show)}
}

// spectrumLine draws a distribution: solid up to the last quantile with an interval (or to the median), and dashed
// beyond, where quantiles are only observations.
func spectrumLine(r *Report, p *Percentiles, kind chart.Kind) []chart.Series {
	solid := chart.Series{Name: r.short(p.Treatment), Kind: kind, Line: true}
	if isBaseline(r, p.Treatment) {
		solid.Name += " (baseline)"
	}
	dashed := chart.Series{Kind: kind, Line: true, Dash: true}
	last := -1 // of the solid part
	for i, q := range p.Points {
		if q.Q <= 0.5 || q.Lo != nil && q.Hi != nil {
			last = i
		}
	}
	for i, q := range p.Points {
		if i <= last {
			solid.X, solid.Y = append(solid.X, q.Q), append(solid.Y, q.Value)
			solid.Lo, solid.Hi = append(solid.Lo, orNaN(q.Lo)), append(solid.Hi, orNaN(q.Hi))
		}
		if i >= last {
			dashed.X, dashed.Y = append(dashed.X, q.Q), append(dashed.Y, q.Value)
		}
	}
	if len(dashed.X) < 2 {
		return []chart.Series{solid}
	}
	return []chart.Series{solid, dashed}
}

// chosen returns at most maxLines treatments in the run's order: the baseline, the A/A arm and those with the largest
// effects, and how many others there are.
func chosen(r *Report, all []spectrum) (lines []string, left int) {
	for i := range all {
		for _, p := range all[i].of {
			if !slices.Contains(lines, p.Treatment) {
				lines = append(lines, p.Treatment)
			}
		}
	}
	if len(lines) <= maxLines {
		return lines, 0
	}
	weight := func(id string) float64 {
		if isBaseline(r, id) || isControl(r, id) {
			return math.Inf(1)
		}
		return largestEffect(r, id)
	}
	byWeight := slices.Clone(lines)
	slices.SortStableFunc(byWeight, func(a, b string) int { return cmp.Compare(weight(b), weight(a)) })
	left = len(lines) - maxLines
	return slices.DeleteFunc(lines, func(id string) bool { return !slices.Contains(byWeight[:maxLines], id) }), left
}

// largestEffect returns the largest deciding effect of a treatment, as a share.
func largestEffect(r *Report, treatment string) float64 {
	most := 0.0
	for i := range r.Effects {
		if e := &r.Effects[i]; e.Gating && e.Treatment == treatment && isRatio(e) && e.estimated() {
			most = max(most, math.Abs(e.Estimate))
		}
	}
	return most
}

func isBaseline(r *Report, id string) bool {
	return slices.ContainsFunc(r.Treatments, func(t Treatment) bool { return t.ID == id && t.Baseline })
}

// isControl reports whether a treatment checks the experiment itself.
func isControl(r *Report, id string) bool {
	return slices.ContainsFunc(r.Treatments, func(t Treatment) bool { return t.ID == id && t.Control != "" })
}

// tabulated are the quantiles in tables.
var tabulated = []float64{0.5, 0.9, 0.99, 0.999}

func (s *spectrum) table(show func(float64) string) *grid {
	t := &grid{
		Caption: "Quantiles of " + s.name(),
		table:   append(wordHeads("treatment"), numberHeads(orElse(s.of[0].Of, "values"))...),
	}
	for _, q := range tabulated {
		t.table = append(t.table, numberHeads("p"+unit.Number(q*100), "interval")...)
	}
	for _, p := range s.of {
		row := []string{p.Treatment, ""}
		if p.N > 0 {
			row[1] = strconv.Itoa(p.N)
		}
		for _, q := range tabulated {
			value, between := "", ""
			for i := range p.Points {
				if x := &p.Points[i]; math.Abs(x.Q-q) < 1e-9 {
					value, between = show(x.Value), strings.TrimSpace(interval(x.Lo, x.Hi, show))
				}
			}
			row = append(row, value, between)
		}
		t.add(row...)
	}
	return t
}
