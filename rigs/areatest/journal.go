package areatest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"testing"

	"tare/area"
)

// A Journal keeps changes in memory. The zero Journal is empty.
type Journal struct {
	// Deny, where set, is asked before a change is journaled; its error becomes that of Intend.
	Deny func(area.Change) error

	mu      sync.Mutex
	changes []area.Change
	open    map[[2]string]bool // by kind and ID
}

// Intend adds a change. It fails where Deny does, and for a change that is journaled already and not undone.
func (j *Journal) Intend(c area.Change) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.Deny != nil {
		if err := j.Deny(c); err != nil {
			return err
		}
	}
	key := [2]string{c.Kind, c.ID}
	if j.open[key] {
		return fmt.Errorf("%s %s is journaled twice", c.Kind, c.ID)
	}
	if j.open == nil {
		j.open = map[[2]string]bool{}
	}
	j.changes = append(j.changes, c)
	j.open[key] = true
	return nil
}

// Undone marks a change as undone. It fails for a change that is not journaled, or undone already.
func (j *Journal) Undone(c area.Change) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	key := [2]string{c.Kind, c.ID}
	if !j.open[key] {
		return fmt.Errorf("%s %s was not journaled", c.Kind, c.ID)
	}
	delete(j.open, key)
	return nil
}

// Changes returns all changes that were ever journaled, the earliest first.
func (j *Journal) Changes() []area.Change {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.changes)
}

// Pending returns the changes that are not undone, the latest first, as Area.Undo expects them.
func (j *Journal) Pending() []area.Change {
	j.mu.Lock()
	defer j.mu.Unlock()
	var out []area.Change
	seen := map[[2]string]bool{}
	for _, c := range slices.Backward(j.changes) {
		key := [2]string{c.Kind, c.ID}
		if j.open[key] && !seen[key] {
			out = append(out, c)
		}
		seen[key] = true
	}
	return out
}

// Folders returns the path of every folder that was ever journaled.
func (j *Journal) Folders() []string {
	var out []string
	for _, c := range j.Changes() {
		if c.Kind == "folder" {
			out = append(out, c.Data["path"])
		}
	}
	return out
}

// WantAllUndone fails the test where a change is pending or a journaled folder still exists.
func (j *Journal) WantAllUndone(t testing.TB) {
	t.Helper()
	if pending := j.Pending(); len(pending) > 0 {
		t.Errorf("%d journaled changes were not undone: %v", len(pending), pending)
	}
	for _, path := range j.Folders() {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s was journaled and not removed: %v", path, err)
		}
	}
}
