package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"tare/internal/proc"
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
	if err := sweep(); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{ours: true, reused: false, gone: false, run: true, odd: true} {
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: there %v, want %v", filepath.Base(dir), err == nil, want)
		}
	}
}
