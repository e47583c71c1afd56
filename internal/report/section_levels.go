package report

import (
	"html/template"
	"slices"
	"strings"

	"tare/internal/chart"
	"tare/internal/design"
	"tare/internal/unit"
)

// levelBlocks are the verdicts on service levels, in short and in full.
func levelBlocks(r *Report) (out []block) {
	tables, quiet := r.LevelTables()
	for _, x := range tables {
		if t := tableOf("", x); t != nil {
			marked(t)
			out = append(out, block{Table: t})
		}
	}
	if len(tables) > 0 {
		out = append(out, block{Text: strings.TrimSpace(sentence(quiet) + " ✓ pass, ✗ fail, ? inconclusive, – not measured. " + formulas)})
	}
	if t := tableOf("p99 and its verdict, by each formula and by the client's own clock", r.Levels()); t != nil {
		out = append(out, block{Figure: &figure{Summary: "All verdicts on service levels", Table: t}})
	}
	if remarks := r.LevelRemarks(); len(remarks) > 0 {
		out = append(out, block{List: sentences(remarks)})
	}
	return out
}

// levelSection is question 4 of a run that asked not for a capacity: whether a control plane keeps what is promised of it.
func levelSection(r *Report) section {
	s := section{Number: 4, Question: "Does it keep its service levels?", Short: "Service levels", Blocks: levelBlocks(r)}
	if t := tableOf("In the form in which Kubernetes' scalability tests are published: pod startup in milliseconds, verdict by clusterloader2", r.StartupTable()); t != nil {
		s.Blocks = append(s.Blocks, block{Heading: "As published"}, block{Table: t})
	}
	if t := tableOf("Requests by the server's own clock, from the buckets of its histogram", r.RequestTable()); t != nil {
		s.Blocks = append(s.Blocks, block{Figure: &figure{Summary: "Requests by verb and resource", Table: t}})
	}
	return s
}

const formulas = "“official”, “clusterloader2” and “kube-burner” are published formulas, “client” is tare's own clock around the whole call. " +
	"The first two leave out webhooks, and all three miss some of admission when pods start: they can pass where callers wait."

// marked colours the cells of a table that begin with a verdict's sign.
func marked(t *grid) {
	for _, row := range t.Rows {
		for i := range row[1:] {
			row[1+i].Class = classOf(row[1+i].Text)
		}
	}
}

func sentences(texts []string) []string {
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = sentence(t)
	}
	return out
}

// attributed is where the mean time of a call went, and its phases.
func attributed(r *Report) []block {
	var out []block
	if t := tableOf("The mean time of one call, in parts", r.Attributions()); t != nil {
		f := &figure{SVG: drawnParts(r), Caption: "The mean time of one call, in parts.", Summary: "The parts in numbers", Table: t, Open: true}
		out = append(out, block{Heading: "Where does the time of one call go?"}, block{Figure: f})
	}
	if t := tableOf("Phases of calls, over all trials", r.PhaseTable()); t != nil {
		out = append(out, block{Figure: &figure{Summary: "Phases of calls", Table: t}})
	}
	return out
}

// mostAttributed bounds how many calls are drawn; more would be a long chart that says less than its table.
const mostAttributed = 4

// parts draws the parts of the calls; the A/A arm is left out.
func drawnParts(r *Report) template.HTML {
	again := func(id string) bool {
		return slices.ContainsFunc(r.Treatments, func(t Treatment) bool { return t.ID == id && t.Control == design.AA })
	}
	b := chart.Bars{
		Title: "Where the time of one call goes", Desc: "The mean time of one call in the client, in webhooks, in admission, in storage and elsewhere in the server.",
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
		}{{"client", x.Client}, {"webhook", x.Webhook}, {"admission", x.Admission}, {"storage", x.Storage}, {"other", x.Other}} {
			if p.value != nil && *p.value > 0 {
				b.Rows = append(b.Rows, chart.Bar{Label: p.name + " · " + label, Value: *p.value, Text: unit.Seconds(*p.value)})
			}
		}
	}
	if drawnCalls == 0 || drawnCalls > mostAttributed {
		return ""
	}
	return drawn(b.SVG("chart-6-call"))
}
