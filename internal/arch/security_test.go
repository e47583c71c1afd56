package arch

import (
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestThreatsAreTried: each test that SECURITY.md names beside a threat is in one of the packages named there.
func TestThreatsAreTried(t *testing.T) {
	_, table, ok := strings.Cut(read(t, "../../SECURITY.md"), "## Threats and the tests that try them\n")
	if !ok {
		t.Fatal("SECURITY.md has no table of threats")
	}
	word := regexp.MustCompile("`([^`]+)`")
	rows := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "--") || cells[1] == " threat " {
			continue
		}
		rows++
		source := ""
		for _, dir := range word.FindAllStringSubmatch(cells[2], -1) {
			files, _ := filepath.Glob(filepath.Join("../..", dir[1], "*_test.go"))
			for _, file := range files {
				source += read(t, file)
			}
		}
		tests := word.FindAllStringSubmatch(cells[3], -1)
		if len(tests) == 0 {
			t.Errorf("no test tries: %s", cells[1])
		}
		for _, test := range tests {
			if !strings.Contains(source, "\nfunc "+test[1]+"(t *testing.T) {") {
				t.Errorf("%s is in none of %s", test[1], cells[2])
			}
		}
	}
	if rows < 10 {
		t.Errorf("the table has %d rows", rows)
	}
}
