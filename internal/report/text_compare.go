package report

import (
	"slices"
	"strings"

	"tare/internal/design"
)

// comparison writes what a comparison found: how it was laid out, what each treatment costs, how costs grow, and whether to believe it.
func (p *printer) comparison(r *Report) {
	if s := r.layout(); s != "" {
		p.label("design", s, plain)
	}
	if s := r.unblocked(); s != "" {
		p.label("unblocked", s, yellow)
	}
	for _, s := range r.undecidable() {
		p.label("undecidable", s, yellow)
	}
	trust, reliable := r.trust()
	if !reliable { // nothing that follows means what it says
		p.label("A/A", trust, red)
	}
	if r.Question == design.Scale {
		p.growths(r)
	}
	if t, long := r.effects(); t.rows() > 0 {
		p.effects(r, t, long)
	}
	if r.Question != design.Scale {
		p.growths(r)
	}
	if reliable && trust != "" {
		p.say("")
		p.label("A/A", trust, plain)
	}
	if s := r.HarnessLine(); s != "" {
		p.label("harness", s, plain)
	}
}

// effects writes the table of costs in as many panels as the width needs, with the words behind its marks, and what is undecided.
func (p *printer) effects(r *Report, t table, long bool) {
	if long {
		p.marked(t)
		_, remarks := r.open()
		p.lines(remarks)
		return
	}
	p.panels(t)
	p.say("")
	p.legend(r.legend())
	if tally := r.tally(); len(tally) > 0 {
		p.say("")
		for _, f := range tally {
			p.label(f.word, f.text, f.color)
		}
	}
	open, remarks := r.open()
	p.marked(open)
	p.lines(remarks)
	if s := r.exploratory(); s != "" {
		p.say("")
		p.label("also", s, plain)
	}
}

// legend writes parts beside one another as the width allows.
func (p *printer) legend(parts []string) {
	line := ""
	for _, s := range parts {
		if line != "" && len([]rune(line))+columnGap+len([]rune(s)) > p.Width {
			p.say(p.paintMarks(line))
			line = ""
		}
		if line != "" {
			line += strings.Repeat(" ", columnGap)
		}
		line += s
	}
	p.say(p.paintMarks(line))
}

// lines writes remarks below a table.
func (p *printer) lines(remarks []string) {
	for _, s := range remarks {
		for _, l := range wrap(clean(s), p.Width) {
			p.say(l)
		}
	}
}

// marked writes a table with coloured marks.
func (p *printer) marked(t table) {
	if t.rows() == 0 {
		return
	}
	p.say("")
	for _, l := range t.fit(p.Width).lines() {
		p.say(p.paintMarks(l))
	}
}

// panels writes a wide table in parts, each with the first column.
func (p *printer) panels(t table) {
	for _, part := range t.panels(p.Width) {
		p.marked(part)
	}
}

// growths writes the laws, and for what they were fitted to a table of sizes.
func (p *printer) growths(r *Report) {
	if len(r.Growth) == 0 {
		return
	}
	p.say("")
	for _, s := range r.growth() {
		p.label("growth", s, plain)
	}
	for _, t := range r.sizes() {
		p.panels(t)
	}
}

// paintMarks colours the marks of effects in a line.
func (p *printer) paintMarks(line string) string {
	if !p.Color {
		return line
	}
	var pairs []string
	for _, v := range EffectVerdicts() {
		pairs = append(pairs, v.mark(), p.paint(v.mark(), v.color()))
	}
	return strings.NewReplacer(slices.Clip(pairs)...).Replace(line)
}
