package hosttest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// The processes of all packages under test share the lock "host"; a test that needs the host alone holds it
// exclusively. Whoever asks for it passes "gate" first, which such a test keeps meanwhile: so those that come later do
// not overtake it.
var host struct {
	mu         sync.Mutex
	gate, lock *os.File
	users      int // tests that have it alone: one, and its subtests
	exclusive  bool
}

// grace is how long the host stays reserved after a test, so that the next one of the package needs not ask again.
const grace = 100 * time.Millisecond

func isOwn(info fs.FileInfo) bool {
	st, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}

// sharedBy is set for the processes that a test starts: what their parent holds is theirs.
const sharedBy = "TARE_TEST_HOST_SHARED_BY"

// share opens the locks and shares the host until the returned function is called.
func share() (leave func(), err error) {
	if os.Getenv(sharedBy) != "" {
		return func() {}, nil
	}
	if err := os.Setenv(sharedBy, fmt.Sprint(os.Getpid())); err != nil {
		return nil, err
	}
	at := filepath.Join(os.TempDir(), fmt.Sprintf("tare-hosttest-%d", os.Getuid()))
	if err := os.Mkdir(at, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, err
	}
	if info, err := os.Lstat(at); err != nil || !info.IsDir() || !isOwn(info) {
		return nil, fmt.Errorf("%s is not a directory of this user: remove it, or set TMPDIR", at)
	}
	for name, to := range map[string]**os.File{"gate": &host.gate, "host": &host.lock} {
		if *to, err = os.OpenFile(filepath.Join(at, name), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
			return nil, err
		}
	}
	return func() {
		host.mu.Lock()
		defer host.mu.Unlock()
		host.exclusive = false
		_, _ = host.lock.Close(), host.gate.Close()
	}, lockShared()
}

func lockShared() error {
	if err := flock(host.gate, unix.LOCK_SH); err != nil {
		return err
	}
	if err := flock(host.lock, unix.LOCK_SH); err != nil {
		return err
	}
	return flock(host.gate, unix.LOCK_UN)
}

func flock(f *os.File, how int) error {
	for {
		if err := unix.Flock(int(f.Fd()), how); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// margin is how long before the time-out of go test a test gives up waiting, so that the error comes from here.
const margin = 20 * time.Second

// Alone waits until no other package is under test and keeps them waiting until t ends. Only a test that measures what
// other load would spoil needs it; whatever runs on the host besides tests is still there. Parallel tests may not call
// it.
func Alone(t testing.TB) {
	t.Helper()
	t.Setenv(sharedBy, os.Getenv(sharedBy)) // panics in a parallel test
	if host.lock == nil {
		t.Fatal("TestMain of this package does not call hosttest.Main, or a test has started this process")
	}
	if err := reserve(t); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		host.mu.Lock()
		defer host.mu.Unlock()
		if host.users--; host.users == 0 {
			time.AfterFunc(grace, downgrade)
		}
	})
}

func reserve(t testing.TB) error {
	host.mu.Lock()
	defer host.mu.Unlock()
	if host.exclusive {
		host.users++
		return nil
	}
	if err := flock(host.lock, unix.LOCK_UN); err != nil { // two that wait for each other would wait for ever
		return err
	}
	end := time.Now().Add(patience(t))
	for _, f := range []*os.File{host.gate, host.lock} {
		if _, err := lockBefore(end, f); err != nil {
			return err
		}
	}
	host.exclusive, host.users = true, 1
	return nil
}

// lockBefore takes an exclusive lock on one of the files, and returns which, unless others still hold all at end.
func lockBefore(end time.Time, files ...*os.File) (int, error) {
	for {
		for i, f := range files {
			if err := flock(f, unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
				return i, err
			}
		}
		if time.Now().After(end) {
			var all []string
			for _, f := range files {
				all = append(all, holders(f))
			}
			return 0, fmt.Errorf("other tests still run on this host: %s; wait for them, or end them", strings.Join(all, ", "))
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// patience is how long t may wait for others: until shortly before the time-out of go test.
func patience(t testing.TB) time.Duration {
	if tt, ok := t.(*testing.T); ok {
		if end, ok := tt.Deadline(); ok {
			return time.Until(end) - margin
		}
	}
	return 10 * time.Minute
}

// downgrade shares the host again, unless a test has reserved it meanwhile.
func downgrade() {
	host.mu.Lock()
	defer host.mu.Unlock()
	if host.users > 0 || !host.exclusive {
		return
	}
	host.exclusive = false
	if err := errors.Join(flock(host.lock, unix.LOCK_SH), flock(host.gate, unix.LOCK_UN)); err != nil {
		fmt.Fprintln(os.Stderr, "hosttest:", err)
	}
}

// holders names the processes that hold a lock on f.
func holders(f *os.File) string {
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return err.Error()
	}
	inode := fmt.Sprintf(":%d ", st.Ino)
	locks, err := os.ReadFile("/proc/locks")
	if err != nil {
		return "unknown: " + err.Error()
	}
	var all []string
	for line := range strings.Lines(string(locks)) {
		fields := strings.Fields(line)
		if len(fields) < 6 || fields[1] != "FLOCK" || !strings.Contains(line, inode) {
			continue
		}
		program, _ := os.Readlink("/proc/" + fields[4] + "/exe")
		all = append(all, fmt.Sprintf("%s (process %s)", filepath.Base(program), fields[4]))
	}
	if all == nil {
		return "not seen from here"
	}
	return strings.Join(all, ", ")
}
