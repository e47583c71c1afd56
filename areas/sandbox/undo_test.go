package sandbox

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"tare/area"
	"tare/areas/sandbox/workload"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/rigs/areatest"
)

// TestParent is no test: TestUndoAfterKill runs it in a process of its own.
func TestParent(t *testing.T) {
	journal, _ := areatest.ParentJournal(t)
	opened, err := Area{}.Open(t.Context(), &Spec{
		Workloads: []string{"open"}, SetUp: []string{"confine"}, Real: installedDaemons(),
	}, areatest.Env(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []design.Treatment{
		baseline(), treatment("enforcer", "seccomp"), treatment("enforcer", "landlock", "rules", "2", "others", "20"),
	} {
		if err := opened.Prepare(t.Context(), a, journal); err != nil {
			t.Fatal(err)
		}
		if err := opened.Can().Enter(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		if err := opened.Verify(t.Context(), a); err != nil {
			t.Fatal(err)
		}
		ops, err := opened.Operations(a)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := ops[0].Batch(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	areatest.AwaitKill(t)
}

func installedDaemons() []string {
	var out []string
	for _, name := range workload.Daemons() {
		if len((&Spec{Real: []string{name}}).missing()) == 0 {
			out = append(out, name)
		}
	}
	return out
}

// TestUndoAfterKill kills a run whose workers and daemons are running, with SIGKILL, and undoes it from the journal
// alone.
func TestUndoAfterKill(t *testing.T) {
	requireEnforcer(t, enforcerLandlock)
	journal := filepath.Join(t.TempDir(), "journal")
	output, kill := areatest.StartParent(t, journal)
	changes := areatest.ReadJournal(t, journal)
	kill()
	if want := 1 + 3*(2+len(installedDaemons())) + 1; len(changes) != want {
		t.Fatalf("%d changes in the journal, want %d; the run printed\n%s", len(changes), want, output)
	}
	areatest.UndoTwice(t, Area{}, changes, area.Env{})
	for _, c := range changes {
		if path := c.Data["path"]; c.Kind == changeFolder {
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%s is left: %v", path, err)
			}
			if left := processesIn(t, path); len(left) > 0 {
				t.Errorf("processes %v still work in %s", left, path)
			}
			continue
		}
		if state := stateOf(c.Data["pid"]); state != "" && state != "Z" {
			t.Errorf("%s, process %s, is in state %s", c.ID, c.Data["pid"], state)
		}
	}
}

// processesIn returns the live processes that work below path.
func processesIn(t *testing.T, path string) (out []int) {
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

// stateOf returns a process's state, empty if there is no such process.
func stateOf(pid string) string {
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return rest[:1]
}

// TestUndoWhileRunning undoes workers that still run, as another process may.
func TestUndoWhileRunning(t *testing.T) {
	tg, j := prepared(t, &Spec{Workloads: []string{"open"}, Real: installedDaemons()}, baseline())
	enter(t, tg, baseline())
	child := tg.arms[baseline().ID].sample.worker.child
	areatest.UndoTwice(t, Area{}, j.Pending(), area.Env{})
	if err := child.Wait(t.Context()); err == nil {
		t.Error("the worker was not killed")
	}
	if _, err := operationOf(t, tg, baseline(), "open").Batch(t.Context(), 1); err == nil {
		t.Error("a batch after undo")
	}
}

func TestUndoRejectsForeignChanges(t *testing.T) {
	keep := t.TempDir()
	for _, c := range []area.Change{
		{Kind: "namespace"},
		{Kind: kit.ProcessKind, Data: map[string]string{"pid": "x", "start_ticks": "1"}},
		{Kind: kit.ProcessKind, Data: map[string]string{"pid": "1", "start_ticks": "1"}},
		{Kind: kit.ProcessKind, Data: map[string]string{"pid": "99999999"}},
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

// TestPrepareNeedsAJournal: nothing is created that cannot be journaled.
func TestPrepareNeedsAJournal(t *testing.T) {
	full := errors.New("disk full")
	for _, kind := range []string{changeFolder, kit.ProcessKind} {
		tg, j := prepared(t, &Spec{Workloads: []string{"open"}})
		j.Deny = func(c area.Change) error {
			if c.Kind == kind {
				return full
			}
			return nil
		}
		err := tg.Prepare(t.Context(), baseline(), j)
		if err == nil {
			err = tg.Enter(t.Context(), baseline())
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
