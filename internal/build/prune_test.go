package build_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/build"
	"tare/internal/files"
	"tare/rigs/hosttest"
)

// buildFolder builds a folder with a file of that many bytes.
func buildFolder(t *testing.T, c build.Cache, name string, bytes int) string {
	t.Helper()
	dir, err := c.Get(t.Context(), build.Recipe{Name: name, Lock: "x", Make: func(_ context.Context, dir string) error {
		return os.WriteFile(filepath.Join(dir, "program"), make([]byte, bytes), 0o600)
	}})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// surveyOf returns a survey of a tare that would use these folders, an hour from now.
func surveyOf(names ...string) build.Survey {
	return build.Survey{
		Wanted: func(name string) bool { return slices.Contains(names, name) },
		Now:    time.Now().Add(time.Hour),
	}
}

// itemStates returns the items of the cache by name, each with the reason why it must stay.
func itemStates(t *testing.T, c build.Cache, s build.Survey) map[string]string {
	t.Helper()
	items, err := c.Items(s)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, i := range items {
		out[i.Name] = strings.TrimSpace(string(i.State) + " " + i.Busy)
	}
	return out
}

func namesOf(items []build.Item) (out []string) {
	for _, i := range items {
		out = append(out, i.Name)
	}
	return out
}

// TestPruneRemovesUnusedBuilds and keeps what is used, foreign, copied, renamed or a link.
func TestPruneRemovesUnusedBuilds(t *testing.T) {
	c := newCache(t)
	buildFolder(t, c, "new", 10)
	old := buildFolder(t, c, "old", 5000)
	outside := filepath.Join(t.TempDir(), "outside")
	forged := `{"schema": "tare.built/v1", "name": "../` + filepath.Base(outside) + `"}`
	for _, err := range []error{
		os.CopyFS(filepath.Join(c.Dir, "copy"), os.DirFS(old)),
		os.CopyFS(filepath.Join(c.Dir, "old.one"), os.DirFS(old)),
		os.CopyFS(outside, os.DirFS(old)),
		os.Symlink(outside, filepath.Join(c.Dir, "outside")),
		os.Mkdir(filepath.Join(c.Dir, "photos"), 0o700),
		os.Mkdir(filepath.Join(c.Dir, "forged"), 0o700),
		os.WriteFile(filepath.Join(c.Dir, "forged", ".tare-built.json"), []byte(forged), 0o600),
		os.WriteFile(filepath.Join(c.Dir, "letter"), []byte("Dear"), 0o600),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{
		"new": "current", "old": "old", "copy": "strange", "old.one": "strange", "photos": "strange",
		"forged": "strange",
	}
	if diff := cmp.Diff(want, itemStates(t, c, surveyOf("new"))); diff != "" {
		t.Error(diff)
	}
	removed, kept, err := c.Prune(surveyOf("new"), false)
	if err != nil || len(removed) != 1 || removed[0].Name != "old" || removed[0].Bytes < 5000 || removed[0].Bytes > 5200 ||
		removed[0].Used.IsZero() || len(kept) != 0 {
		t.Errorf("removed %+v, kept %+v, %v", removed, kept, err)
	}
	delete(want, "old")
	if diff := cmp.Diff(want, itemStates(t, c, surveyOf("new"))); diff != "" {
		t.Error(diff)
	}
	if removed, _, err := c.Prune(surveyOf("new"), true); err != nil || !slices.Equal(namesOf(removed), []string{"new"}) {
		t.Errorf("with all: removed %v, %v", namesOf(removed), err)
	}
	for _, path := range []string{"copy/program", "old.one/program", "outside/program", "photos", "forged", "letter"} {
		if _, err := os.Stat(filepath.Join(c.Dir, path)); err != nil {
			t.Errorf("it is gone: %v", err)
		}
	}
}

// TestPruneKeepsWhatIsUsed: a running program, a folder in the arguments of a process, such as a JVM's class path, and
// what was looked up just now. It is removed when they have ended.
func TestPruneKeepsWhatIsUsed(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		hosttest.Missing(t, "sleep is not installed", "apt-get install coreutils")
	}
	c := newCache(t)
	runs, path, idle := buildFolder(t, c, "runs", 1), buildFolder(t, c, "path", 1), buildFolder(t, c, "idle", 1)
	binary, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	if err := files.WriteProgram(filepath.Join(runs, "sleep"), binary); err != nil {
		t.Fatal(err)
	}
	var all []*exec.Cmd
	for _, cmd := range []*exec.Cmd{
		exec.CommandContext(t.Context(), filepath.Join(runs, "sleep"), "600"),
		exec.CommandContext(t.Context(), "/bin/sh", "-c", "read line # -cp /x.jar:"+filepath.Join(path, "lib", "y.jar")),
	} {
		if _, err := cmd.StdinPipe(); err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			hosttest.Missing(t, fmt.Sprintf("a program in a temporary folder cannot be run: %v", err),
				"have TMPDIR where programs may be run")
		}
		all = append(all, cmd)
		defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	}
	removed, kept, err := c.Prune(surveyOf(), true)
	if err != nil || !slices.Equal(namesOf(removed), []string{"idle"}) ||
		!slices.Equal(namesOf(kept), []string{"path", "runs"}) {
		t.Fatalf("removed %v, kept %+v, %v", namesOf(removed), kept, err)
	}
	for _, i := range kept {
		if !strings.HasSuffix(i.Busy, " uses it") {
			t.Errorf("%s stays because %q", i.Name, i.Busy)
		}
	}
	if _, err := os.Stat(idle); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what is not used is there: %v", err)
	}
	for _, cmd := range all {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	just := surveyOf()
	just.Now = time.Now()
	if removed, kept, err := c.Prune(just, true); err != nil || len(removed) != 0 || len(kept) != 2 ||
		!strings.Contains(kept[0].Busy, "less than a minute ago") {
		t.Errorf("right after it was looked for: removed %v, kept %+v, %v", namesOf(removed), kept, err)
	}
	removed, _, err = c.Prune(surveyOf(), false)
	if err != nil || !slices.Equal(namesOf(removed), []string{"path", "runs"}) {
		t.Errorf("when they had ended: removed %v, %v", namesOf(removed), err)
	}
}

