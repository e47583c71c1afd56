package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/internal/area"
	"tare/internal/design"
)

// parentVariable makes this test binary a run that enters arms, says so, and waits to be killed. Its value is the
// journal's file.
const parentVariable = "TARE_TEST_PARENT_JOURNAL"

// onDisk is a journal that a killed process leaves.
type onDisk struct {
	t    *testing.T
	file *os.File
}

func (d onDisk) Intend(c area.Change) error {
	line, err := json.Marshal(c)
	if err != nil {
		return err
	}
	_, err = d.file.Write(append(line, '\n'))
	return err
}

func (d onDisk) Undone(c area.Change) error {
	d.t.Errorf("%s is undone before the kill", c.ID)
	return nil
}

// TestParent is no test: TestUndoAfterKill runs it in a process of its own.
func TestParent(t *testing.T) {
	file := os.Getenv(parentVariable)
	if file == "" {
		t.Skip("only for TestUndoAfterKill")
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	opened, err := Area{}.Open(t.Context(), &Spec{Workloads: []string{"open"}, Real: installedDaemons()}, testEnv(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []design.Treatment{
		bare(), treatment("enforcer", "seccomp"),
		treatment("enforcer", "landlock", "rules", "2"),
	} {
		if err := opened.Prepare(t.Context(), a, onDisk{t, f}); err != nil {
			t.Fatal(err)
		}
		if err := opened.Enter(t.Context(), a); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := os.Stdout.WriteString("\nENTERED\n"); err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
}

func installedDaemons() []string {
	var out []string
	for _, name := range []string{"nginx", "redis"} {
		if len((&Spec{Real: []string{name}}).missing()) == 0 {
			out = append(out, name)
		}
	}
	return out
}

// TestUndoAfterKill kills a run that has its workers and daemons up, by a signal that lets it do nothing, and undoes it
// from the journal alone.
func TestUndoAfterKill(t *testing.T) {
	needs(t, enforcerLandlock)
	journal := filepath.Join(t.TempDir(), "journal")
	parent := exec.Command(os.Args[0], "-test.run", "^TestParent$", "-test.v")
	parent.Env = append(os.Environ(), parentVariable+"="+journal)
	out, err := parent.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	said, lines := "", bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "ENTERED" {
		said += lines.Text() + "\n"
	}
	changes := readJournal(t, journal)
	if err := parent.Process.Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = parent.Wait() // it was killed
	if want := 1 + 3*(1+len(installedDaemons())); len(changes) != want {
		t.Fatalf("%d changes in the journal, want %d; the run said\n%s", len(changes), want, said)
	}
	slices.Reverse(changes) // the latest first
	for range 2 {
		if err := (Area{}).Undo(t.Context(), changes, area.Env{}); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range changes {
		if path := c.Data["path"]; c.Kind == changeFolder {
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left: %v", path, err)
			}
			if left := inside(t, path); len(left) > 0 {
				t.Errorf("processes %v still work in %s", left, path)
			}
			continue
		}
		if state := stateOf(c.Data["pid"]); state != "" && state != "Z" {
			t.Errorf("%s, process %s, is in state %s", c.ID, c.Data["pid"], state)
		}
	}
}

func readJournal(t *testing.T, file string) []area.Change {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var out []area.Change
	for line := range strings.Lines(string(b)) {
		var c area.Change
		if err := json.Unmarshal([]byte(line), &c); err != nil {
			t.Fatal(err)
		}
		out = append(out, c)
	}
	return out
}

// inside lists living processes that work below path.
func inside(t *testing.T, path string) (out []int) {
	t.Helper()
	all, err := filepath.Glob("/proc/[0-9]*/cwd")
	if err != nil {
		t.Fatal(err)
	}
	for _, link := range all {
		if at, err := os.Readlink(link); err == nil && strings.HasPrefix(at, path) {
			pid, _ := strconv.Atoi(filepath.Base(filepath.Dir(link)))
			out = append(out, pid)
		}
	}
	return out
}

// stateOf is a process's state; empty when there is none.
func stateOf(pid string) string {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return rest[:1]
}

// TestUndoWhileRunning undoes workers that still run: another process may do so.
func TestUndoWhileRunning(t *testing.T) {
	tg, j := prepared(t, &Spec{Workloads: []string{"open"}, Real: installedDaemons()}, bare())
	entered(t, tg, bare())
	child := tg.arms[bare().ID].sample.worker.child
	changes := slices.Clone(j.changes)
	slices.Reverse(changes)
	for range 2 {
		if err := (Area{}).Undo(t.Context(), changes, area.Env{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := child.Wait(t.Context()); err == nil {
		t.Error("the worker was not killed")
	}
	if _, err := operationOf(t, tg, bare(), "open").Batch(t.Context(), 1); err == nil {
		t.Error("a batch after undo")
	}
}

func TestUndoRefusesNonsense(t *testing.T) {
	keep := t.TempDir()
	for _, c := range []area.Change{
		{Kind: "namespace"},
		{Kind: area.ProcessKind, Data: map[string]string{"pid": "x", "start_ticks": "1"}},
		{Kind: area.ProcessKind, Data: map[string]string{"pid": "1", "start_ticks": "1"}},
		{Kind: area.ProcessKind, Data: map[string]string{"pid": "99999999"}},
		{Kind: changeFolder},
		{Kind: changeFolder, Data: map[string]string{"path": "/"}},
		{Kind: changeFolder, Data: map[string]string{"path": "tare-sandbox-1"}},
		{Kind: changeFolder, Data: map[string]string{"path": keep}},
		{Kind: changeFolder, Data: map[string]string{"path": keep + "/tare-sandbox-1/.."}},
	} {
		if err := (Area{}).Undo(t.Context(), []area.Change{c}, area.Env{}); err == nil {
			t.Errorf("%v was undone", c)
		}
	}
	if _, err := os.Stat(keep); err != nil {
		t.Error(err)
	}
}

// TestNothingWithoutAJournal: what cannot be journaled is not made.
func TestNothingWithoutAJournal(t *testing.T) {
	full := errors.New("disk full")
	for _, kind := range []string{changeFolder, area.ProcessKind} {
		tg, j := prepared(t, &Spec{Workloads: []string{"open"}})
		j.deny = func(c area.Change) error {
			if c.Kind == kind {
				return full
			}
			return nil
		}
		err := tg.Prepare(t.Context(), bare(), j)
		if err == nil {
			err = tg.Enter(t.Context(), bare())
		}
		if !errors.Is(err, full) {
			t.Errorf("without a journal for a %s: %v", kind, err)
		}
		if kind == changeFolder {
			if _, err := os.Lstat(tg.folder); tg.folder != "" && err == nil {
				t.Errorf("%s was made", tg.folder)
			}
		}
	}
}
