package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tare/internal/clock"
	"tare/internal/config"
	"tare/internal/kit"
	"tare/internal/record"
)

// lockRecord keeps a second writer out of a record, and 'tare undo' out of a run that is still going on.
func lockRecord(dir string) (unlock func(), err error) {
	h, err := record.LockRecord(dir, record.Holder{Run: dir, Since: clock.System{}.Now()})
	if err != nil {
		return nil, withAdvice(err)
	}
	return func() { _ = h.Unlock() }, nil
}

// lockFolder returns the folder of this user's locks. Nobody else may write to it (record.Lock).
func lockFolder() string {
	for _, dir := range []string{os.Getenv("XDG_RUNTIME_DIR"), fmt.Sprintf("/run/user/%d", os.Geteuid())} {
		if st, err := os.Stat(dir); dir != "" && err == nil && st.IsDir() && record.Own(st) {
			return filepath.Join(dir, "tare-locks")
		}
	}
	if dir, err := os.UserCacheDir(); err == nil && isFolder(filepath.Dir(dir)) { // the home may not be there
		return filepath.Join(dir, "tare", "locks")
	}
	return filepath.Join(os.TempDir(), fmt.Sprintf("tare-locks-%d", os.Geteuid()))
}

func isFolder(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// withAdvice adds what to do about a lock that another run holds.
func withAdvice(err error) error {
	if held := (*record.HeldError)(nil); errors.As(err, &held) {
		return fmt.Errorf("%w; wait for it to end, or end it", err)
	}
	return err
}

// lockTargets keeps two runs from measuring each other on one target. Treatments may have targets of their own.
func lockTargets(e *config.Experiment, dir string, now time.Time) (unlock func(), err error) {
	var keys []string
	for _, s := range kit.Specs(e.Target, e.Treatments()) {
		if key := s.Says().LockKey; key != "" {
			keys = append(keys, key)
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
		h, err := record.Lock(lockFolder(), key, record.Holder{Run: dir, Since: now})
		if err != nil {
			unlock()
			return nil, withAdvice(err)
		}
		held = append(held, h)
	}
	return unlock, nil
}
