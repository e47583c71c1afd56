package config

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
		{"", "", 0}, {"", "ab", 2}, {"duraton", "duration", 1}, {"drutaion", "duration", 2}, {"ab", "ba", 1}, {"kitten", "sitting", 3}, {"größe", "grösse", 2},
	} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}

func TestDistanceIsSymmetric(t *testing.T) {
	word := rapid.StringMatching(`[a-d]{0,8}`)
	rapid.Check(t, func(r *rapid.T) {
		a, b := word.Draw(r, "a"), word.Draw(r, "b")
		d := distance(a, b)
		if d != distance(b, a) || (d == 0) != (a == b) || d > max(len(a), len(b)) || d < max(len(a), len(b))-min(len(a), len(b)) {
			r.Errorf("distance(%q, %q) = %d", a, b, d)
		}
	})
}

func TestNearest(t *testing.T) {
	words := []string{"rate", "rates", "max_rate", "slo", "pin"}
	for word, want := range map[string]string{
		"rats": "rate", "RATE": "rate", "ratess": "rates", "maxrate": "max_rate", "sol": "slo", "x": "", "engine": "", "pni": "pin", "slooo": "", "p": "",
		strings.Repeat("rate", 100): "",
	} {
		if got := nearest(word, words); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}

func TestWindowKeepsTheCaretInPlace(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		line := []rune(rapid.StringMatching(`[a-zé日]{1,400}`).Draw(r, "line"))
		column := rapid.IntRange(1, len(line)).Draw(r, "column")
		shown, at := window(string(line), column)
		got := []rune(shown)
		if len(got) > maxShown+2 {
			r.Errorf("%d characters are shown", len(got))
		}
		if got[at-1] != line[column-1] {
			r.Errorf("the caret points at %q, want %q", got[at-1], line[column-1])
		}
	})
}

func TestLinesEndAsYAMLSays(t *testing.T) {
	source := []byte("\xef\xbb\xbfa\r\nb\rc\nd\u2028e\u0085f")
	for i, want := range []string{"a", "b", "c", "d", "e", "f"} {
		if got, ok := lineOf(source, i+1); !ok || got != want {
			t.Errorf("line %d is %q, want %q", i+1, got, want)
		}
	}
	if _, ok := lineOf(source, 7); ok {
		t.Error("there is a line 7")
	}
	if got, ok := lineOf([]byte("a\n"), 2); !ok || got != "" {
		t.Errorf("after the last line break: %q, %v", got, ok)
	}
}
