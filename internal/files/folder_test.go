package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"tare/rigs/hosttest"
)

// nobody is the user that tries to mislead root.
const nobody = 65534

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func put(t *testing.T, path string) {
	t.Helper()
	must(t, os.WriteFile(path, []byte("text"), 0o600))
}

func have(t *testing.T, path string) {
	t.Helper()
	if text, err := os.ReadFile(path); err != nil || string(text) != "text" {
		t.Errorf("%s: %q, %v", path, text, err)
	}
}

// TestStrangersFolders: a folder is refused that another user has made, or could put another in the place of.
func TestStrangersFolders(t *testing.T) {
	folderHas := func(mode fs.FileMode) func(dir string) error {
		return func(dir string) error { return os.Chmod(dir+"/a/b", mode) }
	}
	aboveHas := func(mode fs.FileMode) func(dir string) error {
		return func(dir string) error { return os.Chmod(dir+"/a", mode) }
	}
	for name, c := range map[string]struct {
		root bool // the case takes a second user
		make func(dir string) error
		ok   bool
	}{
		"ours": {ok: true, make: func(string) error { return nil }},
		"a link of ours on the way": {ok: true, make: func(dir string) error {
			return errors.Join(os.Rename(dir+"/a", dir+"/other"), os.Symlink("other", dir+"/a"))
		}},
		"a sticky folder on the way":             {ok: true, make: aboveHas(0o777 | fs.ModeSticky)},
		"a folder on the way that all may write": {make: aboveHas(0o777)},
		"the folder may be written by all":       {make: folderHas(0o777)},
		"the folder is sticky":                   {make: folderHas(0o777 | fs.ModeSticky)},
		"the folder is another user's": {root: true, make: func(dir string) error {
			return os.Chown(dir+"/a/b", nobody, nobody)
		}},
		"another user's folder on the way": {root: true, make: func(dir string) error {
			return os.Chown(dir+"/a", nobody, nobody)
		}},
		"another user's link on the way": {root: true, make: func(dir string) error {
			return errors.Join(os.Rename(dir+"/a", dir+"/other"), os.Symlink(dir+"/other", dir+"/a"),
				os.Lchown(dir+"/a", nobody, nobody))
		}},
		"another user's link instead": {root: true, make: func(dir string) error {
			return errors.Join(os.Chmod(dir+"/a", 0o777|fs.ModeSticky), os.Rename(dir+"/a/b", dir+"/other"),
				os.Symlink(dir+"/other", dir+"/a/b"), os.Lchown(dir+"/a/b", nobody, nobody))
		}},
		"a group may write": {root: true, make: func(dir string) error {
			return errors.Join(os.Chmod(dir+"/a", 0o775), os.Chown(dir+"/a", 0, nobody))
		}},
		"root's group may write": {root: true, make: func(dir string) error {
			return errors.Join(os.Chown(dir+"/a", 0, 0), os.Chmod(dir+"/a", 0o775))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			if c.root {
				hosttest.NeedsRoot(t)
			}
			dir := t.TempDir()
			must(t, os.MkdirAll(dir+"/a/b", 0o700))
			put(t, dir+"/a/b/kept")
			must(t, c.make(dir))
			for what, open := range map[string]func(string) (*Folder, error){"open": Open, "make": Make} {
				f, err := open(dir + "/a/b")
				if c.ok != (err == nil) {
					t.Errorf("%s: %v", what, err)
				}
				if _, is := errors.AsType[*NotOursError](err); !c.ok && !is {
					t.Errorf("%s: %v is of another type", what, err)
				}
				if f != nil {
					must(t, f.Close())
				}
			}
			if err := RemoveFolder(dir + "/a/b"); c.ok != (err == nil) {
				t.Errorf("remove: %v", err)
			}
			if _, err := os.Stat(dir + "/a/b/kept"); c.ok != errors.Is(err, fs.ErrNotExist) {
				t.Errorf("what was in the folder: %v", err)
			}
		})
	}
}

