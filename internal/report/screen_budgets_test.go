package report

import (
	"strings"
	"testing"

	"tare/internal/design"
)

// TestUnmeasuredBudgetsAreExplained: also where the table of budgets has no room for the reason, and once where it has.
func TestUnmeasuredBudgetsAreExplained(t *testing.T) {
	for _, reason := range []string{
		"it needs a unit", `the limit of goodput needs a unit: write "goodput >= 99/s", or as a change "goodput >= -1%"`,
	} {
		r := &Report{Question: design.Compare, Budgets: []Budget{
			{Text: "goodput >= 99", Treatment: "imported", Verdict: NotMeasured, Reason: reason},
		}}
		for name, rest := range map[string]string{"whole": "", "screen": "tare report"} {
			s := Style{Width: Width, Rest: rest}
			p := s.whole(r)
			if rest != "" {
				p = s.screen(r)
			}
			if n := strings.Count(strings.Join(strings.Fields(p.buf.String()), " "), reason); n != 1 {
				t.Errorf("%s: the reason is told %d times:\n%s", name, n, p.buf.String())
			}
		}
	}
}
