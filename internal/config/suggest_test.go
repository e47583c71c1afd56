package config

import (
	"testing"

	"pgregory.net/rapid"
)

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
