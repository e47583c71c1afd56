package kit_test

import (
	"testing"

	"tare/internal/kit"
)

func TestClipped(t *testing.T) {
	for text, want := range map[string]string{"": "", "äöü": "äöü", "äöüß": "äöü…"} {
		if got := kit.Clipped(text, 3); got != want {
			t.Errorf("%q is clipped to %q, want %q", text, got, want)
		}
	}
}
