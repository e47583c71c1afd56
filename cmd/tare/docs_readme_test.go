package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"tare/internal/design"
	"tare/internal/question"
)

// TestReadmeTable checks the table of README: it has a row for each area and a column for each question, a cell is "–"
// where the area does not answer the question, and tare then has a reason.
func TestReadmeTable(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "\n| area | control under test | ")
	head, table, _ := strings.Cut(table, " |\n")
	var asked []design.Question
	for h := range strings.SplitSeq(head, " | ") {
		word, _, _ := strings.Cut(h, ":")
		asked = append(asked, design.Question(word))
	}
	rows := map[string][]string{}
	for _, m := range regexp.MustCompile("(?m)^\\| \\[`([a-z]+)`\\]\\(.*$").FindAllStringSubmatch(table, -1) {
		rows[m[1]] = strings.Split(strings.TrimSuffix(m[0], " |"), " | ")
	}
	if n := len(question.All()); len(rows) < len(areas()) || len(asked) != n {
		t.Fatalf("%d rows for %d areas, %d columns for %d questions", len(rows), len(areas()), len(asked), n)
	}
	for _, ar := range areas() {
		row := rows[ar.Name()]
		if len(row) != len(asked)+2 {
			t.Errorf("%s has %d cells", ar.Name(), len(row))
			continue
		}
		for i, q := range asked {
			offer := question.Of(q).Needs(ar.Offers())
			if cell := row[i+2]; (cell == "–") == offer.Given || !offer.Given && offer.Reason == "" {
				t.Errorf("%s, %s: the cell is %q, and the area answers %v (%q)", ar.Name(), q, cell, offer.Given, offer.Reason)
			}
		}
	}
}
