package record

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/internal/clock"
	"tare/rigs/hosttest"
)

func fakeClock() *clock.Fake { return clock.NewFake(epoch) }

// TestMain lets the test binary be its own child, which takes the lock and waits to be killed.
func TestMain(m *testing.M) {
	if dir := os.Getenv("LOCK_CHILD"); dir != "" {
		if _, err := Lock(dir, "http://127.0.0.1:80", Holder{Run: "child", Since: epoch}); err != nil {
			os.Exit(3)
		}
		if _, err := os.Stdout.WriteString("locked\n"); err != nil {
			os.Exit(4)
		}
		time.Sleep(time.Minute)
		os.Exit(5)
	}
	hosttest.Main(m)
}

func TestLockKeepsOthersOut(t *testing.T) {
	dir := t.TempDir()
	held, err := Lock(dir, "x", Holder{Run: "results/a", Since: epoch})
	must(t, err)
	_, err = Lock(dir, "x", Holder{Run: "results/b"})
	var h *HeldError
	if !errors.As(err, &h) || h.Holder.Run != "results/a" || h.Holder.PID != os.Getpid() || h.Holder.Ticks == 0 {
		t.Fatalf("error %v", err)
	}
	if !strings.Contains(err.Error(), "results/a") {
		t.Errorf("the holder is not named: %v", err)
	}
	other, err := Lock(dir, "y", Holder{Run: "results/b"})
	must(t, err)
	must(t, other.Unlock(), held.Unlock())
	again, err := Lock(dir, "x", Holder{Run: "results/b"})
	must(t, err)
	if again.Stale != nil {
		t.Errorf("a lock that was given back is called stale: %+v", again.Stale)
	}
	must(t, again.Unlock())
	left, err := os.ReadDir(dir)
	must(t, err)
	if len(left) > 0 {
		t.Errorf("files left: %v", left)
	}
}

// lockedByChild starts a process that takes a lock in dir and waits to be killed.
func lockedByChild(t *testing.T, dir string) *exec.Cmd {
	t.Helper()
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), "LOCK_CHILD="+dir)
	out, err := child.StdoutPipe()
	must(t, err)
	must(t, child.Start())
	t.Cleanup(func() { _ = child.Process.Kill() }) // it is dead when all went well
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "locked\n" {
		t.Fatalf("the child said %q, %v", line, err)
	}
	return child
}

// killChild kills it.
func killChild(t *testing.T, child *exec.Cmd) {
	t.Helper()
	must(t, child.Process.Kill())
	if err := child.Wait(); err == nil {
		t.Fatal("the child ended by itself")
	}
}

// TestStaleLocksAreDropped: locks of dead processes are removed, those of live ones stay.
func TestStaleLocksAreDropped(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "locks")
	must(t, DropStale(dir)) // there is none
	child := lockedByChild(t, dir)
	held, err := Lock(dir, "another", Holder{Run: "b"})
	must(t, err)
	for _, want := range []int{2, 1} {
		must(t, DropStale(dir))
		if names, err := os.ReadDir(dir); err != nil || len(names) != want {
			t.Errorf("there are %v, %v; want %d", names, err, want)
		}
		if want == 2 {
			killChild(t, child)
		}
	}
	must(t, held.Unlock())
}

func TestLockOfADeadProcessIsTakenOver(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "locks")
	child := lockedByChild(t, dir)
	var h *HeldError
	if _, err := Lock(dir, "http://127.0.0.1:80", Holder{Run: "b"}); !errors.As(err, &h) ||
		h.Holder.PID != child.Process.Pid || h.Holder.Run != "child" {
		t.Fatalf("while the child lives: %v", err)
	}
	killChild(t, child)
	held, err := Lock(dir, "http://127.0.0.1:80", Holder{Run: "b"})
	must(t, err)
	if held.Stale == nil || held.Stale.PID != child.Process.Pid {
		t.Errorf("stale %+v", held.Stale)
	}
	must(t, held.Unlock())
}

