package build_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"tare/internal/build"
)

// TestFilesOfFolders: files of several folders make one module, with the true names of what Go does not embed.
func TestFilesOfFolders(t *testing.T) {
	from := fstest.MapFS{
		"a/go.mod.txt": {Data: []byte("module x\n")}, "a/sub/a.go": {Data: []byte("package sub\n")},
		"b/b.go": {}, "b/b_test.go": {Data: []byte("package b\n")}, "c/sub/a.go": {Data: []byte("package sub\n")},
	}
	files, err := build.ReadFiles(from, "a", "b")
	if err != nil {
		t.Fatal(err)
	}
	if got := slices.Sorted(maps.Keys(files)); !slices.Equal(got, []string{"b.go", "b_test.go", "go.mod", "sub/a.go"}) {
		t.Errorf("read %q", got)
	}
	dir := filepath.Join(t.TempDir(), "work")
	if err := files.WithoutTests().Unpack(dir); err != nil {
		t.Fatal(err)
	}
	want := build.Files{"go.mod": []byte("module x\n"), "b.go": {}, "sub/a.go": []byte("package sub\n")}
	if got, err := build.ReadFiles(os.DirFS(dir), "."); err != nil {
		t.Error(err)
	} else if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("unpacked (-want +got):\n%s", diff)
	}
	if _, err := build.ReadFiles(from, "a", "c"); err == nil || !strings.Contains(err.Error(), "c/sub/a.go") {
		t.Errorf("two folders with a file of one name: %v", err)
	}
	if _, err := build.ReadFiles(from, "none"); err == nil {
		t.Error("a folder that does not exist was read")
	}
}

// TestHashCoversAllInputs: contents, names, the borders between them, their form, and arguments.
func TestHashCoversAllInputs(t *testing.T) {
	x, y := []byte("x"), []byte("y")
	seen := map[string]string{}
	for name, c := range map[string]struct {
		files build.Files
		form  string
		words []string
	}{
		"both":        {build.Files{"a": x, "b": y}, "d/%s", nil},
		"one":         {build.Files{"a": x}, "d/%s", nil},
		"other form":  {build.Files{"a": x}, "e/%s", nil},
		"other name":  {build.Files{"a2": x}, "d/%s", nil},
		"in one file": {build.Files{"a": []byte("x\nd/b 1\ny")}, "d/%s", nil},
		"a word":      {build.Files{"a": x}, "d/%s", []string{"w", "v"}},
		"one word":    {build.Files{"a": x}, "d/%s", []string{"w v"}},
	} {
		h := c.files.Hash(c.form, c.words...)
		if len(h) != 12 || h != c.files.Hash(c.form, c.words...) {
			t.Errorf("%s: got hash %q; want 12 characters, and the same again", name, h)
		}
		if other := seen[h]; other != "" {
			t.Errorf("%s and %s have one hash", name, other)
		}
		seen[h] = name
	}
}
