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
