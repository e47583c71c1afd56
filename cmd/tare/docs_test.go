package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"tare/internal/cli"
	"tare/rigs/hosttest"
)

// A session is one console block of a Markdown page: commands with the output that the page shows.
type session struct {
	page  string
	line  int
	steps []step
}

type step struct {
	command string
	want    []string // lines; "…" matches any text, a line that is only "…" any lines
	exit    int      // from "# exit N" after the command
}

// TestDocsShowRealOutput runs every console block in the project's Markdown and compares its output. Blocks of one page
// share a folder.
func TestDocsShowRealOutput(t *testing.T) {
	needsAreas(t, allAreas...)
	hosttest.SkipIfShort(t)
	t.Parallel() // most of it waits
	root := filepath.Join("..", "..")
	pages := below(t, root, "README.md", "docs/*/*.md", "areas/*/README.md", "areas/*/docs/*.md")
	given := below(t, root, "areas/*/examples", "docs/demo")
	bin := tareBinary(t)
	ran := 0
	for _, page := range pages {
		src, err := os.ReadFile(filepath.Join(root, page))
		if err != nil {
			t.Fatal(err)
		}
		sessions := parseSessions(page, string(src))
		if len(sessions) == 0 {
			continue
		}
		ran += len(sessions)
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			for _, folder := range given {
				if !strings.Contains(string(src), folder) {
					continue
				}
				if err := os.CopyFS(filepath.Join(dir, folder), os.DirFS(filepath.Join(root, folder))); err != nil {
					t.Fatal(err)
				}
			}
			for _, s := range sessions {
				for _, st := range s.steps {
					st.check(t, s, dir, filepath.Dir(bin))
				}
			}
		})
	}
	if ran == 0 {
		t.Error("no console block was found in any page")
	}
}

// below returns what the patterns match below root, each at least once, relative to it.
func below(t *testing.T, root string, patterns ...string) (out []string) {
	t.Helper()
	for _, pattern := range patterns {
		found, err := fs.Glob(os.DirFS(root), pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(found), err)
		}
		out = append(out, found...)
	}
	return out
}

func parseSessions(page, src string) []session {
	var out []session
	var s *session
	exitNote := regexp.MustCompile(`\s+# exit (\d+)$`)
	for i, line := range strings.Split(src, "\n") {
		switch {
		case s == nil && strings.TrimSpace(line) == "```console":
			s = &session{page: page, line: i + 1}
		case s != nil && strings.TrimSpace(line) == "```":
			out, s = append(out, *s), nil
		case s != nil && strings.HasPrefix(line, "$ "):
			st := step{command: line[2:]}
			if m := exitNote.FindStringSubmatch(st.command); m != nil {
				st.exit, _ = strconv.Atoi(m[1]) // the pattern holds digits only
				st.command = strings.TrimSuffix(st.command, m[0])
			}
			s.steps = append(s.steps, st)
		case s != nil && len(s.steps) > 0 && strings.HasPrefix(line, "> ") && len(s.steps[len(s.steps)-1].want) == 0:
			s.steps[len(s.steps)-1].command += "\n" + line[2:]
		case s != nil && len(s.steps) > 0:
			last := &s.steps[len(s.steps)-1]
			last.want = append(last.want, line)
		}
	}
	return out
}

func (st step) check(t *testing.T, s session, dir, path string) {
	t.Helper()
	before, _ := filepath.Glob(filepath.Join(dir, "results", "*"))
	for try := 1; ; try++ {
		wrong, late := st.run(t, dir, path)
		switch {
		case wrong == "":
			return
		case late && try < mostTries:
			t.Logf("%s:%d: $ %s: once more, since the host was busy:\n%s", s.page, s.line, st.command, wrong)
			removeNewRuns(t, dir, before) // the pages list the runs that they show
		case late:
			why := fmt.Sprintf("%s:%d: the host was busy in each of %d attempts: $ %s", s.page, s.line, mostTries,
				st.command)
			hosttest.Missing(t, why, hosttest.Quiet)
		default:
			t.Fatalf("%s:%d: $ %s\n%s", s.page, s.line, st.command, wrong)
		}
	}
}

// removeNewRuns removes the runs in dir that are not listed in before.
func removeNewRuns(t *testing.T, dir string, before []string) {
	t.Helper()
	now, _ := filepath.Glob(filepath.Join(dir, "results", "*"))
	for _, run := range now {
		if slices.Contains(before, run) {
			continue
		}
		if err := os.RemoveAll(run); err != nil {
			t.Fatal(err)
		}
	}
}

// mostTries is how often a command is tried on a host that takes its time away from the generator: the pages show runs
// on a quiet one, and tare rightly says of others that it was late.
const mostTries = 5