// TestPruneBesideABuild: a build in progress stays and completes; what a killed build and a killed removal left is
// removed.
func TestPruneBesideABuild(t *testing.T) {
	c := newCache(t)
	old := buildFolder(t, c, "old", 100)
	marker, err := os.ReadFile(filepath.Join(old, ".tare-built.json"))
	if err != nil {
		t.Fatal(err)
	}
	// the last one's marker is another's
	for _, left := range []string{"old.y.123.tmp", "old.prune.9.tmp", "other.y.123.tmp"} {
		dir := filepath.Join(c.Dir, left)
		if err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(filepath.Join(dir, ".tare-built.json"), marker,
			0o600)); err != nil {
			t.Fatal(err)
		}
	}
	has, free, done := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		_, err := c.Get(t.Context(), build.Recipe{Name: "next", Lock: "x", Make: func(_ context.Context, dir string) error {
			close(has)
			<-free
			return os.WriteFile(filepath.Join(dir, "program"), nil, 0o600)
		}})
		done <- err
	}()
	<-has
	removed, kept, err := c.Prune(surveyOf(), true)
	if err != nil || !slices.Equal(namesOf(removed), []string{"old", "old.prune.9.tmp", "old.y.123.tmp"}) {
		t.Errorf("removed %v, %v", namesOf(removed), err)
	}
	if len(kept) != 1 || !strings.HasPrefix(kept[0].Name, "next.x.") || kept[0].State != build.Unfinished ||
		kept[0].Busy != "a build is at work in it" {
		t.Errorf("kept %+v", kept)
	}
	close(free)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"next": "old", "other.y.123.tmp": "strange"}
	if diff := cmp.Diff(want, itemStates(t, c, surveyOf())); diff != "" {
		t.Error(diff)
	}
}

// TestUseIsNoted: looking something up records the time, and marks builds from before there were marks without making
// them younger.
func TestUseIsNoted(t *testing.T) {
	c := newCache(t)
	dir := buildFolder(t, c, "x", 1)
	file, before := filepath.Join(dir, ".tare-built.json"), time.Unix(1e9, 0)
	used := func() time.Time {
		t.Helper()
		items, err := c.Items(surveyOf("x"))
		if err != nil || len(items) != 1 {
			t.Fatalf("got items %+v, %v; want one", items, err)
		}
		return items[0].Used
	}
	if err := os.Chtimes(file, before, before); err != nil {
		t.Fatal(err)
	}
	if at := used(); !at.Equal(before) {
		t.Errorf("last used at %v: to list is to use", at)
	}
	if _, ok, err := c.Has("x"); !ok || err != nil {
		t.Fatal(err)
	}
	if at := used(); time.Since(at) > time.Hour {
		t.Errorf("last used at %v, and it was looked for just now", at)
	}
	if err := errors.Join(os.Remove(file), os.Chtimes(dir, before, before)); err != nil {
		t.Fatal(err)
	}
	if at := used(); !at.IsZero() {
		t.Errorf("without a mark it was last used at %v", at)
	}
	if _, _, err := c.Has("x"); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(dir)
	if at := used(); err != nil || at.IsZero() || !info.ModTime().Equal(before) {
		t.Errorf("used at %v, made at %v, %v", at, info.ModTime(), err)
	}
}

// TestNoCache: looking creates nothing, and nothing is removed where others may write.
func TestNoCache(t *testing.T) {
	c := newCache(t)
	items, err := c.Items(surveyOf())
	removed, _, err2 := c.Prune(surveyOf(), true)
	if len(items) != 0 || len(removed) != 0 || err != nil || err2 != nil {
		t.Errorf("without a cache: items %v, removed %v, %v, %v", items, removed, err, err2)
	}
	if _, err := os.Stat(c.Dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the folder was made: %v", err)
	}
	buildFolder(t, c, "x", 1)
	if err := os.Chmod(c.Dir, 0o777); err != nil {
		t.Fatal(err)
	}
	none := new(build.NoFolder)
	if _, _, err := c.Prune(surveyOf(), true); !errors.As(err, &none) {
		t.Errorf("error %v", err)
	}
	if _, err := os.Stat(filepath.Join(c.Dir, "x")); err != nil {
		t.Errorf("it is gone: %v", err)
	}
}
