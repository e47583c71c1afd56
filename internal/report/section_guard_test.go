package report

import "testing"

// TestSharesInWords: only the whole is 100 %, and a bound is never rounded to the wrong side.
func TestSharesInWords(t *testing.T) {
	for share, want := range map[float64][2]string{
		1: {"100 %", "100 %"}, 0.99996: {"99.99 %", "99.99 %"}, 0.98: {"98 %", "98 %"}, 0.2267: {"23 %", "23 %"},
		0.1: {"10 %", "10 %"}, 0.0501: {"5 %", "5.1 %"}, 0.00501: {"0.5 %", "0.51 %"}, 0.00024: {"0.024 %", "0.024 %"},
		3.21e-7: {"0.000032 %", "0.000033 %"}, 0: {"0 %", "0 %"},
	} {
		if got := [2]string{fine(share), below(share)}; got != want {
			t.Errorf("%v is %q, want %q", share, got, want)
		}
	}
}
