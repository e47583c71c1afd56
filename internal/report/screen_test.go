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
