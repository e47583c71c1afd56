package report

import (
	"math"
	"strconv"
	"strings"

	"tare/internal/budget"
	"tare/internal/unit"
)

// verdictSection says what came out, in one sentence, and what became of each budget.
func verdictSection(r *Report) section {
	s := section{Number: 0, Question: "What is the verdict?", Short: "Verdict"}
	word, class := judged(r.Verdict)
	l := lead{Word: word, Class: class, Text: strings.TrimSpace(soakFindings(r) + findings(r) + " " + conclusion(r)), Why: sentence(r.Reason)}
	if l.Text == "" {
		l.Text, l.Why = l.Why, ""
	}
	if r.Verdict == None || r.Verdict == Invalid && (len(r.Soaked()) > 0 || r.AA != nil && !r.AA.Reliable) {
		l.Why = "" // that no budget was given says nothing about the target, and that the A/A arm differs was said
	}
	if text := unfinished(r.Status); text != "" {
		if d := r.Design; d != nil && d.Planned > d.Blocks {
			text += " That is " + countOf(d.Blocks, "complete block") + " of " + strconv.Itoa(d.Planned) + "."
		}
		s.Blocks = append(s.Blocks, block{Notice: text})
	}
	s.Blocks = append(append(s.Blocks, block{Lead: &l}), alarms(r)...)
	s.Blocks = append(s.Blocks, soakFacts(r)...)
	if len(r.Capacity) == 1 {
		c := &r.Capacity[0]
		if text := explained(c.Signature); text != "" {
			s.Blocks = append(s.Blocks, block{Text: string(c.Signature) + ": " + text})
		}
		s.Blocks = append(s.Blocks, facts(c)...)
	} else {
		s.Blocks = append(s.Blocks, tabular(capacities(r))...)
	}
	s.Blocks = append(s.Blocks, comparedFacts(r)...)
	s.Blocks = append(s.Blocks, budgetBlocks(r)...)
	if n := len(r.Warnings); n > 0 {
		text := "There is a warning; see question 7."
		if n > 1 {
			text = "There are " + strconv.Itoa(n) + " warnings; see question 7."
		}
		s.Blocks = append(s.Blocks, block{Text: text})
	}
	return s
}

