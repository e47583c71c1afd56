package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// State is a cached folder's state for the present tare.
type State string

// The states.
const (
	Current    State = "current"    // it would be used
	Old        State = "old"        // a tare built it, and the present one would not use it
	Unfinished State = "unfinished" // a build or a removal that is running or was killed
	Strange    State = "strange"    // without a marker: unknown, and never touched
)

// recently is how long a folder counts as in use after it was looked up: what is found is started a little later.
const recently = time.Minute

// An Item is one folder of a cache.
type Item struct {
	Name  string // of the folder
	Dir   string // its path
	State State
	Bytes int64     // of all its files
	Used  time.Time // when a tare last looked it up; zero: unknown
	Busy  string    // why it must not be removed now: "process 123 uses it"; empty: it may be
}

// A Survey says how to judge the folders of a cache.
type Survey struct {
	// Wanted reports whether the present tare would use the folder of this name.
	Wanted func(name string) bool
	Now    time.Time
}

// Items returns the folders of the cache, by name; none if there is no cache yet. It changes nothing. The error is a
// *NoFolder when others may write to the cache, or the system's.
func (c Cache) Items(s Survey) ([]Item, error) {
	dir, ok, err := c.existing()
	if !ok || err != nil {
		return nil, err
	}
	l := &locks{dir: dir}
	defer l.release()
	return l.items(s)
}

// existing returns the cache's folder if it exists, without making it.
func (c Cache) existing() (dir string, ok bool, err error) {
	dir, err = c.Folder()
	if err == nil {
		ok, err = exists(dir)
	}
	if !ok || err != nil {
		return dir, false, err
	}
	if dir, err = c.open(); err == nil {
		dir, err = filepath.EvalSymlinks(dir) // as the kernel names what runs from it
	}
	return dir, err == nil, err
}

// items examines every folder of the cache.
func (l *locks) items(s Survey) ([]Item, error) {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return nil, err
	}
	users, err := usersBelow("/proc", l.dir)
	if err != nil {
		return nil, fmt.Errorf("find out which folders are in use: %w", err)
	}
	var out []Item
	for _, e := range entries {
		if !e.IsDir() { // a link is not, wherever it leads
			continue
		}
		i, err := l.item(e.Name(), s)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, err
		}
		if pid, used := users[i.Name]; used && i.Busy == "" {
			i.Busy = fmt.Sprintf("process %d uses it", pid)
		}
		out = append(out, i)
	}
	return out, nil
}

// item examines one folder.
func (l *locks) item(name string, s Survey) (Item, error) {
	i := Item{Name: name, Dir: filepath.Join(l.dir, name), State: Strange}
	var err error
	if i.Bytes, err = size(i.Dir); err != nil {
		return i, err
	}
	m, at, ok := marked(i.Dir)
	lock := lockOf(name, m.Name)
	switch {
	case !ok:
		return i, nil
	case m.Name == name:
		i.Used, i.State = at, Old
		if s.Wanted(name) {
			i.State = Current
		}
		if s.Now.Sub(at) < recently {
			i.Busy = "a tare looked for it less than a minute ago"
		}
		return i, nil
	case lock == "":
		return i, nil // a copy, or renamed
	}
	i.State = Unfinished
	free, err := l.take(lock)
	if err == nil && !free {
		i.Busy = "a build is at work in it"
	}
	return i, err
}

// lockOf returns the lock under which the folder called name is filled or removed, if it is a temporary folder of the
// recipe made: see build.
func lockOf(name, made string) string {
	rest, ok := strings.CutPrefix(name, made+".")
	if rest, tmp := strings.CutSuffix(rest, ".tmp"); ok && tmp {
		if lock, _, two := strings.Cut(rest, "."); two {
			return lock
		}
	}
	return ""
}

// size returns the length of all files below dir, in bytes.
func size(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return ignoreGone(err)
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return ignoreGone(err)
	})
	return sum, err
}

// ignoreGone ignores that a build has just removed a file.
func ignoreGone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// locks are the locks that a survey holds.
type locks struct {
	dir  string
	held map[string]*os.File
}

// take takes the lock of a recipe without waiting; free is false if another process has it.
func (l *locks) take(name string) (free bool, err error) {
	if l.held[name] != nil {
		return true, nil
	}
	f, err := os.OpenFile(filepath.Join(l.dir, name+".lock"), os.O_CREATE|os.O_RDWR|syscall.O_CLOEXEC, 0o600)
	if err != nil {
		return false, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		if errors.Is(err, unix.EWOULDBLOCK) {
			err = nil
		}
		return false, errors.Join(err, f.Close())
	}
	if l.held == nil {
		l.held = map[string]*os.File{}
	}
	l.held[name] = f
	return true, nil
}

// release releases them.
func (l *locks) release() {
	for _, f := range l.held {
		_ = f.Close() // closing unlocks; there is nothing to lose in the file
	}
}
