package record

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"
)

// Holder says who holds a lock. Ticks is the process's start time in clock ticks since boot, so that a reused PID is told apart; 0 where the host
// does not say.
type Holder struct {
	PID   int       `json:"pid"`
	Ticks uint64    `json:"ticks,omitempty"`
	Run   string    `json:"run"` // the run's folder
	Since time.Time `json:"since"`
}

// HeldError says that somebody else holds the lock.
type HeldError struct {
	Key    string
	Holder Holder
}

// Error implements error.
func (e *HeldError) Error() string {
	if e.Holder.PID == 0 {
		return fmt.Sprintf("another run uses %s", e.Key)
	}
	return fmt.Sprintf("%s is in use by run %s (process %d, since %s)", e.Key, e.Holder.Run, e.Holder.PID, e.Holder.Since.Format(time.RFC3339))
}

// A Held lock keeps other runs off a target.
type Held struct {
	file  *os.File
	Stale *Holder // the dead process that the lock was taken over from
}

// Lock takes the lock of a target in folder dir, which is made if need be. key names the target, by its address for one; h.PID and
// h.Ticks are filled in. It returns a HeldError while another process lives that holds it. The kernel releases the lock with its
// process, so nobody has to guess whether a holder is alive; the file's content only names the holder.
func Lock(dir, key string, h Holder) (*Held, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("lock %s: %w", key, err)
	}
	sum := sha256.Sum256([]byte(key))
	path := filepath.Join(dir, hex.EncodeToString(sum[:8])+".lock")
	for {
		f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
		if err != nil {
			return nil, fmt.Errorf("lock %s: %w", key, err)
		}
		held, again, err := take(f, path, key, h)
		if err != nil || again {
			err = errors.Join(err, f.Close())
		}
		if err != nil || !again {
			return held, err
		}
	}
}

// take locks f and writes the holder into it; again is true if the file was removed by its last holder meanwhile.
func take(f *os.File, path, key string, h Holder) (held *Held, again bool, err error) {
	locked, err := tryLock(f)
	if err != nil {
		return nil, false, fmt.Errorf("lock %s: %w", key, err)
	}
	prior := readHolder(f)
	if !locked {
		e := &HeldError{Key: key}
		if prior != nil {
			e.Holder = *prior
		}
		return nil, false, e
	}
	if !same(f, path) {
		return nil, true, nil
	}
	h.PID, h.Ticks = os.Getpid(), startTicks()
	b, err := json.Marshal(h)
	if err != nil {
		return nil, false, err
	}
	if err := errors.Join(f.Truncate(0), writeAll(f, append(b, '\n'))); err != nil {
		return nil, false, fmt.Errorf("lock %s: %w", key, err)
	}
	return &Held{file: f, Stale: prior}, false, nil
}

func writeAll(f *os.File, b []byte) error {
	_, err := f.WriteAt(b, 0)
	return err
}

func readHolder(f *os.File) *Holder {
	b := make([]byte, 4096)
	n, err := f.ReadAt(b, 0)
	var h Holder
	// A lock without a readable name is a lock all the same.
	if (err != nil && !errors.Is(err, io.EOF)) || json.Unmarshal(b[:n], &h) != nil || h.PID == 0 {
		return nil
	}
	return &h
}

// same reports whether path still names the file f.
func same(f *os.File, path string) bool {
	a, err1 := f.Stat()
	b, err2 := os.Stat(path)
	return err1 == nil && err2 == nil && os.SameFile(a, b)
}

// Unlock gives the lock back and removes its file.
func (h *Held) Unlock() error {
	// Removed while still locked: whoever waits for this file sees that it is gone and makes a new one.
	return errors.Join(os.Remove(h.file.Name()), h.file.Close())
}
