package hosttest

import (
	"regexp"
	"strings"
)

const (
	rowStart = "not tried: "
	rowHow   = " | to have it tried: "
)

// Row is why a test, or a part of it, was not tried, and how to have it tried.
type Row struct{ Why, Remedy string }

func row(why, remedy string) string {
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	return rowStart + flat(why) + rowHow + flat(remedy)
}

// logged is what stands before a text that a test logs. A script that is shown may have the text of a row in it.
var logged = regexp.MustCompile(`\.go:\d+: $`)

// ParseRow finds the row in a line of a test's output.
func ParseRow(line string) (Row, bool) {
	place, rest, _ := strings.Cut(line, rowStart)
	why, remedy, whole := strings.Cut(rest, rowHow)
	return Row{why, strings.TrimSpace(remedy)}, whole && logged.MatchString(place)
}