// TestLockThatOutlivesItsHolder: a child that a killed holder was about to start has the lock for a moment.
func TestLockThatOutlivesItsHolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "locks")
	child := lockedByChild(t, dir)
	names, err := filepath.Glob(filepath.Join(dir, "*.lock"))
	if err != nil || len(names) != 1 {
		t.Fatalf("locks %v, %v", names, err)
	}
	file, err := os.Open(names[0])
	must(t, err)
	killChild(t, child)
	if locked, err := tryLock(file); !locked || err != nil { // as its child would have it
		t.Fatalf("locked %v, %v", locked, err)
	}
	time.AfterFunc(200*time.Millisecond, func() { _ = file.Close() })
	held, err := Lock(dir, "http://127.0.0.1:80", Holder{Run: "b"})
	must(t, err)
	must(t, held.Unlock())
}

func TestLockHasOneHolderAtATime(t *testing.T) {
	dir := t.TempDir()
	var mu sync.Mutex
	holders, most, taken := 0, 0, 0
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 200 {
				held, err := Lock(dir, "x", Holder{Run: "r"})
				if _, held := errors.AsType[*HeldError](err); held {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				holders++
				taken++
				most = max(most, holders)
				mu.Unlock()
				runtime.Gosched()
				mu.Lock()
				holders--
				mu.Unlock()
				if err := held.Unlock(); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if most != 1 || taken < 8 {
		t.Errorf("%d holders at once, taken %d times", most, taken)
	}
}

func TestLockFolderMustBelongToTheUser(t *testing.T) {
	base := t.TempDir()
	victim := filepath.Join(base, "victim")
	must(t, os.WriteFile(victim, []byte("precious"), 0o600))
	refused := func(name, dir, want string) {
		t.Helper()
		if _, err := Lock(dir, "x", Holder{Run: "r"}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	own := filepath.Join(base, "own")
	must(t, os.Mkdir(own, 0o700), os.Symlink(own, filepath.Join(base, "link")))
	refused("a link", filepath.Join(base, "link"), "is a link")
	open := filepath.Join(base, "open")
	must(t, os.Mkdir(open, 0o700), os.Chmod(open, 0o777))
	refused("a folder that others may write", open, "may be written by other users")
	planted := filepath.Join(base, "planted")
	must(t, os.Mkdir(planted, 0o700), os.Symlink(victim, filepath.Join(planted, LockFile)),
		os.WriteFile(filepath.Join(planted, JournalFile), nil, 0o600))
	if _, err := LockRecord(planted, Holder{Run: "r"}); err == nil {
		t.Error("a link in the place of the lock was followed")
	}
	if _, err := LockRecord(own, Holder{Run: "r"}); err == nil {
		t.Error("a folder that is no record was locked")
	}
	if os.Geteuid() == 0 {
		foreign := filepath.Join(base, "foreign")
		must(t, os.Mkdir(foreign, 0o700), os.Chown(foreign, 65534, 65534))
		refused("a folder of another user", foreign, "belongs to another user")
		if _, err := LockRecord(foreign, Holder{Run: "r"}); err == nil {
			t.Error("a record of another user was locked")
		}
	}
	if b, err := os.ReadFile(victim); err != nil || string(b) != "precious" {
		t.Errorf("the file behind the link holds %q, %v", b, err)
	}
}

func TestRecordIsLockedWhateverItsPath(t *testing.T) {
	base := t.TempDir()
	dir := filepath.Join(base, "run")
	must(t, os.Mkdir(dir, 0o700), os.Symlink(dir, filepath.Join(base, "latest")),
		os.WriteFile(filepath.Join(dir, JournalFile), nil, 0o600))
	held, err := LockRecord(dir, Holder{Run: dir})
	must(t, err)
	t.Setenv("TMPDIR", t.TempDir())
	var h *HeldError
	if _, err := LockRecord(filepath.Join(base, "latest"), Holder{Run: "latest"}); !errors.As(err, &h) ||
		h.Holder.PID != os.Getpid() {
		t.Errorf("by another path: %v", err)
	}
	must(t, held.Unlock())
	if _, err := os.Stat(filepath.Join(dir, LockFile)); !os.IsNotExist(err) {
		t.Errorf("the lock file is left: %v", err)
	}
}
