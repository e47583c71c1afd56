package report

import (
	"html"
	"strings"
	"testing"
)

// permitting is a report of a change that permits more than the baseline, and keeps its budget.
func permitting() *Report {
	r := base("x")
	r.Verdict, r.Reason = Fail, "under pr, 1 request is permitted that the baseline refuses: pod privileged"
	r.Treatments = []Treatment{
		{ID: "main", Baseline: true, Verified: true},
		{
			ID: "pr", Verified: true, Permits: []string{"pod privileged"}, Refuses: []string{"pod with sysctls"},
			Unshown: []string{"no answer shows it of a", "nor of b"},
			Alters: []Alteration{
				{Request: "pod as root", Here: []string{"spec.a = 1"}},
				{Request: "pod", Here: []string{"spec.a = 1"}},
				{Request: "service", Baseline: []string{"spec.b = 1"}},
				{
					Request: "job", Baseline: []string{"spec.a removed"},
					Here: []string{"spec.a = 1", "spec.b = 1", "spec.c = 1", "spec.d = 1", "spec.e = 1", "spec.f = 1"},
				},
			},
		},
	}
	r.Budgets = []Budget{{
		Text: "cpu <= +10%", Treatment: "pr", Verdict: Pass, Unit: "s", Estimate: new(0.01), Limit: new(0.02),
	}}
	return r
}

// TestWhatIsPermittedStandsFirst: what a change permits and the baseline refuses comes before figures and budgets, in
// every form that judges.
func TestWhatIsPermittedStandsFirst(t *testing.T) {
	const (
		permits = "nder pr, 1 request is permitted that the baseline refuses: pod privileged"
		unshown = "nder pr, no answer shows it of a; nor of b"
		refuses = "nder pr, 1 request is refused that the baseline permits: pod with sysctls"
		alters  = "nder pr, 4 requests come back otherwise than under the baseline: pod as root and 1 other with " +
			"spec.a = 1, which the baseline does not make; service without the baseline's spec.b = 1; job with spec.a = 1, " +
			"spec.b = 1, spec.c = 1, spec.d = 1 and 2 more in place of the baseline's spec.a removed"
	)
	r := permitting()
	for name, e := range map[string]Encoder{"text": Text, "markdown": Markdown, "html": HTML} {
		text := html.UnescapeString(strings.Join(strings.Fields(string(encode(t, e, r))), " "))
		at, budget := strings.Index(text, permits), strings.Index(text, "cpu <= +10%")
		if at < 0 || !strings.Contains(text, unshown) || !strings.Contains(text, refuses) ||
			!strings.Contains(text, alters) || budget >= 0 && budget < at {
			t.Errorf("%s: permits at %d, the budget at %d:\n%s", name, at, budget, text[:min(len(text), 2000)])
		}
	}
	for name, x := range map[string]struct {
		e    Encoder
		want string
	}{
		"junit": {JUnit, `<failure message="u` + permits}, "sarif": {SARIF, `"ruleId": "permits-more"`},
		"annotations": {Annotations, "::u" + permits}, "json": {JSON, `"permits": [`}, "json, unshown": {JSON, `"unshown": [`},
		"annotations, unshown": {Annotations, "::u" + unshown},
	} {
		if text := string(encode(t, x.e, r)); !strings.Contains(text, x.want) {
			t.Errorf("%s lacks %q:\n%s", name, x.want, text)
		}
	}
}
