package areatest

import (
	"strings"
	"testing"

	"tare/area"
	"tare/internal/design"
	"tare/internal/question"
)

// Validate returns the findings about a section for a question (empty: Compare) and treatments with these levels, each
// in pairs as for Treatment.
func Validate(s area.Spec, q design.Question, levels [][]string) []area.Finding {
	if q == "" {
		q = design.Compare
	}
	var treatments []design.Treatment
	for _, l := range levels {
		treatments = append(treatments, Treatment(l...))
	}
	return s.Validate(question.Of(q).Asked(), treatments)
}

// WantFinding fails the test unless found is the one finding want, whose message may be longer than that of want. An
// empty message wants no finding.
func WantFinding(t testing.TB, title string, found []area.Finding, want area.Finding) {
	t.Helper()
	switch {
	case want.Message == "" && len(found) > 0:
		t.Errorf("%s: got findings %+v, want none", title, found)
	case want.Message == "":
	case len(found) != 1:
		t.Errorf("%s: got %d findings %+v, want one with %q", title, len(found), found, want.Message)
	case found[0].Path != want.Path || found[0].Severity != want.Severity ||
		!strings.Contains(found[0].Message, want.Message):
		t.Errorf("%s: got %+v, want %v %q at %q", title, found[0], want.Severity, want.Message, want.Path)
	}
}
