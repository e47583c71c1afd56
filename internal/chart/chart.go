// Package chart draws the report's charts as SVG: numbers and labels in, bytes out. It does not know their meaning.
//
// Every chart is a fragment for an HTML page: two <svg> elements, one laid out for a wide column and one for a phone.
// The narrow one carries the presentation attribute display="none", so that without a stylesheet only the wide one is
// shown; [Style] switches between them by a media query. Nothing in a fragment needs a script, a style attribute or a
// style element: colours are presentation attributes that are legible on white and on near-black, text is currentColor,
// and each mark has a class by which a page may override its style. The same input gives the same bytes, and every
// label is escaped.
//
// Values that are not finite, that exceed 1e300, or that are not positive on a log axis cannot be placed: they leave a
// gap. A chart without placeable values is an empty frame with a sentence.
package chart

import (
	"cmp"
	"math"
	"strconv"
	"strings"
)

// Axis is one direction of a chart. The zero Axis is linear and fits its data.
type Axis struct {
	// Label says what is measured and in which unit. The label of a vertical axis is above the plot, not along it.
	Label string
	// Log requests a logarithmic axis with ticks at 1, 2 and 5 times the powers of ten, or at 1 and 3, or at powers of ten
	// only, depending on the room.
	Log bool
	// Time requests ticks at round seconds, minutes, hours or days; values are seconds. Log takes precedence.
	Time bool
	// Min and Max fix an end of the axis; nil fits the data. Invalid ends (Min ≥ Max, Min ≤ 0 on a log axis) are ignored.
	// Data outside are clipped at the frame; a dot outside is drawn as an outline at the edge, with its value in its
	// title.
	Min, Max *float64
	// Format writes a value for a tick, a label or a title; nil writes four significant digits.
	Format func(float64) string
	// Ticks fixes the ticks; nil chooses round ones. Labels that would touch are omitted in either case.
	Ticks []float64

	tail bool
}

// Series is one set of points (X[i], Y[i]). If Lo and Hi are as long as Y, each point has an interval: a band around a
// line, or a bar through a dot without a line. Missing points are NaN. Neither Line nor Dots means Line. If a panel has
// several named lines, those without dots carry a few markers at some of their points, so that they differ in more than
// colour.
type Series struct {
	// Name is shown in the legend and in the titles of dots.
	Name string
	// Kind chooses the colour, and with it the marker; Auto takes the next colour of the palette.
	Kind Kind
	X, Y []float64
	// Lo and Hi bound the interval at each point, in Y's unit; an infinite bound reaches the edge.
	Lo, Hi     []float64
	Line, Dots bool
	// Dash draws the line dashed, for what is fitted or expected rather than measured.
	Dash bool
	// Labels are written beside dots, as far as there are any.
	Labels []string
	// Step holds each value until the next X, for rates per window.
	Step bool
}

// Rule is a line across the whole plot: a budget, a capacity, a mark in time.
type Rule struct {
	// At is in the unit of the axis that the rule crosses: X if Vertical, otherwise Y.
	At       float64
	Vertical bool
	Label    string
	// Kind colours it; Auto means Neutral.
	Kind Kind
}

// Span is a shaded interval of X: a step of load, a phase.
type Span struct {
	From, To float64
	Label    string
	// Kind colours it; Auto means Neutral.
	Kind Kind
}

// Panel is a chart of series over two axes. Log on both axes makes it a growth chart.
type Panel struct {
	// Title and Desc are read by screen readers and shown on hover; they are not drawn.
	Title, Desc string
	X, Y        Axis
	Series      []Series
	// Rules widen an axis if its range at most doubles by them: a budget far away does not flatten the data. One that lies
	// outside is drawn at the edge, its label with an arrow.
	Rules []Rule
	Spans []Span
	// Diagonal names the line y = x, dashed and neutral; empty draws none.
	Diagonal string
	// Height of the plot alone, in units of a page 760 wide; 0 means 240.
	Height int
	// Legend lists the names of the series above the plot.
	Legend bool
	// Empty is the sentence shown when there is nothing to draw; empty means "No data to draw.".
	Empty string
}

// SVG draws the panel. id must be unique in the page: it prefixes the ids of title and description.
func (p Panel) SVG(id string) []byte { return Stack{p}.SVG(id) }

// Stack is panels above one another that share the X axis of the first exactly: the range covers the data of all,
// ticks are labelled once at the bottom, and vertical rules and spans of the first panel run through all. Series of the
// same name that leave their Kind to Auto have the same colour in every panel. The title is the first panel's; the
// description is all of theirs.
type Stack []Panel

// SVG draws the chart; see [Panel.SVG].
func (s Stack) SVG(id string) []byte {
	return fragment(id, func(f frame) drawing { return stack(f, s) })
}

