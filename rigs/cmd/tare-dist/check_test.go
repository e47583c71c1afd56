package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestBuildsThatDiffer: a byte, a missing file and a further file are differences, whichever build has them.
func TestBuildsThatDiffer(t *testing.T) {
	for _, c := range []struct {
		name, file, text, want string
	}{
		{"same", "SUMS", "x", ""},
		{"a byte", "SUMS", "y", "the two builds differ in SUMS"},
		{"a further file", "krew", "x", "krew: no such file"},
	} {
		a, b := t.TempDir(), t.TempDir()
		for name, text := range map[string]string{filepath.Join(a, "SUMS"): "x", filepath.Join(b, "SUMS"): "x"} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(b, c.file), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, err := range []error{same(a, b), same(b, a)} {
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: got %v, want %q", c.name, err, c.want)
			}
		}
	}
}

func TestDirtySourcesAreNotChecked(t *testing.T) {
	r := &release{version: "v1-dirty"}
	if err := r.check(t.Context(), nil, nil); err == nil || !strings.Contains(err.Error(), "commit your changes") {
		t.Errorf("got %v", err)
	}
}
