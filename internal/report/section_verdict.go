package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tare/internal/budget"
	"tare/internal/metric"
	"tare/internal/question"
	"tare/internal/signature"
	"tare/internal/unit"
)

// verdictSection reports the result and each budget, and what a reader must know before reading the figures.
func verdictSection(r *Report) section {
	var blocks []block
	if text := r.Status.unfinished(); text != "" {
		blocks = append(blocks, block{Notice: &remark{"status", text, unsure}})
	}
	for _, x := range r.rulingRemarks() {
		blocks = append(blocks, block{Notice: &x})
	}
	blocks = append(blocks, block{Lead: leadOf(r)})
	for _, x := range r.diffRemarks() {
		if x.Class == "" {
			blocks = append(blocks, block{Said: []remark{x}})
		} else {
			blocks = append(blocks, block{Notice: &x})
		}
	}
	blocks = slices.Concat(blocks, only(onPage, guardFacts(r)...), warningBlocks(r))
	blocks = slices.Concat(blocks, soakBlocks(r), alarms(r), only(onPage, soakFacts(r)...), budgetBlocks(r))
	if len(r.Capacity) > 1 {
		blocks = append(blocks, only(onPage, tabular(capacities(r))...)...)
	}
	for i := range r.Capacity {
		blocks = append(blocks, capacityBlocks(r, &r.Capacity[i])...)
	}
	blocks = slices.Concat(blocks, only(onPage, comparedFacts(r)...), auditBlocks(r))
	return section{Question: "What is the verdict?", Short: "Verdict", Blocks: blocks}
}

// rulingRemarks say what treatments permit that the baseline refuses, or may permit, and the other way round.
func (r *Report) rulingRemarks() (out []remark) {
	for i := range r.Treatments {
		t := &r.Treatments[i]
		if len(t.Permits) > 0 {
			out = append(out, remark{"permits", t.PermitsMore(), bad})
		}
		if len(t.Unshown) > 0 {
			out = append(out, remark{"unshown", t.NotShown(), unsure})
		}
		if len(t.Refuses) > 0 {
			out = append(out, remark{"refuses", t.otherwise(t.Refuses, "refused", "permits"), unsure})
		}
		if len(t.Alters) > 0 {
			out = append(out, remark{"changes", t.altered(), unsure})
		}
	}
	return out
}

// PermitsMore says what a treatment permits and its baseline refuses; empty: nothing.
func (t *Treatment) PermitsMore() string {
	if len(t.Permits) == 0 {
		return ""
	}
	return t.otherwise(t.Permits, "permitted", "refuses")
}

// NotShown says what a treatment may permit although it, or its baseline, refuses it; empty: nothing.
func (t *Treatment) NotShown() string {
	if len(t.Unshown) == 0 {
		return ""
	}
	return "under " + t.ID + ", " + strings.Join(t.Unshown, "; ")
}

// otherwise says which requests are decided otherwise than by the baseline's control.
func (t *Treatment) otherwise(requests []string, here, there string) string {
	n := len(requests)
	return fmt.Sprintf("under %s, %s %s %s that the baseline %s: %s", t.ID, counted(uint64(n), "request"),
		plural(n, "is", "are"), here, there, strings.Join(requests, ", "))
}

// mostAltered bounds the differences that are told; JSON has all.
const mostAltered = 5

// altered says which requests come back as other objects than from the baseline's control, those that differ in the
// same way together.
func (t *Treatment) altered() string {
	var kinds []string
	first, count := map[string]string{}, map[string]int{}
	for i := range t.Alters {
		a := &t.Alters[i]
		kind := a.difference()
		if count[kind]++; count[kind] == 1 {
			first[kind] = a.Request
			kinds = append(kinds, kind)
		}
	}
	var out []string
	for _, kind := range kinds[:min(mostAltered, len(kinds))] {
		text := first[kind]
		if n := count[kind] - 1; n > 0 {
			text += " and " + counted(uint64(n), "other")
		}
		out = append(out, text+" "+kind)
	}
	if n := len(kinds) - mostAltered; n > 0 {
		out = append(out, "and "+strconv.Itoa(n)+" more differences")
	}
	n := len(t.Alters)
	return fmt.Sprintf("under %s, %s %s back otherwise than under the baseline: %s", t.ID, counted(uint64(n), "request"),
		plural(n, "comes", "come"), strings.Join(out, "; "))
}

