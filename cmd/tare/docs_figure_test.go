package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestDocsFigureIsOfTheReport checks that the picture in README is the capacity chart of the report page that the
// committed record of `make demo` gives. -update draws it anew.
func TestDocsFigureIsOfTheReport(t *testing.T) {
	t.Parallel()
	docs := filepath.Join("..", "..", "docs")
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "demo"), os.DirFS(filepath.Join(docs, "demo"))); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), tareBinary(t), "report", "demo", "-o", "html=page.html")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd.Args, err, out)
	}
	page, err := os.ReadFile(filepath.Join(dir, "page.html"))
	if err != nil {
		t.Fatal(err)
	}
	got, path := standalone(t, string(page), "chart-4"), filepath.Join(docs, "capacity.svg")
	if *update {
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not the chart of docs/demo: run go test ./cmd/tare -run %s -update", path, t.Name())
	}
}

// standalone returns the page's first drawing with this id, on a white ground: in an image nothing says which colour is
// behind it.
func standalone(t *testing.T, page, id string) []byte {
	t.Helper()
	for {
		_, rest, found := strings.Cut(page, "<svg ")
		head, _, closed := strings.Cut(rest, ">")
		body, after, whole := strings.Cut(rest, "</svg>")
		if !found || !closed || !whole {
			t.Fatalf("the page has no drawing %s", id)
		}
		if strings.Contains(head, id+"-title ") {
			ground := `><rect width="100%" height="100%" fill="#fff"/>`
			return []byte("<svg " + strings.Replace(body, ">", ground, 1) + "</svg>\n")
		}
		page = after
	}
}
