package servers

import (
	"errors"
	"fmt"
	"os"
	"time"

	"tare/internal/clock"
)

// sync writes to a disk for d, for one call at a time, and passes the call on.
func (r *rig) sync(d time.Duration, next part) part {
	return r.work(1, func() error {
		_, err := syncFor(d)
		return err
	}, next)
}

// syncFor writes to a temporary file until d has passed, and returns how often the file reached the disk.
func syncFor(d time.Duration) (times int, err error) {
	file, err := os.CreateTemp("", "tare-sync-*")
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, file.Close(), os.Remove(file.Name())) }()
	for begun := (clock.System{}).Now(); (clock.System{}).Now().Sub(begun) < d; times++ {
		if _, err := file.WriteAt([]byte(good.body), 0); err != nil {
			return times, err
		}
		if err := file.Sync(); err != nil {
			return times, err
		}
	}
	return times, nil
}

// canWaitForDisk says why temporary files reach no disk; nil: they do. A disk takes 50 µs and more.
func canWaitForDisk() error {
	const d, fastest = 20 * ms, 50 * time.Microsecond
	times, err := syncFor(d)
	if err == nil && times > int(d/fastest) {
		err = fmt.Errorf("%d writes took %v: %s is not on a disk", times, d, os.TempDir())
	}
	return err
}
