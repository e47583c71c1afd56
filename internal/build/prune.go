package build

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// pruneLock is held while things are removed, and names folders that are being removed: see build.
const pruneLock = "prune"

// Prune removes the folders of the cache that the present tare would not use, and what killed builds left; with all, those that it would use as well. It
// returns the folders that it removed, and those that it would have removed but for their Busy. What is strange is in neither. What was removed before an
// error comes with it. The error is a *NoFolder when others may write to the cache, or the system's.
func (c Cache) Prune(s Survey, all bool) (removed, kept []Item, err error) {
	dir, ok, err := c.there()
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

// remove takes the folder away in one step, so that nobody finds half of it, and then what is in it.
func (i Item) remove(cache string) error {
	gone := i.Dir
	if i.State != Unfinished {
		gone = filepath.Join(cache, fmt.Sprintf("%s.%s.%d.tmp", i.Name, pruneLock, os.Getpid()))
		if err := os.Rename(i.Dir, gone); err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // somebody else has removed it
			}
			return err
		}
	}
	return empty(gone)
}

// empty removes a folder with all that is in it, its marker last: what is left of it when we are killed must still be known as ours.
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
