package areatest

import (
	"bufio"
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"tare/area"
)

// parentVariable is the environment variable that StartParent sets: the path of the journal.
const parentVariable = "TARE_TEST_PARENT_JOURNAL"

const entered = "ENTERED"

// UndoTwice undoes changes twice, as a new process does that has only read the journal. They come with the latest
// first.
func UndoTwice(t testing.TB, a area.Area, changes []area.Change, env area.Env) {
	t.Helper()
	data, err := json.Marshal(changes)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		var read []area.Change
		if err := json.Unmarshal(data, &read); err != nil {
			t.Fatal(err)
		}
		if err := a.Undo(context.WithoutCancel(t.Context()), read, env); err != nil {
			t.Fatal(err)
		}
	}
}

// A FileJournal appends changes to a file, which a killed process leaves behind.
type FileJournal struct{ path string }

type journalLine struct {
	Undone bool
	Change area.Change
}

// Intend appends that c is about to be made.
func (j FileJournal) Intend(c area.Change) error { return j.append(journalLine{Change: c}) }

// Undone appends that c is undone.
func (j FileJournal) Undone(c area.Change) error {
	return j.append(journalLine{Undone: true, Change: c})
}

func (j FileJournal) append(l journalLine) error {
	line, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(j.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.Write(append(line, '\n')); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}

// ReadJournal returns the changes in the file of a FileJournal that are not undone, the latest first.
func ReadJournal(t testing.TB, path string) []area.Change {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	j := &Journal{}
	for line := range strings.Lines(string(b)) {
		var l journalLine
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		apply := j.Intend
		if l.Undone {
			apply = j.Undone
		}
		if err := apply(l.Change); err != nil {
			t.Fatal(err)
		}
	}
	return j.Pending()
}

// StartParent runs the TestParent of this test binary in a process of its own until that calls AwaitKill, and returns
// what the process printed and a function that kills it with SIGKILL.
func StartParent(t testing.TB, journal string) (output string, kill func()) {
	t.Helper()
	parent := exec.Command(os.Args[0], "-test.run", "^TestParent$", "-test.v")
	parent.Env = append(os.Environ(), parentVariable+"="+journal, "TMPDIR="+t.TempDir()) // it cannot clean up
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != entered {
		output += lines.Text() + "\n"
	}
	return output, func() {
		t.Helper()
		if err := parent.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = parent.Wait() // it was killed
	}
}

// ParentJournal returns the journal of a process that StartParent started, and its path. It skips the test in any other
// process.
func ParentJournal(t testing.TB) (FileJournal, string) {
	t.Helper()
	path := os.Getenv(parentVariable)
	if path == "" {
		t.Skip("only for TestUndoAfterKill, which runs it in a process of its own")
	}
	return FileJournal{path}, path
}

// AwaitKill tells StartParent that all treatments are entered, and waits to be killed.
func AwaitKill(t testing.TB) {
	t.Helper()
	if _, err := os.Stdout.WriteString("\n" + entered + "\n"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
}
