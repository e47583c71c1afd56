package arch

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"tare/rigs/hosttest"
)

// outside is the module of examples/outside, and outsidePage the page that builds it from nothing.
const (
	outside     = "../../examples/outside"
	outsidePage = "../../docs/howto/area-outside.md"
)

var (
	fileBlock   = regexp.MustCompile("(?ms)^\\*\\*`([^`\n]+)`\\*\\*\n```[a-z]*\n(.*?)^```$")
	shellBlock  = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")
	outputBlock = regexp.MustCompile("(?ms)^```text\n(.*?)^```$")
)

// TestAreaOutsidePageShowsTheExample: the files on the page are those of the example, which is complete: all its files
// are on the page.
func TestAreaOutsidePageShowsTheExample(t *testing.T) {
	shown := outsideFiles(t)
	for name, text := range shown {
		want := read(t, filepath.Join(outside, name))
		if name == "go.mod" { // the page has what a person writes of it: go mod tidy adds the rest
			text, want = strings.Replace(text, "=> ../tare", "=> ../..", 1), indirect.ReplaceAllString(want, "")
		}
		if text != want {
			t.Errorf("%s on the page is not that of examples/outside:\n%s", name, text)
		}
	}
	err := filepath.WalkDir(outside, func(path string, d os.DirEntry, err error) error {
		name, _ := filepath.Rel(outside, path)
		if err == nil && !d.IsDir() && name != "go.sum" && shown[filepath.ToSlash(name)] == "" {
			t.Errorf("the page does not show %s of examples/outside", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// indirect matches the block of go.mod that go mod tidy adds.
var indirect = regexp.MustCompile(`(?m)^require \(\n(\t\S+ \S+ // indirect\n)+\)\n\n`)

// TestAreaOutsideIsBuiltFromItsPage follows the page in an empty folder: its files, its commands, its output.
func TestAreaOutsideIsBuiltFromItsPage(t *testing.T) {
	hosttest.SkipIfShort(t)
	if _, err := exec.LookPath("go"); err != nil {
		hosttest.Missing(t, err.Error(), "have it on PATH")
	}
	t.Parallel()
	eachFile(t, "../..", func(string, []string) {}) // what is compiled is opened here, so that the test cache knows it
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := os.Symlink(root, filepath.Join(dir, "tare")); err != nil {
		t.Fatal(err)
	}
	for name, text := range outsideFiles(t) {
		write(t, filepath.Join(dir, "tare-hash", name), text)
	}
	// What go mod tidy would download is in the example: the network is not needed.
	tidied := filepath.Join(dir, "tidied")
	write(t, filepath.Join(tidied, "go.mod"), strings.Replace(read(t, filepath.Join(outside, "go.mod")), "=> ../..",
		"=> ../tare", 1))
	write(t, filepath.Join(tidied, "go.sum"), read(t, filepath.Join(outside, "go.sum")))
	var script strings.Builder
	for _, m := range shellBlock.FindAllStringSubmatch(read(t, outsidePage), -1) {
		script.WriteString(m[1])
	}
	offline := strings.Replace(script.String(), "\ngo mod tidy\n", "\ncp ../tidied/* .\n", 1)
	if offline == script.String() {
		t.Fatal("the page does not call go mod tidy")
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", offline)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOFLAGS=-trimpath", "GOPROXY=off", "GOWORK=off", "NO_COLOR=1")
	out, err := cmd.CombinedOutput()
	code := 0
	if x, isExit := errors.AsType[*exec.ExitError](err); isExit {
		code = x.ExitCode()
	} else if err != nil {
		t.Fatal(err)
	}
	// 11 and 12 are the verdicts of a host that is too busy to measure on.
	if !slices.Contains([]int{0, 11, 12}, code) {
		t.Fatalf("the commands of the page: exit %d\n%s", code, out)
	}
	wantLines(t, outputBlock.FindStringSubmatch(read(t, outsidePage))[1], out)
}

// wantLines checks that the lines of a page's output are in out, in this order. Of a line with a digit only the first
// word must be the same, since it is a measurement.
func wantLines(t *testing.T, want string, out []byte) {
	t.Helper()
	lines := strings.Split(string(out), "\n")
	for line := range strings.Lines(want) {
		line = strings.TrimSpace(line)
		if line == "…" {
			continue
		}
		at := slices.IndexFunc(lines, func(got string) bool { return alike(line, got) })
		if at < 0 {
			t.Fatalf("the page shows the line %q, which is not printed, or not there:\n%s", line, out)
		}
		lines = lines[at+1:]
	}
}

// alike reports whether a line of output is the one that a page shows.
func alike(shown, got string) bool {
	a, b := strings.Fields(shown), strings.Fields(got)
	if strings.ContainsAny(strings.Join(a[1:], ""), "0123456789") && len(b) > 1 {
		return a[0] == b[0]
	}
	return slices.Equal(a, b)
}

// outsideFiles returns the files on the page, by path.
func outsideFiles(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, m := range fileBlock.FindAllStringSubmatch(read(t, outsidePage), -1) {
		out[m[1]] = m[2]
	}
	if len(out) == 0 {
		t.Fatal("no file was found on the page")
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
