package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/internal/design"
	"tare/rigs/areatest"
)

// described is what a program of a shell answers to describe, and to stop.
const described = `{"id":1,"ok":{"protocol":1,"name":"shelly","version":"2","operations":[{"name":"load"},{"name":"empty","harness":true}],"factors":{"check":["none","hmac"],"size":[]}}}`

// replying answers one request with each line.
func replying(text ...string) []string {
	out := "read -r request; "
	for _, line := range text {
		out += "echo " + shellWord(line) + "; read -r request; "
	}
	return []string{"sh", "-c", strings.TrimSuffix(out, "read -r request; ")}
}

func TestPreflight(t *testing.T) {
	good := replying(described, `{"id":2,"ok":{}}`)
	run := func(words ...string) Spec { return Spec{Program: words} }
	answers := func(text ...string) Spec { return run(replying(text...)...) }
	does := func(name string) Spec { return Spec{Program: good, Operations: []string{name}} }
	another := func(was, is string) Spec { return answers(strings.Replace(described, was, is, 1)) }
	dir := t.TempDir()
	writeFile(t, dir, "plain.txt", "hello\n", 0o644)
	writeFile(t, dir, "no-format", "hello\n", 0o755)
	for _, c := range []struct {
		spec Spec
		vary string // a level
		path string
		says []string // none: nothing is wrong
		next string
	}{
		{Spec{Program: good, Settings: settings("size", "1"), Operations: []string{"load"}}, "check=hmac", "", nil, ""},
		{does("laod"), "", "operations", []string{`shelly has no operation "laod"`, `did you mean "load"?`}, "load, empty"},
		{does("empty"), "", "operations", []string{"it is of the harness"}, ""},
		{run(good...), "chek=hmac", "", []string{`no factor "chek"`, `did you mean "check"?`}, "check, size"},
		{run(good...), "check=hmca", "", []string{`no level "hmca"`, `did you mean "hmac"?`}, "none, hmac"},
		{
			Spec{Program: good, Settings: settings("sise", "1")},
			"", "settings.sise",
			[]string{`no factor "sise"`, `did you mean "size"?`},
			"",
		},
		{run("no-such-program"), "", "program[0]", []string{"in any folder of PATH"}, "install it"},
		{Spec{Program: good, Dir: "nowhere"}, "", "dir", []string{"there is no folder"}, ""},
		{
			Spec{Program: good, Env: []Variable{"NO_SUCH_VARIABLE"}},
			"", "env[0]",
			[]string{"NO_SUCH_VARIABLE", "is not set"},
			"set it",
		},
		{run("./plain.txt"), "", "program[0]", []string{"is not executable"}, "chmod +x"},
		{run("./no-format"), "", "program", []string{"exec format error"}, "a script needs a first line"},
		{
			run("sh", "-c", "echo the table is gone >&2; exit 3"), "", "program",
			[]string{"exit status 3", "it wrote to stderr", "the table is gone"},
			"run it manually",
		},
		{run("false"), "", "program", []string{"exit status 1", "it wrote nothing to stderr"}, ""},
		{
			answers("debug: hello", described), "", "program",
			[]string{`it said "debug: hello"`, "print to stderr, stdout is for answers"},
			"printf",
		},
		{another(`"protocol":1`, `"protocol":2`), "", "program", []string{"speaks protocol 2"}, ""},
		{another(`"id":1`, `"id":9`), "", "program", []string{"answered request 9"}, ""},
		{
			answers(`{"id":1,"error":"no licence","next":"buy one"}`, `{"id":2,"ok":{}}`), "", "program",
			[]string{"no licence", "buy one"},
			"",
		},
	} {
		if c.spec.Dir == "" {
			c.spec.Dir = dir
		}
		if c.path != "" {
			c.path = "target." + c.path
		}
		var treatments []design.Treatment
		if factor, level, ok := strings.Cut(c.vary, "="); ok {
			treatments = []design.Treatment{treatment(factor, level)}
		}
		env := testEnv(t, treatments...)
		if c.spec.Dir == "nowhere" {
			t.Chdir(dir)
		}
		title := fmt.Sprint(c.spec, c.vary)
		var bad []area.Finding
		for _, f := range (Area{}).Preflight(t.Context(), &c.spec, env) {
			if f.Severity == area.Error {
				bad = append(bad, f)
			} else if f.Severity == area.Info && !strings.Contains(f.Message, "shelly 2 (") {
				t.Errorf("%s: got note %s, want the program and its version", title, f.Message)
			}
		}
		if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
			t.Errorf("%s: left behind: %v", title, left)
		}
		if len(c.says) == 0 {
			areatest.WantFinding(t, title, bad, area.Finding{})
		}
		for _, says := range c.says {
			areatest.WantFinding(t, title, bad, area.Finding{Path: c.path, Severity: area.Error, Message: says})
		}
		if len(bad) == 1 && (!strings.Contains(bad[0].Hint, c.next) || strings.Contains(bad[0].Message, "program.log")) {
			t.Errorf("%s: %+v, next %q", title, bad, c.next)
		}
	}
}

