package report

import (
	"html/template"
	"slices"
	"strings"

	"tare/internal/question"
	"tare/internal/unit"
)

// A document is what a report says to people: composed once, in one order and one wording. The text format, Markdown
// and the page only render it.
type document []section

// media are the output formats for people.
type media uint8

const (
	inText media = 1 << iota
	inMarkdown
	onPage

	inWords = inText | inMarkdown
	titled  = inMarkdown | onPage // those that show headings; the text format separates by blank lines
)

// A section answers one question.
type section struct {
	Question string
	Short    string // for the list of questions
	Blocks   []block
}

// A block is one element of a section; exactly one of its parts is there.
type block struct {
	In      media // the formats that show it; 0: all
	Closing bool  // the text format shows it at its end, before the verdict: there a terminal still shows it
	Heading string
	Text    string
	Legend  []string // short texts beside one another
	Lead    *lead
	Notice  *remark   // what must not be overlooked
	Notices []remark  // on the page: all notices of its section
	Head    *headline // the result in numbers
	Said    []remark
	Facts   []fact
	List    *list
	Figure  *figure
	Table   *grid
	Code    string
}

// in reports whether a format shows the block.
func (b *block) in(m media) bool { return b.In == 0 || b.In&m != 0 }

// empty reports whether a block says nothing.
func (b *block) empty() bool {
	return b.Heading+b.Text+b.Code == "" && len(b.Legend)+len(b.Said)+len(b.Facts)+len(b.Notices) == 0 &&
		b.Lead == nil && b.Notice == nil && b.Head == nil && b.List == nil && b.Figure == nil && b.Table == nil
}

// only limits blocks to some formats.
func only(m media, blocks ...block) []block {
	for i := range blocks {
		if blocks[i].In == 0 {
			blocks[i].In = onPage | inWords
		}
		blocks[i].In &= m
	}
	return slices.DeleteFunc(blocks, func(b block) bool { return b.In == 0 })
}

// The classes of words that judge.
const (
	plain  = "" // a word that judges nothing
	good   = "good"
	bad    = "bad"
	unsure = "unsure"
)

// A lead is the answer in one sentence.
type lead struct {
	Word, Class, Reason string // the verdict
	Text, Why           string // on the page: what was found, and the reason where it says more
}

// A remark is a sentence with the word that stands before it.
type remark struct{ Word, Text, Class string }

// A headline is a result with what belongs to it; the parts stay apart.
type headline struct {
	Word, Text, Class string
	Parts             []string
}

// A list is sentences of one kind; in text each has the word before it.
type list struct {
	Word, Class string
	Items       []string
}

// A fact is one number that stands for itself.
type fact struct {
	Name, Value, Note, Class string
}

// A figure is a chart with its numbers in a table beside it. Formats that cannot draw show its line, if it has one.
type figure struct {
	Line     *remark
	SVG      drawing
	Caption  string
	Summary  string // of the table
	Table    *grid
	Open     bool // the table is shown at once
	Timeline *int // its index in the report: the script may replace the chart
}

// A drawing draws a chart. Only the page calls it: drawing takes longer than all that other formats show.
type drawing func() template.HTML

// drawn returns a drawing by package chart, which escapes all labels, so that it is safe.
func drawn(draw func(id string) []byte, id string) drawing {
	return func() template.HTML { return template.HTML(draw(id)) }
}

// A grid is a table with what the formats need to know of it. Without rows it is not shown.
type grid struct {
	table
	Title   string // heading in Markdown
	Caption string // on the page
	Marks   bool   // cells end in the signs of effects, which the text format colours
	Panels  bool   // where it is too wide, the text format splits it
	Most    int    // rows in text and Markdown; 0: all
}

// tabular is a block of a table, or nothing.
func tabular(g *grid) []block {
	if g == nil || len(g.used()) == 0 {
		return nil
	}
	return []block{{Table: g}}
}

// whenAsked is a table that the page shows only when asked, and the other formats never.
func whenAsked(summary string, g *grid) []block {
	if len(tabular(g)) == 0 {
		return nil
	}
	return []block{{Figure: &figure{Summary: summary, Table: g}}}
}

