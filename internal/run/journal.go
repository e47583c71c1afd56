package run

import (
	"fmt"
	"sync"

	"tare/internal/area"
	"tare/internal/unit"
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
	if len(j.unwritten) == 0 {
		return nil
	}
	return fmt.Errorf("the record cannot say that %s to the system came off: %w", unit.Count(len(j.unwritten), "change"),
		j.unwritten[0])
}
