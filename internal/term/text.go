package term

import (
	"math"
	"strings"
	"unicode"
)

// ellipsis marks a cut.
const ellipsis = "…"

// wide are the ranges that take two cells: East Asian wide and fullwidth characters and emoji (Unicode Standard Annex
// 11, as terminals apply it).
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{Lo: 0x1100, Hi: 0x115f, Stride: 1},
		{Lo: 0x231a, Hi: 0x231b, Stride: 1},
		{Lo: 0x23e9, Hi: 0x23ec, Stride: 1},
		{Lo: 0x2e80, Hi: 0x303e, Stride: 1},
		{Lo: 0x3041, Hi: 0x33ff, Stride: 1},
		{Lo: 0x3400, Hi: 0x4dbf, Stride: 1},
		{Lo: 0x4e00, Hi: 0xa4cf, Stride: 1},
		{Lo: 0xa960, Hi: 0xa97c, Stride: 1},
		{Lo: 0xac00, Hi: 0xd7a3, Stride: 1},
		{Lo: 0xf900, Hi: 0xfaff, Stride: 1},
		{Lo: 0xfe30, Hi: 0xfe6f, Stride: 1},
		{Lo: 0xff01, Hi: 0xff60, Stride: 1},
		{Lo: 0xffe0, Hi: 0xffe6, Stride: 1},
	},
	R32: []unicode.Range32{
		{Lo: 0x1f300, Hi: 0x1f64f, Stride: 1},
		{Lo: 0x1f680, Hi: 0x1f6ff, Stride: 1},
		{Lo: 0x1f900, Hi: 0x1faff, Stride: 1},
		{Lo: 0x20000, Hi: 0x3fffd, Stride: 1},
	},
}

// Width returns how many cells of a terminal s takes.
func Width(s string) int {
	n := 0
	for _, r := range s {
		n += cells(r)
	}
	return n
}

func cells(r rune) int {
	switch {
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf): // combining marks, joiners
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// Truncate cuts s to at most width cells, with "…" at the cut.
func Truncate(s string, width int) string {
	if Width(s) <= width {
		return s
	}
	if width < 1 {
		return ""
	}
	n := 0
	for i, r := range s {
		if n += cells(r); n > width-1 {
			return s[:i] + ellipsis
		}
	}
	return s
}

// PadRight appends blanks to s up to width cells.
func PadRight(s string, width int) string { return s + blanks(width-Width(s)) }

// PadLeft prepends blanks to s up to width cells.
func PadLeft(s string, width int) string { return blanks(width-Width(s)) + s }

func blanks(n int) string { return strings.Repeat(" ", max(0, n)) }

// Side is the alignment of a column.
type Side uint8

// The sides.
const (
	Left Side = iota
	Right
)

// Align arranges rows in columns, two blanks apart, and returns one line per row without trailing blanks. sides are the
// columns' alignments, by default Left. Rows may have different lengths.
func Align(rows [][]string, sides ...Side) []string {
	const gap = 2
	var widths []int
	for _, row := range rows {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(makeInert(cell)))
		}
	}
	lines := make([]string, len(rows))
	for n, row := range rows {
		var b strings.Builder
		for i, cell := range row {
			if i > 0 {
				b.WriteString(blanks(gap))
			}
			if i < len(sides) && sides[i] == Right {
				b.WriteString(PadLeft(makeInert(cell), widths[i]))
			} else {
				b.WriteString(PadRight(makeInert(cell), widths[i]))
			}
		}
		lines[n] = strings.TrimRight(b.String(), " ")
	}
	return lines
}

// Sparkline draws values as bars, one cell each, from zero (or the smallest value, if negative) to the largest. A NaN
// is a blank.
func Sparkline(values []float64) string {
	const bars = "▁▂▃▄▅▆▇█"
	steps := []rune(bars)
	lo, hi := 0.0, 0.0
	for _, v := range values {
		if finite(v) {
			lo, hi = min(lo, v), max(hi, v)
		}
	}
	var b strings.Builder
	for _, v := range values {
		switch {
		case math.IsNaN(v):
			b.WriteByte(' ')
		case hi == lo:
			b.WriteRune(steps[0])
		default:
			// Each half is divided first: the range of huge values would overflow.
			at := (v/2 - lo/2) / (hi/2 - lo/2)
			b.WriteRune(steps[min(max(int(math.Round(min(max(at, 0), 1)*float64(len(steps)-1))), 0), len(steps)-1)])
		}
	}
	return b.String()
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

// Progress draws a bar of width cells, filled to share, 0…1. Only a share of 1 fills it completely.
func Progress(share float64, width int) string {
	width = max(width, 0)
	if math.IsNaN(share) {
		share = 0
	}
	full := int(min(max(share, 0), 1) * float64(width))
	return strings.Repeat("█", full) + strings.Repeat("░", width-full)
}

// makeInert makes text from other sources harmless: no character in it can move the cursor or break the line.
func makeInert(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\t':
			return ' '
		case Hidden(r):
			return '·'
		}
		return r
	}, s)
}
