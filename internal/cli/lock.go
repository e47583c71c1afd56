package cli

import (
	"errors"
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
	h, err := record.LockRecord(dir, record.Holder{Run: dir, Since: clock.System{}.Now()})
	if err != nil {
		return nil, advised(err)
	}
	return func() { _ = h.Unlock() }, nil
}

// locks is the folder of this user's locks. Nobody else may write it (record.Lock).
func locks() string {
	for _, dir := range []string{os.Getenv("XDG_RUNTIME_DIR"), fmt.Sprintf("/run/user/%d", os.Geteuid())} {
		if st, err := os.Stat(dir); dir != "" && err == nil && st.IsDir() && record.Own(st) {
			return filepath.Join(dir, "tare-locks")
		}
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("tare-locks-%d", os.Geteuid()))
}

// advised says what to do about a lock that another run holds.
func advised(err error) error {
	if held := (*record.HeldError)(nil); errors.As(err, &held) {
		return fmt.Errorf("%w; wait for it to end, or end it", err)
	}
	return err
}

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
			return nil, advised(err)
		}
		held = append(held, h)
	}
	return unlock, nil
}
