package report

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/perf/benchunit"
)

// How benchstat's tables are set: for each column a median with its interval, and beside each but the first the change from the first, with p.

// The parts of a cell, in their order.
const (
	partCenter = iota
	partRange
	partNote // on the median
	partDelta
	partP
	partDoubt // on the change
	partOwn
	parts
)

// A benchLine is the texts of a row: one cell a column.
type benchLine struct {
	label string
	cells [][parts]string
}

// footnotes are warnings by number, each said once.
type footnotes []string

// mark is the number of a warning, as a superscript.
func (f *footnotes) mark(warnings ...string) string {
	var out []string
	for _, w := range warnings {
		i := slices.Index(*f, w)
		if i < 0 {
			i, *f = len(*f), append(*f, w)
		}
		out = append(out, superscript(i+1))
	}
	return strings.Join(out, " ")
}

func superscript(n int) string {
	return strings.Map(func(c rune) rune { return []rune("⁰¹²³⁴⁵⁶⁷⁸⁹")[c-'0'] }, fmt.Sprint(n))
}

func texts(warnings []error) []string {
	var out []string
	for _, w := range warnings {
		out = append(out, w.Error())
	}
	return out
}

// write sets the table, with its footnotes below.
func (t *benchTable) write(b *bytes.Buffer) {
	var notes footnotes
	var lines []benchLine
	for _, row := range t.rows {
		lines = append(lines, row.line(t.unit, &notes))
	}
	if len(t.rows) > 1 {
		lines = append(lines, t.lastLine(&notes))
	}
	label := 0
	for _, l := range lines {
		label = max(label, utf8.RuneCountInString(l.label))
	}
	columns := t.set(lines)
	head, units := strings.Repeat(" ", label), strings.Repeat(" ", label)
	for i, c := range columns {
		head += " │ " + centred(t.columns[i], c.width())
		units += " │ " + c.heads(t.unit, i > 0)
	}
	b.WriteString(head + " │\n" + units + " │\n")
	for _, l := range lines {
		line := []string{pad(l.label, label)}
		for i, c := range columns {
			line = append(line, c.line(&l.cells[i]))
		}
		b.WriteString(strings.TrimRight(strings.Join(line, "   "), " ") + "\n")
	}
	for i, n := range notes {
		b.WriteString(superscript(i+1) + " " + n + "\n")
	}
}

// line is a row in words.
func (row *benchRow) line(unit string, notes *footnotes) benchLine {
	l := benchLine{label: row.label, cells: make([][parts]string, len(row.cells))}
	scale := row.scaler(unit)
	for i, c := range row.cells {
		if c == nil {
			continue
		}
		p := &l.cells[i]
		p[partCenter], p[partRange] = scale.Format(c.summary.Center), c.summary.PctRangeString()
		p[partNote] = notes.mark(slices.Concat(texts(c.sample.Warnings), texts(c.summary.Warnings))...)
		if c.change == nil {
			continue
		}
		p[partDelta] = c.change.FormatDelta(row.cells[0].summary.Center, c.summary.Center)
		p[partP] = "(" + c.change.String() + ")"
		p[partDoubt], p[partOwn] = notes.mark(texts(c.change.Warnings)...), c.own
	}
	return l
}

// lastLine are the geometric means.
func (t *benchTable) lastLine(notes *footnotes) benchLine {
	l := benchLine{label: "geomean", cells: make([][parts]string, len(t.columns))}
	for i := range t.columns {
		s, p := t.summary(i), &l.cells[i]
		if !math.IsNaN(s.center) {
			p[partCenter] = benchunit.Scale(s.center, benchunit.ClassOf(t.unit))
		}
		note := partNote
		if i > 0 {
			note, p[partDelta] = partDoubt, "?"
			if !math.IsNaN(s.ratio) {
				p[partDelta] = fmt.Sprintf("%+.2f%%", (s.ratio-1)*100)
			}
		}
		p[note] = notes.mark(s.warnings...)
	}
	return l
}

// A benchColumn is the widths of a column's parts.
type benchColumn [parts]int

// before is what stands before a part.
func before(part int) string {
	switch part {
	case partCenter:
		return ""
	case partRange:
		return " ± "
	case partDelta, partOwn:
		return "  "
	}
	return " "
}

// set finds the widths of all columns. One whose head is wider than its cells grows at its first part.
func (t *benchTable) set(lines []benchLine) []benchColumn {
	columns := make([]benchColumn, len(t.columns))
	for i := range columns {
		c := &columns[i]
		for _, l := range lines {
			for k, s := range l.cells[i] {
				c[k] = max(c[k], utf8.RuneCountInString(s))
			}
		}
		if i > 0 {
			c[partDelta] = max(c[partDelta], len("vs base"))
			c[partOwn] = max(c[partOwn], len(ownHead))
		}
		c[partCenter] += max(0, utf8.RuneCountInString(t.unit)-c.upTo(partDelta), utf8.RuneCountInString(t.columns[i])-c.width())
	}
	return columns
}

const ownHead = "tare"

func (c *benchColumn) width() int { return c.upTo(parts) }

// upTo is the width of the parts before one.
func (c *benchColumn) upTo(part int) int {
	n := 0
	for k, w := range c[:part] {
		if w > 0 {
			n += len([]rune(before(k))) + w
		}
	}
	return n
}

// heads are the words over a column's parts.
func (c *benchColumn) heads(unit string, changes bool) string {
	s := centred(unit, c.upTo(partDelta))
	if changes {
		s += before(partDelta) + pad("vs base", c.upTo(partOwn)-c.upTo(partDelta)-len(before(partDelta)))
		s += before(partOwn) + pad(ownHead, c[partOwn])
	}
	return s
}

// line is one row of a column.
func (c *benchColumn) line(cell *[parts]string) string {
	var b strings.Builder
	for k, w := range c {
		if w == 0 {
			continue
		}
		gap := before(k)
		if k == partRange && cell[k] == "" {
			gap = "   "
		}
		b.WriteString(gap)
		room := strings.Repeat(" ", w-utf8.RuneCountInString(cell[k]))
		if k == partCenter || k == partRange || k == partDelta {
			b.WriteString(room + cell[k])
		} else {
			b.WriteString(cell[k] + room)
		}
	}
	return b.String()
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s)))
}

func centred(s string, width int) string {
	return pad(strings.Repeat(" ", max(0, width-utf8.RuneCountInString(s))/2)+s, width)
}
