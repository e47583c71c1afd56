package main

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"tare/rigs/hosttest"
)

// TestTurnsPage compares the page with what -turns prints: the same tables with the same columns.
func TestTurnsPage(t *testing.T) {
	hosttest.SkipIfShort(t)
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-turns", "-n", "1", "-seed", "5"}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../../docs/explanation/statistics.md")
	if err != nil {
		t.Fatal(err)
	}
	heads := regexp.MustCompile(`(?m)^### .*\n\n.*\n\n\|.*\n\| ---`).FindAllString(out.String(), -1)
	if len(heads) != 9 {
		t.Errorf("%d tables, want 9", len(heads))
	}
	words := func(s string) string { return strings.Join(strings.Fields(s), " ") } // the page breaks lines
	for _, h := range heads {
		if !strings.Contains(words(string(page)), words(h)) {
			t.Errorf("the page does not have the table\n%s", h)
		}
	}
}
