package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tare/internal/proc"
	"tare/rigs/hosttest"
)

// TestSweepRemovesFoldersOfDeadProcesses: trial folders of dead processes are removed; those of live ones and other
// folders stay.
func TestSweepRemovesFoldersOfDeadProcesses(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ours, err := trialFolder()
	if err != nil {
		t.Fatal(err)
	}
	ticks, err := proc.StartTicks(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	named := func(format string, args ...any) string {
		return filepath.Join(os.TempDir(), folderPrefix+fmt.Sprintf(format, args...))
	}
	reused := named("trial-%d-%d-x", os.Getpid(), ticks-1) // its process is gone, and its pid is ours now
	gone := named("trial-%d-%d-x", 1<<22+1, 5)
	run, odd := named("0011223344556677"), named("trial-x")
	for _, dir := range []string{ours, reused, gone, run, odd} {
		if err := os.MkdirAll(filepath.Join(dir, "s00000"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	theirs := named("trial-%d-%d-y", 1<<22+1, 5) // it says that its process is gone; root must not believe that
	there := os.Geteuid() == 0
	if there {
		if err := errors.Join(os.MkdirAll(theirs, 0o700), os.Chown(theirs, 65534, 65534)); err != nil {
			t.Fatal(err)
		}
	} else {
		hosttest.Untried(t, "no folder of another user can be made", hosttest.Root)
	}
	if err := sweep(); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{ours: true, reused: false, gone: false, run: true, odd: true, theirs: there} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: there %v, want %v", filepath.Base(dir), err == nil, want)
		}
	}
}
