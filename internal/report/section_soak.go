package report

import (
	"slices"
	"strconv"
	"strings"

	"tare/internal/unit"
)

// soakSection shows how a long run went in time, what drifts, and what came of its calls.
func soakSection(r *Report) section {
	s := section{Number: 5, Question: "How did it go over time: does it hold, and does it drift?", Short: "Over time"}
	for i, x := range r.Soaked() {
		if several(r) {
			s.Blocks = append(s.Blocks, block{Heading: x.Treatment})
		}
		if f := soakCourse(r, x, i); f != nil {
			s.Blocks = append(s.Blocks, block{Figure: f})
		}
		var said []string
		for _, m := range x.Remarks() {
			said = append(said, sentence(m.Word+": "+m.Text))
		}
		if len(said) > 0 {
			s.Blocks = append(s.Blocks, block{List: said})
		}
	}
	s.Blocks = append(s.Blocks, drifts(r)...)
	s.Blocks = append(s.Blocks, summary(r)...)
	s.Blocks = append(s.Blocks, answered(r)...)
	if t := causes(r).used(); t != nil {
		s.Blocks = append(s.Blocks, block{Heading: "What the other calls ran into"}, block{Table: t})
	}
	return s
}

// courseSection is question 5, as the run asked it.
func courseSection(r *Report) section {
	if len(r.Soaked()) > 0 {
		return soakSection(r)
	}
	s := failureSection(r)
	s.Blocks = append(s.Blocks, answered(r)...)
	return s
}

// drifts are the trends, with what a verdict on one means.
func drifts(r *Report) []block {
	t := tableOf("Trends after the warm-up", r.Drifts())
	if t == nil {
		return nil
	}
	const text = "The slope of a line through the means of the windows after the warm-up, per hour; windows of an outage or a restart are left out. The interval allows for windows that hang together. " +
		"“Equivalent” is a change over the measured time that lies wholly within the margin, “regressed” one wholly beyond it; “slower” can be told from none, and not from the margin."
	return []block{{Heading: "What drifts"}, {Text: text}, {Table: t}}
}

// summary is JMeter's table, and percentiles below it.
func summary(r *Report) []block {
	t := tableOf("The summary report, as JMeter has it", r.Summary())
	if t == nil {
		return nil
	}
	out := []block{{Heading: "What became of the calls"}, {Table: t}, {Text: sentence(LabelsNote)}}
	if q := tableOf("Response times; a call that ended badly counts as long as it took", r.Quantiles()); q != nil {
		out = append(out, block{Table: q})
	}
	return out
}

// answered is what the answers said, and both sides' counts of them.
func answered(r *Report) []block {
	var out []block
	if t := tableOf("What the answers said; a mismatch is an answer other than expected", r.Decisions()); t != nil {
		column := slices.IndexFunc(t.Head, func(h head) bool { return h.Text == "mismatches" })
		for _, row := range t.Rows {
			if column >= 0 && row[column].Text != "0" {
				row[column].Class = bad
			}
		}
		out = append(out, block{Heading: "Decisions"}, block{Table: t})
	}
	if t := tableOf("The target's own counts against its callers'", r.Checks()); t != nil {
		out = append(out, block{Table: t}, block{Text: sentence(ChecksNote)})
	}
	return out
}

// tableOf is a table of the report with this page's classes; nil if it has no rows.
func tableOf(caption string, x Table) *grid {
	t := &grid{Caption: caption}
	for _, h := range x.Head {
		t.Head = append(t.Head, head{Text: h.Text, Left: h.Left})
	}
	for _, row := range x.Rows {
		t.add(row...)
		for i, c := range row {
			if t.Head[i].Left {
				t.class(i, classOf(c))
			}
		}
	}
	return t.used()
}

// classOf is the class of a cell that begins with a verdict's sign.
func classOf(text string) string {
	sign, _, _ := strings.Cut(text, " ")
	switch sign {
	case "✓":
		return good
	case "✗":
		return bad
	case "?", "›", "‹", "–":
		return unsure
	}
	return ""
}

// soakFindings are the sentences of all soaks.
func soakFindings(r *Report) string {
	var out []string
	for _, s := range r.Soaked() {
		text := "It " + s.Sentence() + "."
		if s.Seconds <= 0 {
			text = sentence(s.Sentence())
		}
		if name := r.withTreatment(s.Treatment); name != "" {
			text = name + ": " + strings.ToLower(text[:1]) + text[1:]
		}
		out = append(out, text)
	}
	if r.Verdict == Invalid && len(out) > 0 {
		return "Nothing of this counts" + because(strings.TrimSuffix(r.Reason, ".")) + ". What was seen: " + strings.Join(out, " ")
	}
	return strings.Join(out, " ")
}

// alarms are notices of what makes the rest worth little.
func alarms(r *Report) []block {
	var out []block
	if d := r.Disagreement(); d != "" {
		out = append(out, block{Notice: sentence(d) + " See question 4."})
	}
	for _, a := range r.Alarms() {
		out = append(out, block{Notice: sentence(a)})
	}
	return out
}

// soakFacts are the few numbers of a soak that matter most; of several, their tables say more.
func soakFacts(r *Report) []block {
	all := r.Soaked()
	if len(all) != 1 {
		return nil
	}
	s := all[0]
	var out []fact
	add := func(name, value, note, class string) {
		if value != "" {
			out = append(out, fact{Name: name, Value: value, Note: note, Class: class})
		}
	}
	add("Measured", unit.Seconds(s.Seconds), "after "+unit.Seconds(s.WarmUpSeconds)+" of warm-up", "")
	if t := s.Total; t != nil {
		n := t.Outcomes
		add("Answered well", opt(t.Goodput, rate), strconv.FormatUint(n.Good(), 10)+" of "+strconv.FormatUint(n.Ended(), 10)+" calls", "")
		if d := t.Response; d != nil {
			note := ""
			if d.P50 != nil {
				note = "half within " + unit.Seconds(*d.P50)
			}
			add("Response, p99", opt(d.P99, unit.Seconds), note, "")
		}
		add("CPU per call", opt(t.CPUPerOp, unit.Seconds), "of all parts of the target", "")
	}
	if d, ok := s.Drift["rss"]; ok {
		class := ""
		if d.Verdict == Regressed {
			class = bad
		}
		value, note, _ := strings.Cut(d.Slope(), " [")
		if note != "" {
			note = "[" + note + ", "
		}
		if d.Verdict == EffectInconclusive {
			value, note = "undecided", d.Reason
		} else {
			note += string(d.Verdict)
		}
		add("Memory drift", value, note, class)
	}
	if n := len(s.Restarts); n > 0 {
		add("Restarts", strconv.Itoa(n), "of the target's process", bad)
	}
	return []block{{Facts: out}}
}
