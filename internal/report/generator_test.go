package report

import (
	"bytes"
	"regexp"
	"strings"
	"testing"

	"tare/internal/signature"
)

var ruledOut = regexp.MustCompile(`tare_generator_ruled_out\{[^}]*\} 1`)

// TestOnlyEvidenceClears: "not the generator", and its like, stand only in reports of which the audit ruled it out.
func TestOnlyEvidenceClears(t *testing.T) {
	doubt := "its busiest thread ran 100 % of the time"
	for _, c := range []struct {
		name string
		of   Generator
		want string
	}{
		{"ruled out", Generator{
			Valid: true, Verdict: signature.RuledOut,
			Evidence: []string{"its busiest thread ran 3 % of the time"},
		}, "not the generator: its busiest thread ran 3 %"},
		{
			"possible",
			Generator{Valid: true, Verdict: signature.Possible, Doubts: []string{doubt}},
			"the generator may be the limit: " + doubt,
		},
		{
			"limit",
			Generator{Verdict: signature.Limiting, Reason: "it sent late", Doubts: []string{"it sent late", doubt}},
			"THE GENERATOR is the limit: it sent late",
		},
		{
			"in part",
			Generator{Valid: true, Verdict: signature.Possible, Reason: "late in 1 block"},
			"the generator, in part: late in 1 block",
		},
		{"not judged", Generator{Valid: true}, "the generator is not ruled out"},
		{"ruled out and invalid", Generator{Verdict: signature.RuledOut}, "THE GENERATOR is the limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := base("x")
			r.Generator = &c.of
			for name, write := range map[string]Encoder{"text": Text, "markdown": Markdown, "openmetrics": OpenMetrics} {
				var b bytes.Buffer
				if err := write(&b, r); err != nil {
					t.Fatal(err)
				}
				out := strings.Join(strings.Fields(b.String()), " ")
				cleared := strings.Contains(out, "not the generator") || ruledOut.MatchString(out)
				if cleared != (c.name == "ruled out") {
					t.Errorf("%s clears the generator: %v\n%s", name, cleared, out)
				}
				if name == "text" && !strings.Contains(out, c.want) {
					t.Errorf("%s: want %q in\n%s", name, c.want, out)
				}
			}
		})
	}
}