// listOf is a block of sentences of one kind, or nothing.
func listOf(x list) []block {
	if len(x.Items) == 0 {
		return nil
	}
	return []block{{List: &x}}
}

// wordHeads and numberHeads are columns of words, and of numbers, which are aligned on the right.
func wordHeads(heads ...string) table {
	var out table
	for _, h := range heads {
		out = append(out, &column{head: h, left: true})
	}
	return out
}

func numberHeads(heads ...string) table {
	var out table
	for _, h := range heads {
		out = append(out, &column{head: h})
	}
	return out
}

// pageRows are the cells of a table as the page shows them: the mark of the unknown where a value is missing, and
// judging cells with their class.
func pageRows(g *grid) [][]pageCell {
	shown, _ := g.shown(onPage)
	out := make([][]pageCell, shown.rows())
	for i := range out {
		for _, c := range shown {
			cell := pageCell{Text: orElse(c.cells[i], unit.Unknown), Class: classOf(c.cells[i]), Left: c.left, Head: c.head}
			switch {
			case c.cells[i] == "":
				cell.Class = "unknown"
			case g.Marks && cell.Class == "":
				cell.Class = classOf(c.cells[i][strings.LastIndexByte(c.cells[i], ' ')+1:])
			case c.alarming && c.cells[i] != "0":
				cell.Class = bad
			}
			out[i] = append(out[i], cell)
		}
	}
	return out
}

// pageHeads are the names of the columns that the page shows; none if no column has one.
func pageHeads(g *grid) []pageCell {
	shown, _ := g.shown(onPage)
	var out []pageCell
	if slices.ContainsFunc(shown, func(c *column) bool { return c.head != "" }) {
		for _, c := range shown {
			out = append(out, pageCell{Text: c.head, Left: c.left})
		}
	}
	return out
}

// shown are the columns and rows of a table that a format shows, and how many rows it leaves out.
func (g *grid) shown(m media) (t table, rest int) {
	if g == nil {
		return nil, 0
	}
	for _, c := range g.table {
		if c.in == 0 || c.in&m != 0 {
			t = append(t, c)
		}
	}
	t = t.used()
	if g.Most > 0 && m != onPage {
		return t.first(g.Most)
	}
	return t, 0
}

// notes are what must be said of columns that are shown.
func (t table) notes() []string {
	var out []string
	for _, c := range t {
		if c.note != "" {
			out = append(out, c.note)
		}
	}
	return out
}

// pageTable returns the classes of a table on the page: a phone shows the rows of one with heads as lists, unless it is
// narrow, and a tablet and paper those of a wide one.
func pageTable(g *grid) string {
	shown, _ := g.shown(onPage)
	switch {
	case len(pageHeads(g)) == 0 || shown.width() <= phoneWidth:
		return ""
	case shown.width() > paperWidth:
		return "list wide"
	}
	return "list"
}

// phoneWidth and paperWidth are how wide a table may be on a phone, and on a tablet and on paper, in characters.
const (
	phoneWidth = 34
	paperWidth = 92
)

type pageCell struct {
	Text, Class, Head string
	Left              bool
}

// classOf is the class of a cell that begins with a verdict's sign.
func classOf(text string) string {
	sign, _, _ := strings.Cut(text, " ")
	switch sign {
	case "✓", "≈":
		return good
	case "✗":
		return bad
	case "?", "›", "‹", "–":
		return unsure
	}
	return ""
}

// compose is the document of a report. The page passes what it does not embed of the report.
func compose(r *Report, without []string) document {
	first, second := effectSection, growthSection
	if question.Of(r.Question).Answer.GrowthFirst {
		first, second = second, first
	}
	var d document
	for _, s := range []section{
		verdictSection(r), diffSection(r), guardSection(r), first(r), tailSection(r), second(r), limitSection(r),
		courseSection(r), usageSection(r), trustSection(r), originSection(r, without),
	} {
		if len(s.Blocks) > 0 {
			d = append(d, s)
		}
	}
	return d
}
