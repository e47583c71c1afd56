package exec

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/internal/design"
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
	dir := t.TempDir()
	writeFile(t, dir, "syntax.py", "def f(:\n", 0o644)
	writeFile(t, dir, "plain.txt", "hello\n", 0o644)
	writeFile(t, dir, "no-format", "hello\n", 0o755)
	for _, c := range []struct {
		title  string
		spec   Spec
		levels []string
		path   string
		says   []string // empty: nothing is wrong
		next   string
	}{
		{
			title: "good", spec: Spec{Program: good, Settings: settings("size", "1"), Operations: []string{"load"}},
			levels: []string{"check", "hmac"},
		},
		{
			title: "an unknown operation", spec: Spec{Program: good, Operations: []string{"laod"}}, path: "target.operations",
			says: []string{`shelly has no operation "laod"`, `did you mean "load"?`}, next: "load, empty",
		},
		{
			title: "the harness alone", spec: Spec{Program: good, Operations: []string{"empty"}}, path: "target.operations",
			says: []string{"it is of the harness"},
		},
		{
			title: "an unknown factor", spec: Spec{Program: good}, levels: []string{"chek", "hmac"},
			says: []string{`no factor "chek"`, `did you mean "check"?`}, next: "check, size",
		},
		{
			title: "an unknown level", spec: Spec{Program: good}, levels: []string{"check", "hmca"},
			says: []string{`no level "hmca"`, `did you mean "hmac"?`}, next: "none, hmac",
		},
		{
			title: "an unknown setting", spec: Spec{Program: good, Settings: settings("sise", "1")},
			path: "target.settings.sise",
			says: []string{`no factor "sise"`, `did you mean "size"?`},
		},
		{
			title: "no program", spec: Spec{Program: []string{"no-such-program"}}, path: "target.program[0]",
			says: []string{"in any folder of PATH"}, next: "install it",
		},
		{
			title: "no folder", spec: Spec{Program: good, Dir: "nowhere"}, path: "target.dir",
			says: []string{"there is no folder"},
		},
		{
			title: "no variable", spec: Spec{Program: good, Env: []Variable{"NO_SUCH_VARIABLE"}}, path: "target.env[0]",
			says: []string{"NO_SUCH_VARIABLE", "is not set"}, next: "set it",
		},
		{
			title: "not executable", spec: Spec{Program: []string{"./plain.txt"}}, path: "target.program[0]",
			says: []string{"is not executable"}, next: "chmod +x",
		},
		{
			title: "of no format", spec: Spec{Program: []string{"./no-format"}}, path: "target.program",
			says: []string{"exec format error"}, next: "a script needs a first line",
		},
		{
			title: "it dies", spec: Spec{Program: []string{"sh", "-c", "echo the table is gone >&2; exit 3"}},
			path: "target.program", says: []string{"exit status 3", "it wrote to stderr", "the table is gone"},
			next: "run it manually",
		},
		{
			title: "it dies in silence", spec: Spec{Program: []string{"false"}}, path: "target.program",
			says: []string{"exit status 1", "it wrote nothing to stderr"},
		},
		{
			title: "it prints", spec: Spec{Program: replying("debug: hello", described)}, path: "target.program",
			says: []string{`it said "debug: hello"`, "print to stderr, stdout is for answers"}, next: "printf",
		},
		{title: "another protocol", spec: Spec{Program: replying(strings.Replace(described, `"protocol":1`, `"protocol":2`,
			1))}, path: "target.program", says: []string{"speaks protocol 2"}},
		{
			title: "another id", spec: Spec{Program: replying(strings.Replace(described, `"id":1`, `"id":9`, 1))},
			path: "target.program", says: []string{"answered request 9"},
		},
		{title: "its own words", spec: Spec{Program: replying(`{"id":1,"error":"no licence","next":"buy one"}`,
			`{"id":2,"ok":{}}`)}, path: "target.program", says: []string{"no licence", "buy one"}},
	} {
		if c.spec.Dir == "" {
			c.spec.Dir = dir
		}
		var treatments []design.Treatment
		if c.levels != nil {
			treatments = []design.Treatment{treatment(c.levels...)}
		}
		env := testEnv(t, treatments...)
		if c.spec.Dir == "nowhere" {
			t.Chdir(dir)
		}
		var bad []area.Finding
		for _, f := range (Area{}).Preflight(t.Context(), &c.spec, env) {
			if f.Severity == area.Error {
				bad = append(bad, f)
			} else if f.Severity == area.Info && !strings.Contains(f.Message, "shelly 2 (") {
				t.Errorf("%s: got note %s, want the program and its version", c.title, f.Message)
			}
		}
		if left, _ := os.ReadDir(os.TempDir()); len(left) > 0 {
			t.Errorf("%s: left behind: %v", c.title, left)
		}
		if len(c.says) == 0 {
			if len(bad) > 0 {
				t.Errorf("%s: got errors %+v, want none", c.title, bad)
			}
			continue
		}
		if len(bad) != 1 || bad[0].Path != c.path || !strings.Contains(bad[0].Hint, c.next) ||
			strings.Contains(bad[0].Message, "program.log") {
			t.Errorf("%s: %+v, want one at %q, next %q", c.title, bad, c.path, c.next)
			continue
		}
		for _, says := range c.says {
			if !strings.Contains(bad[0].Message, says) {
				t.Errorf("%s: %s\nwant %q", c.title, bad[0].Message, says)
			}
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
	for _, c := range []struct {
		fresh,
		says string
	}{
		{"", "2 processes of x.py at a time, one for each treatment, anew in every block"},
		{freshRun, "for the whole run"},
	} {
		if got := strings.Join((&Spec{Program: []string{"python3", "-u", "lib/x.py"}, Fresh: c.fresh}).Creates(two),
			"\n"); !strings.Contains(got, c.says) {
			t.Errorf("the plan is %q, want %q", got, c.says)
		}
	}
}
