package report

import (
	"slices"
	"strings"
	"unicode/utf8"

	terminal "tare/internal/term"
)

// A column of a table. When a table is too wide, columns are left out, those with the highest Drop first; 0 stays.
type column struct {
	head string
	left bool // text; numbers are aligned on the right
	drop int
	in   media  // the formats that show it; 0: all
	note string // printed below the table
	// A column of counts that are all 0 is omitted; on the page, alarming counts above 0 stand out.
	counts, alarming bool
	// cells; an empty string is no value.
	cells []string
	// shorter cells, for where there is no room for the others; none if nothing may be left out.
	short []string
}

// with returns the column with other cells.
func (c *column) with(cells []string) *column {
	x := *c
	x.cells, x.short = cells, nil
	return &x
}

// A table is columns of equal length.
type table []*column

// add appends one row.
func (t table) add(cells ...string) {
	for i, c := range cells {
		t[i].cells = append(t[i].cells, sanitize(c))
	}
}

func (t table) rows() int {
	if len(t) == 0 {
		return 0
	}
	return len(t[0].cells)
}

// used removes the columns that have no value in any row.
func (t table) used() table {
	var u table
	for _, c := range t {
		if slices.ContainsFunc(c.cells, func(s string) bool { return s != "" && (!c.counts || s != "0") }) {
			u = append(u, c)
		}
	}
	return u
}

// filled removes the rows that have no value beyond the first column.
func (t table) filled() table {
	out := make(table, len(t))
	for i, c := range t {
		out[i] = c.with(nil)
	}
	for row := range t.rows() {
		if !slices.ContainsFunc(t[1:], func(c *column) bool { return c.cells[row] != "" }) {
			continue
		}
		for i, c := range t {
			out[i].cells = append(out[i].cells, c.cells[row])
		}
	}
	return out
}

// first returns the first n rows, and how many follow.
func (t table) first(n int) (head table, rest int) {
	if t.rows() <= n {
		return t, 0
	}
	for _, c := range t {
		head = append(head, c.with(c.cells[:n]))
	}
	return head, t.rows() - n
}

func (c *column) width() int {
	w := utf8.RuneCountInString(c.head)
	for _, s := range c.cells {
		w = max(w, utf8.RuneCountInString(s))
	}
	return w
}

const columnGap = 3

func (t table) width() int {
	w := -columnGap
	for _, c := range t {
		w += c.width() + columnGap
	}
	return w
}

// fit drops columns until the table is no wider than width.
func (t table) fit(width int) table {
	for t.width() > width {
		worst := 0
		for i, c := range t {
			if c.drop >= t[worst].drop {
				worst = i
			}
		}
		if t[worst].drop == 0 {
			break
		}
		t = append(append(table{}, t[:worst]...), t[worst+1:]...)
	}
	return t
}

// shortened returns a table in which the columns that do not fit beside the first one have their shorter cells.
func (t table) shortened(width int) table {
	out := slices.Clone(t)
	for i, c := range t {
		if i > 0 && c.short != nil && (table{t[0], c}).width() > width {
			out[i] = c.with(c.short)
		}
	}
	return out
}

// panels splits a table that is too wide into several with the same first column, each as wide as fits. One column may
// still be wider.
func (t table) panels(width int) []table {
	t = t.shortened(width)
	if len(t) < 3 || t.width() <= width {
		return []table{t}
	}
	var out []table
	now := table{t[0]}
	for _, c := range t[1:] {
		if len(now) > 1 && append(slices.Clone(now), c).width() > width {
			out = append(out, now)
			now = table{t[0]}
		}
		now = append(now, c)
	}
	return append(out, now)
}

// lines renders the table as text; the first line is the head.
func (t table) lines() []string {
	out := make([]string, t.rows()+1)
	for i, c := range t {
		w := c.width()
		for row := range out {
			cell := sanitize(c.head) // a word of a record, such as a factor
			if row > 0 {
				cell = c.cells[row-1]
			}
			pad := strings.Repeat(" ", w-utf8.RuneCountInString(cell))
			if c.left {
				cell += pad
			} else {
				cell = pad + cell
			}
			if i > 0 {
				cell = strings.Repeat(" ", columnGap) + cell
			}
			out[row] += cell
		}
	}
	for i := range out {
		out[i] = strings.TrimRight(out[i], " ")
	}
	return out
}

// sanitize makes a text from a record harmless on a terminal: one line without control characters.
func sanitize(s string) string { return oneLine.Replace(terminal.Visible(s)) }

var oneLine = strings.NewReplacer("\n", " ", "\t", " ")

// wrap breaks s into lines of at most width runes at spaces, but not between a number and its unit. A longer word stays
// whole.
func wrap(s string, width int) []string {
	var out []string
	line := ""
	for _, word := range words(s) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			out = append(out, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line != "" || len(out) == 0 {
		out = append(out, line)
	}
	return out
}

// words splits at spaces and keeps a number with the unit that follows.
func words(s string) []string {
	var out []string
	for w := range strings.FieldsSeq(s) {
		if n := len(out); n > 0 && isUnit(strings.TrimRight(w, ".,;:)]")) && endsInDigit(out[n-1]) {
			out[n-1] += " " + w
			continue
		}
		out = append(out, w)
	}
	return out
}

func isUnit(w string) bool {
	switch strings.TrimSuffix(w, "/h") {
	case "ns", "µs", "ms", "s", "%", "B", "KiB", "MiB", "GiB", "TiB", "/s":
		return true
	}
	return false
}

func endsInDigit(w string) bool {
	last := w[len(w)-1]
	return last >= '0' && last <= '9'
}
