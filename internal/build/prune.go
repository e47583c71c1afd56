package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// pruneLock is held during removal, and prefixes the names of folders that are being removed: see build.
const pruneLock = "prune"

// Prune removes the folders of the cache that the present tare would not use, and the remains of killed builds; with
// all, also those that it would use. It returns the removed folders, and those kept because they are Busy; Strange ones
// are in neither. It returns what it removed even with an error. The error is a *NoFolder when others may write to the
// cache, or the system's.
func (c Cache) Prune(s Survey, all bool) (removed, kept []Item, err error) {
	dir, ok, err := c.existing()
	if !ok || err != nil {
		return nil, nil, err
	}
	l := &locks{dir: dir}
	defer l.release()
	free, err := l.take(pruneLock)
	if err == nil && !free {
		err = errors.New("another process is removing things from " + dir)
	}
	if err != nil {
		return nil, nil, err
	}
	items, err := l.items(s)
	if err != nil {
		return nil, nil, err
	}
	for _, i := range items {
		switch {
		case i.State == Strange, i.State == Current && !all:
			continue
		case i.Busy != "":
			kept = append(kept, i)
			continue
		}
		if err := i.remove(dir); err != nil {
			return removed, kept, fmt.Errorf("remove %s: %w", i.Dir, err)
		}
		removed = append(removed, i)
	}
	return removed, kept, nil
}

// remove renames the folder first, so that no process finds half of it, and then deletes it.
func (i Item) remove(cache string) error {
	gone := i.Dir
	if err := endBuild(i.Dir); err != nil {
		return err
	}
	if i.State != Unfinished {
		gone = filepath.Join(cache, fmt.Sprintf("%s.%s.%d.tmp", i.Name, pruneLock, os.Getpid()))
		if err := os.Rename(i.Dir, gone); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // another process has removed it
			}
			return err
		}
	}
	return empty(gone)
}

// empty deletes a folder, its marker last: if tare is killed meanwhile, the rest must still be recognizable.
func empty(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if e.Name() == markerFile {
			continue
		}
		if err := os.RemoveAll(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return os.RemoveAll(dir)
}
