package bundle_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"

	"tare/areas/bundle"
	"tare/rigs/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

func written(t *testing.T, files ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		at := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(at, []byte("content of "+f), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestBundle: a copy has the same sum, another content or name has another, and nothing but regular files of the folder
// is read.
func TestBundle(t *testing.T) {
	dir := written(t, "b.yaml", "a/c.yaml", "a/d/e.json", "a/.manifest",
		".git/config", ".git/x.yaml", ".env", ".docker/config.json", ".git/b.rego", ".a/data.json",
		"server.pem", "id_rsa", "a/notes.txt")
	if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	outside := written(t, "secret")
	if err := os.Symlink(filepath.Join(outside, "secret"), filepath.Join(dir, "link.yaml")); err != nil {
		t.Fatal(err)
	}
	var names []string
	if err := bundle.Each(dir, func(name string, text []byte) error {
		names = append(names, name+": "+string(text))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		".a/data.json: content of .a/data.json",
		".docker/config.json: content of .docker/config.json", ".git/b.rego: content of .git/b.rego",
		"a/.manifest: content of a/.manifest", "a/c.yaml: content of a/c.yaml", "a/d/e.json: content of a/d/e.json",
		"b.yaml: content of b.yaml",
	}
	if d := cmp.Diff(want, names); d != "" {
		t.Errorf("files (-want +got):\n%s", d)
	}
	for link, to := range map[string]string{"a/in.yaml": "notes.txt", "gone.json": "none", "x.txt": "b.yaml"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	links := map[string]string{}
	if err := bundle.Links(dir, func(name, to string, text []byte) error {
		links[name] = to + string(text)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	leads := map[string]string{"link.yaml": filepath.Join(outside, "secret"), "a/in.yaml": "content of a/notes.txt"}
	if d := cmp.Diff(leads, links); d != "" {
		t.Errorf("links (-want +got):\n%s", d)
	}
	to := t.TempDir()
	if err := bundle.Copy(to, "own", dir, nil); err != nil {
		t.Fatal(err)
	}
	var copied []string
	err := filepath.WalkDir(filepath.Join(to, "own"), func(path string, e os.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			name, _ := filepath.Rel(filepath.Join(to, "own"), path)
			copied = append(copied, name)
		}
		return err
	})
	want = []string{".a/data.json", ".git/b.rego", "a/.manifest", "a/c.yaml", "a/d/e.json", "b.yaml"}
	if d := cmp.Diff(want, copied); d != "" || err != nil {
		t.Errorf("copied (-want +got): %v\n%s", err, d)
	}
	sum := func(of string) string {
		s, err := bundle.Sum(of)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if sum(filepath.Join(to, "own")) != sum(written(t, copied...)) {
		t.Error("the copy has another sum")
	}
	if sum(dir) == sum(written(t, "b.yaml", "a/c.yaml", "a/d/f.json")) {
		t.Error("another name has the same sum")
	}
	file := filepath.Join(dir, "b.yaml")
	if err := bundle.Copy(to, "b.yaml", file, nil); err != nil || sum(file) != sum(filepath.Join(to, "b.yaml")) {
		t.Errorf("a file: %v", err)
	}
	_, err = bundle.Sum(filepath.Join(dir, "pipe"))
	if err == nil || !strings.Contains(err.Error(), "want a regular file or a folder") {
		t.Errorf("a pipe: %v", err)
	}
	if err := bundle.Copy(to, "x", filepath.Join(dir, "none"), nil); err == nil {
		t.Error("what is not there is copied")
	}
}

// TestBundleBehindALink: neither a file nor a folder is read through a link that leads out of its folder, at the end of
// the path or on the way; one that leads down is followed.
func TestBundleBehindALink(t *testing.T) {
	private, dir := written(t, "a.yaml", "b/a.yaml"), written(t, "v2/a.yaml")
	t.Chdir(dir)
	for link, to := range map[string]string{"file.yaml": private + "/a.yaml", "folder": private, "now": "v2"} {
		if err := os.Symlink(to, link); err != nil {
			t.Fatal(err)
		}
	}
	to := t.TempDir()
	for name, read := range map[string]func(from string) error{
		"Each":     func(from string) error { return bundle.Each(from, func(string, []byte) error { return nil }) },
		"Sum":      func(from string) error { _, err := bundle.Sum(from); return err },
		"Copy":     func(from string) error { return bundle.Copy(to, "own", from, nil) },
		"IsFolder": func(from string) error { _, err := bundle.IsFolder(from); return err },
		"Read": func(from string) error {
			_, err := bundle.NewReader().Read(filepath.Dir(from), filepath.Base(from))
			return err
		},
	} {
		for _, from := range []string{"folder/a.yaml", "folder/b/a.yaml", "file.yaml"} {
			if err := read(from); err == nil {
				t.Errorf("%s %s: what is elsewhere was read", name, from)
			}
		}
		if err := read("now/a.yaml"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, from := range []string{"folder", "folder/", "folder/b", dir + "/folder"} {
		err := bundle.Copy(to, "folder", from, nil)
		if err == nil || !strings.Contains(err.Error(), "name what it leads to") {
			t.Errorf("copy %s: %v", from, err)
		}
	}
	if left, err := os.ReadDir(to); err != nil || len(left) != 1 {
		t.Errorf("copied: %v, %v", left, err)
	}
}

// TestLinksThatMayDecide: a link is refused if it is called like what decides, leads to a folder, or leads nowhere.
func TestLinksThatMayDecide(t *testing.T) {
	outside := written(t, "a.txt", "more/b.rego")
	for _, c := range []struct {
		link, to string
		refused  bool
	}{
		{"x.rego", outside + "/a.txt", true},
		{"x.rego", "own.txt", true},
		{"below/x.rego", "../own.txt", true},
		{".x.rego", "own.txt", true},
		{".git/x.rego", "../own.txt", true},
		{"x", outside + "/more", true},
		{"x", "below", true},
		{"x", "y", true},
		{"x", "none", true},
		{"x.txt", outside + "/a.txt", false},
		{"below/x.md", "../own.txt", false},
		{".git/hooks/x", outside + "/more", false},
	} {
		dir := written(t, "own.txt", "below/a.rego", ".git/hooks/a")
		if err := os.Symlink(c.to, filepath.Join(dir, c.link)); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("below", filepath.Join(dir, ".git", "y")); err != nil {
			t.Fatal(err)
		}
		err := bundle.CheckLinks(dir, bundle.LoadedByOPA)
		if (err != nil) != c.refused || err != nil && !strings.Contains(err.Error(), dir+"/"+c.link+" is a link, and") {
			t.Errorf("%s -> %s: %v", c.link, c.to, err)
		}
		if err := bundle.CheckLinks(filepath.Join(dir, "own.txt"), bundle.LoadedByOPA); err != nil {
			t.Errorf("a file: %v", err)
		}
	}
}

// TestBundleIsBounded: as many files and as much text as the bounds say are read, and no more.
func TestBundleIsBounded(t *testing.T) {
	const many, much = 10_000, 256 << 20
	files := make([]string, many)
	for i := range files {
		files[i] = fmt.Sprintf("%d.yaml", i)
	}
	dir, count := written(t, files...), 0
	each := func() error {
		count = 0
		return bundle.Each(dir, func(string, []byte) error { count++; return nil })
	}
	if err := each(); err != nil || count != many {
		t.Errorf("%d files: %v", count, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "z.yaml"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	refused := func(what string) {
		if err := each(); err == nil || !strings.Contains(err.Error(), "more than 10000 files or 256 MiB") {
			t.Errorf("%s: %v", what, err)
		}
	}
	refused("a file more")
	dir = written(t, "a.yaml", "b.yaml")
	if err := os.Truncate(filepath.Join(dir, "b.yaml"), much); err != nil { // with a.yaml it is too much
		t.Fatal(err)
	}
	if refused("a large file"); count != 1 {
		t.Errorf("%d files were read before the large one, want 1", count)
	}
}

func TestShow(t *testing.T) {
	text := "one\n\ttwö three\r\n" + strings.Repeat("a", 300) + "b" + strings.Repeat("c", 1000)
	for _, c := range []struct {
		at   bundle.Place
		want string
	}{
		{bundle.Place{File: "f", Line: 2, Column: 6}, "f:2:6: bad\n    2 | \ttwö three\n        \t    ^"},
		{bundle.Place{File: "f", Line: 2}, "f:2: bad"},
		{bundle.Place{File: "f", Line: 9, Column: 1}, "f:9:1: bad"},
		{bundle.Place{File: "f", Line: 3, Column: 301}, "f:3:301: bad\n    3 | …" + strings.Repeat("a", 100) + "b" +
			strings.Repeat("c", 99) + "…\n" + strings.Repeat(" ", 109) + "^"},
		{bundle.Place{File: "f", Line: 1, Column: 99}, "f:1:99: bad\n    1 | one\n           ^"},
	} {
		if d := cmp.Diff(c.want, c.at.Show(text, "bad")); d != "" {
			t.Errorf("%v (-want +got):\n%s", c.at, d)
		}
	}
}

// TestChecksBeyondTheirTimeAreTooMuch: a check that looks at its context may be the first to see the end of its time.
func TestChecksBeyondTheirTimeAreTooMuch(t *testing.T) {
	l := bundle.Limit{Within: time.Millisecond, Most: math.MaxUint64}
	for range 100 {
		err := l.Check("whether it ends", func(ctx context.Context) error {
			<-ctx.Done()
			return fmt.Errorf("stopped: %w", ctx.Err())
		})
		if !errors.Is(err, bundle.ErrTooMuch) {
			t.Fatalf("%v, want %v", err, bundle.ErrTooMuch)
		}
	}
}
