package report

import (
	"bytes"
	"io"
	"slices"
	"strings"

	terminal "tare/internal/term"
)

// Style says how text is laid out. The zero value is 100 columns wide and plain.
type Style struct {
	Width int  // columns; 0: 100
	Color bool // ANSI colours for verdicts
}

// Text writes the report for a terminal or a log, in the zero Style.
func Text(w io.Writer, r *Report) error { return Style{}.Text(w, r) }

// labelWidth is the column at which sentences begin.
const labelWidth = 11

// Text writes the report for people.
func (s Style) Text(w io.Writer, r *Report) error {
	if s.Width <= 0 {
		s.Width = 100
	}
	p := printer{Style: s}
	p.say(clean(strings.Join(r.title(), " · ")))
	if u := r.Status.unfinished(); u != "" {
		p.label("status", u, yellow)
	}
	for i := range r.Capacity {
		p.capacity(r, &r.Capacity[i])
	}
	p.soak(r)
	p.comparison(r)
	p.controlPlane(r)
	if r.Generator != nil {
		p.generator(r.Generator)
	}
	if r.soaked() {
		p.soakTables(r)
	} else {
		p.table(r.operations())
	}
	p.answers(r)
	p.table(r.causes())
	p.usage(r)
	p.table(r.budgets())
	p.remarks(r)
	_, err := w.Write(p.buf.Bytes())
	return err
}

// The colours that are used: red for what failed, green for what passed, yellow for what is open.
const (
	plain  = ""
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	reset  = "\x1b[0m"
)

type printer struct {
	Style
	buf bytes.Buffer
}

// say writes one line, which no CI system on whose standard output it stands takes for a command.
func (p *printer) say(line string) { p.buf.WriteString(terminal.Inert(line) + "\n") }

func (p *printer) paint(s, color string) string {
	if !p.Color || color == plain {
		return s
	}
	return color + s + reset
}

// label writes a word and a sentence, wrapped with a hanging indent.
func (p *printer) label(word, text, color string) {
	word = clean(word)
	head := word + strings.Repeat(" ", max(1, labelWidth-len([]rune(word))))
	if word == "" {
		head = strings.Repeat(" ", labelWidth)
	}
	for i, line := range wrap(clean(text), max(20, p.Width-labelWidth)) {
		if i == 0 {
			p.say(p.paint(head, color) + line)
			continue
		}
		p.say(strings.Repeat(" ", labelWidth) + line)
	}
}

func (p *printer) capacity(r *Report, c *Capacity) {
	if name := r.withTreatment(c.Treatment); name != "" || c.Operation != "" {
		p.say("")
		p.say(clean(strings.TrimSpace(name + "  " + c.Operation)))
	}
	// The parts of the first line stay apart by wide gaps; one that does not fit goes below.
	line := clean(c.headline())
	for _, part := range []string{c.verified(), c.effort()} {
		switch {
		case part == "":
		case len([]rune(line))+3+len([]rune(part)) <= p.Width-labelWidth && !strings.Contains(line, "\n"):
			line += "   " + part
		default:
			line += "\n" + part
		}
	}
	color := plain
	if !c.Valid {
		color = red
	}
	for i, l := range strings.Split(line, "\n") {
		word := strings.Repeat(" ", labelWidth)
		if i == 0 {
			word = p.paint("capacity", color) + word[len("capacity"):]
		}
		p.hang(word, l)
	}
	for _, x := range c.extras() {
		p.label("", x, plain)
	}
	p.signature(c)
	if word, text := c.recovery(); word != "" {
		color := plain
		if c.Wedged {
			color = red
		}
		p.label(word, text, color)
	}
	if len(c.Points) > 0 {
		p.ladder(c.Points)
	}
}

// ladder writes the rows of a ladder and what must be said about them.
func (p *printer) ladder(points []Point) {
	t := ladder(points)
	p.table(t)
	var remarks []string
	if t.fit(p.Width).has("vegeta*") {
		remarks = append(remarks, vegetaNote)
	}
	for _, s := range slices.Concat(remarks, usedBy(points), lateRows(points)) {
		for _, l := range wrap(clean(s), p.Width) {
			p.say(l)
		}
	}
}

// hang writes a line whose inner gaps must stay; only if it is too long is it wrapped.
func (p *printer) hang(word, line string) {
	if len([]rune(line)) <= p.Width-labelWidth {
		p.say(word + line)
		return
	}
	for i, l := range wrap(line, max(20, p.Width-labelWidth)) {
		if i > 0 {
			word = strings.Repeat(" ", labelWidth)
		}
		p.say(word + l)
	}
}

func (p *printer) signature(c *Capacity) {
	if c.Signature == "" {
		return
	}
	first := string(c.Signature)
	if len(c.Evidence) > 0 {
		first += ": " + c.Evidence[0]
	}
	p.label("signature", first, plain)
	for i := 1; i < len(c.Evidence); i++ {
		p.label("", c.Evidence[i], plain)
	}
	if s := c.runnerUp(); s != "" {
		p.label("", s, plain)
	}
}

func (p *printer) generator(g *Generator) {
	color := plain
	if !g.Valid {
		color = red
	}
	for i, l := range wrap(clean(g.line()), p.Width) {
		if i == 0 {
			l = p.paint(l, color)
		}
		p.say(l)
	}
}

func (t table) has(head string) bool {
	for _, c := range t {
		if c.head == head {
			return true
		}
	}
	return false
}

func (p *printer) table(t table) {
	if t.rows() == 0 {
		return
	}
	p.say("")
	for _, l := range t.fit(p.Width).lines() {
		p.say(p.paintVerdict(l))
	}
}

// paintVerdict colours the verdict's word where it stands in a line.
func (p *printer) paintVerdict(line string) string {
	if !p.Color {
		return line
	}
	for _, v := range Verdicts() {
		if m := v.mark(); v != None && strings.Contains(line, m) {
			return strings.Replace(line, m, p.paint(m, v.color()), 1)
		}
	}
	return line
}

func (v Verdict) color() string {
	switch v {
	case Pass:
		return green
	case Fail, Invalid:
		return red
	case Inconclusive, NotMeasured:
		return yellow
	case None:
		return plain
	}
	return plain
}

// remarks ends the report: what to doubt, what to know, and the verdict.
func (p *printer) remarks(r *Report) {
	if len(r.Notes)+len(r.Warnings) > 0 {
		p.say("")
	}
	for _, n := range r.Notes {
		p.label("note", n, plain)
	}
	for _, w := range r.Warnings {
		p.label("warning", w, yellow)
	}
	p.say("")
	if where := r.Environment.where(); where != "" {
		p.label("measured", "on "+where, plain)
	}
	for _, n := range r.next() {
		p.label("next", n, plain)
	}
	p.label("verdict", r.Verdict.mark()+because(r.Reason), r.Verdict.color())
}
