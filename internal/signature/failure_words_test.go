package signature

import "testing"

// TestFailureStatements: a sentence says no more than its certainty allows.
func TestFailureStatements(t *testing.T) {
	for _, c := range []struct {
		f                       Failure
		name, statement, clause string
	}{
		{Failure{Class: AcceptQueue, Certainty: Shown}, "accept queue", "accept queue (shown)", "it fails as accept queue"},
		{Failure{Class: Queue, Certainty: Likely}, "queue", "queue (likely)", "it likely fails as queue"},
		{Failure{Class: Queue, Certainty: NotKnown}, "", "not known from outside", "how it fails fits no known class"},
		{Failure{Class: Unknown, Certainty: Likely}, "", "not known from outside", "how it fails fits no known class"},
		{Failure{Class: Queue}, "", "not known from outside", "how it fails fits no known class"},
	} {
		if n, s, l := c.f.Name(), c.f.Statement(), c.f.Clause(); n != c.name || s != c.statement || l != c.clause {
			t.Errorf("%+v: %q, %q, %q", c.f, n, s, l)
		}
	}
}
