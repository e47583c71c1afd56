package record

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/files"
	"tare/internal/load"
)

// TestRecordThatIsMoved: another user who owns the folder of records puts a folder of his in the place of the run's.
// What the run writes goes on into its own, its logs too.
func TestRecordThatIsMoved(t *testing.T) {
	results := t.TempDir()
	w, err := Create(results, Header{Experiment: Experiment{Name: "x"}}, nil, clock.NewFake(time.Unix(1, 0)))
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close() //nolint:errcheck // closed below
	canary, moved := filepath.Join(results, "canary"), filepath.Join(results, "moved")
	if err := errors.Join(os.Mkdir(canary, 0o700), os.Rename(w.Dir(), moved), os.Symlink(canary, w.Dir()),
		w.TrialBegin(TrialBegin{Trial: design.Trial{Treatment: "a"}, Operations: []string{"op"}}),
		w.Calls("a", 0, []load.Call{{Done: 1}}), w.Note(Note{Text: "after"})); err != nil {
		t.Fatal(err)
	}
	log, err := files.Append(filepath.Join(w.Dir(), "driver-01.log"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(log.Close(), w.Close()); err != nil {
		t.Error(err)
	}
	if left, err := os.ReadDir(canary); err != nil || len(left) > 0 {
		t.Errorf("written elsewhere: %v, %v", left, err)
	}
	for _, name := range []string{"calls-0000.bin", "driver-01.log", JournalFile} {
		if _, err := os.Stat(filepath.Join(moved, name)); err != nil {
			t.Error(err)
		}
	}
	// A record that holds links is not continued: what is appended to, or cut, would be another file.
	for _, name := range []string{JournalFile, LatencyFile} {
		target := filepath.Join(canary, name)
		if err := errors.Join(os.WriteFile(target, []byte("{\"torn"), 0o600), os.RemoveAll(filepath.Join(moved, name)),
			os.Symlink(target, filepath.Join(moved, name))); err != nil {
			t.Fatal(err)
		}
		if _, err := appendTo(moved, clock.System{}, resumption{ID: "aaaaaaaaaaaaaaaa"}); err == nil {
			t.Errorf("%s: a link was followed", name)
		}
		if text, err := os.ReadFile(target); err != nil || string(text) != "{\"torn" {
			t.Errorf("%s: what it refers to has changed: %q, %v", name, text, err)
		}
	}
}