// difference says in what the objects differ. What both controls change is in neither list.
func (a *Alteration) difference() string {
	const most = 4
	some := func(list []string) string {
		out := strings.Join(list[:min(most, len(list))], ", ")
		if n := len(list) - most; n > 0 {
			out += " and " + strconv.Itoa(n) + " more"
		}
		return out
	}
	switch {
	case len(a.Baseline) == 0:
		return "with " + some(a.Here) + ", which the baseline does not make"
	case len(a.Here) == 0:
		return "without the baseline's " + some(a.Baseline)
	}
	return "with " + some(a.Here) + " in place of the baseline's " + some(a.Baseline)
}

// warningBlocks returns the warnings that the page shows below the verdict; “Trust” has those beyond.
func warningBlocks(r *Report) []block {
	var out []block
	for _, text := range r.Warnings[:min(maxShown, len(r.Warnings))] {
		out = append(out, block{In: onPage, Notice: &remark{"warning", text, unsure}})
	}
	if n := len(r.Warnings) - maxShown; n > 0 {
		out = append(out, block{In: onPage, Text: "There " + plural(n, "is 1 more warning", "are "+strconv.Itoa(n)+
			" more warnings") + ": see “Trust”."})
	}
	return out
}

// leadOf returns the verdict with its reason, and for the page the findings in a sentence or two.
func leadOf(r *Report) *lead {
	l := lead{Word: r.Verdict.mark(), Class: r.Verdict.class(), Reason: r.Reason, Why: sentence(r.Reason)}
	l.Text = strings.TrimSpace(soakFindings(r) + guardFindings(r) + findings(r) + " " + conclusion(r))
	if question.Of(r.Question).Answer.BreachesFirst && len(r.Guard) > 0 {
		l.Text = strings.TrimSpace(guardFindings(r)) // the capacity only chose the rates
	}
	if l.Text == "" {
		l.Text, l.Why = l.Why, ""
	}
	if r.Verdict == None || r.Verdict == Pass || r.Verdict == Invalid && (r.soaked() || r.unreliable()) {
		l.Why = "" // a missing or kept budget adds nothing, and a differing A/A arm has been reported
	}
	return &l
}

// capacityBlocks returns what is known of one capacity: the number, what sets it, how the target fails above it, and
// whether it recovers.
func capacityBlocks(r *Report, c *Capacity) []block {
	title, name := "Capacity", strings.TrimSpace(r.withTreatment(c.Treatment)+" "+c.Operation)
	if name != "" {
		title += " of " + name
	}
	class := ""
	if !c.Valid {
		class = bad
	}
	blocks := []block{
		{In: inMarkdown, Heading: title},
		{In: inWords, Head: &headline{"capacity", r.headline(c), class, nonEmpty(c.verified(), c.effort())}},
	}
	if name != "" {
		blocks = append(blocks, block{In: inText | onPage, Heading: name})
		slices.Reverse(blocks[1:])
	}
	if len(r.Capacity) == 1 {
		blocks = append(blocks, facts(c)...)
	}
	var extras []remark
	for _, x := range c.otherNumbers() {
		extras = append(extras, remark{Text: x})
	}
	blocks = append(blocks, block{In: inWords, Said: extras}, block{Said: c.answers()})
	for _, f := range c.Findings {
		blocks = append(blocks, block{In: onPage, Said: []remark{{Word: f.Kind, Text: f.Sentence}}})
	}
	return slices.Concat(blocks, []block{{Said: c.afterwards()}}, only(onPage, c.explanations()...))
}

