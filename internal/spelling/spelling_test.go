package spelling

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{
		{"", "", 0},
		{"", "ab", 2},
		{"duraton", "duration", 1},
		{"drutaion", "duration", 2},
		{"ab", "ba", 1},
		{"kitten", "sitting", 3},
		{"größe", "grösse", 2},
		{"", "abc", 3},
		{"same", "same", 0},
	} {
		if got := Distance(c.a, c.b); got != c.want || Distance(c.b, c.a) != got {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestDistanceIsSymmetric(t *testing.T) {
	word := rapid.StringMatching(`[a-d]{0,8}`)
	rapid.Check(t, func(r *rapid.T) {
		a, b := word.Draw(r, "a"), word.Draw(r, "b")
		d := Distance(a, b)
		if d != Distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) ||
			d < max(len(a), len(b))-min(len(a), len(b)) {
			r.Errorf("distance(%q, %q) = %d", a, b, d)
		}
	})
}

func TestNearest(t *testing.T) {
	words := []string{"rate", "rates", "max_rate", "slo", "pin"}
	for word, want := range map[string]string{
		"rats": "rate", "RATE": "rate", "ratess": "rates", "maxrate": "max_rate", "sol": "slo", "x": "", "engine": "",
		"pni": "pin", "slooo": "", "p": "",
		strings.Repeat("rate", 100): "",
	} {
		if got := Nearest(word, words); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}
