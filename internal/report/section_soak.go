package report

import (
	"slices"
	"strconv"
	"strings"

	"tare/internal/unit"
)

// soakBlocks report for each soak how long it held, what drifts, and its remarks.
func soakBlocks(r *Report) []block {
	var out []block
	for _, s := range r.soakedWholes() {
		out = append(out,
			block{In: titled, Heading: strings.TrimSpace("Soak " + r.withTreatment(s.Treatment))},
			block{In: inWords, Head: &headline{Word: "soak", Text: r.judgedSoak(s), Class: r.Verdict.class()}},
			block{Said: s.remarks()})
	}
	return out
}

// soakSection shows the course of a long run, its drifts, and the outcome of its calls.
func soakSection(r *Report) section {
	s := section{Question: "How did it go over time: does it hold, and does it drift?", Short: "Over time"}
	for i, x := range r.soakedWholes() {
		f := soakCourse(r, x, i)
		if f == nil {
			continue
		}
		if several(r) {
			s.Blocks = append(s.Blocks, block{In: onPage, Heading: x.Treatment})
		}
		s.Blocks = append(s.Blocks, block{Figure: f})
	}
	s.Blocks = slices.Concat(s.Blocks,
		tabular(&grid{table: r.summary(), Title: "Summary", Panels: true, Caption: "The summary report, as JMeter has it"}),
		tabular(&grid{
			table: r.quantiles(), Title: "Response times",
			Caption: "Response times; a call that ended badly counts as long as it took",
		}))
	return s
}

// courseSection returns the course of the run and the outcome of its calls, under the heading that its question uses.
func courseSection(r *Report) section {
	var s section
	if r.soaked() {
		s = soakSection(r)
	} else {
		s = failureSection(r)
	}
	s.Blocks = slices.Concat(s.Blocks, answered(r), tabular(causes(r)), drifts(r))
	return s
}

// drifts returns the trends, and explains their verdicts.
func drifts(r *Report) []block {
	t := tabular(&grid{table: r.drifts(), Title: "Drift", Caption: "Trends after the warm-up", Marks: true})
	if len(t) == 0 {
		return nil
	}
	const text = "The slope of a line through the means of the windows after the warm-up, per hour; windows of an " +
		"outage or a restart are left out. " +
		"The interval allows for correlation between neighbouring windows. “Over 5 %” and “none over 5 %” hold for the " +
		"whole interval of the change over the measured time; “rises” alone says that the interval excludes zero."
	return append([]block{{In: onPage, Text: text}}, t...)
}

// answered returns what the answers said, and the counts of both sides. A soak shows all counts, other questions only
// mismatches.
func answered(r *Report) []block {
	return slices.Concat(
		tabular(&grid{
			table: r.decisions(), Title: "Decisions", Panels: true,
			Caption: "What the answers said; a mismatch is an answer other than expected",
		}),
		tabular(&grid{
			table: r.checks(!r.soaked()), Title: "Counts of both sides", Caption: "The target's own counts against its callers'",
		}))
}

// soakFindings returns the sentences of all soaks.
func soakFindings(r *Report) string {
	var out []string
	for _, s := range r.soakedWholes() {
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
		return "Nothing of this counts" + because(strings.TrimSuffix(r.Reason, ".")) + ". What was seen: " +
			strings.Join(out, " ")
	}
	return strings.Join(out, " ")
}

// alarms returns notices of findings that make the other results worth little.
func alarms(r *Report) []block {
	var out []block
	add := func(word string, lines []string) {
		for _, l := range lines {
			out = append(out, block{Notice: &remark{word, l, bad}})
		}
	}
	add("MISMATCH", someOf(r.mismatches()))
	add("COUNTS", someOf(r.disagreements()))
	add("SLO", nonEmpty(r.disagreement()))
	for _, w := range r.Warnings[:min(maxShown, len(r.Warnings))] {
		if r.disagreement() != "" && strings.Contains(w, " DISAGREE:") {
			out[len(out)-1].In = inWords // the page shows this warning, which says more
		}
	}
	return out
}

// soakFacts returns the most important numbers of a soak; for several soaks, their tables are better.
func soakFacts(r *Report) []block {
	all := r.soakedWholes()
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
		add("Answered well", opt(t.Goodput, rate), strconv.FormatUint(n.Good(), 10)+" of "+strconv.FormatUint(n.Ended(), 10)+
			" calls", "")
		if d := t.Response; d != nil {
			note := ""
			if d.P50 != nil {
				note = "half within " + unit.Seconds(*d.P50)
			}
			if own := d.ownTail(); own != "" {
				note += "; " + own + " of it is the generator's own delay"
			}
			add("Response, p99", opt(d.P99, unit.Seconds), note, "")
		}
		add("CPU per call", opt(t.CPUPerOp, unit.Seconds), "of all parts of the target", "")
	}
	if d, ok := s.Drift["rss"]; ok {
		value, note, _ := strings.Cut(d.Slope(), " [")
		if note != "" {
			note = "[" + note + ", "
		}
		if d.Verdict == EffectInconclusive {
			value, note = "undecided", ""
		} else {
			note += d.says()
		}
		add("Memory drift", value, note, "")
	}
	if n := len(s.Restarts); n > 0 {
		add("Restarts", strconv.Itoa(n), "of the target's process", bad)
	}
	return []block{{Facts: out}}
}
