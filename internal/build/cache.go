// Package build builds what tare needs and its own binary does not include: once, into a cache folder of the user.
// Results appear atomically; if several processes want the same, one builds and the others wait.
package build

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"tare/internal/clock"
	"tare/internal/files"
	"tare/internal/proc"
)

// Variable is the environment variable that names the cache folder, instead of the user's own.
const Variable = "TARE_CACHE"

const (
	usualWithin = 15 * time.Minute // long enough for a slow network
	lockEvery   = 200 * time.Millisecond
)

// A Cache is a folder of built results.
type Cache struct {
	Dir string // empty: see Folder
	// Sub is a subfolder of tare's cache folder: "engines".
	Sub    string
	Log    *slog.Logger
	Getenv func(name string) (string, bool)
}

// Folder returns the cache's folder: Dir, or $TARE_CACHE/Sub, or tare/Sub in the user's cache folder.
func (c Cache) Folder() (string, error) {
	if c.Dir != "" {
		return filepath.Abs(c.Dir)
	}
	if dir, ok := c.Getenv(Variable); ok && dir != "" {
		dir, err := filepath.Abs(dir)
		return filepath.Join(dir, c.Sub), err
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "tare", c.Sub), nil
}

// NoFolder means that a cache cannot be used; the user can set Variable.
type NoFolder struct{ Err error }

// Error implements error.
func (n *NoFolder) Error() string { return "no cache folder for built programs: " + n.Err.Error() }

// Unwrap returns the cause.
func (n *NoFolder) Unwrap() error { return n.Err }

// open makes the folder if necessary. It rejects a folder that others may write to or replace, since programs are run
// from it.
func (c Cache) open() (string, error) {
	dir, err := c.Folder()
	if err != nil {
		return "", &NoFolder{err}
	}
	if err := files.Trusted(dir); err != nil {
		return "", &NoFolder{err}
	}
	return dir, nil
}

// Has returns the folder of the recipe with this name, and whether it has been built. The error is a *NoFolder when the
// cache cannot be used.
func (c Cache) Has(name string) (dir string, ok bool, err error) {
	cache, err := c.open()
	if err != nil {
		return "", false, err
	}
	dir = filepath.Join(cache, name)
	ok, err = exists(dir)
	if ok {
		touch(dir)
	}
	return dir, ok, err
}

// A Recipe builds one folder of the cache.
type Recipe struct {
	Name string // of the folder: what it is, and a hash of all its inputs
	// Lock names a lock shared by recipes that must not be built at the same time, because they share more than their
	// folder: letters only.
	Lock string
	// Within bounds the build and the wait for another's; 0 is 15 minutes.
	Within time.Duration
	// Waiting is called once if another process holds the lock; nil: that is logged.
	Waiting func()
	// Make fills the folder dir.
	Make func(ctx context.Context, dir string) error
}

// Get returns the folder of r, and builds it if necessary. Errors are Make's, the context's, and *NoFolder.
func (c Cache) Get(ctx context.Context, r Recipe) (string, error) {
	final, ok, err := c.Has(r.Name)
	if ok || err != nil {
		return final, err
	}
	if r.Within == 0 {
		r.Within = usualWithin
	}
	ctx, cancel := context.WithTimeout(ctx, r.Within)
	defer cancel()
	cache := filepath.Dir(final)
	unlock, err := c.acquire(ctx, filepath.Join(cache, r.Lock+".lock"), r)
	if err != nil {
		return "", fmt.Errorf("build %s: %w", r.Name, err)
	}
	defer unlock()
	if ok, err := exists(final); ok || err != nil {
		return final, err
	}
	return final, r.build(ctx, cache, final)
}

// build builds beside the final folder, so that the rename at the end is atomic. The lock must be held.
func (r Recipe) build(ctx context.Context, cache, final string) (err error) {
	if err := r.clear(cache); err != nil {
		return err
	}
	tmp, err := os.MkdirTemp(cache, r.Name+"."+r.Lock+".*.tmp")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(tmp))
		}
	}()
	if err := mark(tmp, r.Name); err != nil {
		return err
	}
	if err := r.Make(ctx, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, final)
}

// clear removes the remains of killed builds: under the lock, no other build is running. Older versions of a recipe
// have other names.
func (r Recipe) clear(cache string) error {
	entries, err := os.ReadDir(cache)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if ours, err := filepath.Match("*."+r.Lock+".*.tmp", e.Name()); err != nil {
			return err
		} else if ours {
			left := filepath.Join(cache, e.Name())
			if err := errors.Join(endBuild(left), os.RemoveAll(left)); err != nil {
				return err
			}
		}
	}
	return nil
}

// endBuild ends what still runs of a killed build in dir: its compilers outlive the go command, which alone ends with
// tare.
func endBuild(dir string) error { return proc.EndMarked(markVariable+"="+dir, 0) }

// acquire takes a lock that ends with this process in any case.
func (c Cache) acquire(ctx context.Context, file string, r Recipe) (unlock func(), err error) {
	f, err := os.OpenFile(file, os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, err
	}
	told := false
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			return func() { _ = f.Close() }, nil // closing unlocks; there is nothing to lose in the file
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", file, err), f.Close())
		}
		if !told {
			c.logWaiting(r)
			told = true
		}
		if err := (clock.System{}).Sleep(ctx, lockEvery); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
}

func (c Cache) logWaiting(r Recipe) {
	if r.Waiting != nil {
		r.Waiting()
		return
	}
	c.Log.Info("another process is building: waiting for it", slog.String("for", r.Name))
}

// exists reports whether there is a file or folder; it fails for any error but its absence.
func exists(path string) (bool, error) {
	_, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
