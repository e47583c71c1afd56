package limit

import (
	"strings"
	"testing"

	"tare/internal/signature"
)

// TestStatements: a sentence says no more than its certainty allows.
func TestStatements(t *testing.T) {
	for _, c := range []struct {
		v                       Verdict
		name, statement, clause string
	}{
		{
			Verdict{Kind: CPUQuota, Certainty: signature.Shown, Value: "100m"},
			"the CPU quota of 100m",
			"the CPU quota of 100m (shown)", "the CPU quota of 100m sets the rate",
		},
		{
			Verdict{Kind: Slots, Certainty: signature.Likely, Value: "about 4 in flight"},
			"slots, about 4 in flight",
			"slots, about 4 in flight (likely)", "slots, about 4 in flight likely set the rate",
		},
		{
			Verdict{Kind: Processors, Certainty: signature.Likely, Value: "2 processors"},
			"its 2 processors",
			"its 2 processors (likely)", "its 2 processors likely set the rate",
		},
		{
			Verdict{Kind: RateLimit, Certainty: signature.Likely, Value: "150/s", Scope: EachCaller},
			"a rate limit on each caller", "a rate limit on each caller (likely)",
			"a rate limit on each caller likely sets the rate",
		},
		{
			Verdict{Kind: RateLimit, Certainty: signature.Shown, Value: "about 50/s", Operations: []string{"a", "b"}},
			"a rate limit of about 50/s on a and b", "a rate limit of about 50/s on a and b (shown)",
			"a rate limit of about 50/s on a and b sets the rate",
		},
		{
			Verdict{Kind: RateLimit, Certainty: signature.Shown, Scope: EachCaller, Operations: []string{"a", "b", "c", "d"}},
			"a rate limit on each caller, on 4 operations", "a rate limit on each caller, on 4 operations (shown)",
			"a rate limit on each caller, on 4 operations sets the rate",
		},
		{
			Verdict{Kind: RateLimit, Certainty: signature.Shown, Value: "9/s", Scope: AllCallers, Operations: []string{"a"}},
			"a rate limit of 9/s on a for all callers together", "a rate limit of 9/s on a for all callers together (shown)",
			"a rate limit of 9/s on a for all callers together sets the rate",
		},
		{
			Verdict{Kind: OneThread, Certainty: signature.Likely, Value: "x"},
			"one thread", "one thread (likely)",
			"one thread likely sets the rate",
		},
		{
			Verdict{Kind: Disk, Certainty: signature.NotKnown},
			"", "not known from outside",
			"what sets the rate is not known from outside",
		},
		{Verdict{}, "", "not known from outside", "what sets the rate is not known from outside"},
		{
			Verdict{Kind: "new", Certainty: signature.Shown},
			"", "not known from outside",
			"what sets the rate is not known from outside",
		},
	} {
		if n, s, l := c.v.Name(), c.v.Statement(), c.v.Clause(); n != c.name || s != c.statement || l != c.clause {
			t.Errorf("%+v: %q, %q, %q", c.v, n, s, l)
		}
	}
}

// TestEveryKindHasWords: each kind that can be named has a name and advice, and Unknown has neither.
func TestEveryKindHasWords(t *testing.T) {
	if len(Kinds()) != len(words)+1 {
		t.Errorf("%d kinds, and words for %d", len(Kinds()), len(words))
	}
	for _, k := range Kinds() {
		if w := words[k]; (w.name == "") != (k == Unknown) || !strings.HasSuffix(w.advice, ".") != (k == Unknown) {
			t.Errorf("%s: %+v", k, w)
		}
	}
}

// TestOutcome: what did not come about as predicted is not said as if it had.
func TestOutcome(t *testing.T) {
	p := Prediction{Change: "200m", Rate: 326, Lo: 317, Hi: 349, Tried: &Tried{Rate: 325, Lo: 318, Hi: 331, Came: true}}
	if got, want := p.Outcome(), "with 200m it was 325/s [318, 331], where 326/s were predicted"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p.Tried = &Tried{Rate: 200, Lo: 198, Hi: 202}
	if got, want := p.Outcome(), "with 200m it was 200/s [198, 202], but 326/s were predicted"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := p.Expected(), "326/s [317, 349] are predicted with 200m"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
