package bundle

import (
	"fmt"
	"strings"
)

// A Place is where something stands in a file.
type Place struct {
	File string
	Line int // from 1
	// Column counts characters from 1; 0: unknown.
	Column int
}

// String is FILE:LINE:COLUMN.
func (p Place) String() string {
	if p.Column == 0 {
		return fmt.Sprintf("%s:%d", p.File, p.Line)
	}
	return fmt.Sprintf("%s:%d:%d", p.File, p.Line, p.Column)
}

// Show says what is wrong at a place of a text and, if its column is known, shows the line and a caret.
func (p Place) Show(text, says string) string {
	out := p.String() + ": " + says
	lines := strings.Split(text, "\n")
	if p.Line < 1 || p.Line > len(lines) || p.Column < 1 {
		return out
	}
	shown := fmt.Sprintf("%5d | ", p.Line)
	line := strings.TrimSuffix(lines[p.Line-1], "\r")
	before := []rune(line)
	before = before[:min(len(before), p.Column-1)]
	for i, r := range before {
		if r != '\t' {
			before[i] = ' '
		}
	}
	return fmt.Sprintf("%s\n%s%s\n%s%s^", out, shown, line, strings.Repeat(" ", len(shown)), string(before))
}
