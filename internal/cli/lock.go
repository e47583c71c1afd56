package cli

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tare/internal/area"
	"tare/internal/clock"
	"tare/internal/config"
	"tare/internal/record"
)

// hold keeps a second writer off a record, and its undoing off a run that is still going on.
func hold(dir string) (unlock func(), err error) {
	path, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	h, err := record.Lock(locks(), "record "+path, record.Holder{Run: dir, Since: clock.System{}.Now()})
	if err != nil {
		return nil, fmt.Errorf("%w; wait for it to end, or end it", err)
	}
	return func() { _ = h.Unlock() }, nil
}

// locks is the folder of this user's locks.
func locks() string { return filepath.Join(os.TempDir(), fmt.Sprintf("tare-locks-%d", os.Getuid())) }

// keyed is what a target section may offer: a name for the system that it points at, for systems that are not the run's own.
type keyed interface {
	LockKey() string
}

// lock keeps two runs off one target: each would measure the other. Treatments may have targets of their own.
func lock(e *config.Experiment, dir string, now time.Time) (unlock func(), err error) {
	var keys []string
	for _, s := range area.Specs(e.Target, e.Treatments()) {
		if k, ok := s.(keyed); ok && k.LockKey() != "" {
			keys = append(keys, k.LockKey())
		}
	}
	slices.Sort(keys)
	var held []*record.Held
	unlock = func() {
		for _, h := range held {
			_ = h.Unlock()
		}
	}
	for _, key := range slices.Compact(keys) {
		h, err := record.Lock(locks(), key, record.Holder{Run: dir, Since: now})
		if err != nil {
			unlock()
			return nil, fmt.Errorf("%w; wait for it to end, or end it", err)
		}
		held = append(held, h)
	}
	return unlock, nil
}
