package report

import (
	"strconv"

	"tare/internal/chart"
)

// controlBlocks returns the experiment's self-checks: the baseline against itself, and operations on which a control
// cannot act.
func controlBlocks(r *Report) []block {
	a := r.AA
	if a == nil {
		if r.Design != nil && len(r.Effects) > 0 {
			return []block{{Notice: &remark{
				Text: "the baseline was not measured against itself, so the size of this host's false effects is unknown",
			}}}
		}
		return nil
	}
	out := []block{{Heading: "The run's self-checks"}}
	if text := negativeText(a); text != "" {
		out = append(out, block{Text: text})
	}
	return append(out, controlFigures(r)...)
}

func negativeText(a *AA) string {
	if len(a.NegativeControls) == 0 {
		return ""
	}
	off := 0
	for i := range a.NegativeControls {
		if e := &a.NegativeControls[i]; hasInterval(e) && (e.Lo > 0 || e.Hi < 0) {
			off++
		}
	}
	text := "Negative controls are operations on which a control cannot act: there, too, any effect is an artefact. "
	if off == 0 {
		return text + "None of the " + strconv.Itoa(len(a.NegativeControls)) + " differs from zero."
	}
	return text + strconv.Itoa(off) + " of the " + strconv.Itoa(len(a.NegativeControls)) + " differ from zero."
}

// maxControls limits how many controls are drawn; the table has all.
const maxControls = 40

// controlFigures draw the controls on one axis, with half the margin as the band in which they should stay.
func controlFigures(r *Report) []block {
	f := chart.Forest{
		Title: "Effects where there can be none",
		Desc:  "The baseline against itself, and negative controls, with their intervals.",
		Axis:  chart.Axis{Label: "change where there can be none", Format: tickShare},
	}
	all := controlEffects(r.AA)
	one := oneMeasure(all)
	if one != "" {
		f.Axis.Label = "change of " + one + " where there can be none"
	}
	for _, e := range all {
		if isRatio(e) && len(f.Rows) < maxControls {
			f.Rows = append(f.Rows, controlRow(r, e, one != ""))
		}
	}
	if len(all) == 0 {
		return nil
	}
	t := effectTable(r, "Effects where there can be none", all)
	fig := &figure{Summary: "The numbers of this chart", Table: t}
	if len(f.Rows) == 0 {
		fig.Summary = "Effects where there can be none"
		return []block{{Figure: fig}}
	}
	if d := r.Design; d != nil && d.Margin > 0 {
		m := d.Margin / 2
		f.Spans = []chart.Span{{From: -m, To: m, Label: "half the margin, ±" + axisShare(m)}}
	}
	fig.SVG = drawn(f.SVG, "chart-7-controls")
	if len(f.Rows) < len(all) {
		fig.Caption = "Drawn are " + strconv.Itoa(len(f.Rows)) + " of " + strconv.Itoa(len(all)) + "; all are in the table."
	}
	return []block{{Figure: fig}}
}

// controlEffects returns the effects of the A/A arm, then the negative controls.
func controlEffects(a *AA) []*Effect {
	var all []*Effect
	for _, set := range [][]Effect{a.Effects, a.NegativeControls} {
		for i := range set {
			all = append(all, &set[i])
		}
	}
	return all
}

// oneMeasure returns the metric of all effects, if they share it and differ by their operation.
func oneMeasure(all []*Effect) string {
	for _, e := range all {
		if e.Metric != all[0].Metric || e.Quantile != all[0].Quantile || e.Operation == "" {
			return ""
		}
	}
	if len(all) == 0 {
		return ""
	}
	return measure(all[0].Metric, all[0].Quantile)
}

// controlRow judges only whether an effect differs from zero.
func controlRow(r *Report, e *Effect, brief bool) chart.ForestRow {
	row := forestRow(r, &effectGroup{controls: []*Effect{e}}, e)
	what := e.measured()
	if brief {
		what = e.Operation
	}
	row.Label, row.Apart = r.short(e.Treatment)+", "+what, false
	row.Word, row.Verdict = "spans 0", chart.Neutral
	if hasInterval(e) && (e.Lo > 0 || e.Hi < 0) {
		row.Word, row.Verdict = "differs", chart.Unsure
	}
	return row
}

// designText describes how the blocks were measured, and at which looks they were judged.
func designText(r *Report) string {
	if r.Design == nil || r.Design.Unblocked {
		return ""
	}
	return "In each block every treatment was measured once, in random order." + lookText(r.Design)
}

// lookText describes the looks at the results, and further looks that were planned.
func lookText(d *Design) string {
	var done, left []string
	for _, n := range d.Looks {
		if n <= d.Blocks {
			done = append(done, strconv.Itoa(n))
		} else {
			left = append(left, strconv.Itoa(n))
		}
	}
	text := ""
	if len(done) > 0 {
		text = " The results were looked at after " + listed(done) + " blocks"
		if d.Alpha > 0 {
			text += ", each time with a probability of error of " + strconv.FormatFloat(d.Alpha, 'g', 3, 64)
		}
		text += "."
	}
	if len(left) > 0 {
		text += " Further looks were planned after " + listed(left) + "."
	}
	return text
}