// TestPreflightQuotesPython: the error of a script quotes Python's message.
func TestPreflightQuotesPython(t *testing.T) {
	interpreter := python(t)
	dir := t.TempDir()
	writeFile(t, dir, "syntax.py", "def f(:\n", 0o644)
	for _, c := range []struct{ file, says string }{{"syntax.py", "SyntaxError"}, {"missing.py", "No such file"}} {
		found := Area{}.Preflight(t.Context(), &Spec{Program: []string{interpreter, c.file}, Dir: dir}, testEnv(t))
		if len(found) != 1 || !strings.HasPrefix(found[0].Message, c.file+": ") ||
			!strings.Contains(found[0].Message, c.says) {
			t.Errorf("%s: got %+v, want one finding with %q", c.file, found, c.says)
		}
	}
}

// TestPreflightCanBeInterrupted: an interrupt ends a program that hangs.
func TestPreflightCanBeInterrupted(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	began := time.Now()
	pidFile := filepath.Join(t.TempDir(), "pid")
	found := Area{}.Preflight(ctx, &Spec{Program: []string{"sh", "-c", "echo $$ > " + pidFile + "; exec sleep 1000"}},
		testEnv(t))
	if len(found) != 1 || found[0].Severity != area.Error || time.Since(began) > 30*time.Second {
		t.Errorf("%+v after %v", found, time.Since(began))
	}
	if text, err := os.ReadFile(pidFile); err == nil {
		if _, err := os.Stat(filepath.Join("/proc", strings.TrimSpace(string(text)))); err == nil {
			t.Errorf("process %s lives", text)
		}
	}
}

func TestShellCommandOfRequests(t *testing.T) {
	s := Spec{Program: []string{"sh", "-c", "read -r a; echo \"it's $a\""}}
	if got, want := s.manualCommand("/a b"),
		`cd '/a b' && printf '{"id":1,"do":"describe","protocol":1}\n{"id":2,"do":"stop"}\n' | sh -c 'read -r a; echo "it'\''s $a"'`; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

func TestPlanListsChanges(t *testing.T) {
	two := []design.Treatment{treatment("a", "1"), treatment("a", "2")}
	for fresh, says := range map[string]string{
		"": "2 processes of x.py at a time, one for each treatment, anew in every block", freshRun: "for the whole run",
	} {
		s := &Spec{Program: []string{"python3", "-u", "lib/x.py"}, Fresh: fresh}
		if got := strings.Join(s.Creates(two), "\n"); !strings.Contains(got, says) {
			t.Errorf("the plan is %q, want %q", got, says)
		}
	}
}

// writeFile writes a file below dir.
func writeFile(t *testing.T, dir, name, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), mode)); err != nil {
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
	if err := errors.Join(
		os.Mkdir(filepath.Join(first, "folder"), 0o755), os.Symlink(own, filepath.Join(dir, "link")),
		os.Symlink("nothing", filepath.Join(dir, "dangling")),
	); err != nil {
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
