package build_test

import (
	"archive/zip"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/internal/build"
)

// publish makes a module proxy of files that has one module.
func publish(t *testing.T, p build.Published, content map[string]string) string {
	t.Helper()
	proxy := t.TempDir()
	dir := filepath.Join(proxy, p.Path, "@v")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(dir, p.Version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(f)
	for name, text := range content {
		w, err := z.Create(p.Path + "@" + p.Version + "/" + name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	files := map[string]string{".mod": content["go.mod"], ".info": `{"Version":"` + p.Version + `"}`}
	for end, text := range files {
		if err := os.WriteFile(filepath.Join(dir, p.Version+end), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), f.Close()); err != nil {
		t.Fatal(err)
	}
	return "file://" + proxy
}

// TestPublishedModuleIsBuilt as its go.mod says, and only if it is the one that is pinned.
func TestPublishedModuleIsBuilt(t *testing.T) {
	p := build.Published{Path: "example.invalid/tool", Version: "v1.2.3", Package: "./cmd/tool", Binary: "tool"}
	t.Setenv("GOPROXY", publish(t, p, map[string]string{
		"go.mod":           "module example.invalid/tool\n\ngo 1.26\n",
		"cmd/tool/main.go": "package main\n\nfunc main() { print(1) }\n",
	}))
	t.Setenv("GOSUMDB", "off")
	cache := t.TempDir()
	t.Setenv("GOMODCACHE", cache)
	t.Cleanup(func() { // Go makes it read-only
		_ = filepath.WalkDir(cache, func(path string, _ fs.DirEntry, _ error) error { return os.Chmod(path, 0o700) })
	})
	g, dir := findGo(t), t.TempDir()
	module, err := g.Fetch(t.Context(), p)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.MakePublished(t.Context(), p, module, dir); err != nil {
		t.Fatal(err)
	}
	if out, err := (build.Step{Path: filepath.Join(dir, "tool")}).Run(t.Context()); err != nil || out != "1" {
		t.Errorf("the program said %q, %v", out, err)
	}
	p.Edits = []build.Edit{
		{File: "cmd/tool/main.go", Old: "print(1)", New: "print(inner.Two)"},
		{File: "cmd/tool/main.go", Old: "package main\n", New: "package main\n\nimport \"example.invalid/tool/inner\"\n"},
		{File: "inner/two.go", New: "package inner\n\nconst Two = 2\n"},
	}
	if err := g.MakePublished(t.Context(), p, module, dir); err != nil {
		t.Fatal(err)
	}
	if out, err := (build.Step{Path: filepath.Join(dir, "tool")}).Run(t.Context()); err != nil || out != "2" {
		t.Errorf("the edited program said %q, %v", out, err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("%v is left, %v", left, err)
	}
	for _, e := range []build.Edit{
		{File: "cmd/tool/main.go", Old: "print(3)"}, {File: "none.go"}, {File: "go.mod", New: "x"},
	} {
		p.Edits = []build.Edit{e}
		if _, ok := errors.AsType[*build.GoFault](g.MakePublished(t.Context(), p, module, dir)); !ok {
			t.Errorf("%+v was made", e)
		}
	}
	p.Edits = nil
	p.Sum = "h1:x"
	_, err = g.Fetch(t.Context(), p)
	if fault, ok := errors.AsType[*build.GoFault](err); !ok || fault.Fault != build.Altered ||
		!strings.Contains(fault.Says, "h1:x is pinned") {
		t.Errorf("%v, want that it is not the one that is pinned", err)
	}
	p.Version = "v9.9.9"
	if _, err := g.Fetch(t.Context(), p); err == nil {
		t.Error("a version that is not there was fetched")
	}
	p.Package = "./cmd/none"
	if err := g.MakePublished(t.Context(), p, module, dir); err == nil {
		t.Error("a package that is not there was built")
	}
}
