package hosttest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
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
	files := make([]*os.File, 0, n)
	taken := -1
	defer func() {
		for i, f := range files {
			if i != taken {
				_ = f.Close()
			}
		}
	}()
	for i := range n {
		f, err := os.OpenFile(filepath.Join(dir, fmt.Sprint("place-", i)), os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, err
		}
		files = append(files, f)
	}
	i, err := lockBefore(end, files...)
	if err != nil {
		return nil, err
	}
	taken = i
	return files[i], nil
}