// TestTrusted: a folder of root's is trusted by every user, one that others may write by nobody.
func TestTrusted(t *testing.T) {
	dir := t.TempDir()
	must(t, Trusted("/usr/bin"), Trusted(dir+"/new/one"))
	if _, err := os.Stat(dir + "/new/one"); err != nil {
		t.Error(err)
	}
	must(t, os.Chmod(dir+"/new", 0o777))
	for _, path := range []string{dir + "/new", dir + "/new/one", "/tmp"} {
		if err := Trusted(path); err == nil {
			t.Errorf("%s is trusted", path)
		}
	}
	hosttest.NeedsRoot(t)
	must(t, os.Chmod(dir+"/new", 0o755), os.Chown(dir+"/new", nobody, nobody))
	if err := Trusted(dir + "/new/one"); err == nil {
		t.Error("a folder of root's in one of another user's is trusted")
	}
}

// TestRemoveAt: what a program of ours has opened to others is removed, and no link is followed.
func TestRemoveAt(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "canary")
	put(t, outside)
	must(t, os.MkdirAll(dir+"/made/sealed", 0o700), os.Symlink(filepath.Dir(outside), dir+"/made/link"),
		os.Chmod(dir+"/made/sealed", 0o500), os.Chmod(dir+"/made", 0o777), os.Symlink(filepath.Dir(outside), dir+"/link"))
	must(t, RemoveAt(dir+"/made"), RemoveAt(dir+"/made"), RemoveAt(dir+"/absent/made"))
	if _, err := os.Lstat(dir + "/made"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := RemoveAt(dir + "/link"); err == nil {
		t.Error("a link was followed")
	}
	have(t, outside)
	hosttest.NeedsRoot(t)
	must(t, os.MkdirAll(dir+"/theirs/x", 0o700), os.Chown(dir+"/theirs", nobody, nobody))
	if err := RemoveAt(dir + "/theirs"); err == nil {
		t.Error("another user's folder was removed")
	}
}

// TestMountsAreNotRemoved: what a program has mounted below a folder of a run's is not the run's.
func TestMountsAreNotRemoved(t *testing.T) {
	dir := t.TempDir()
	folder, theirs, own := dir+"/run", dir+"/others/precious", dir+"/run/own"
	at := folder + "/a/with space"
	must(t, os.MkdirAll(at, 0o700), os.Mkdir(dir+"/others", 0o700))
	put(t, theirs)
	put(t, own)
	if err := unix.Mount(dir+"/others", at, "", unix.MS_BIND, ""); err != nil {
		hosttest.Missing(t, "no folder can be mounted: "+err.Error(), hosttest.Root)
	}
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	f, err := Open(folder)
	must(t, err)
	for name, remove := range map[string]func() error{
		"at": func() error { return RemoveAt(folder) }, "folder": func() error { return RemoveFolder(folder) },
		"name": func() error { return f.RemoveAll("a") },
	} {
		if err := remove(); err == nil || !strings.Contains(err.Error(), "mounted at "+at+":") {
			t.Errorf("%s: %v", name, err)
		}
	}
	have(t, theirs)
	have(t, own)
	must(t, unix.Unmount(at, 0), f.Close(), RemoveAt(folder))
	have(t, theirs)
}

