package glossary

import (
	"slices"
	"strings"
	"testing"
)

func TestEveryEntryIsComplete(t *testing.T) {
	seen := map[string]string{}
	for _, e := range All() {
		if e.Word == "" || e.Source == "" || len(e.Kinds) == 0 {
			t.Errorf("%q has no word, kind or source: %+v", e.Word, e)
		}
		if len(e.Text) < 40 || !strings.HasSuffix(e.Text, ".") {
			t.Errorf("%q is not explained in sentences: %q", e.Word, e.Text)
		}
		for _, w := range append([]string{e.Word}, e.Also...) {
			if by, twice := seen[key(w)]; twice && by != e.Word {
				t.Errorf("%q is explained by %q and by %q", w, by, e.Word)
			}
			seen[key(w)] = e.Word
		}
	}
	if len(seen) < 150 {
		t.Errorf("only %d words were read", len(seen))
	}
	if !slices.IsSortedFunc(All(), func(a, b Entry) int { return strings.Compare(key(a.Word), key(b.Word)) }) {
		t.Error("not in order")
	}
}

func TestLookup(t *testing.T) {
	for word, want := range map[string]string{
		"accept-queue": "accept-queue", "Accept Queue": "accept-queue", "p99": "percentile", "POOL WAIT": "pool_wait",
		" rss_peak ": "rss", "queue": "queue",
	} {
		if e, near, ok := Lookup(word); !ok || e.Word != want || near != nil {
			t.Errorf("Lookup(%q) = %q, %v, %v, want %q", word, e.Word, near, ok, want)
		}
	}
	for word, want := range map[string]string{
		"acept-queue": "accept-queue", "goodputs": "goodput", "inconlcusive": "inconclusive", "throttl": "throttled",
		"wegded": "wedged",
	} {
		if _, near, ok := Lookup(word); ok || !slices.Contains(near, want) || len(near) > 3 {
			t.Errorf("Lookup(%q) suggests %q, want %q among them", word, near, want)
		}
	}
	for _, word := range []string{"", "zzzzzz", strings.Repeat("x", 10_000)} {
		if e, near, ok := Lookup(word); ok || len(near) > 0 {
			t.Errorf("Lookup(%.10q) = %q, %q", word, e.Word, near)
		}
	}
}
