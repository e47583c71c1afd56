package record

import (
	"bufio"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/area"
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

func TestSealsHoldForTheRunAndItsKeyOnly(t *testing.T) {
	key, other := Key(bytes.Repeat([]byte{1}, keySize)), Key(bytes.Repeat([]byte{2}, keySize))
	change := area.Change{Area: "tool", Kind: "folder", ID: "x", Data: map[string]string{"path": "/tmp/x"}}
	journal := func(id string) string {
		change := change
		change.ID = id
		h := testHeader()
		h.Key = key
		w, err := Create(t.TempDir(), h, []byte("name: x\n"), clock.System{})
		must(t, err)
		must(t, w.Intend(change), w.Close())
		return w.Dir()
	}
	dir := journal("x")
	r, err := Open(dir)
	must(t, err)
	if !r.Genuine(key) || !r.Sealed(key) {
		t.Errorf("its own: genuine %v, sealed %v", r.Genuine(key), r.Sealed(key))
	}
	for name, k := range map[string]Key{"another key": other, "none": nil} {
		if r.Genuine(k) || r.Sealed(k) {
			t.Errorf("%s: genuine %v, sealed %v", name, r.Genuine(k), r.Sealed(k))
		}
	}
	// What is added later carries the seal as well, and only with the key.
	for k, want := range map[*Key]bool{&key: true, &other: false} {
		r, err := Open(journal("x"))
		must(t, err)
		w, err := r.Continue(*k, clock.System{})
		must(t, err)
		again := change
		again.ID = "y"
		must(t, w.Intend(again), w.Close())
		if r, err = Open(r.Dir); err != nil || r.Sealed(key) != want {
			t.Errorf("sealed %v, %v; want %v", r.Sealed(key), err, want)
		}
	}
	// A sealed line of another run of the same user is not valid in this one.
	if r, err = Open(journal("z")); err != nil || len(r.Changes) != 1 || !r.Sealed(key) {
		t.Fatal(err)
	}
	moved := r.seals[0]
	if r, err = Open(dir); err != nil {
		t.Fatal(err)
	}
	r.seals = append(r.seals, moved)
	if r.Sealed(key) {
		t.Error("a line of another run is taken")
	}
}

// withKey returns a record whose lines are sealed, its header, and two changes.
func withKey(t *testing.T) (h Header, w *Writer, a, b area.Change) {
	t.Helper()
	h = testHeader()
	h.Key = Key(bytes.Repeat([]byte{1}, keySize))
	w, err := Create(t.TempDir(), h, nil, clock.System{})
	must(t, err)
	return h, w, area.Change{Area: "tool", Kind: "folder", ID: "a"}, area.Change{Area: "tool", Kind: "folder", ID: "b"}
}

// TestRecordGoesOnAfterItsLastLineOnly: a record that was read before somebody wrote into its journal is not continued,
// which would break its seals; read again it is, and they hold.
func TestRecordGoesOnAfterItsLastLineOnly(t *testing.T) {
	h, w, a, b := withKey(t)
	must(t, w.Intend(a), w.Close())
	stale, err := Open(w.Dir())
	must(t, err)
	undone, err := OpenOwn(w.Dir())
	must(t, err, undone.MarkUndone(h.Key, []area.Change{a}, clock.System{}))
	if _, err := stale.Continue(h.Key, clock.System{}); err == nil || !strings.Contains(err.Error(), "has changed since") {
		t.Errorf("continued from before its last line: %v", err)
	}
	r, err := Open(w.Dir())
	must(t, err)
	w, err = r.Continue(h.Key, clock.System{})
	must(t, err, w.Intend(b), w.Close())
	if r, err = Open(w.Dir()); err != nil || !r.Sealed(h.Key) || len(r.Pending()) != 1 {
		t.Errorf("sealed %v with %d changes pending, %v", r.Sealed(h.Key), len(r.Pending()), err)
	}
}

// TestCutJournalIsNotSealed: a line that was removed, repeated or exchanged shows, but for lines at the end: without
// those the run looks as if it had been killed before.
func TestCutJournalIsNotSealed(t *testing.T) {
	h, w, a, b := withKey(t)
	must(t, w.Intend(a), w.Undone(a), w.Intend(b), w.Undone(b), w.Finish(Finish{Status: Complete}), w.Close())
	r, err := Open(w.Dir())
	must(t, err)
	must(t, r.MarkUndone(h.Key, []area.Change{a}, clock.System{}))
	path, text := journal(t, w)
	lines := strings.SplitAfter(text, "\n")
	sealed := func(lines []string) bool {
		must(t, os.WriteFile(path, []byte(strings.Join(lines, "")), 0o600))
		r, err := Open(w.Dir())
		must(t, err)
		return r.Sealed(h.Key)
	}
	if !sealed(lines) {
		t.Fatal("the whole journal is not sealed")
	}
	for i := range lines[:len(lines)-1] {
		if !strings.Contains(lines[i], `"seal"`) || i == 0 {
			continue
		}
		cut := slices.Delete(slices.Clone(lines), i, i+1)
		isLast := !strings.Contains(strings.Join(lines[i+1:], ""), `"seal"`)
		if sealed(cut) != isLast {
			t.Errorf("without %s sealed is %v", lines[i], !isLast)
		}
		if sealed(slices.Insert(slices.Clone(lines), i, lines[i])) {
			t.Errorf("with %s twice it is sealed", lines[i])
		}
	}
	if sealed(slices.DeleteFunc(slices.Clone(lines), func(l string) bool { return strings.Contains(l, `"undone"`) })) {
		t.Error("without what says that changes are undone it is sealed")
	}
}

func TestKeyIsMadeOnceAndPrivate(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state", "tare")
	keys := make([]Key, 16)
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() {
			var err error
			if keys[i], err = LoadKey(dir); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	for _, k := range keys {
		if len(k) != keySize || !bytes.Equal(k, keys[0]) {
			t.Fatalf("keys differ: %x and %x", k, keys[0])
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v", left, err)
	}
	path := filepath.Join(dir, "key")
	for want, spoil := range map[string]func() error{
		"other users may read it": func() error { return os.Chmod(path, 0o644) },
		"it holds 3 bytes":        func() error { return os.WriteFile(path, []byte("abc"), 0o600) },
	} {
		must(t, os.Remove(path))
		_, err := LoadKey(dir)
		must(t, err, spoil())
		if _, err := LoadKey(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