// nonEmpty removes empty texts.
func nonEmpty(all ...string) []string {
	return slices.DeleteFunc(all, func(s string) bool { return s == "" })
}

// auditBlocks describe how the run measured, and whether its self-checks and the generator make it reliable.
func auditBlocks(r *Report) []block {
	var first, last []remark
	var notices []block
	add := func(word, class, text string) {
		switch {
		case text == "":
		case class != "":
			notices = append(notices, block{Notice: &remark{word, text, class}})
		case word == "design":
			first = append(first, remark{word, text, class})
		default:
			last = append(last, remark{word, text, class})
		}
	}
	add("design", "", r.layout())
	add("unblocked", unsure, r.unblocked())
	for _, s := range r.undecidable() {
		add("undecidable", unsure, s)
	}
	if text, reliable := r.trust(); reliable {
		add("A/A", "", text)
	} else {
		add("A/A", bad, text)
	}
	add("harness", "", r.HarnessLine())
	blocks := slices.Concat([]block{{Said: first}}, notices, []block{{Said: last}})
	if g := r.Generator; g == nil || g.Valid && r.warnsOf(g.Doubts) {
		return blocks
	}
	switch text := r.generatorLine(); {
	case text == "":
	case r.Generator.Valid:
		blocks = append(blocks, block{Text: text})
	default:
		blocks = append(blocks, block{Notice: &remark{"generator", text, bad}})
	}
	return blocks
}

// warnsOf reports whether the warnings have all of these doubts.
func (r *Report) warnsOf(doubts []string) bool {
	missing := slices.ContainsFunc(doubts, func(d string) bool {
		return !slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.Contains(w, d) })
	})
	return len(doubts) > 0 && !missing
}

// findings returns one sentence per capacity; for several treatments with their names.
func findings(r *Report) string {
	var out []string
	for i := range r.Capacity {
		c := r.Capacity[i]
		if c.Reason != "" && !c.Valid && c.AtLeast == nil && r.untold(c.Reason) == "" {
			continue // the verdict says it
		}
		name := r.withTreatment(c.Treatment)
		if name != "" {
			c.Reason = "" // it stands below
		}
		if c.Operation != "" {
			name = strings.TrimSpace(name + " " + c.Operation)
		}
		text := capacitySentence(&c)
		if c.Rate != nil && c.Valid && len(r.Capacity) == 1 {
			text = r.banner(&c)
		}
		if rest, ok := strings.CutPrefix(text, "It "); ok && name != "" {
			text = name + " " + rest
		} else if name != "" {
			text = name + ": " + strings.ToLower(text[:1]) + text[1:]
		}
		out = append(out, text)
	}
	return strings.Join(out, " ")
}

// banner returns what is known of a measured capacity in short: "Capacity 163.6/s · holds its budget of 100/s · the CPU
// quota of 100m sets the rate · it likely fails as accept queue".
func (r *Report) banner(c *Capacity) string {
	parts := []string{"Capacity " + rate(*c.Rate)}
	for i := range r.Budgets {
		b := &r.Budgets[i]
		if parsed, err := budget.Parse(b.Text); err != nil || parsed.Metric != metric.Capacity.Name || b.Limit == nil {
			continue
		}
		limit := unit.PerSecond(*b.Limit)
		parts = append(parts, map[Verdict]string{
			Pass: "holds its budget of " + limit, Fail: "below its budget of " + limit,
		}[b.Verdict])
		if parts[len(parts)-1] == "" {
			parts[len(parts)-1] = "its budget of " + limit + " is undecided"
		}
	}
	parts = append(parts, c.clauses()...)
	if c.Wedged {
		parts = append(parts, "did not recover by itself")
	}
	return strings.Join(nonEmpty(parts...), " · ")
}

