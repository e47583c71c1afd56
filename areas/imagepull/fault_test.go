package imagepull

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/rigs/areatest"
)

// TestDamagedRecords: a damaged record is rejected by the name of its file, before anything is measured.
func TestDamagedRecords(t *testing.T) {
	for title, harm := range map[string]func(path string) error{
		"no JSON":   func(path string) error { return os.WriteFile(path, []byte("{ this is no record"), 0o600) },
		"cut":       func(path string) error { return os.Truncate(path, 20) },
		"empty":     func(path string) error { return os.Truncate(path, 0) },
		"not there": os.Remove,
		"another image's": func(path string) error {
			all := recordFiles(t, filepath.Dir(path))
			text, err := os.ReadFile(all[(slices.Index(all, path)+1)%len(all)])
			return errors.Join(err, os.WriteFile(path, text, 0o600))
		},
	} {
		for _, accessor := range []string{directFS, cached} {
			t.Run(title+" "+accessor, func(t *testing.T) {
				tr := treatment("accessor", accessor, "records", "30")
				spec := &Spec{Dir: t.TempDir()}
				tg, _ := opened(t, spec, tr)
				all := recordFiles(t, spec.Dir)
				if len(all) != 30 {
					t.Fatalf("%d records, want 30", len(all))
				}
				if err := harm(all[17]); err != nil {
					t.Fatal(err)
				}
				err := tg.Can().Enter(t.Context(), tr)
				if err == nil {
					err = tg.Verify(t.Context(), tr)
				}
				if err == nil || !strings.Contains(err.Error(), filepath.Base(all[17])) {
					t.Errorf("%v does not name %s", err, filepath.Base(all[17]))
				}
				if n := len(recordFiles(t, spec.Dir)); n != 30 && title != "not there" || n < 29 {
					t.Errorf("%d records are left of 30", n)
				}
			})
		}
	}
}

// TestUnwritableFolder: Prepare reports a folder that it cannot create, and leaves nothing pending in the journal.
func TestUnwritableFolder(t *testing.T) {
	requireBinary(t)
	tr := treatment("accessor", "cached")
	dir := unwritableFolder(t)
	found := (Area{}).Preflight(t.Context(), &Spec{Dir: dir}, testEnv(t, tr))
	if !slices.ContainsFunc(found, func(f area.Finding) bool {
		return f.Severity == area.Error && f.Path == "dir" && strings.Contains(f.Message, dir)
	}) {
		t.Errorf("got %+v, want an error that names the folder", found)
	}
	tg, j := areatest.Open[area.Target](t, Area{}, &Spec{Dir: dir}, testEnv(t, tr))
	if err := tg.Prepare(t.Context(), tr, j); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("prepared in %s: %v", dir, err)
	}
}

// livePIDs returns the PIDs of journaled processes that are alive.
func livePIDs(t testing.TB, changes []area.Change) (out []int) {
	t.Helper()
	for _, c := range changes {
		if c.Kind != kit.ProcessKind {
			continue
		}
		pid, err := strconv.Atoi(c.Data["pid"])
		if err != nil {
			t.Fatal(err)
		}
		if alive(pid) {
			out = append(out, pid)
		}
	}
	return out
}

// alive reports whether a process runs that is not dead already.
func alive(pid int) bool {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return rest != "" && rest[0] != 'Z' && rest[0] != 'X'
}

// TestKilledInABatch: when a program is killed while it measures, the batch ends with an error that says so, and
// nothing is left behind.
func TestKilledInABatch(t *testing.T) {
	tr := treatment("accessor", "directfs")
	tg, j := opened(t, &Spec{}, tr)
	enterAndVerify(t, tg, tr)
	pids := livePIDs(t, j.Pending())
	if len(pids) != 1 {
		t.Fatalf("processes %v, want one", pids)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	done := make(chan error, 1)
	op := operationOf(t, tg, tr, opCheck)
	go func() {
		_, err := op.Batch(ctx, 1<<20) // many seconds
		done <- err
	}()
	// it is in the batch by now; if it is not yet, the kill comes before it, and the error is the same
	time.Sleep(300 * time.Millisecond)
	if err := syscall.Kill(pids[0], syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("the batch ended with %v", err)
	}
	if _, err := op.Batch(ctx, 1); err == nil {
		t.Error("a batch of a killed program")
	}
}

// TestParent is no test: TestUndoAfterKill runs it in a process of its own.
func TestParent(t *testing.T) {
	journal, path := areatest.ParentJournal(t)
	arms := []design.Treatment{
		treatment("accessor", "disabled"), treatment("accessor", "directfs"), treatment("accessor", "cached"),
	}
	env := testEnv(t, arms...)
	env.Dir = filepath.Dir(path) // the test that kills this one removes it
	tg, err := Area{}.Open(t.Context(), &Spec{Dir: recordsBeside(path)}, env)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range arms {
		if err := tg.Prepare(t.Context(), a, journal); err != nil {
			t.Fatal(err)
		}
	}
	for _, a := range arms {
		enterAndVerify(t, tg, a)
	}
	areatest.AwaitKill(t)
}

// recordsBeside is the folder for records of the run whose journal is at path.
func recordsBeside(path string) string { return filepath.Join(filepath.Dir(path), "records") }

// TestUndoAfterKill kills a run whose programs are running, with SIGKILL, and undoes it from the journal alone.
func TestUndoAfterKill(t *testing.T) {
	requireBinary(t)
	journal := filepath.Join(t.TempDir(), "journal")
	dir := recordsBeside(journal)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	output, kill := areatest.StartParent(t, journal)
	changes := areatest.ReadJournal(t, journal)
	pids := livePIDs(t, changes)
	kill()
	if len(pids) != 3 || len(recordFiles(t, dir)) < 200 {
		t.Errorf("%d programs, %d records, want 3 and at least 200; the run printed\n%s", len(pids), len(recordFiles(t, dir)),
			output)
	}
	areatest.UndoTwice(t, Area{}, changes, area.Env{Clock: testEnv(t).Clock, Log: testEnv(t).Log})
	nothingLeft(t, dir)
	if left := livePIDs(t, changes); len(left) > 0 {
		t.Errorf("programs %v are left", left)
	}
}

// TestUndoRejectsForeignChanges: undo touches nothing that this area does not create.
func TestUndoRejectsForeignChanges(t *testing.T) {
	keep := t.TempDir()
	for _, c := range []area.Change{
		{Area: areaName, Kind: "namespace"},
		{Area: areaName, Kind: kit.ProcessKind, Data: map[string]string{"pid": "1", "start_ticks": "1"}},
		{Area: areaName, Kind: "folder", Data: map[string]string{"path": "/"}},
		{Area: areaName, Kind: "folder", Data: map[string]string{"path": keep}},
	} {
		if err := (Area{}).Undo(t.Context(), []area.Change{c}, testEnv(t)); err == nil {
			t.Errorf("%v was undone", c)
		}
	}
	if _, err := os.Stat(keep); err != nil && !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
}
