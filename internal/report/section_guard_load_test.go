package report

import "testing"

// TestOverloadNamesLowerRates: an overload says which lower rates are not those that it is compared with.
func TestOverloadNamesLowerRates(t *testing.T) {
	o := GuardOverload{
		Rate: 160, ServedShare: &Share{Value: 0.135}, ServedBelow: &Share{Value: 1}, FewerServed: true,
	}
	const compared = "13.5 % of the other calls were served, 100.0 % at lower rates"
	if got := o.sentence(); got != compared {
		t.Errorf("%q, want %q", got, compared)
	}
	o.LeftOut = []float64{40, 80}
	const want = compared + "; not counted among the lower rates: 40/s and 80/s, where it did badly, too, perhaps " +
		"because of other work or a stall"
	if got := o.sentence(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestUnansweredTrespassesAreTold: those that may have been permitted are named beside the others, and raise the bound.
func TestUnansweredTrespassesAreTold(t *testing.T) {
	n := Trespasses{Refused: 1497, Undecided: 17, Unanswered: 15, Share: &Share{Hi: 0.016}}
	g := Guard{Trespasses: n}
	for got, want := range map[string]string{
		n.sentence(): "0 of 1497 trespasses were permitted: the share is below 1.6 %, at 95 %; 17 more were not decided: " +
			"15 got no answer and may have been permitted, 2 ended in an error or a timeout",
		g.refusedAll():          "it permitted none of the 1497 trespasses that it decided, and did not answer 15 others",
		g.permittedFact().Note:  "below 1.6 %; 15 not answered",
		g.permittedFact().Class: "",
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
