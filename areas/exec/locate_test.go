package exec

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/area"
)

// writeFile writes a file below dir.
func writeFile(t *testing.T, dir, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
	return path
}

// testGetenv returns an environment.
func testGetenv(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1], true
			}
		}
		return "", false
	}
}

func TestLocate(t *testing.T) {
	dir := t.TempDir()
	first, second := filepath.Join(dir, "first"), filepath.Join(dir, "second")
	writeFile(t, first, "plain", "#!/bin/sh\n", 0o644) // not executable: passed over
	inSecond := writeFile(t, second, "plain", "#!/bin/sh\n", 0o755)
	own := writeFile(t, dir, "own", "#!/bin/sh\n", 0o755)
	writeFile(t, dir, "text.py", "print(1)\n", 0o644)
	writeFile(t, dir, "lost.py", "#!/nowhere/python3 -u\nprint(1)\n", 0o755)
	writeFile(t, dir, "windows.py", "#!/bin/sh\r\nprint(1)\n", 0o755)
	writeFile(t, dir, "nobody", "#!\n", 0o755)
	if err := os.Mkdir(filepath.Join(first, "folder"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(own, filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nothing", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, want, says, next string }{
		{name: "plain", want: inSecond},
		{name: own, want: own},
		{name: "./own", want: own},
		{name: "first/../own", want: own},
		{name: "./link", want: filepath.Join(dir, "link")},
		{name: "own", says: `no program "own" in any folder of PATH`, next: "write ./own"},
		{name: "nothing", says: `no program "nothing"`, next: "install it"},
		{name: "folder", says: `no program "folder"`, next: "install it"},
		{name: "./nothing", says: "there is no program " + filepath.Join(dir, "nothing"), next: "build it first"},
		{name: "./dangling", says: "there is no program", next: "build it first"},
		{name: "./first", says: "is a folder", next: "name the program in it"},
		{name: "./text.py", says: "is not executable", next: "program: [python3, " + filepath.Join(dir, "text.py") + "]"},
		{name: "./lost.py", says: "is to be run by /nowhere/python3, which cannot be found", next: "program: [python3, "},
		{name: "./windows.py", says: "carriage return", next: "line ends of Unix"},
		{name: "./nobody", says: "no program after it", next: "name what runs it"},
		{name: "./own/below", says: "look at the program"},
		{name: "/dev/null", says: "is no file"},
	} {
		got, err := locate(c.name, dir, []string{"", ".", first, second})
		if c.says == "" {
			if err != nil || got != c.want {
				t.Errorf("%s: %s, %v; want %s", c.name, got, err, c.want)
			}
			continue
		}
		h, ok := errors.AsType[hinted](err)
		if !ok || !strings.Contains(err.Error(), c.says) || !strings.Contains(h.hint, c.next) || h.path != "program[0]" {
			t.Errorf("%s: %v, next %q at %q; want %q, next %q", c.name, err, h.hint, h.path, c.says, c.next)
		}
	}
}

func TestProgramIsFoundFromItsFolder(t *testing.T) {
	dir := t.TempDir()
	path := writeFile(t, dir, "sub/run.sh", "#!/bin/sh\n", 0o755)
	t.Chdir(dir)
	env := area.Env{Getenv: testGetenv("PATH", "/bin", "HOME", "/root", "TOKEN", "hunter2", "OTHER", "x")}
	s := Spec{Program: []string{"./run.sh", "a b"}, Dir: "sub", Env: []Variable{"TOKEN"}}
	p, err := s.program(env)
	if err != nil {
		t.Fatal(err)
	}
	if p.Path != path || p.Dir != filepath.Join(dir, "sub") || p.Name != "run.sh" {
		t.Errorf("got program %+v, want run.sh in its folder", p)
	}
	if d := cmp.Diff([]string{"a b"}, p.Args); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"PATH=/bin", "HOME=/root", "TOKEN=hunter2"}, p.Env); d != "" {
		t.Errorf("no more than it was promised: %s", d)
	}
}

func TestProgramSaysWhatIsMissing(t *testing.T) {
	t.Chdir(t.TempDir())
	writeFile(t, ".", "file", "", 0o644)
	for _, c := range []struct {
		spec       Spec
		path, says string
	}{
		{Spec{Program: []string{"sh"}, Dir: "nowhere"}, "dir", "there is no folder"},
		{Spec{Program: []string{"sh"}, Dir: "file"}, "dir", "is no folder"},
		{
			Spec{Program: []string{"sh"}, Env: []Variable{"HOME", "MISSING"}},
			"env[1]",
			"the environment variable MISSING, which the program is to get, is not set",
		},
		{Spec{Program: []string{"no-such-program"}}, "program[0]", "no program"},
	} {
		_, err := c.spec.program(area.Env{Getenv: testGetenv("PATH", os.Getenv("PATH"), "HOME", "/")})
		h, ok := errors.AsType[hinted](err)
		if !ok || h.path != c.path || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v at %q", c.spec, err, h.path)
		}
	}
	// Without an environment there is no PATH to look in, and nothing to hand on.
	if _, err := (&Spec{Program: []string{"sh"}}).program(area.Env{}); err == nil {
		t.Error("sh was found without PATH")
	}
}

func TestShellWord(t *testing.T) {
	for word, want := range map[string]string{
		"python3": "python3", "a/b-c_d.e=f": "a/b-c_d.e=f", "": "''", "a b": "'a b'", "it's": `'it'\''s'`, "$x": "'$x'",
		"ä": "'ä'", "a;b": "'a;b'", "[": "'['", "~": "'~'",
	} {
		if got := shellWord(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}
