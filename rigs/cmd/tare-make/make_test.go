package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/rigs/hosttest"
)

func TestMain(m *testing.M) { hosttest.Main(m) }

// threeTests is of a package with a test of each result, and of one that did not compile.
const threeTests = `{"Time":"2026-11-26T08:00:00Z","Action":"start","Package":"a"}
{"Action":"output","Package":"a","Test":"T","Output":"    x_test.go:1: not tried: w | to have it tried: r\n"}
{"Time":"2026-11-26T08:00:01Z","Action":"skip","Package":"a","Test":"T"}
{"Action":"output","Package":"a","Test":"U","Output":"    x_test.go:1: not tried: w | to have it tried: r\n"}
{"Time":"2026-11-26T08:00:01Z","Action":"pass","Package":"a","Test":"U"}
{"Time":"2026-11-26T08:00:01Z","Action":"fail","Package":"a","Test":"V"}
{"Time":"2026-11-26T08:00:01Z","Action":"fail","Package":"a"}
{"ImportPath":"b","Action":"build-fail"}
{"Time":"2026-11-26T08:00:02Z","Action":"fail","Package":"b"}
`

func TestWhatWasNotTriedIsOneTable(t *testing.T) {
	file := filepath.Join(t.TempDir(), "test.json")
	if err := os.WriteFile(file, []byte(threeTests), 0o600); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"untried", file}, &out); err != nil {
		t.Fatal(err)
	}
	want := "\nNot tried on this host, why, and how to have it tried:\n  w: r\n    a.T, a.U\n\n" +
		"1 tests passed, 2 failed, 1 skipped, in 2s\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

func TestWrap(t *testing.T) {
	long := strings.Repeat("x", 9)
	if got := wrap([]string{"a", "b", long, long}, 10); got != "a, b,\n"+long+",\n"+long+"\n" {
		t.Errorf("got %q", got)
	}
}

func TestErrors(t *testing.T) {
	bad := filepath.Join(t.TempDir(), "bad.json")
	if err := os.WriteFile(bad, []byte("{}\nno\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "name a command: build, concurrent"},
		{[]string{"bild"}, `unknown command "bild"; the commands are: build`},
		{[]string{"untried"}, "name the file"},
		{[]string{"untried", bad}, "line 2: "},
	} {
		err := run(t.Context(), c.args, io.Discard)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %q", c.args, err, c.want)
		}
	}
}

// TestAreasAreLeftOut: what the compiler reads instead of main.go has the areas that were asked for, and no others.
func TestAreasAreLeftOut(t *testing.T) {
	source := []byte(`import (
	"tare/areas/tool"
	"tare/areas/turnpike"
)
		tool.Area{},
		turnpike.Area{},
`)
	got, err := only(source, []string{"turnpike"})
	if err != nil {
		t.Fatal(err)
	}
	if want := "import (\n\t\"tare/areas/turnpike\"\n)\n\t\tturnpike.Area{},\n"; string(got) != want {
		t.Errorf("got\n%s", got)
	}
	for _, c := range []struct {
		keep []string
		want string
	}{
		{[]string{"turnpick"}, `there is no area "turnpick"; the areas are: tool, turnpike`},
		{[]string{"tool", "tool"}, "area tool is named twice"},
	} {
		if _, err := only(source, c.keep); err == nil || err.Error() != c.want {
			t.Errorf("%v: got %v, want %q", c.keep, err, c.want)
		}
	}
}

// TestConcurrentPackages: what starts goroutines, or shares something between them, is tested under the race detector.
func TestConcurrentPackages(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"a/a.go": "func f() { go f() }", "b/b.go": "func f(g G) { g.Go(f) }", "c/c.go": "func f() { f() }",
		"d/d.go": "var n atomic.Int64", "e/e.go": "var x = sync.OnceValue(f)", "g/g_test.go": "func f() { go f() }",
		"_d/d.go": "func f() { go f() }", "e/testdata/e.go": "func f() { go f() }",
		"f/go.mod": "", "f/f.go": "func f() { go f() }",
	} {
		writeFile(t, name, "package p\n"+text)
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"concurrent"}, &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != "./a ./b ./d\n" {
		t.Errorf("got %s", &out)
	}
}

func writeFile(t *testing.T, name, text string) {
	t.Helper()
	err := os.MkdirAll(filepath.Dir(name), 0o700)
	if err := errors.Join(err, os.WriteFile(name, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

// TestModulesAreLinks: what is edited in bin/modules is edited in the sources.
func TestModulesAreLinks(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"x/_k/1.2/go.mod.txt": "module m", "x/_k/1.2/p/a.go": "package p", "x/_k/shared/b.go": "package s",
	} {
		writeFile(t, filepath.Join("areas", name), text)
	}
	var out bytes.Buffer
	if err := run(t.Context(), []string{"modules"}, &out); err != nil {
		t.Fatal(err)
	}
	if out.String() != "bin/modules/k/1.2\n" {
		t.Errorf("made %s", &out)
	}
	for link, want := range map[string]string{"go.mod": "module m", "p/a.go": "package p", "b.go": "package s"} {
		if text, err := os.ReadFile(filepath.Join("bin/modules/k/1.2", link)); err != nil || string(text) != want {
			t.Errorf("%s: %q, %v", link, text, err)
		}
	}
}
