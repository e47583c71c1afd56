package engines

import (
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "copy the module in opa/ to opasource/")

// TestOPASourceIsTheModule: what is built from the binary is what is checked in as a module.
func TestOPASourceIsTheModule(t *testing.T) {
	for _, name := range []string{"go.mod", "go.sum", "main.go"} {
		want, err := os.ReadFile(filepath.Join("opa", name))
		if err != nil {
			t.Fatal(err)
		}
		file := "opasource/" + name + ".txt"
		if *update {
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		got, err := Sources.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), string(got)); diff != "" {
			t.Errorf("%s differs from the module; run go test ./engines -update\n%s", file, diff)
		}
	}
}
