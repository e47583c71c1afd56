package report

import (
	"bytes"
	"strings"
	"testing"
)

// TestErrorsAreToldToTheirEnd: the last words of an error say why, and the first screen has them.
func TestErrorsAreToldToTheirEnd(t *testing.T) {
	const why = "Invalid value: boolean: must be of type string"
	for _, verdict := range []Verdict{Invalid, NotMeasured} {
		r := enforcers()
		r.Verdict, r.Reason = verdict, strings.Repeat("the policies of a folder cannot be put in force; ", 8)+why
		screen := encode(t, Style{Rest: "tare report RUN --all"}.Text, r)
		if n := bytes.Count(screen, []byte("\n")); n > screenLines {
			t.Errorf("%s: %d lines, want at most %d", verdict, n, screenLines)
		}
		if said := strings.Join(strings.Fields(string(screen)), " "); !strings.Contains(said, why) {
			t.Errorf("%s: no word of %q:\n%s", verdict, why, screen)
		}
	}
}

// TestCommandIsNotCut: the command that shows the rest stands on one line, however long it is.
func TestCommandIsNotCut(t *testing.T) {
	t.Parallel()
	const command = "tare report results/guard-of-a-service-127-0-0-1-9118-20261201T031729Z --all, or the page"
	r := enforcers()
	for _, width := range []int{60, 80, 100} {
		if text := string(encode(t, Style{Width: width, Rest: command}.Text, r)); !strings.Contains(text, command+"\n") {
			t.Errorf("%d columns:\n%s", width, text)
		}
	}
}
