package run

import (
	"fmt"
	"sync"

	"tare/area"
)

// journal is the record as areas see it. If the record cannot be written, for example on a full disk, areas still undo
// the rest.
type journal struct {
	to area.Journal

	mu        sync.Mutex
	unwritten []error
}

var _ area.Journal = (*journal)(nil)

// Intend implements area.Journal.
func (j *journal) Intend(c area.Change) error { return j.to.Intend(c) }

// Undone implements area.Journal. It never fails: see lost.
func (j *journal) Undone(c area.Change) error {
	if err := j.to.Undone(c); err != nil {
		j.mu.Lock()
		defer j.mu.Unlock()
		j.unwritten = append(j.unwritten, err)
	}
	return nil
}

// lost returns an error if something was undone and the record does not say so.
func (j *journal) lost() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	switch n := len(j.unwritten); n {
	case 0:
		return nil
	case 1:
		return fmt.Errorf("a change was undone, but the record cannot say so: %w", j.unwritten[0])
	default:
		return fmt.Errorf("%d changes were undone, but the record cannot say so: %w", n, j.unwritten[0])
	}
}
