package report

import (
	"slices"
	"strings"

	"tare/internal/chart"
	"tare/internal/design"
	"tare/internal/unit"
)

// levelBlocks returns what a control plane measured itself, and its service levels, in short and on the page in full.
func levelBlocks(r *Report) []block {
	out := tabular(&grid{
		table: r.published(), Title: "As published", Panels: true,
		Caption: "In the form in which Kubernetes' scalability tests are published: pod startup in milliseconds, " +
			"verdict by clusterloader2",
	})
	for _, t := range r.requests() {
		out = append(out, only(inWords, tabular(&grid{table: t})...)...)
	}
	tables, quiet := r.levelTables()
	if len(tables) > 0 {
		out = append(out, block{In: inMarkdown, Heading: "Service levels"})
	}
	for _, t := range tables {
		page := slices.Clone(t) // its caption says what the head of the first column says elsewhere
		page[0] = t[0].with(t[0].cells)
		page[0].head = "treatment"
		out = append(out, only(inWords, tabular(&grid{table: t, Panels: true})...)...)
		out = append(out, only(onPage, tabular(&grid{table: page, Caption: t[0].head})...)...)
	}
	if len(tables) > 0 {
		out = append(out, block{Legend: levelLegend}, block{In: onPage, Text: formulas})
	}
	if quiet != "" {
		out = append(out, block{Text: quiet})
	}
	out = append(out, whenAsked("All verdicts on service levels", &grid{
		table: r.serviceLevels(), Caption: "p99 and its verdict, by each formula and by the client's own clock",
	})...)
	out = append(out, listOf(list{Items: r.levelNotes()})...)
	return append(out, whenAsked("Requests by verb and resource", &grid{
		table: r.requestTable(), Caption: "Requests by the server's own clock, from the buckets of its histogram",
	})...)
}

const formulas = "“official”, “clusterloader2” and “kube-burner” are published formulas, “client” is tare's own " +
	"clock around the whole call. " +
	"The first two leave out webhooks, and all three miss some of admission when pods start: they can pass where " +
	"callers wait."

// attributed returns the parts of the mean time of a call, and its phases.
func attributed(r *Report) []block {
	var out []block
	all := &grid{table: r.attributionTable(), Caption: "The mean time of one call, in parts"}
	if len(tabular(all)) > 0 {
		const caption = "The mean time of one call, in parts."
		f := &figure{SVG: drawnParts(r), Caption: caption, Summary: "The parts in numbers", Table: all}
		f.Open = f.SVG == nil
		out = append(out, block{In: titled, Heading: "Where the time of one call goes"}, block{Figure: f})
	}
	for _, t := range r.attributions() {
		out = append(out, only(inWords, tabular(&grid{table: t, Panels: true})...)...)
	}
	out = append(out, only(inWords, listOf(list{Items: r.attributionNotes()})...)...)
	if len(r.phases()) > 0 {
		out = append(out, block{In: inMarkdown, Heading: "Phases"})
	}
	for _, t := range r.phases() {
		out = append(out, only(inWords, tabular(&grid{table: t, Panels: true})...)...)
	}
	return append(out, whenAsked("Phases of calls",
		&grid{table: r.phaseTable(), Caption: "Phases of calls, over all trials"})...)
}

// mostAttributed limits how many calls are drawn; a longer chart would say less than its table.
const mostAttributed = 4

// parts draws the parts of the calls, without the A/A arm.
func drawnParts(r *Report) drawing {
	again := func(id string) bool {
		return slices.ContainsFunc(r.Treatments, func(t Treatment) bool { return t.ID == id && t.Control == design.AA })
	}
	b := chart.Bars{
		Title: "Where the time of one call goes", Desc: "The mean time of one call in the client, in webhooks, in " +
			"admission, in storage and elsewhere in the server.",
		Axis: chart.Axis{Label: "mean time, on a logarithmic axis", Log: true, Format: unit.Seconds},
	}
	drawnCalls := 0
	for i := range r.Attribution {
		x := &r.Attribution[i]
		if again(x.Treatment) || x.Client == nil {
			continue
		}
		drawnCalls++
		label := r.withTreatment(x.Treatment)
		if slices.ContainsFunc(r.Attribution, func(o Attribution) bool { return o.Operation != x.Operation }) || label == "" {
			label = strings.TrimPrefix(label+" · "+x.Operation, " · ")
		}
		for _, p := range []struct {
			name  string
			value *float64
		}{
			{"client", x.Client},
			{"webhook", x.Webhook},
			{"admission", x.Admission},
			{"storage", x.Storage},
			{"other", x.Other},
		} {
			if p.value != nil && *p.value > 0 {
				b.Rows = append(b.Rows, chart.Bar{Label: p.name + " · " + label, Value: *p.value, Text: unit.Seconds(*p.value)})
			}
		}
	}
	if drawnCalls == 0 || drawnCalls > mostAttributed {
		return nil
	}
	return drawn(b.SVG, "chart-6-call")
}
