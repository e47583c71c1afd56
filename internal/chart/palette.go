package chart

// Kind is the role of a mark: a colour of the palette, or a meaning that has its own colour. Each has a class (c1 … c8,
// neutral, good, bad, unsure) and, so that colour is never the only channel, a marker or a glyph.
type Kind int

// The kinds with a meaning. Auto lets the chart choose.
const (
	Auto Kind = iota
	Neutral
	Good
	Bad
	Unsure
	firstColor
)

// Colors is the number of colours that [Color] tells apart.
const Colors = 8

// Color returns the i-th colour of the palette, counted from 0; it wraps around after [Colors].
func Color(i int) Kind { return firstColor + Kind(((i%Colors)+Colors)%Colors) }

type shape int

const (
	circle shape = iota
	square
	triangle
	diamond
	cross
	wedge
	hourglass
	ex
	bar
)

type look struct {
	class, color, glyph string
	marker              shape
}

// looks are Okabe and Ito's colours ("Color Universal Design", 2008), those that are too light for white or too dark
// for black moved to a luminance that has a contrast of at least 3:1 with both.
var looks = [...]look{
	Auto:           {class: "neutral", color: "#7a7f87", marker: bar},
	Neutral:        {class: "neutral", color: "#7a7f87", marker: bar},
	Good:           {class: "good", color: "#1f9254", glyph: "✓"},
	Bad:            {class: "bad", color: "#d8434e", glyph: "✗", marker: square},
	Unsure:         {class: "unsure", color: "#b07a00", glyph: "?", marker: diamond},
	firstColor:     {class: "c1", color: "#1a7fc4"},
	firstColor + 1: {class: "c2", color: "#d55e00", marker: square},
	firstColor + 2: {class: "c3", color: "#009e73", marker: triangle},
	firstColor + 3: {class: "c4", color: "#c56aa0", marker: diamond},
	firstColor + 4: {class: "c5", color: "#b07d12", marker: cross},
	firstColor + 5: {class: "c6", color: "#7b6fd6", marker: wedge},
	firstColor + 6: {class: "c7", color: "#a0522d", marker: hourglass},
	firstColor + 7: {class: "c8", color: "#4f9bb0", marker: ex},
}

func (k Kind) look() look {
	if k < 0 || int(k) >= len(looks) {
		return looks[Neutral]
	}
	return looks[k]
}