// run runs the command once. wrong is the difference from the page; late reports whether the load generator was late,
// or tare says that the host was too busy for an answer.
func (st step) run(t *testing.T, dir, path string) (wrong string, late bool) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-c", st.command)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "PATH="+path+":"+os.Getenv("PATH"), "NO_COLOR=1")
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	for _, says := range []string{"sent late", "late in ", "while less else runs"} {
		late = late || strings.Contains(stdout.String(), says)
	}
	if code := cmd.ProcessState.ExitCode(); code != st.exit {
		return fmt.Sprintf("exit %d (%v), the page says %d\n%s%s", code, err, st.exit, &stdout, &stderr), late
	}
	got := stdout.String()
	if st.exit == cli.ExitUsage || st.exit == cli.ExitError {
		got += stderr.String()
	}
	want := strings.Join(st.want, "\n")
	busy := func(words string) bool { return strings.Contains(got, words) }
	if !pagePattern(want, slices.ContainsFunc(busyWords, busy)).MatchString(strings.TrimRight(got, "\n")) {
		return fmt.Sprintf("printed\n%s\nthe page shows\n%s", got, want), late
	}
	return "", false
}

// pagePattern turns a page's output into a regular expression: numbers may have other values, "…" matches any text. On
// a host that does other work a limit or a failure may go unnamed, and the generator may be the limit; another name is
// wrong there, too.
func pagePattern(want string, busy bool) *regexp.Regexp {
	var b strings.Builder
	b.WriteString(`\A`)
	for i, line := range strings.Split(strings.TrimRight(want, "\n"), "\n") {
		if strings.TrimSpace(line) == "…" {
			b.WriteString(`(?:\n?[^\n]*)*?`)
			continue
		}
		if i > 0 {
			b.WriteString(`\n`)
		}
		q := regexp.QuoteMeta(strings.TrimRight(line, " "))
		q = strings.ReplaceAll(q, "…", `[^\n]*`)
		q = regexp.MustCompile(` +`).ReplaceAllString(q, ` +`)
		if label := named.FindString(line); busy && label != "" {
			q = "(?:" + q + "|" + label + ` +not known from outside\b[^\n]*)`
		}
		if busy && cleared.MatchString(line) {
			q = "(?:" + q + "|generator +" + mayBeTheLimit + `[^\n]*)`
		}
		b.WriteString(q + ` *`)
	}
	b.WriteString(`\z`)
	return regexp.MustCompile(b.String())
}

// named matches the label of a line that names a limit or a failure.
var named = regexp.MustCompile(`^(limit|fails as)\b`)

// busyWords are what tare says of a host that does other work, in a warning or where it leaves a limit or a failure
// unnamed.
var busyWords = []string{"other work used", "other work took", "the host was busy for", mayBeTheLimit}

// mayBeTheLimit is what tare says of a generator that had no processor, and cleared matches what it says of one that
// had.
const mayBeTheLimit = "the generator may be the limit"

var cleared = regexp.MustCompile(`^checked +the generator was not the limit$`)

// TestPagePatternRejectsOtherOutput checks that a changed word fails, and that another number does not.
func TestPagePatternRejectsOtherOutput(t *testing.T) {
	const notTheLimit = "checked    the generator was not the limit"
	for _, c := range []struct {
		want, got   string
		busy, match bool
	}{
		{"capacity … /s", "capacity 150 /s", false, true},
		{"capacity … /s", "capacity 150 1/h", false, false},
		{"a\n…\nd", "a\nb\nc\nd", false, true},
		{"a\n…\nd", "a\nb\nc", false, false},
		{"a\nb", "a\nb\nc", false, false},
		{"", "", false, true},
		{"", "x", false, false},
		// On a busy host, less may be said, and nothing else.
		{"fails as   token bucket …", "fails as   token bucket (shown): at 250/s", true, true},
		{"fails as   token bucket …", "fails as   not known from outside: at 250/s", true, true},
		{"fails as   token bucket …", "fails as   not known from outside: at 250/s", false, false},
		{"fails as   token bucket …", "fails as   accept queue (likely): at 250/s", true, false},
		{"fails as   token bucket …", "fails as   not known", true, false},
		{notTheLimit, notTheLimit, true, true},
		{notTheLimit, "generator  the generator may be the limit: it had no processor", true, true},
		{notTheLimit, "generator  the target may be the limit", true, false},
	} {
		if pagePattern(c.want, c.busy).MatchString(c.got) != c.match {
			t.Errorf("pattern(%q) on %q, on a busy host %t: want match %t", c.want, c.got, c.busy, c.match)
		}
	}
}
