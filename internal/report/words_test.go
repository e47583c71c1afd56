package report

import (
	"reflect"
	"strings"
	"testing"

	"tare/internal/glossary"
)

// TestWordsOfSoaksAreExplained: "tare explain" knows every field of a soak, of what a target used and of counted
// answers, and every column of the tables and the file of windows.
func TestWordsOfSoaksAreExplained(t *testing.T) {
	words := []string{"leak", "mismatch", "windows.csv", "KB/s", "summary report", "not comparable", "disagrees"}
	for _, v := range []any{
		Soak{},
		Total{},
		Outage{},
		Moment{},
		MomentOperation{},
		Drift{},
		AnswerCheck{},
		Heap{},
		Target{},
		RSS{},
		GC{},
		Throttled{},
		Lateness{},
		Little{},
	} {
		for f := range reflect.TypeOf(v).Fields() {
			if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); name != "" {
				words = append(words, name)
			}
		}
	}
	words = append(words, windowColumns...)
	for _, x := range []table{xacmlSoak().summary(), xacmlSoak().checks(false), xacmlSoak().collections()} {
		for _, h := range x {
			words = append(words, h.head)
		}
	}
	for _, w := range words {
		if _, near, ok := glossary.Core().Lookup(w); !ok {
			t.Errorf("no entry for %q (near: %q)", w, near)
		}
	}
	if len(words) < 100 {
		t.Errorf("only %d words were looked up", len(words))
	}
}