// facts returns the most important numbers of one capacity.
func facts(c *Capacity) []block {
	var out []fact
	add := func(name, value, note string) {
		if value != "" {
			out = append(out, fact{Name: name, Value: value, Note: note})
		}
	}
	if c.Rate != nil {
		note := ""
		if c.Lo != nil && c.Hi != nil {
			note = rate(*c.Lo) + " to " + rate(*c.Hi)
		}
		add("Capacity", rate(*c.Rate), note)
	} else {
		add("Capacity", bounds(c), "")
	}
	answer := func(name, value string, certainty signature.Certainty) {
		if value == "" {
			value, certainty = string(signature.NotKnown), ""
		}
		for _, article := range []string{"the ", "a ", "its "} {
			value = strings.TrimPrefix(value, article)
		}
		add(name, value, string(certainty))
	}
	if v := c.Limit; v != nil {
		answer("Limit", v.Name(), v.Certainty)
	}
	if f := c.Failure; f != nil {
		answer("Fails as", f.Name(), f.Certainty)
	}
	add("Seen to hold", opt(c.VerifiedLow, unit.PerSecond), "")
	add("Seen to break", opt(c.VerifiedHigh, unit.PerSecond), "")
	note := ""
	if c.SLORate != nil {
		note = "up to this rate"
	}
	add("Within its latency objective", c.objectiveRate(), note)
	if c.Burst != nil && *c.Burst >= 1 {
		add("Burst", unit.Number(*c.Burst)+" calls", "taken beyond the rate")
	}
	if c.RecoverySeconds != nil && *c.RecoverySeconds > 0 && c.Broke && !c.Wedged {
		add("Recovers", RecoversAfter(*c.RecoverySeconds), "")
	}
	if len(out) == 0 {
		return nil
	}
	return []block{{Facts: out}}
}

// bounds returns the known bounds of a capacity without a number, as symbols; "" if there are none.
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

// capacities returns one row for each treatment.
func capacities(r *Report) *grid {
	t := &grid{Caption: "Capacity by treatment", table: append(wordHeads("treatment", "operation"),
		append(numberHeads("capacity", "interval", "seen to hold", "seen to break", "in objective", "burst"),
			wordHeads("limit", "fails as", "recovers")...)...)}
	for i, c := range t.table {
		switch c.head {
		case "seen to hold", "seen to break", "burst":
			t.table[i].drop = i
		}
	}
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
		t.add(c.Treatment, c.Operation, value, strings.TrimSpace(interval(c.Lo, c.Hi, rate)),
			opt(c.VerifiedLow, unit.PerSecond),
			opt(c.VerifiedHigh, unit.PerSecond), c.objectiveRate(), opt(c.Burst, unit.Number), statementOf(c.Limit),
			statementOf(c.Failure),
			comesBack(c))
	}
	return t
}

// maxShown limits the warnings, and the notes, that the page shows at once.
const maxShown = 3

// maxBudgets limits how many budgets the page shows at once; of more, those that hold are folded.
const maxBudgets = 12

func budgetBlocks(r *Report) []block {
	all := &grid{table: r.budgets(), Caption: "Budgets"}
	if len(r.Budgets) <= maxBudgets {
		return closing(tabular(all))
	}
	open := *r
	open.Budgets = slices.DeleteFunc(slices.Clone(r.Budgets), func(b Budget) bool { return b.Verdict == Pass })
	blocks := only(onPage, tabular(&grid{
		table:   open.budgets(),
		Caption: "Budgets that were broken or are not decided",
	})...)
	return slices.Concat(blocks, whenAsked("All "+strconv.Itoa(len(r.Budgets))+" budgets", all),
		closing(only(inWords, tabular(all)...)))
}

// closing returns the blocks at the end of the text format.
func closing(blocks []block) []block {
	for i := range blocks {
		blocks[i].Closing = true
	}
	return blocks
}
