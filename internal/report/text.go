package report

import (
	"bytes"
	"io"
	"strings"

	terminal "tare/internal/term"
)

// Width is the usual width of text, in columns.
const Width = 100

// Style is the layout of text. The zero value has the usual width and is plain.
type Style struct {
	Width int  // columns; 0: the usual width
	Color bool // ANSI colours for verdicts
	// Rest is how to get the whole report. With it, a report longer than one screen is limited to it.
	Rest string
}

// Text writes the report for a terminal or a log, in the zero Style.
func Text(w io.Writer, r *Report) error { return Style{}.Text(w, r) }

// labelWidth is the column at which sentences begin.
const labelWidth = 11

// Text writes the report for people.
func (s Style) Text(w io.Writer, r *Report) error {
	if s.Width <= 0 {
		s.Width = Width
	}
	p := s.whole(r)
	if s.Rest != "" && lineCount(&p.buf) > screenLines {
		p = s.screen(r)
	}
	_, err := w.Write(p.buf.Bytes())
	return err
}

func lineCount(b *bytes.Buffer) int { return bytes.Count(b.Bytes(), []byte{'\n'}) }

// whole returns the whole report.
func (s Style) whole(r *Report) printer {
	p := printer{Style: s}
	p.say(sanitize(strings.Join(r.title(), " · ")))
	d := compose(r, nil)
	for _, closing := range []bool{false, true} {
		for i, x := range d {
			p.gap = closing || i > 0
			for _, b := range x.Blocks {
				if b.in(inText) && b.Closing == closing && b.Lead == nil {
					p.block(&b)
				}
			}
		}
	}
	if t := r.budgets(); t.width() > p.Width { // without the column of reasons
		p.brief(r.openBudgets(r.unexplained()...))
	}
	p.remark(verdict(r))
	return p
}

// colorOf returns the colour of a class of words.
func colorOf(class string) terminal.Color {
	return map[string]terminal.Color{good: terminal.Green, bad: terminal.Red, unsure: terminal.Yellow}[class]
}

type printer struct {
	Style
	buf bytes.Buffer
	gap bool // an empty line separates the following sentences
}

// block writes one element. Only the page shows drawings, facts and code.
func (p *printer) block(b *block) {
	switch {
	case b.Heading != "":
		p.say("")
		p.say(sanitize(b.Heading))
		p.gap = false
	case b.Text != "":
		p.lines(b.Text)
	case len(b.Legend) > 0:
		p.legend(b.Legend)
		p.gap = true
	case b.Notice != nil:
		p.remark(*b.Notice)
	case b.Head != nil:
		p.headline(b.Head)
	case b.Figure != nil && b.Figure.Line != nil:
		p.remark(*b.Figure.Line)
	case b.List != nil && b.List.Word == "":
		p.lines(b.List.Items...)
	case b.List != nil:
		for _, s := range b.List.Items {
			p.remark(remark{b.List.Word, s, b.List.Class})
		}
	case b.Table != nil:
		p.table(b.Table)
	}
	for _, x := range b.Said {
		p.remark(x)
	}
}

// say writes one line so that no CI system takes it for a command.
func (p *printer) say(line string) { p.buf.WriteString(terminal.Inert(line) + "\n") }

func (p *printer) paint(s string, color terminal.Color) string {
	if !p.Color {
		return s
	}
	return color.Paint(s)
}

// lines writes sentences.
func (p *printer) lines(sentences ...string) {
	for _, s := range sentences {
		for _, l := range wrap(sanitize(s), p.Width) {
			p.say(l)
		}
	}
}

// remark writes a word and a sentence, wrapped with a hanging indent.
func (p *printer) remark(x remark) {
	if p.gap {
		p.say("")
		p.gap = false
	}
	p.hang(p.label(x.Word, x.Class), wrap(sanitize(x.Text), max(20, p.Width-labelWidth)))
}

// label returns the word before a sentence, padded to the indent.
func (p *printer) label(word, class string) string {
	word = sanitize(word)
	if word == "" {
		return strings.Repeat(" ", labelWidth)
	}
	return p.paint(word+strings.Repeat(" ", max(1, labelWidth-len([]rune(word)))), colorOf(class))
}

func (p *printer) hang(label string, lines []string) {
	for _, l := range lines {
		p.say(label + l)
		label = strings.Repeat(" ", labelWidth)
	}
}

// headline writes a result and its details: beside it with a wide gap, or below it if there is no room.
func (p *printer) headline(h *headline) {
	lines, room := []string{sanitize(h.Text)}, p.Width-labelWidth
	for _, part := range h.Parts {
		if len(lines) == 1 && len([]rune(lines[0]))+columnGap+len([]rune(part)) <= room {
			lines[0] += strings.Repeat(" ", columnGap) + part
			continue
		}
		lines = append(lines, part)
	}
	label := p.label(h.Word, h.Class)
	for _, l := range lines {
		parts := []string{l} // it keeps its inner gaps, unless it is too long
		if len([]rune(l)) > room {
			parts = wrap(l, max(20, room))
		}
		p.hang(label, parts)
		label = strings.Repeat(" ", labelWidth)
	}
}

// legend writes parts side by side as the width allows.
func (p *printer) legend(parts []string) {
	p.say("")
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

// verdict writes the end of the text format.
func verdict(r *Report) remark {
	return remark{"verdict", r.Verdict.mark() + because(r.Reason), r.Verdict.class()}
}

// table writes a table without its dispensable columns. If that is not narrow enough, it writes all columns in parts,
// each with the first column and the rows that have values.
func (p *printer) table(g *grid) {
	t, rest := g.shown(inText)
	if t.rows() == 0 {
		return
	}
	parts := []table{t.fit(p.Width)}
	switch {
	case parts[0].width() <= p.Width:
	case g.Panels:
		parts = t.panels(p.Width)
	default:
		parts[0] = parts[0].shortened(0)
	}
	for _, part := range parts {
		if len(parts) > 1 {
			part = part.filled()
		}
		p.say("")
		part = part.fit(p.Width)
		for _, l := range part.lines() {
			if g.Marks {
				p.say(p.paintMarks(l))
			} else {
				p.say(p.paintVerdict(l))
			}
		}
	}
	if len(parts) == 1 {
		t = parts[0]
	}
	p.lines(t.notes()...)
	if rest > 0 {
		p.lines(further(rest))
	}
	p.gap = true
}

// paintVerdict colours the verdict's word in a line.
func (p *printer) paintVerdict(line string) string {
	for _, v := range Verdicts() {
		if m := v.mark(); v != None && strings.Contains(line, m) {
			return strings.Replace(line, m, p.paint(m, colorOf(v.class())), 1)
		}
	}
	return line
}

// paintMarks colours the marks of effects in a line.
func (p *printer) paintMarks(line string) string {
	var pairs []string
	for _, v := range shownVerdicts() {
		pairs = append(pairs, v.mark(), p.paint(v.mark(), colorOf(v.class())))
	}
	return strings.NewReplacer(pairs...).Replace(line)
}
