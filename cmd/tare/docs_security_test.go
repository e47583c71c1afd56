package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestSecurityNamesOldDependencies: the versions in SECURITY's table of old dependencies are those that are built.
func TestSecurityNamesOldDependencies(t *testing.T) {
	read := func(path ...string) string {
		text, err := os.ReadFile(filepath.Join(append([]string{"..", ".."}, path...)...))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	_, table, _ := strings.Cut(read("SECURITY.md"), "\n| in | dependency | advisories | state |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	named := 0
	for _, row := range strings.Split(table, "\n")[1:] {
		cells := strings.Split(row, " | ")
		in := strings.Trim(cells[0], "| `")
		file := []string{"areas", "decision", "engine", "xacml", in + ".sha256"}
		if in == "1.24" {
			file = []string{"areas", "plane", "_kubernetes", in, "go.mod.txt"}
		}
		built := read(file...)
		for _, m := range regexp.MustCompile(`([\w./-]+) (\d+\.\d+\.\d+)`).FindAllStringSubmatch(cells[1], -1) {
			named++
			name, version := strings.ToLower(m[1]), regexp.MustCompile(`[v-]`+regexp.QuoteMeta(m[2])+`(\+|\.jar| |$)`)
			found := false
			for line := range strings.SplitSeq(built, "\n") {
				found = found || strings.Contains(strings.ToLower(line), name) && version.MatchString(line)
			}
			if !found {
				t.Errorf("%s has no %s %s", in, m[1], m[2])
			}
		}
	}
	if named < 15 {
		t.Errorf("only %d dependencies were looked up", named)
	}
}
