package hosttest

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// places is how many tests of all packages may run whole control planes at a time: two dozen would start at once, each
// with two planes of its own, and none would be ready in time.
func places() int { return runtime.GOMAXPROCS(0) + 1 }

// placed holds the names of the tests of this process that have a place.
var placed struct {
	mu    sync.Mutex
	tests map[string]bool
}

// Place waits until t is one of the few tests on this host that run control planes, and keeps the place until t has
// ended. The subtests of t share it, and so do the processes that t starts. A parallel test calls t.Parallel first.
func Place(t testing.TB) {
	t.Helper()
	switch {
	case os.Getenv(sharedBy) == "":
		t.Fatal("TestMain of this package does not call hosttest.Main")
	case host.lock == nil || isPlaced(t.Name()): // a test has started this process
		return
	}
	f, err := takePlace(filepath.Dir(host.lock.Name()), places(), time.Now().Add(patience(t)))
	if err != nil {
		t.Fatal(err)
	}
	placed.mu.Lock()
	defer placed.mu.Unlock()
	if placed.tests == nil {
		placed.tests = map[string]bool{}
	}
	placed.tests[t.Name()] = true
	t.Cleanup(func() {
		placed.mu.Lock()
		defer placed.mu.Unlock()
		delete(placed.tests, t.Name())
		_ = f.Close()
	})
}

// isPlaced reports whether a test, or one that it is a part of, has a place.
func isPlaced(name string) bool {
	placed.mu.Lock()
	defer placed.mu.Unlock()
	for {
		if placed.tests[name] {
			return true
		}
		i := strings.LastIndexByte(name, '/')
		if i < 0 {
			return false
		}
		name = name[:i]
	}
}

// takePlace locks one of n files in a directory. Closing it gives the place back.
func takePlace(dir string, n int, end time.Time) (*os.File, error) {
	files := make([]*os.File, n)
	defer func() {
		for _, f := range files {
			if f != nil {
				_ = f.Close()
			}
		}
	}()
	for i := range files {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprint("place-", i)), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		files[i] = f
	}
	for {
		for i, f := range files {
			switch err := flock(f, unix.LOCK_EX|unix.LOCK_NB); {
			case err == nil:
				files[i] = nil
				return f, nil
			case !errors.Is(err, unix.EWOULDBLOCK):
				return nil, err
			}
		}
		if time.Now().After(end) {
			return nil, fmt.Errorf("other tests still run control planes: %s; wait for them, or end them", holders(files[0]))
		}
		time.Sleep(100 * time.Millisecond)
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
