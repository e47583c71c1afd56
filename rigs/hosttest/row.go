package hosttest

import "strings"

const (
	rowStart = "not tried: "
	rowWhy   = " | why: "
	rowHow   = " | to try it: "
)

// Row is what a test said that it could not try.
type Row struct{ What, Why, Remedy string }

func row(what, why, remedy string) string {
	flat := func(s string) string { return strings.Join(strings.Fields(s), " ") }
	return rowStart + flat(what) + rowWhy + flat(why) + rowHow + flat(remedy)
}

// ParseRow finds the row in a line of a test's output.
func ParseRow(line string) (Row, bool) {
	_, rest, ok := strings.Cut(line, rowStart)
	what, rest, hasWhy := strings.Cut(rest, rowWhy)
	why, remedy, hasRemedy := strings.Cut(rest, rowHow)
	return Row{what, why, strings.TrimSpace(remedy)}, ok && hasWhy && hasRemedy
}
