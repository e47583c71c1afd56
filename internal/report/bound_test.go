package report

import "testing"

// TestBoundNamesWhatHeld: a lower bound is not called a rate that held where it is the margin below one.
func TestBoundNamesWhatHeld(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		is   Capacity
		want string
	}{
		{
			Capacity{Broke: true, AtLeast: new(20.1), VerifiedLow: new(25.6)},
			"at least 20.1/s (the margin below 25.6/s, which held); the rate at which it breaks was not found",
		},
		{
			Capacity{Broke: true, AtLeast: new(20.1), VerifiedLow: new(25.6), AtMost: new(199.7)},
			"between 20.1/s (the margin below 25.6/s, which held) and 200/s, which broke",
		},
		{
			Capacity{Broke: true, AtLeast: new(98.0), VerifiedLow: new(98.0), AtMost: new(199.7)},
			"between 98/s, which held, and 200/s, which broke",
		},
		{Capacity{AtLeast: new(640.0)}, "at least 640/s"},
	} {
		if got := c.is.Bound(); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
