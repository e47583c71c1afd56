package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"tare/rigs/hosttest"
)

// TestReplacedRecordsMisleadNoRun has root run experiments with results in another user's folder. That user puts a link
// to a folder of root's in the place of the record, again and again, and takes it away. A run may fail; nothing of
// root's may be written, made or removed.
func TestReplacedRecordsMisleadNoRun(t *testing.T) {
	hosttest.NeedsRoot(t)
	hosttest.SkipIfShort(t)
	bin, swaps := tareBinary(t), 0
	for _, k := range killables() {
		t.Run(k.name, func(t *testing.T) {
			needsAreas(t, areaOf(k.experiment))
			if k.name != "exec" && k.name != "sandbox" && k.name != "decision" {
				hosttest.SkipUnlessLong(t)
			}
			if k.needs != nil {
				k.needs(t, bin, &k)
			}
			folder := k.newFolder(t)
			stranger := &replacer{folder: strangersFolder(t), canary: newCanary(t)}
			before := contents(t, stranger.canary)
			stop := stranger.begin(t)
			out, code := execTare(t, bin, folder, append(k.run(), "--results", stranger.folder)...)
			records, _ := filepath.Glob(filepath.Join(stranger.folder, "[^.]*"))
			for _, r := range records {
				for range 5 {
					for _, command := range []string{"undo", "report"} {
						execTare(t, bin, folder, command, r) // it may find another folder, and refuses that
					}
				}
			}
			n := stop()
			swaps += n
			if after := contents(t, stranger.canary); after != before {
				t.Errorf("what is root's has changed:\n%s\nit was\n%s\nexit %d\n%s", after, before, code, out)
			}
			for _, r := range records {
				if written, _ := os.ReadDir(r); len(written) == 0 && code != 0 {
					continue // the run has ended before it had a record: its folder is gone, or nothing was written into it
				}
				if out, code := execTare(t, bin, folder, "undo", r); code != 0 || !strings.Contains(out, "nothing to undo") {
					t.Errorf("undo: exit %d\n%s", code, out)
				}
			}
			t.Logf("%d replacements, exit %d\n%.300s", n, code, out)
		})
	}
	if swaps < 50 && !t.Failed() {
		t.Errorf("only %d replacements: nothing was tried", swaps)
	}
}

// strangersFolder makes a folder of another user's.
func strangersFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "tare-stranger-") //nolint:usetesting // the other user has to reach it
	if err == nil {
		err = os.Chown(dir, strangerID, strangerID)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// strangerID is the user nobody.
const strangerID = 65534

// newCanary makes a folder of root's with files of the names that a run writes.
func newCanary(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, name := range []string{
		"latency.hlog", "experiment.yaml", "lock", "driver-01.log", "driver-undo.log", "workers.log",
		"calls-0000.bin", "policies-0/policies.cedar", "policies-1/policies.rego", "report.html",
	} {
		path := filepath.Join(dir, name)
		err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte("root's\n"), 0o600))
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// contents describes all that is in a folder.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && path == dir {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		text := []byte{}
		if info.Mode().IsRegular() {
			text, err = os.ReadFile(path)
		}
		fmt.Fprintf(&b, "%s %v %q\n", strings.TrimPrefix(path, dir), info.Mode(), text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// A replacer exchanges, as another user, the records in a folder of its own with links to the canary.
type replacer struct{ folder, canary string }

// begin exchanges until stop is called, which returns how often.
func (r *replacer) begin(t *testing.T) (stop func() int) {
	t.Helper()
	link := filepath.Join(r.folder, ".link")
	end, swaps := make(chan struct{}), make(chan int)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with its user
		n := 0
		defer func() { swaps <- n }()
		_ = unix.Setfsgid(strangerID)
		_ = unix.Setfsuid(strangerID) // without the rights of root in the file system
		if err := os.Symlink(r.canary, link); err != nil {
			t.Error(err)
			return
		}
		rng := rand.New(rand.NewPCG(1, 2))
		for {
			select {
			case <-end:
				return
			default:
			}
			found, _ := filepath.Glob(filepath.Join(r.folder, "[^.]*"))
			for _, record := range found {
				if unix.Renameat2(unix.AT_FDCWD, record, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE) != nil {
					continue
				}
				time.Sleep(time.Duration(rng.IntN(2000)) * time.Microsecond)
				_ = unix.Renameat2(unix.AT_FDCWD, record, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
				n++
			}
			time.Sleep(time.Duration(rng.IntN(4000)) * time.Microsecond)
		}
	}()
	return func() int {
		close(end)
		return <-swaps
	}
}
