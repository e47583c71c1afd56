package report

import "strings"

// soak writes how a long run went: first in a sentence, then what must not be overlooked.
func (p *printer) soak(r *Report) {
	for _, s := range r.soakedWholes() {
		p.label("soak", r.judgedSoak(s), r.Verdict.color())
		for _, x := range s.Remarks() {
			p.label(x.Word, x.Text, plain)
		}
	}
	p.loud("MISMATCH", someOf(r.mismatches()))
	p.loud("COUNTS", someOf(r.disagreements()))
}

// loud writes what makes the rest worth little.
func (p *printer) loud(word string, lines []string) {
	for _, l := range lines {
		p.label(word, l, red)
	}
}

// soakTables writes what came of the calls of a soak.
func (p *printer) soakTables(r *Report) {
	if t := r.summary(); t.rows() > 0 {
		p.parts(t)
		p.lines([]string{labelsNote})
	}
	p.table(r.quantiles())
}

// parts writes a table in as many parts as the width needs, each with the first column and the rows that say something in it.
func (p *printer) parts(t table) {
	if t.rows() == 0 {
		return
	}
	for _, part := range t.fit(p.Width).panels(p.Width) {
		p.table(part.filled())
	}
}

// answers writes what the answers said, and what the target counted of them. Of a soak all counts are shown, of others those that are wrong.
func (p *printer) answers(r *Report) {
	p.parts(r.decisions())
	if t := r.checks(!r.soaked()); t.rows() > 0 {
		p.table(t)
		p.lines([]string{checksNote})
	}
}

// usage writes what the target used.
func (p *printer) usage(r *Report) {
	if r.soaked() {
		p.parts(r.soakTargets())
	} else {
		p.table(r.targets())
	}
	t, rest := r.collections().first(maxCollections)
	p.table(t)
	if rest > 0 {
		p.lines([]string{further(rest)})
	}
	p.marked(r.drifts())
}

// maxCollections bounds the table of garbage collections in text and Markdown; the other forms have all.
const maxCollections = 24

func further(rest int) string {
	return "and " + countOf(rest, "more row") + ", which the other forms have"
}

// soak writes how a long run went.
func (m *markdown) soak(r *Report) {
	for _, s := range r.soakedWholes() {
		m.say("## " + escape(strings.TrimSpace("Soak "+r.withTreatment(s.Treatment))))
		m.say("**" + escape(s.Sentence()) + "**")
		var items []string
		for _, x := range s.Remarks() {
			items = append(items, strings.TrimSpace("**"+escape(x.Word)+"** "+escape(x.Text)))
		}
		m.items(items)
	}
	var loud []string
	for _, l := range r.Alarms() {
		loud = append(loud, "**"+escape(l)+"**")
	}
	m.items(loud)
}

// soakTables writes what came of the calls of a soak.
func (m *markdown) soakTables(r *Report) {
	if t := r.summary(); t.rows() > 0 {
		m.section("Summary", t)
		m.remark(labelsNote)
	}
	m.section("Response times", r.quantiles())
}

// answers writes what the answers said, and what the target counted of them.
func (m *markdown) answers(r *Report) {
	m.section("Decisions", r.decisions())
	if t := r.checks(!r.soaked()); t.rows() > 0 {
		m.section("Counts of both sides", t)
		m.remark(checksNote)
	}
}

// usage writes what the target used.
func (m *markdown) usage(r *Report) {
	t := r.targets()
	if r.soaked() {
		t = r.soakTargets()
	}
	m.section("Target", t)
	gc, rest := r.collections().first(maxCollections)
	m.section("Garbage collection", gc)
	if rest > 0 {
		m.remark(further(rest))
	}
	m.section("Drift", r.drifts())
}
