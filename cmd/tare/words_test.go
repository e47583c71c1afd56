package main

import (
	"reflect"
	"strings"
	"testing"

	"tare/internal/glossary"
	"tare/internal/report"
)

// TestWordsOfAreasAreExplained: "tare explain" knows each area, and what only reports of a control plane say.
func TestWordsOfAreasAreExplained(t *testing.T) {
	words := []string{
		"mutating", "read", "pod-startup", "simulated-nodes", "post", "scheduled", "running", "startup",
		"created-to-watch", "watch-to-watch", "conditions", "webhook", "admission", "storage",
	}
	for _, f := range report.Formulas() {
		words = append(words, string(f))
	}
	for _, v := range []any{
		report.Report{}, report.SLO{}, report.Attribution{}, report.Phase{}, report.Served{},
	} {
		for f := range reflect.TypeOf(v).Fields() {
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			words = append(words, name)
		}
	}
	for _, ar := range areas() {
		words = append(words, ar.Name())
	}
	all := glossary.Of(areas())
	for _, w := range words {
		if _, near, ok := all.Lookup(w); !ok {
			t.Errorf("no entry for %q (near: %q)", w, near)
		}
	}
	if len(words) < 60 {
		t.Errorf("only %d words were looked up", len(words))
	}
}

// TestEntriesAreComplete: no word has two explanations, whether they are of tare itself or of areas.
func TestEntriesAreComplete(t *testing.T) {
	by := map[string]string{}
	for _, e := range glossary.Of(areas()) {
		if len(e.Text) < 40 || !strings.HasSuffix(e.Text, ".") || e.Source == "" || len(e.Kinds) == 0 {
			t.Errorf("%q has no sentences, kind or source: %+v", e.Word, e)
		}
		if strings.Contains(e.Text, "{") {
			t.Errorf("%q holds a placeholder: %s", e.Word, e.Text)
		}
		for _, w := range append([]string{e.Word}, e.Also...) {
			if other, twice := by[w]; twice && other != e.Word {
				t.Errorf("%q is explained by %q and by %q", w, other, e.Word)
			}
			by[w] = e.Word
		}
	}
	if len(by) < 500 {
		t.Errorf("only %d words were read", len(by))
	}
}
