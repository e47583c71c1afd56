package files

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"tare/rigs/hosttest"
)

// TestGiven opens files of a checkout that somebody else has made: by links that lead to what is below their own
// folder, and by no other.
func TestGiven(t *testing.T) {
	private, dir := t.TempDir(), t.TempDir()
	put(t, private+"/file")
	t.Chdir(dir)
	must(t, os.MkdirAll("main/v2/policies", 0o700), os.Mkdir("pr", 0o700), syscall.Mkfifo("pipe", 0o600),
		os.MkdirAll("repo/.git", 0o700), os.Mkdir("repo/v2", 0o700),
		os.Symlink("v2/policies", "main/policies"), os.Symlink("..2026", "pr/..data"), os.Mkdir("pr/..2026", 0o700),
		os.Symlink("..data/file", "pr/mounted"), os.Symlink("main", "again"), os.Symlink("again", "more"))
	put(t, "main/v2/policies/file")
	put(t, "pr/..2026/file")
	put(t, "repo/v2/file")
	for link, to := range map[string]string{
		"pr/file": private + "/file", "pr/folder": private, "pr/up": "../main/v2/policies", "pr/down-up": "..2026/../../main",
		"pr/step": "folder", "pr/self": dir + "/main", "repo/up": "../main/v2", "repo/down": "v2",
	} {
		must(t, os.Symlink(to, link))
	}
	for path, says := range map[string]string{
		"main/v2/policies/file": "", "main/policies/file": "", "./more//policies/./file": "", "main/../pr/mounted": "",
		"again/../again/policies/file": "", dir + "/main/policies/file": "", dir + "/pr/mounted": "",
		"../" + filepath.Base(dir) + "/more/policies/file": "",
		dir + "/pr/up/file":            "", // links before the last component are the host's, but for those of a repository
		dir + "/repo/down/file":        "",
		dir + "/repo/up/policies/file": "repo/up is a link out of its folder",
		"pr/file":                      "pr/file is a link out of its folder",
		dir + "/pr/file":               "pr/file is a link out of its folder",
		dir + "/pr/file/.":             "pr/file is a link out of its folder",
		"pr/folder":                    "pr/folder is a link out of its folder",
		dir + "/pr/folder/":            "pr/folder is a link out of its folder",
		"pr/folder/file":               "pr/folder is a link out of its folder",
		"pr/up/file":                   "pr/up is a link out of its folder",
		"pr/down-up/v2/policies/file":  "pr/down-up is a link out of its folder",
		"pr/step/file":                 "pr/folder is a link out of its folder",
		"pr/self/policies/file":        "pr/self is a link out of its folder",
		"pipe":                         "want a regular file",
		"/dev/null":                    "want a regular file",
		"main/v2/policies/file/x":      "not a directory",
		"main/none":                    "open main/none: no such file",
		"none/file":                    "open none/file: no such file",
		"/none/file":                   "no such file",
		"":                             "no such file",
	} {
		f, err := Given(path)
		if err != nil {
			if says == "" || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v, want %q", path, err, says)
			}
			continue
		}
		text, err := io.ReadAll(f)
		if says != "" || err != nil || string(text) != "text" || f.Name() != path {
			t.Errorf("%s: %q, %v of %s, want %q", path, text, err, f.Name(), says)
		}
		must(t, f.Close())
	}
}

// TestGivenFolders: nothing outside of a folder is opened through it, and a file is not taken for a folder.
func TestGivenFolders(t *testing.T) {
	private, dir := t.TempDir(), t.TempDir()
	put(t, private+"/file")
	put(t, dir+"/file")
	must(t, os.Symlink(private+"/file", dir+"/link"))
	for _, path := range []string{dir, "/", ".", ".."} {
		f, err := Given(path)
		must(t, err)
		root, err := Root(f)
		must(t, err)
		if path == dir {
			_, err = root.Stat("file")
			must(t, err)
			if _, err := root.Open("link"); err == nil {
				t.Error("a link out of the folder was followed")
			}
		}
		must(t, root.Close())
	}
	f, err := Given(dir + "/file")
	must(t, err)
	if _, err := Root(f); err == nil || !strings.Contains(err.Error(), dir+"/file: not a directory") {
		t.Errorf("a file as a folder: %v", err)
	}
}

