package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/area"
	"tare/internal/cli"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/record"
	"tare/rigs/hosttest"
)

// pendingRecord writes a record of area exec with one pending change. key and host are those of its author.
func pendingRecord(t *testing.T, results string, key record.Key, host string, change area.Change) string {
	t.Helper()
	w, err := record.Create(results, record.Header{
		Key: key, Area: "exec", Question: design.Compare, Experiment: record.Experiment{Name: "x"},
		Host: record.Host{Name: host},
	}, []byte("name: x\n"), clock.System{})
	if err == nil {
		change.Area, change.ID = "exec", "x"
		err = errors.Join(w.Intend(change), w.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	return w.Dir()
}

// craftRecord writes a record whose pending change would run a shell.
func craftRecord(t *testing.T, key record.Key, host, proof string) string {
	t.Helper()
	program, err := json.Marshal([]string{"/bin/sh", "-c", "touch " + proof})
	if err != nil {
		t.Fatal(err)
	}
	return pendingRecord(t, t.TempDir(), key, host, area.Change{Kind: "prepared", Data: map[string]string{
		"\nforged": "", "name": "x\x1b[31m", "program": string(program), "env": "[]", "levels": "null",
		"operations": "null", "path": t.TempDir(), "patience": "1s",
	}})
}

// ownKey returns the key of the user who runs these tests.
func ownKey(t *testing.T) record.Key {
	t.Helper()
	key, err := record.LoadKey(filepath.Join(os.Getenv("XDG_STATE_HOME"), "tare"))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func hostname(t *testing.T) string {
	t.Helper()
	name, err := os.Hostname()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// TestUndoRejectsForeignRecords checks that undo shows a record that somebody else wrote or changed, and runs nothing
// from it.
func TestUndoRejectsForeignRecords(t *testing.T) {
	needsAreas(t, "exec")
	bin := tareBinary(t)
	key := ownKey(t)
	for name, craft := range map[string]func(proof string) string{
		"without a seal": func(proof string) string { return craftRecord(t, nil, hostname(t), proof) },
		"another key": func(proof string) string {
			return craftRecord(t, bytes.Repeat([]byte{7}, 32), hostname(t), proof)
		},
		"another host": func(proof string) string { return craftRecord(t, key, "elsewhere", proof) },
		"changed since": func(proof string) string {
			dir := craftRecord(t, key, hostname(t), "/nowhere/proof")
			dir = replaceInJournal(t, dir, `"prepared"`, `"prepared\nforged"`)
			return replaceInJournal(t, dir, `touch `, `touch `+proof+" ")
		},
	} {
		t.Run(name, func(t *testing.T) {
			proof := filepath.Join(t.TempDir(), "proof")
			dir := craft(proof)
			text, code := execTare(t, bin, t.TempDir(), "undo", dir)
			if code != cli.ExitUsage || !strings.Contains(text, "--yes") || !strings.Contains(text, "touch ") {
				t.Errorf("exit %d\n%s", code, text)
			}
			if strings.Contains(text, "\x1b") {
				t.Errorf("an escape sequence of the record reaches the terminal: %q", text)
			}
			if strings.Contains(text, "\nforged") {
				t.Errorf("a line of the record's own:\n%s", text)
			}
			_, number, _ := strings.Cut(text, "repeat with --yes ")
			for _, args := range [][]string{
				{"run", "--resume", dir},
				{"run", "--resume", dir, "--yes", strings.TrimSpace(number)}, // a number for what undo has shown
			} {
				text, code := execTare(t, bin, t.TempDir(), args...)
				if code != cli.ExitUsage || !strings.Contains(text, "touch ") || strings.Contains(text, "\x1b") {
					t.Errorf("%v: exit %d\n%s", args, code, text)
				}
			}
			if _, err := os.Stat(proof); !os.IsNotExist(err) {
				t.Error("the program that the record names was run")
			}
		})
	}
}

// replaceInJournal replaces a text in a record's journal.
func replaceInJournal(t *testing.T, dir, old, text string) string {
	t.Helper()
	journal := filepath.Join(dir, record.JournalFile)
	b, err := os.ReadFile(journal)
	if err != nil {
		t.Fatal(err)
	}
	changed := bytes.ReplaceAll(b, []byte(old), []byte(text))
	if bytes.Equal(b, changed) {
		t.Fatalf("%q is not in the journal", old)
	}
	if err := os.WriteFile(journal, changed, 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestUndoTrustsOwnRecordsOnly: a record that this user sealed is undone without a question, an unsealed one only with
// the number of what it has shown. A journal that is a link is not read.
func TestUndoTrustsOwnRecordsOnly(t *testing.T) {
	needsAreas(t, "exec")
	bin := tareBinary(t)
	key := ownKey(t)
	gone := func(key record.Key) string {
		return pendingRecord(t, t.TempDir(), key, hostname(t), area.Change{Kind: "folder", Data: map[string]string{
			"path": filepath.Join(t.TempDir(), "tare-exec-0123456789abcdef"),
		}})
	}
	if text, code := execTare(t, bin, t.TempDir(), "undo", gone(key)); code != cli.ExitPass || !strings.Contains(text,
		"undone") {
		t.Errorf("own record: exit %d\n%s", code, text)
	}
	dir := gone(nil)
	text, code := execTare(t, bin, t.TempDir(), "undo", dir)
	_, number, ok := strings.Cut(text, "repeat with --yes ")
	if code != cli.ExitUsage || !ok {
		t.Errorf("without --yes: exit %d\n%s", code, text)
	}
	number = strings.TrimSpace(number)
	replaceInJournal(t, dir, `"area":"exec","question"`, `"area":"sandbox","question"`) // which undoes it
	text, code = execTare(t, bin, t.TempDir(), "undo", "--yes", number, dir)
	if code != cli.ExitUsage || !strings.Contains(text, "is not the number") || !strings.Contains(text, `area "sandbox"`) {
		t.Errorf("another area: exit %d\n%s", code, text)
	}
	replaceInJournal(t, dir, `"area":"sandbox","question"`, `"area":"exec","question"`)
	// What is carried out is what was shown: another user may have changed it meanwhile.
	changed := replaceInJournal(t, dir, "0123456789abcdef", "0123456789abcdee")
	if text, code := execTare(t, bin, t.TempDir(), "undo", "--yes", number, changed); code != cli.ExitUsage ||
		!strings.Contains(text, "--yes "+number+" is not the number of that") {
		t.Errorf("what was shown has changed: exit %d\n%s", code, text)
	}
	replaceInJournal(t, dir, "0123456789abcdee", "0123456789abcdef")
	if text, code := execTare(t, bin, t.TempDir(), "undo", "--yes", number, dir); code != cli.ExitPass ||
		!strings.Contains(text, "undone") {
		t.Errorf("with --yes: exit %d\n%s", code, text)
	}
	if text, code := execTare(t, bin, t.TempDir(), "undo", dir); code != cli.ExitPass ||
		!strings.Contains(text, "nothing to undo") {
		t.Errorf("second undo: exit %d\n%s", code, text)
	}
	journal := filepath.Join(dir, record.JournalFile)
	if err := errors.Join(os.Rename(journal, journal+".real"), os.Symlink(journal+".real", journal)); err != nil {
		t.Fatal(err)
	}
	if text, code := execTare(t, bin, t.TempDir(), "undo", dir); code != cli.ExitError ||
		!strings.Contains(text, "is a link") {
		t.Errorf("a journal that is a link: exit %d\n%s", code, text)
	}
}

// TestUndoReportsDamagedLines: a damaged line may have been a change.
func TestUndoReportsDamagedLines(t *testing.T) {
	needsAreas(t, "exec")
	bin := tareBinary(t)
	key := ownKey(t)
	dir := replaceInJournal(t, craftRecord(t, key, hostname(t), "/nowhere/proof"), `"kind":"change"`, `"kind:"change"`)
	if text, code := execTare(t, bin, t.TempDir(), "undo", dir); code != cli.ExitError ||
		!strings.Contains(text, "cannot read lines [2] of the journal") {
		t.Errorf("exit %d\n%s", code, text)
	}
}

// TestForeignRecordsAreNotWritten: neither a record of another user nor one that others can write is changed.
func TestForeignRecordsAreNotWritten(t *testing.T) {
	needsAreas(t, "exec")
	bin := tareBinary(t)
	hosttest.NeedsRoot(t)
	dir := craftRecord(t, nil, hostname(t), "/nowhere/proof")
	for what, change := range map[string]func() error{
		"belongs to another user":       func() error { return os.Chown(dir, 65534, 65534) },
		"may be written by other users": func() error { return os.Chmod(dir, 0o777) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"undo", "--yes", "0", dir}, {"run", "--yes", "0", "--resume", dir}} {
			if text, code := execTare(t, bin, t.TempDir(), args...); code != cli.ExitError || !strings.Contains(text, what) {
				t.Errorf("%s: %v: exit %d\n%s", what, args, code, text)
			}
		}
		if err := os.Chown(dir, 0, 0); err != nil {
			t.Fatal(err)
		}
	}
}

// TestResumeRejectsAChangedExperiment checks that a run goes on only with the experiment file that it began with.
func TestResumeRejectsAChangedExperiment(t *testing.T) {
	needsAreas(t, "exec")
	bin := tareBinary(t)
	key := ownKey(t)
	dir := craftRecord(t, key, hostname(t), "/nowhere/proof")
	if err := os.WriteFile(filepath.Join(dir, record.ExperimentFile), []byte("name: y\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, code := execTare(t, bin, t.TempDir(), "run", "--yes", "0", "--resume", dir); code != cli.ExitUsage ||
		!strings.Contains(text, "has changed since the run began") {
		t.Errorf("exit %d\n%s", code, text)
	}
}