// Percentiles is latency against percentile: X of each series is a quantile in [0, 1), spread as −log10(1−q), so that
// p90, p99 and p99.9 stand equally far apart (Gil Tene's "percentile spectrum" axis); Y is logarithmic.
type Percentiles struct {
	Title, Desc string
	// Y needs a Label and a Format; Log is implied.
	Y      Axis
	Series []Series
	// Rules that are Vertical stand at a quantile.
	Rules  []Rule
	Height int
	Legend bool
	Empty  string
}

// SVG draws the chart; see [Panel.SVG].
func (p Percentiles) SVG(id string) []byte { return p.panel().SVG(id) }

// Bar is one row of Bars.
type Bar struct {
	Label string
	// Value that is NaN draws no mark; its text is then Text, or "–".
	Value float64
	// Lo and Hi bound the value's interval; Lo == Hi draws none.
	Lo, Hi float64
	// Text is written at the right; empty writes Value by the axis' Format.
	Text string
	// Kind colours it; Auto is the first colour of the palette for every row: length shows the value, not hue.
	Kind Kind
}

// Bars is one row per label with its value written out: usage by treatment, scores of classes.
type Bars struct {
	Title, Desc string
	// Axis is the horizontal one. Bars start at zero; a Log axis or Dots draws dots instead.
	Axis  Axis
	Rows  []Bar
	Rules []Rule
	Dots  bool
	Empty string
}

// SVG draws the chart; see [Panel.SVG].
func (b Bars) SVG(id string) []byte {
	return fragment(id, func(f frame) drawing { return rows(f, b.rowChart()) })
}

// ForestRow is an estimate with its interval and what was decided about it.
type ForestRow struct {
	Label         string
	Value, Lo, Hi float64
	// Verdict colours the row and gives it a glyph: Good ✓, Bad ✗, Unsure ?. Auto and Neutral have none.
	Verdict Kind
	// Glyph stands instead of the verdict's.
	Glyph string
	// Word is the verdict in words, after the glyph.
	Word string
	// Text is the estimate in words; empty writes Value and its interval by the axis' Format.
	Text string
	// Apart sets the row apart from those above it by a line, and colours it neutral: it is there for comparison only.
	// Rows that are apart belong at the end.
	Apart bool
}

// Forest is a forest plot: estimates with intervals on one axis, a line at zero, and rules such as a budget. Intervals
// with an infinite end, and those that the axis' Min or Max cuts, end in an arrow; a value outside is hollow, at the
// edge.
type Forest struct {
	Title, Desc string
	Axis        Axis
	Rows        []ForestRow
	Rules       []Rule
	// Spans shade ranges of the axis, such as a margin around zero.
	Spans []Span
	// LongestLabel and LongestText are of other plots in the page: the columns leave room for them, so that plots with one
	// axis stand exactly below one another.
	LongestLabel, LongestText string
	Empty                     string
}

// Text returns what stands at the right of a row: estimate, interval and verdict.
func (c Forest) Text(r ForestRow) string {
	text := r.estimate(c.Axis)
	glyph := cmp.Or(oneLine(r.Glyph), r.Verdict.look().glyph)
	if verdict := strings.TrimSpace(glyph + " " + oneLine(r.Word)); verdict != "" {
		text += "  " + verdict
	}
	return text
}

// SVG draws the chart; see [Panel.SVG].
func (c Forest) SVG(id string) []byte {
	return fragmentOf(id, forestWidth, func(f frame) drawing { return rows(f, c.rowChart()) })
}

// Heat is a grid of cells, one per row and column. A missing or NaN value is an empty, outlined cell.
type Heat struct {
	Title, Desc string
	// Rows and Cols label the grid; Values[row][col].
	Rows, Cols []string
	Values     [][]float64
	// ColLabel says what the columns are.
	ColLabel string
	Format   func(float64) string
	// Diverging colours by sign and distance from zero; otherwise by distance from the least value.
	Diverging bool
	// Limit, where it is above 0, is the magnitude from which all values have the strongest shade, so that one that stands
	// out does not make the others invisible.
	Limit float64
	Empty string
}

// SVG draws the chart; see [Panel.SVG].
func (h Heat) SVG(id string) []byte {
	return fragment(id, func(f frame) drawing { return heat(f, h) })
}

// panel returns the chart as a panel with a tail axis.
func (p Percentiles) panel() Panel {
	y := p.Y
	y.Log = true
	return Panel{
		Title: p.Title, Desc: p.Desc,
		X:      Axis{Label: "percentile", Format: percentile, tail: true},
		Y:      y,
		Series: p.Series, Rules: p.Rules, Height: p.Height, Legend: p.Legend, Empty: p.Empty,
	}
}

// percentile writes a quantile the way people say it: 0.999 is p99.9.
func percentile(q float64) string {
	return "p" + strconv.FormatFloat(math.Round(q*1e9)/1e7, 'g', 9, 64)
}
