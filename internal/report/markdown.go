package report

import (
	"bytes"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	terminal "tare/internal/term"
)

// Markdown writes the report for a step summary or a comment, in GitHub's dialect.
func Markdown(w io.Writer, r *Report) error {
	m := markdown{}
	m.say("# " + escape(strings.Join(r.title(), " · ")))
	m.say("**" + escape(r.Verdict.mark()) + "**" + escape(because(r.Reason)))
	if u := r.Status.unfinished(); u != "" {
		m.say("**" + escape(string(r.Status)) + "**: " + escape(u))
	}
	m.table(r.budgets())
	for i := range r.Capacity {
		m.capacity(r, &r.Capacity[i])
	}
	m.soak(r)
	m.comparison(r)
	m.controlPlane(r)
	if r.Generator != nil {
		m.remark(r.Generator.line())
	}
	if r.soaked() {
		m.soakTables(r)
	} else {
		m.section("Operations", r.operations())
	}
	m.answers(r)
	m.section("Calls that were not ok", r.causes())
	m.usage(r)
	m.list("Notes", r.Notes)
	m.list("Warnings", r.Warnings)
	if where := r.Environment.where(); where != "" {
		m.say("Measured on " + escape(where))
	}
	_, err := io.WriteString(w, terminal.Inert(m.buf.String()))
	return err
}

type markdown struct{ buf bytes.Buffer }

// say writes a block.
func (m *markdown) say(s string) {
	if m.buf.Len() > 0 {
		m.buf.WriteByte('\n')
	}
	m.buf.WriteString(s + "\n")
}

// escape takes the meaning off characters that Markdown or HTML would read.
func escape(s string) string {
	var b strings.Builder
	for _, r := range clean(s) {
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

// remark writes a sentence as a paragraph.
func (m *markdown) remark(s string) { m.say(unopened(escape(s))) }

// unopened is a line whose beginning opens no heading, quotation, list or rule.
func unopened(s string) string {
	return openingNumber.ReplaceAllString(openingMark.ReplaceAllString(s, `\$0`), `$1\$2`)
}

var (
	openingMark   = regexp.MustCompile(`^(#{1,6}(\s|$)|>|[-+](\s|$)|--|==)`)
	openingNumber = regexp.MustCompile(`^(\d{1,9})([.)](?:\s|$))`)
)

func (m *markdown) capacity(r *Report, c *Capacity) {
	head := "Capacity"
	if name := strings.TrimSpace(r.withTreatment(c.Treatment) + " " + c.Operation); name != "" {
		head += " of " + name
	}
	m.say("## " + escape(head))
	parts := []string{"**" + escape(c.headline()) + "**"}
	for _, part := range []string{c.verified(), c.effort()} {
		if part != "" {
			parts = append(parts, escape(part))
		}
	}
	m.say(strings.Join(parts, " · "))
	var items []string
	for _, x := range c.extras() {
		items = append(items, escape(x))
	}
	if c.Signature != "" {
		items = append(items, "signature **"+escape(string(c.Signature))+"**")
		for _, e := range c.Evidence {
			items = append(items, escape(e))
		}
	}
	if s := c.runnerUp(); s != "" {
		items = append(items, escape(s))
	}
	if word, text := c.recovery(); word != "" {
		items = append(items, "**"+word+"** "+escape(text))
	}
	m.items(items)
	if len(c.Points) > 0 {
		m.table(ladder(c.Points))
		for _, s := range slices.Concat([]string{vegetaNote}, usedBy(c.Points), lateRows(c.Points)) {
			m.remark(s)
		}
	}
}

func (m *markdown) items(items []string) {
	if len(items) > 0 {
		for i := range items {
			items[i] = unopened(items[i])
		}
		m.say("- " + strings.Join(items, "\n- "))
	}
}

func (m *markdown) section(head string, t table) {
	if t.rows() > 0 {
		m.say("## " + head)
		m.table(t)
	}
}

func (m *markdown) list(head string, items []string) {
	if len(items) == 0 {
		return
	}
	m.say("## " + head)
	escaped := make([]string, len(items))
	for i, s := range items {
		escaped[i] = escape(s)
	}
	m.items(escaped)
}

func (m *markdown) table(t table) {
	if t.rows() == 0 {
		return
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
}