// TestFilesOfAFolder: a file is read, written and removed; neither a link nor a pipe is followed or waited for.
func TestFilesOfAFolder(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "canary")
	put(t, outside)
	f, err := Make(dir + "/new/folder")
	must(t, err)
	defer f.Close() //nolint:errcheck // nothing to lose
	if st, err := os.Stat(dir + "/new"); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	must(t, f.Write("a", []byte("one")), f.Write("a", []byte("text")))
	if text, err := f.Read("a", 4); err != nil || string(text) != "text" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := f.Read("a", 3); err == nil {
		t.Error("a file that is too long was read")
	}
	must(t, os.Symlink(outside, f.Join("link")), syscall.Mkfifo(f.Join("pipe"), 0o600))
	for _, name := range []string{"link", "pipe", "../x", "", ".", "..", "a/b"} {
		for _, flag := range []int{os.O_RDONLY, os.O_WRONLY | os.O_CREATE, os.O_RDWR | os.O_TRUNC} {
			if file, err := f.Open(name, flag); err == nil {
				t.Errorf("%q was opened as %s", name, file.Name())
			}
		}
	}
	must(t, f.Write("link", []byte("mine"))) // replaces the link
	have(t, outside)
	must(t, os.Remove(f.Join("link")), os.Symlink(filepath.Dir(outside), f.Join("link")), f.RemoveAll("link"))
	have(t, outside)
	must(t, os.MkdirAll(f.Join("x/y"), 0o700), os.Symlink(outside, f.Join("x/y/z")), f.RemoveAll("x"), f.Remove("absent"))
	have(t, outside)
	names, err := f.Names()
	if err != nil || len(names) != 2 { // a and pipe
		t.Errorf("%v, %v", names, err)
	}
	must(t, f.Remove("a"))
	if _, err := os.Lstat(f.Join("a")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that was removed: %v", err)
	}
	for _, name := range []string{"../folder/pipe", "new/pipe", ".", ""} {
		if err := f.Remove(name); err == nil {
			t.Errorf("%q was removed, which is no name in the folder", name)
		}
	}
	if _, err := os.Lstat(f.Join("pipe")); err != nil {
		t.Error(err)
	}
}

// TestLinksInACircle: they lead nowhere, and nobody follows them for ever.
func TestLinksInACircle(t *testing.T) {
	dir := t.TempDir()
	must(t, os.Symlink("b", dir+"/a"), os.Symlink("a", dir+"/b"))
	if _, err := Make(dir + "/a/folder"); !errors.Is(err, syscall.ELOOP) {
		t.Errorf("%v, want %v", err, syscall.ELOOP)
	}
}

// TestFolderThatIsMoved: what is written goes to the folder that was opened, whatever has its name by then.
func TestFolderThatIsMoved(t *testing.T) {
	dir := t.TempDir()
	f, err := New(dir, "run")
	must(t, err)
	defer f.Close() //nolint:errcheck // nothing to lose
	if _, err := New(dir, "run"); !errors.Is(err, fs.ErrExist) {
		t.Errorf("a name that is taken: %v", err)
	}
	must(t, os.Mkdir(dir+"/canary", 0o700), os.Rename(dir+"/run", dir+"/moved"), os.Symlink("canary", dir+"/run"))
	below, err := f.Make("logs")
	must(t, err)
	must(t, f.Write("a", []byte("text")), below.Write("b", []byte("text")), below.Close())
	have(t, dir+"/moved/a")
	have(t, dir+"/moved/logs/b")
	if left, err := os.ReadDir(dir + "/canary"); err != nil || len(left) != 0 {
		t.Errorf("written into the folder that took its place: %v, %v", left, err)
	}
}

// TestStrangersFile: a file of another user's is neither read nor written, wherever it lies.
func TestStrangersFile(t *testing.T) {
	hosttest.NeedsRoot(t)
	f, err := Open(t.TempDir())
	must(t, err)
	defer f.Close() //nolint:errcheck // nothing to lose
	put(t, f.Join("theirs"))
	must(t, os.Chown(f.Join("theirs"), nobody, nobody))
	for _, flag := range []int{os.O_RDONLY, os.O_RDWR} {
		if _, err := f.Open("theirs", flag); err == nil {
			t.Errorf("opened with %d", flag)
		}
	}
}

// TestLock: a folder is locked for one opening of it, until that is closed.
func TestLock(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a")
	must(t, MakeNew(dir))
	first, err1 := Open(dir)
	second, err2 := Open(dir)
	must(t, err1, err2)
	lock := func(f *Folder, want bool) {
		t.Helper()
		if got, err := f.Lock(); got != want || err != nil {
			t.Errorf("locked %t, %v, want %t", got, err, want)
		}
	}
	lock(first, true)
	lock(second, false)
	must(t, first.Close())
	lock(second, true)
	must(t, second.Close())
	if _, err := second.Lock(); err == nil {
		t.Error("a folder that is closed was locked")
	}
}
