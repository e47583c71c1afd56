package glossary

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"tare/area"
	"tare/internal/stat"
)

// TestAlphaIsTheOneUsed: the error of one look is explained with the value by which comparisons are judged.
func TestAlphaIsTheOneUsed(t *testing.T) {
	for _, e := range Core() {
		if want := fmt.Sprintf(": %v, ", stat.LookAlpha); e.Word == "alpha" && !strings.Contains(e.Text, want) {
			t.Errorf("%q lacks %q", e.Text, want)
		}
	}
}

func TestEveryEntryIsComplete(t *testing.T) {
	seen := map[string]string{}
	for _, e := range Core() {
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
	if !slices.IsSortedFunc(Core(), func(a, b Entry) int { return strings.Compare(key(a.Word), key(b.Word)) }) {
		t.Error("not in order")
	}
}

// brewing is an area with words of its own.
type brewing struct{ area.Area }

func (brewing) Name() string { return "brewing" }

func (brewing) Parts() area.Parts {
	return area.Parts{Files: fstest.MapFS{"words.md": {Data: []byte(
		"# Words\n\n## head\nkind: report\nalso: lacing\n\nThe foam on a beer.\nsource: tare\n")}}}
}

// silent is an area without files.
type silent struct{ area.Area }

func (silent) Name() string { return "silent" }

func (silent) Parts() area.Parts { return area.Parts{} }

func TestWordsOfAreas(t *testing.T) {
	all := Of([]area.Area{brewing{}, silent{}})
	if e, _, ok := all.Lookup("lacing"); !ok || e.Word != "head" || e.Text != "The foam on a beer." || e.Source != "tare" {
		t.Errorf("got %+v, %v", e, ok)
	}
	if _, near, ok := all.Lookup("laceing"); ok || !slices.Contains(near, "lacing") {
		t.Errorf("near are %q, want lacing among them", near)
	}
	if e, _, _ := all.Lookup("area"); !strings.HasSuffix(e.Text, "the same way: brewing, silent.") {
		t.Errorf("the areas are not listed: %q", e.Text)
	}
	if len(all) != len(Core())+1 || !slices.IsSortedFunc(all, func(a, b Entry) int {
		return strings.Compare(key(a.Word), key(b.Word))
	}) {
		t.Errorf("%d entries, want %d in order", len(all), len(Core())+1)
	}
	if _, _, ok := Core().Lookup("head"); ok {
		t.Error("the core has the word of an area")
	}
}

func TestLookup(t *testing.T) {
	for word, want := range map[string]string{
		"accept-queue": "accept-queue", "Accept Queue": "accept-queue", "p99": "percentile", "POOL WAIT": "pool_wait",
		" rss_peak ": "rss", "queue": "queue",
	} {
		if e, near, ok := Core().Lookup(word); !ok || e.Word != want || near != nil {
			t.Errorf("Lookup(%q) = %q, %v, %v, want %q", word, e.Word, near, ok, want)
		}
	}
	for word, want := range map[string]string{
		"acept-queue": "accept-queue", "goodputs": "goodput", "inconlcusive": "inconclusive", "throttl": "throttled",
		"wegded": "wedged",
	} {
		if _, near, ok := Core().Lookup(word); ok || !slices.Contains(near, want) || len(near) > 3 {
			t.Errorf("Lookup(%q) suggests %q, want %q among them", word, near, want)
		}
	}
	for _, word := range []string{"", "zzzzzz", strings.Repeat("x", 10_000)} {
		if e, near, ok := Core().Lookup(word); ok || len(near) > 0 {
			t.Errorf("Lookup(%.10q) = %q, %q", word, e.Word, near)
		}
	}
}
