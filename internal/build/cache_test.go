package build_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/build"
)

func newCache(t *testing.T) build.Cache {
	t.Helper()
	return build.Cache{
		Dir: filepath.Join(t.TempDir(), "my [cache"), Sub: "engines", Log: slog.New(slog.DiscardHandler),
		Getenv: os.LookupEnv,
	}
}

// TestBuiltOnce: if many want the same at the same time, one builds, and all get the complete result.
func TestBuiltOnce(t *testing.T) {
	c := newCache(t)
	var builds atomic.Int32
	r := build.Recipe{Name: "x", Lock: "x", Make: func(_ context.Context, dir string) error {
		builds.Add(1)
		if err := os.WriteFile(filepath.Join(dir, "one"), nil, 0o600); err != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
		return os.WriteFile(filepath.Join(dir, "two"), nil, 0o600)
	}}
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			dir, err := c.Get(t.Context(), r)
			if err != nil {
				t.Error(err)
				return
			}
			for _, name := range []string{"one", "two"} {
				if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := builds.Load(); n != 1 {
		t.Errorf("built %d times", n)
	}
}

// TestBuildThatFailsLeavesNothing, and the next build removes what a killed one left.
func TestBuildThatFailsLeavesNothing(t *testing.T) {
	c := newCache(t)
	// the last one may be at work
	for _, left := range []string{"x.lock1.123.tmp", "x-older.1.lock1.124.tmp", "y.lock2.125.tmp"} {
		if err := os.MkdirAll(filepath.Join(c.Dir, left), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	no := errors.New("no")
	fail := build.Recipe{Name: "x", Lock: "lock1", Make: func(context.Context, string) error { return no }}
	if _, err := c.Get(t.Context(), fail); !errors.Is(err, no) {
		t.Errorf("error %v", err)
	}
	entries, err := os.ReadDir(c.Dir)
	var left []string
	for _, e := range entries {
		left = append(left, e.Name())
	}
	if diff := cmp.Diff([]string{"lock1.lock", "y.lock2.125.tmp"}, left); diff != "" || err != nil {
		t.Errorf("left: %s (%v)", diff, err)
	}
	if dir, ok, err := c.Has("x"); ok || err != nil {
		t.Errorf("%q is said to be there (%v)", dir, err)
	}
	works := build.Recipe{Name: "x", Lock: "lock1", Make: func(context.Context, string) error { return nil }}
	if dir, err := c.Get(t.Context(), works); err != nil || dir != filepath.Join(c.Dir, "x") {
		t.Errorf("after the failure: %q, %v", dir, err)
	}
	if dir, ok, err := c.Has("x"); !ok || err != nil || dir != filepath.Join(c.Dir, "x") {
		t.Errorf("%q is not there (%v)", dir, err)
	}
}

// TestKilledBuildIsEnded: the compilers of a killed build outlive it, and end before the next one begins. Those of
// a build that may be at work do not.
func TestKilledBuildIsEnded(t *testing.T) {
	c := newCache(t)
	var ended [2]chan struct{}
	for i, left := range []string{"x.lock1.123.tmp", "y.lock2.125.tmp"} {
		dir := filepath.Join(c.Dir, left)
		if err := os.MkdirAll(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		ended[i] = make(chan struct{})
		started := make(chan struct{})
		go func() {
			defer close(ended[i])
			_, _ = build.Step{
				Path: "/bin/sh", Args: []string{"-c", "echo; exec sleep 60"}, Env: []string{"TARE_BUILD=" + dir},
				Progress: func(string) { close(started) },
			}.Run(ctx)
		}()
		t.Cleanup(func() { cancel(); <-ended[i] })
		<-started
	}
	works := build.Recipe{Name: "x", Lock: "lock1", Make: func(context.Context, string) error {
		<-ended[0]
		return nil
	}}
	if _, err := c.Get(t.Context(), works); err != nil {
		t.Error(err)
	}
	select {
	case <-ended[1]:
		t.Error("a build under another lock was ended")
	default:
	}
}

// TestWaitForAnotherBuildEnds with the context, and is reported once: to the caller, or in the log.
func TestWaitForAnotherBuildEnds(t *testing.T) {
	c := newCache(t)
	var log bytes.Buffer
	c.Log = slog.New(slog.NewTextHandler(&log, nil))
	has, free := make(chan struct{}), make(chan struct{})
	var other sync.WaitGroup
	other.Go(func() {
		_, err := c.Get(t.Context(), build.Recipe{Name: "y", Lock: "x", Make: func(context.Context, string) error {
			close(has)
			<-free
			return nil
		}})
		if err != nil {
			t.Error(err)
		}
	})
	<-has
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := c.Get(ctx, build.Recipe{Name: "x", Lock: "x"}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	told := 0
	r := build.Recipe{Name: "x", Lock: "x", Within: 500 * time.Millisecond, Waiting: func() { told++ }}
	if _, err := c.Get(t.Context(), r); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
	close(free)
	other.Wait()
	if n := strings.Count(log.String(), "waiting for it"); n != 1 || told != 1 {
		t.Errorf("the log told %d times, the caller was told %d times: %s", n, told, &log)
	}
}

func TestFolder(t *testing.T) {
	for _, c := range []struct{ dir, variable, want string }{
		{"/a", "/b", "/a"},
		{"", "/b", "/b/engines"},
		{"", "", "/c/tare/engines"},
	} {
		t.Setenv("XDG_CACHE_HOME", "/c")
		got, err := build.Cache{Dir: c.dir, Sub: "engines", Getenv: func(string) (string, bool) {
			return c.variable,
				c.variable != ""
		}}.Folder()
		if err != nil || got != c.want {
			t.Errorf("%q (%v), want %q", got, err, c.want)
		}
	}
}

// TestUnsafeCacheIsRejected: programs run from the cache must be those that tare put there.
func TestUnsafeCacheIsRejected(t *testing.T) {
	open := filepath.Join(t.TempDir(), "open")
	if err := errors.Join(os.Mkdir(open, 0o700), os.Chmod(open, 0o777)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for dir, says := range map[string]string{open: "written by other users", filepath.Join(file, "x"): "not a directory"} {
		c := newCache(t)
		c.Dir = dir
		_, _, err1 := c.Has("x")
		_, err2 := c.Get(t.Context(), build.Recipe{Name: "x", Lock: "x"})
		for _, err := range []error{err1, err2} {
			if none := new(build.NoFolder); !errors.As(err, &none) || !strings.Contains(none.Error(), says) {
				t.Errorf("%s: %v, want %q", dir, err, says)
			}
		}
	}
}
