package report

import "strings"

// comparison writes what a comparison found.
func (m *markdown) comparison(r *Report) {
	var items []string
	if s := r.layout(); s != "" {
		items = append(items, escape(s))
	}
	if s := r.unblocked(); s != "" {
		items = append(items, "**unblocked**: "+escape(s))
	}
	for _, s := range r.undecidable() {
		items = append(items, "undecidable: "+escape(s))
	}
	if s, ok := r.trust(); s != "" {
		s = escape(s)
		if !ok {
			s = "**" + s + "**"
		}
		items = append(items, "A/A: "+s)
	}
	if s := r.HarnessLine(); s != "" {
		items = append(items, "harness: "+escape(s))
	}
	m.items(items)
	if len(r.Growth) > 0 {
		m.list("How costs grow", r.growth())
		for _, t := range r.sizes() {
			m.table(t)
		}
	}
	t, long := r.effects()
	if t.rows() > 0 {
		m.say("## What each treatment costs")
		m.table(t)
		m.findings(r, long)
	}
	m.list("Next", r.next())
}

// findings are the words behind the marks of a matrix, and what is undecided.
func (m *markdown) findings(r *Report, long bool) {
	open, remarks := r.open()
	var items []string
	if !long {
		m.remark(strings.Join(r.legend(), " · "))
		for _, f := range r.tally() {
			items = append(items, "**"+escape(f.word)+"** "+escape(f.text))
		}
		if s := r.exploratory(); s != "" {
			items = append(items, "also: "+escape(s))
		}
		m.items(items)
		m.section("Undecided", open)
	}
	for _, s := range remarks {
		m.remark(s)
	}
}
