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

// lockFolders returns the folders of this user's locks. Nobody else may write to them (record.Lock). A run locks in all
// of them: the environment of another run of this user's may name some of them alone, as that of cron does.
func lockFolders() (out []string) {
	for _, dir := range []string{os.Getenv("XDG_RUNTIME_DIR"), fmt.Sprintf("/run/user/%d", os.Geteuid())} {
		if st, err := os.Stat(dir); dir != "" && err == nil && st.IsDir() && record.Own(st) {
			out = append(out, filepath.Join(dir, "tare-locks"))
		}
	}
	if dir, err := os.UserCacheDir(); err == nil && isFolder(filepath.Dir(dir)) { // the home may not be there
		out = append(out, filepath.Join(dir, "tare", "locks"))
	}
	if len(out) == 0 {
		out = []string{filepath.Join(os.TempDir(), fmt.Sprintf("tare-locks-%d", os.Geteuid()))}
	}
	slices.Sort(out) // two runs take those that they share in one order
	return slices.Compact(out)
}

// lock keeps other runs of this user's from what the key names. One folder has to take the lock; that others cannot, as
// on a disk that may not be written, is no error.
func lock(key string, h record.Holder) (unlock func(), err error) {
	var held []*record.Held
	unlock = func() {
		for _, l := range held {
			_ = l.Unlock()
		}
	}
	var failed error
	for _, dir := range lockFolders() {
		l, err := record.Lock(dir, key, h)
		switch {
		case err == nil:
			held = append(held, l)
		case errors.As(err, new(*record.HeldError)):
			unlock()
			return nil, withAdvice(err)
		default:
			failed = errors.Join(failed, err)
		}
	}
	if len(held) == 0 {
		return nil, failed
	}
	return unlock, nil
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
	var held []func()
	unlock = func() {
		for _, free := range held {
			free()
		}
	}
	for _, key := range slices.Compact(keys) {
		free, err := lock(key, record.Holder{Run: dir, Since: now})
		if err != nil {
			unlock()
			return nil, err
		}
		held = append(held, free)
	}
	return unlock, nil
}
