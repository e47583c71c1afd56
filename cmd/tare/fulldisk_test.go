package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/area"
	"tare/internal/cli"
	"tare/internal/record"
	"tare/rigs/hosttest"
)

// smallDisk mounts a file system of 1 MiB.
func smallDisk(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	mount(t, dir, "size=1m,nr_inodes=64")
	return dir
}

// mount mounts an empty file system at dir until the end of the test.
func mount(t *testing.T, dir, options string) {
	t.Helper()
	hosttest.NeedsRoot(t)
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		hosttest.Missing(t, fmt.Sprintf("no tmpfs can be mounted: %v", err), hosttest.Root)
	}
	t.Cleanup(func() {
		// the test has unmounted it itself
		if err := unix.Unmount(dir, 0); err != nil && !errors.Is(err, unix.EINVAL) && !errors.Is(err, os.ErrNotExist) {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
}

// fillDisk fills the disk of dir to the last byte.
func fillDisk(t *testing.T, dir string) (filler string) {
	t.Helper()
	f, err := os.OpenFile(filepath.Join(dir, "filler"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	for size := 1 << 16; size > 0; {
		if _, err := f.Write(make([]byte, size)); err != nil {
			size /= 2
		}
	}
	if _, err := f.Write([]byte{0}); !errors.Is(err, unix.ENOSPC) {
		t.Fatalf("the disk is not full: %v", err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return f.Name()
}

// fillInodes leaves no room for another file.
func fillInodes(t *testing.T, dir string) {
	t.Helper()
	for i := range 1000 {
		f, err := os.CreateTemp(dir, "name-")
		if errors.Is(err, unix.ENOSPC) {
			return
		}
		if err == nil {
			err = f.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		if i == 999 {
			t.Fatal("the disk takes any number of files")
		}
	}
}

// recordOfFolder writes a record with one pending change, an existing folder.
func recordOfFolder(t *testing.T, results string) (dir, folder string) {
	t.Helper()
	folder = filepath.Join(t.TempDir(), "tare-exec-0123456789abcdef")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	dir = pendingRecord(t, results, ownKey(t), hostname(t),
		area.Change{Kind: "folder", Data: map[string]string{"path": folder}})
	fillPage(t, filepath.Join(dir, record.JournalFile))
	return dir, folder
}

// fillPage adds a note so that the journal ends at a page boundary of the disk: the next line needs another page.
func fillPage(t *testing.T, journal string) {
	t.Helper()
	const page, head, tail = 4096, `{"schema":"tare.record/v1","kind":"note","at":"2026-01-01T00:00:00Z","data":{"text":"`, `"}}` + "\n"
	f, err := os.OpenFile(journal, os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	st, err := f.Stat()
	if err == nil {
		_, err = f.WriteString(head + strings.Repeat("x", 2*page-(int(st.Size())+len(head)+len(tail))%page) + tail)
	}
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
}

// TestUndoOnFullDisk: an undo that cannot write to the record undoes everything, reports what it could not write, and
// can be repeated.
func TestUndoOnFullDisk(t *testing.T) {
	needsAreas(t, "exec")
	bin := tareBinary(t)
	for name, c := range map[string]struct {
		spoil func(t *testing.T, disk string) (mend func() error)
		says  string
	}{
		"full": {func(t *testing.T, disk string) func() error {
			filler := fillDisk(t, disk)
			return func() error { return os.Remove(filler) }
		}, "no space left on device"},
		"full of files": {func(t *testing.T, disk string) func() error {
			filler := fillDisk(t, disk)
			fillInodes(t, disk)
			return func() error { return os.Remove(filler) }
		}, "no space left on device"},
		"read-only": {func(t *testing.T, disk string) func() error {
			remount := func(flags uintptr) error { return unix.Mount("", disk, "", unix.MS_REMOUNT|flags, "") }
			if err := remount(unix.MS_RDONLY); err != nil {
				t.Fatal(err)
			}
			return func() error { return remount(0) }
		}, "read-only file system"},
	} {
		t.Run(name, func(t *testing.T) {
			disk := smallDisk(t)
			dir, folder := recordOfFolder(t, disk)
			mend := c.spoil(t, disk)
			for range 2 {
				text, code := execTare(t, bin, t.TempDir(), "undo", dir)
				if code != cli.ExitError || !strings.Contains(text, "undone  folder x") || !strings.Contains(text, c.says) ||
					!strings.Contains(text, "run this command again") {
					t.Errorf("exit %d\n%s", code, text)
				}
				if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
					t.Errorf("the folder is still there: %v", err)
				}
			}
			if err := mend(); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"undone  folder x", "nothing to undo"} {
				if text, code := execTare(t, bin, t.TempDir(), "undo", dir); code != cli.ExitPass || !strings.Contains(text, want) {
					t.Errorf("after freeing the disk: exit %d, want %q\n%s", code, want, text)
				}
			}
		})
	}
}

// A startedRun is a run in its own process.
type startedRun struct {
	*exec.Cmd
	out bytes.Buffer
}

// started starts a command in dir.
func started(t *testing.T, dir string, command ...string) *startedRun {
	t.Helper()
	run := &startedRun{Cmd: exec.CommandContext(t.Context(), command[0], command[1:]...)}
	run.Dir, run.Stdout, run.Stderr = dir, &run.out, &run.out
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	return run
}

// startRun starts a comparison of many blocks in dir and waits until its first trial has ended.
func startRun(t *testing.T, bin, dir, results string) (run *startedRun, name string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, "x.yaml"),
		[]byte(strings.Replace(comparedExperiment, "blocks: 4", "blocks: 160", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	run = started(t, dir, bin, "run", "--results", results, "x.yaml")
	for range 400 {
		records, _ := filepath.Glob(filepath.Join(results, "*", record.JournalFile))
		if len(records) > 0 && bytes.Contains(readAll(records[0]), []byte("trial-end")) {
			return run, filepath.Dir(records[0])
		}
		time.Sleep(50 * time.Millisecond)
	}
	_ = run.Process.Kill()
	_ = run.Wait()
	t.Fatalf("no trial has ended:\n%s", &run.out)
	return nil, ""
}

// TestDiskFullDuringRun: the run ends, undoes its changes, and reports that the record does not say so.
func TestDiskFullDuringRun(t *testing.T) {
	needsAreas(t, "sandbox")
	hosttest.SkipIfShort(t)
	t.Setenv("TMPDIR", t.TempDir())
	bin := tareBinary(t)
	leftovers := watchLeftovers(t, bin)
	disk, dir := smallDisk(t), t.TempDir()
	run, name := startRun(t, bin, dir, disk)
	filler := fillDisk(t, disk)
	_ = run.Wait()
	text := run.out.String()
	if code := run.ProcessState.ExitCode(); code != cli.ExitError {
		t.Errorf("exit %d, want %d\n%s", code, cli.ExitError, text)
	}
	for _, want := range []string{
		"no space left on device", "undone, but the record cannot say so", // one change or several
		"next: tare undo " + name,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the output lacks %q:\n%s", want, text)
		}
	}
	if left := leftovers(); left != "" {
		t.Errorf("left behind:\n%s", left)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"undone  ", "nothing to undo"} {
		if text, code := execTare(t, bin, dir, "undo", name); code != cli.ExitPass || !strings.Contains(text, want) {
			t.Errorf("after freeing the disk: exit %d, want %q\n%s", code, want, text)
		}
	}
}

// TestInterruptedRunThatCannotUndo: an interrupted run names the changes that it could not undo, and the command to
// retry.
func TestInterruptedRunThatCannotUndo(t *testing.T) {
	needsAreas(t, "sandbox")
	hosttest.SkipIfShort(t)
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	bin := tareBinary(t)
	leftovers := watchLeftovers(t, bin)
	dir := t.TempDir()
	run, name := startRun(t, bin, dir, filepath.Join(dir, "results"))
	folders, err := filepath.Glob(filepath.Join(temp, "tare-sandbox-*"))
	if err != nil || len(folders) == 0 {
		t.Fatalf("the run has no folder: %v", err)
	}
	busy := filepath.Join(folders[0], "busy") // a mount keeps its folder from being removed
	if err := os.Mkdir(busy, 0o700); err != nil {
		t.Fatal(err)
	}
	mount(t, busy, "size=4k")
	_ = run.Process.Signal(syscall.SIGINT)
	_ = run.Wait()
	text := run.out.String()
	if code := run.ProcessState.ExitCode(); code != cli.ExitError {
		t.Errorf("exit %d, want %d, since a change is not undone\n%s", code, cli.ExitError, text)
	}
	for _, want := range []string{
		"undo what the run created", busy, "a file system is mounted at", "not undone", "folder",
		"next: tare undo " + name,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the output lacks %q:\n%s", want, text)
		}
	}
	if text, code := execTare(t, bin, dir, "report", name); code != cli.ExitInterrupted ||
		!strings.Contains(text, "interrupted") || !strings.Contains(text, busy) {
		t.Errorf("report: exit %d\n%s", code, text)
	}
	if err := unix.Unmount(busy, 0); err != nil {
		t.Fatal(err)
	}
	if text, code := execTare(t, bin, dir, "undo", name); code != cli.ExitPass || !strings.Contains(text,
		"undone  folder") {
		t.Errorf("undo: exit %d\n%s", code, text)
	}
	if text, code := execTare(t, bin, dir, "report", name); code != cli.ExitInterrupted || !strings.Contains(text,
		"interrupted") {
		t.Errorf("report after undo: exit %d\n%s", code, text)
	}
	if left := leftovers(); left != "" {
		t.Errorf("left behind:\n%s", left)
	}
}
