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

// mostShown bounds the characters of a line that are shown before its place, and after it.
const mostShown = 100

// Show says what is wrong at a place of a text and, if its column is known, shows the line, or what of a long one is
// around the place, and a caret.
func (p Place) Show(text, says string) string {
	out := p.String() + ": " + says
	lines := strings.Split(text, "\n")
	if p.Line < 1 || p.Line > len(lines) || p.Column < 1 {
		return out
	}
	shown := fmt.Sprintf("%5d | ", p.Line)
	line := []rune(strings.TrimSuffix(lines[p.Line-1], "\r"))
	at := min(len(line), p.Column-1)
	before, after := line[:at], line[at:]
	if len(after) > mostShown {
		after = append(after[:mostShown:mostShown], '…')
	}
	if len(before) > mostShown {
		before = append([]rune{'…'}, before[at-mostShown:]...)
	}
	blank := []rune(strings.Repeat(" ", len(before)))
	for i, r := range before {
		if r == '\t' {
			blank[i] = r
		}
	}
	return fmt.Sprintf("%s\n%s%s%s\n%s%s^", out, shown, string(before), string(after), strings.Repeat(" ", len(shown)),
		string(blank))
}
