package report

import (
	"html/template"

	"tare/internal/unit"
)

// A section answers one question. Its number is the question's, in every report.
type section struct {
	Number   int
	Question string
	Short    string // for the list of questions
	Blocks   []block
}

// A block is one element of a section; exactly one of its parts is there.
type block struct {
	Heading string // below the question
	Text    string
	Lead    *lead
	Notice  string // what must not be overlooked
	Facts   []fact
	List    []string
	Figure  *figure
	Table   *grid
	Code    string
}

// A lead is the answer in one sentence.
type lead struct {
	Word, Class string // the verdict
	Text        string
	Why         string
}

// A fact is one number that stands for itself.
type fact struct {
	Name, Value, Note, Class string
}

// A figure is a chart with its numbers in a table beside it.
type figure struct {
	SVG      template.HTML
	Caption  string
	Summary  string // of the table
	Table    *grid
	Open     bool // the table is shown at once
	Timeline *int // its index in the report: the script may replace the chart
}

// drawn marks what package chart has written, with all labels escaped, as safe.
func drawn(svg []byte) template.HTML { return template.HTML(svg) }

// A table is rows of cells below a head.
type grid struct {
	Caption string
	Head    []head
	Rows    [][]cell
}

type head struct {
	Text string
	Left bool // text; numbers are aligned on the right
}

type cell struct {
	Text, Class string
	Left        bool
}

func wordHeads(heads ...string) []head {
	var out []head
	for _, h := range heads {
		out = append(out, head{Text: h, Left: true})
	}
	return out
}

func numberHeads(heads ...string) []head {
	var out []head
	for _, h := range heads {
		out = append(out, head{Text: h})
	}
	return out
}

// add appends a row; "" is an unknown value.
func (t *grid) add(values ...string) {
	row := make([]cell, len(values))
	for i, v := range values {
		row[i] = cell{Text: v, Left: t.Head[i].Left}
	}
	t.Rows = append(t.Rows, row)
}

// class gives the last row's cell in a column its meaning.
func (t *grid) class(column int, class string) { t.Rows[len(t.Rows)-1][column].Class = class }

// used leaves out the columns that have no value in any row, and writes the mark of the unknown where one is missing. It is nil if
// nothing is left.
func (t *grid) used() *grid {
	u := &grid{Caption: t.Caption, Rows: make([][]cell, len(t.Rows))}
	for i, h := range t.Head {
		if !t.valued(i) {
			continue
		}
		u.Head = append(u.Head, h)
		for k, row := range t.Rows {
			c := row[i]
			if c.Text == "" {
				c.Text = unit.Unknown
			}
			u.Rows[k] = append(u.Rows[k], c)
		}
	}
	if len(u.Head) == 0 {
		return nil
	}
	return u
}

func (t *grid) valued(column int) bool {
	for _, row := range t.Rows {
		if row[column].Text != "" {
			return true
		}
	}
	return false
}

// tabular is a block of a table, or nothing.
func tabular(t *grid) []block {
	if t = t.used(); t == nil {
		return nil
	}
	return []block{{Table: t}}
}

// headed says whether a table's columns have names.
func headed(t *grid) bool {
	for _, h := range t.Head {
		if h.Text != "" {
			return true
		}
	}
	return false
}