// TestBelow: below a folder every link is judged, and what is outside or belongs to git is not opened.
func TestBelow(t *testing.T) {
	private, dir := t.TempDir(), t.TempDir()
	must(t, os.MkdirAll(dir+"/v2/app", 0o700), os.Mkdir(dir+"/.git", 0o700), os.Symlink("v2", dir+"/now"),
		os.Symlink(private, dir+"/out"), os.Symlink("../v2", dir+"/v2/up"), os.Symlink(".git", dir+"/its"),
		os.Mkdir(dir+"/..data", 0o700), os.Symlink("..data/file", dir+"/mounted"), os.Symlink(".env", dir+"/env"))
	put(t, private+"/file")
	put(t, dir+"/v2/app/file")
	put(t, dir+"/.git/file")
	put(t, dir+"/.env")
	put(t, dir+"/..data/file")
	t.Chdir(dir)
	for name, says := range map[string]string{
		"v2/app/file": "", "now/app/file": "", ".": "", ".env": "", "mounted": "",
		"env":            "env is a link to what is hidden",
		"out/file":       "out is a link out of its folder",
		"v2/up/app/file": "v2/up is a link out of its folder",
		".git/file":      ".git/file is git's own",
		"its/file":       "its/file is git's own",
		"..":             "is outside of ",
		"v2/../../x":     "is outside of ",
		private:          "is outside of ",
	} {
		for _, folder := range []string{dir, ".", "v2/.."} {
			f, err := Below(folder, name)
			if says == "" {
				must(t, err, f.Close())
			} else if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s in %s: %v, want %q", name, folder, err, says)
			}
		}
	}
}

// TestGivenInAHeldFolder: of a record that is held, a copy is read wherever the user's own link has led to the record,
// and no link in the place of the copy is followed.
func TestGivenInAHeldFolder(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	must(t, os.MkdirAll("elsewhere/record", 0o700), os.Symlink(dir+"/elsewhere", "results"))
	f, err := At("results/record")
	must(t, err)
	defer f.Close() //nolint:errcheck // nothing to lose
	must(t, f.Write("copy", []byte("text")), os.Symlink(dir, f.Join("link")))
	if _, err := Given("results/record/copy"); err == nil {
		t.Error("a link out of its folder was followed without need")
	}
	defer f.Hold()()
	file, err := Given("results/record/copy")
	must(t, err, file.Close())
	if _, err := Given("results/record/link"); err == nil {
		t.Error("a link out of the record was followed")
	}
}

// TestGivenDescriptors: what the shell has opened is read.
func TestGivenDescriptors(t *testing.T) {
	dir := t.TempDir()
	put(t, dir+"/file")
	file, err := os.Open(dir + "/file")
	must(t, err)
	defer file.Close() //nolint:errcheck // it is only read
	open := byDescriptor(file.Fd())
	for _, path := range []string{open, strings.Replace(open, "/proc/self", "/dev", 1)} {
		f, err := Given(path)
		must(t, err)
		text, err := io.ReadAll(f)
		if err != nil || string(text) != "text" {
			t.Errorf("%s: %q, %v", path, text, err)
		}
		must(t, f.Close())
	}
}

// TestGivenByAnotherUser: a link of another user's is judged by where it leads, as in a container whose checkout
// belongs to the user outside.
func TestGivenByAnotherUser(t *testing.T) {
	hosttest.NeedsRoot(t)
	dir := t.TempDir()
	put(t, dir+"/file")
	t.Chdir(dir)
	must(t, os.Symlink("file", "link"), os.Lchown("link", nobody, nobody))
	f, err := Given("link")
	must(t, err, f.Close())
}
