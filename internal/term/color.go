package term

import (
	"io"

	"golang.org/x/term"
)

// A Color is the escape code of a color; empty: none.
type Color string

// The colors: red for failures, green for passes, yellow for open questions.
const (
	Red    Color = "\x1b[31m"
	Green  Color = "\x1b[32m"
	Yellow Color = "\x1b[33m"
	reset        = "\x1b[0m"
)

// Paint returns text in this color.
func (c Color) Paint(text string) string {
	if c == "" {
		return text
	}
	return string(c) + text + reset
}

// Colors reports whether w is a terminal that shows colors, and the environment allows them: no NO_COLOR
// (https://no-color.org), and a TERM that is not dumb.
func Colors(w io.Writer, getenv func(string) string) bool {
	if getenv == nil || getenv("NO_COLOR") != "" || getenv("TERM") == "" || getenv("TERM") == "dumb" {
		return false
	}
	_, ok := Columns(w)
	return ok
}

// Columns returns the width of the terminal that w is; ok is false if w is none.
func Columns(w io.Writer) (columns int, ok bool) {
	file, ok := w.(interface{ Fd() uintptr })
	if !ok || !term.IsTerminal(int(file.Fd())) {
		return 0, false
	}
	if columns, _, err := term.GetSize(int(file.Fd())); err == nil && columns > 0 {
		return columns, true
	}
	return defaultWidth, true
}
