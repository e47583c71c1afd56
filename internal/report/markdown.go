package report

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"strings"

	terminal "tare/internal/term"
)

// Markdown writes the report for a step summary or a comment, in GitHub's dialect.
func Markdown(w io.Writer, r *Report) error {
	m := markdown{}
	m.say("# " + escape(strings.Join(r.title(), " · ")))
	for _, s := range compose(r, nil) {
		for _, b := range s.Blocks {
			if b.in(inMarkdown) {
				m.block(&b)
			}
		}
	}
	_, err := io.WriteString(w, terminal.Inert(m.buf.String()))
	return err
}

type markdown struct {
	buf    bytes.Buffer
	listed bool // the last block is a list
}

// block writes one element. Only the page shows drawings, facts and code.
func (m *markdown) block(b *block) {
	switch {
	case b.Heading != "":
		m.say("## " + escape(b.Heading))
	case b.Text != "":
		m.say(escapeLineStart(escape(b.Text)))
	case len(b.Legend) > 0:
		m.say(escapeLineStart(escape(strings.Join(b.Legend, " · "))))
	case b.Lead != nil:
		m.say("**" + escape(b.Lead.Word) + "**" + escape(because(b.Lead.Reason)))
	case b.Notice != nil:
		m.say(b.Notice.markdown())
	case b.Head != nil:
		m.say(strings.Join(append([]string{"**" + escape(b.Head.Text) + "**"}, each(b.Head.Parts, escape)...), " · "))
	case b.Figure != nil && b.Figure.Line != nil:
		m.items([]string{escape(b.Figure.Line.Text)})
	case b.List != nil:
		m.items(each(b.List.Items, escape))
	case b.Table != nil:
		m.table(b.Table)
	}
	m.items(each(b.Said, remark.markdown))
}

// each applies a function to all texts.
func each[T any](all []T, do func(T) string) []string {
	var out []string
	for _, x := range all {
		out = append(out, do(x))
	}
	return out
}

// markdown returns the sentence with its word in bold.
func (x remark) markdown() string {
	if x.Word == "" {
		return escape(x.Text)
	}
	return "**" + escape(x.Word) + "** " + escape(x.Text)
}

// say writes a paragraph.
func (m *markdown) say(s string) {
	if m.buf.Len() > 0 {
		m.buf.WriteByte('\n')
	}
	m.buf.WriteString(s + "\n")
	m.listed = false
}

// escape escapes characters that Markdown or HTML would interpret.
func escape(s string) string {
	var b strings.Builder
	for _, r := range sanitize(s) {
		switch {
		case r == '<':
			b.WriteString("&lt;")
			continue
		case r == '&':
			b.WriteString("&amp;")
			continue
		case strings.ContainsRune("\\`*_[]|~", r):
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

// escapeLineStart escapes the beginning of a line, so that it opens no heading, quotation, list or rule.
func escapeLineStart(s string) string {
	return openingNumber.ReplaceAllString(openingMark.ReplaceAllString(s, `\$0`), `$1\$2`)
}

var (
	openingMark   = regexp.MustCompile(`^(#{1,6}(\s|$)|>|[-+](\s|$)|--|==)`)
	openingNumber = regexp.MustCompile(`^(\d{1,9})([.)](?:\s|$))`)
)

func (m *markdown) items(items []string) {
	for _, s := range items {
		if m.listed {
			m.buf.WriteString("- " + escapeLineStart(s) + "\n")
			continue
		}
		m.say("- " + escapeLineStart(s))
		m.listed = true
	}
}

func (m *markdown) table(g *grid) {
	t, rest := g.shown(inMarkdown)
	if t.rows() == 0 {
		return
	}
	if g.Title != "" {
		m.say("## " + escape(g.Title))
	}
	var b, rule strings.Builder
	b.WriteByte('|')
	for _, c := range t {
		fmt.Fprintf(&b, " %s |", escape(c.head))
		if c.left {
			rule.WriteString(" --- |")
		} else {
			rule.WriteString(" ---: |")
		}
	}
	b.WriteString("\n|" + rule.String())
	for row := range t.rows() {
		b.WriteString("\n|")
		for _, c := range t {
			fmt.Fprintf(&b, " %s |", escape(c.cells[row]))
		}
	}
	m.say(b.String())
	for _, s := range t.notes() {
		m.say(escapeLineStart(escape(s)))
	}
	if rest > 0 {
		m.say(escape(further(rest)))
	}
}