// findings are all capacities in one sentence each; for several treatments with their names.
func findings(r *Report) string {
	var out []string
	for i := range r.Capacity {
		c := r.Capacity[i]
		name := r.withTreatment(c.Treatment)
		if name != "" {
			c.Reason = "" // it stands below
		}
		if c.Operation != "" {
			name = strings.TrimSpace(name + " " + c.Operation)
		}
		text := capacitySentence(&c)
		if name != "" {
			text = name + ": " + strings.ToLower(text[:1]) + text[1:]
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

func unfinished(s Status) string {
	const rest = " What follows is only what was measured until then."
	switch s {
	case Complete, "":
		return ""
	case Interrupted:
		return "The run was interrupted." + rest
	case Killed:
		return "The run was killed, or is still going on." + rest
	case Errored:
		return "The run ended in an error." + rest
	}
	return "The run ended as " + string(s) + "." + rest
}

// facts are the few numbers of one capacity that matter most.
func facts(c *Capacity) []block {
	var out []fact
	add := func(name, value, note, class string) {
		if value != "" {
			out = append(out, fact{Name: name, Value: value, Note: note, Class: class})
		}
	}
	if c.Rate != nil {
		note := ""
		if c.Lo != nil && c.Hi != nil {
			note = rate(*c.Lo) + " to " + rate(*c.Hi)
		}
		add("Capacity", rate(*c.Rate), note, "")
	} else {
		add("Capacity", bounds(c), "", "")
	}
	add("Seen to hold", opt(c.VerifiedLow, unit.PerSecond), "", good)
	add("Seen to break", opt(c.VerifiedHigh, unit.PerSecond), "", bad)
	add("Within its latency objective", opt(c.SLORate, rate), "up to this rate", "")
	if c.Burst != nil && *c.Burst >= 1 {
		add("Burst", unit.Number(*c.Burst)+" calls", "taken beyond the rate", "")
	}
	for _, f := range c.Findings {
		add(f.Kind, f.Sentence, "", "")
	}
	switch {
	case c.Wedged:
		add("Recovers", "no", recovery(c), bad)
	case c.RecoverySeconds != nil && *c.RecoverySeconds > 0:
		_, note, _ := strings.Cut(recovery(c), ", ") // how long it took stands before
		add("Recovers", RecoversAfter(*c.RecoverySeconds), note, "")
	default:
		add("Recovers", recovery(c), "", "")
	}
	if len(out) == 0 {
		return nil
	}
	return []block{{Facts: out}}
}

// bounds are what is known of a capacity that is not a number, in signs; "" where nothing is.
func bounds(c *Capacity) string {
	var parts []string
	if c.AtLeast != nil {
		parts = append(parts, "≥ "+unit.PerSecond(*c.AtLeast))
	}
	if c.AtMost != nil {
		parts = append(parts, "< "+unit.PerSecond(*c.AtMost))
	}
	return strings.Join(parts, ", ")
}

// capacities has one row for each treatment.
func capacities(r *Report) *grid {
	t := &grid{Caption: "Capacity by treatment", Head: append(wordHeads("treatment", "operation"),
		append(numberHeads("capacity", "interval", "seen to hold", "seen to break", "in objective", "burst"), wordHeads("signature", "recovers")...)...)}
	for i := range r.Capacity {
		c := &r.Capacity[i]
		if len(c.Points) > 0 {
			continue // a ladder has no capacity; section 4 has its points
		}
		value := opt(c.Rate, rate)
		if value == "" {
			value = bounds(c)
		}
		if !c.Valid {
			value = strings.TrimSpace(value + " generator was the limit")
		}
		t.add(c.Treatment, c.Operation, value, strings.TrimSpace(interval(c.Lo, c.Hi, rate)), opt(c.VerifiedLow, unit.PerSecond),
			opt(c.VerifiedHigh, unit.PerSecond), opt(c.SLORate, rate), opt(c.Burst, unit.Number), string(c.Signature), recovery(c))
	}
	return t
}

// maxBudgets is how many budgets are shown at once; of more, those that were kept are folded.
const maxBudgets = 12

func budgetBlocks(r *Report) []block {
	all := budgets(r)
	if len(r.Budgets) <= maxBudgets {
		return tabular(all)
	}
	broken := &grid{Caption: "Budgets that were broken or are not decided", Head: all.Head}
	for i, row := range all.Rows {
		if r.Budgets[i].Verdict != Pass {
			broken.Rows = append(broken.Rows, row)
		}
	}
	folded := block{Figure: &figure{Summary: "All " + strconv.Itoa(len(r.Budgets)) + " budgets", Table: all.used()}}
	return append(tabular(broken), folded)
}

func budgets(r *Report) *grid {
	t := &grid{Caption: "Budgets", Head: append(wordHeads("budget", "treatment", "verdict"), append(numberHeads("measured", "interval", "limit"), wordHeads("why")...)...)}
	for i := range r.Budgets {
		b := &r.Budgets[i]
		show := limited(b)
		between := ""
		if b.Lo != nil || b.Hi != nil {
			between = "[" + orElse(opt(b.Lo, show), "−∞") + ", " + orElse(opt(b.Hi, show), "∞") + "]"
		}
		word, class := judged(b.Verdict)
		t.add(b.Text, r.withTreatment(b.Treatment), word, opt(b.Estimate, show), between, opt(b.Limit, show), b.Reason)
		t.class(2, class)
	}
	return t
}

// limited is how a budget's numbers are written: those of a limit against the baseline are changes, with a sign.
func limited(b *Budget) func(float64) string {
	parsed, err := budget.Parse(b.Text)
	if err == nil && parsed.Drift && parsed.Limit.Against == budget.Absolute {
		return func(v float64) string { return Quantity(b.Unit)(v) + "/h" }
	}
	if err != nil || parsed.Limit.Against == budget.Absolute {
		return Quantity(b.Unit)
	}
	if parsed.Limit.Against == budget.Ratio {
		return tickShare
	}
	return func(v float64) string { return withSign(v, Quantity(b.Unit)(math.Abs(v))) }
}
