package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/internal/area/all"
	"tare/internal/config"
	"tare/internal/design"
)

// TestExamplesAreValid reads every example and every template as `tare validate` does: none may have a finding, not even a warning.
func TestExamplesAreValid(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "examples", "*.yaml"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	sources := map[string][]byte{}
	for _, file := range files {
		if sources[file], err = os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range config.Templates() {
		area, question, _ := strings.Cut(name, "-")
		if sources["template "+name], err = config.Template(area, design.Question(question)); err != nil {
			t.Fatal(err)
		}
	}
	for name, src := range sources {
		if _, found := config.Parse(name, src, all.List{}); len(found) > 0 {
			t.Errorf("%s: %v", name, found)
		}
	}
}
