package record

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"tare/internal/clock"
	"tare/internal/files"
	"tare/internal/proc"
)

// Holder is the process that holds a lock. Ticks is its start time in clock ticks since boot, which differs if the PID
// is reused; 0 where the host does not report it.
type Holder struct {
	PID   int       `json:"pid"`
	Ticks uint64    `json:"ticks,omitempty"`
	Run   string    `json:"run"` // the run's folder
	Since time.Time `json:"since"`
}

// HeldError means that another process holds the lock.
type HeldError struct {
	Key    string
	Holder Holder
}

// Error implements error.
func (e *HeldError) Error() string {
	if e.Holder.PID == 0 {
		return fmt.Sprintf("another run uses %s", e.Key)
	}
	return fmt.Sprintf("%s is in use by run %s (process %d, since %s)", e.Key, e.Holder.Run, e.Holder.PID,
		e.Holder.Since.Format(time.RFC3339))
}

// A Held lock prevents other runs against a target.
type Held struct {
	folder  *files.Folder
	release func() // of the folder; nil: it is not held
	file    *os.File
	name    string
	Stale   *Holder // the ended process that held the lock before
}

// LockFile is the file in a record's folder that its writer locks: a run, or an undo.
const LockFile = "lock"

// LockRecord prevents a second writer of the record in dir, under any path, user or temporary folder: the lock is in
// the record's own folder. Where no file can be written there, an undo locks the folder itself. Until it is unlocked,
// this process reaches that folder under the path dir, even if another takes its place.
func LockRecord(dir string, h Holder) (*Held, error) {
	folder, err := OwnFolder(dir)
	if err != nil {
		return nil, err
	}
	l, err := lockIn(folder, LockFile, "record "+dir, h)
	if err == nil {
		l.release = folder.Hold()
	}
	return l, err
}

// OwnFolder opens the folder of a record to write into it: it must be this user's, and hold a journal. Another user may
// have put any folder of this user's in the place of the record.
func OwnFolder(dir string) (*files.Folder, error) {
	folder, err := files.Reach(dir)
	if err != nil {
		return nil, fmt.Errorf("open record: %w", err)
	}
	journal, err := folder.Open(JournalFile, os.O_RDONLY)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open record: %w", err), folder.Close())
	}
	return folder, journal.Close()
}

// Lock locks a target, with a file in folder dir, which it makes if necessary. key identifies the target, for example
// by its address; Lock fills in h.PID and h.Ticks. It returns a HeldError while another living process holds the lock.
// The kernel releases the lock when its process ends; the file's content only names the holder.
func Lock(dir, key string, h Holder) (*Held, error) {
	folder, err := files.MakeLeaf(dir)
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", key, err)
	}
	sum := sha256.Sum256([]byte(key))
	return lockIn(folder, hex.EncodeToString(sum[:8])+".lock", key, h)
}

// lockIn locks the file name in a folder, which it closes if it fails.
func lockIn(folder *files.Folder, name, key string, h Holder) (*Held, error) {
	for {
		l := &Held{folder: folder, name: name}
		if err := l.open(); err != nil {
			return nil, errors.Join(fmt.Errorf("lock %s: %w", key, err), folder.Close())
		}
		again, err := l.take(key, h)
		if err == nil && !again {
			return l, nil
		}
		if err = errors.Join(err, l.file.Close()); err != nil {
			return nil, errors.Join(err, folder.Close())
		}
	}
}

// open opens the lock's file. On a full or read-only disk it opens the existing file, or the record's folder itself: an
// undo must not need disk space.
func (l *Held) open() (err error) {
	if l.file, err = l.folder.Open(l.name, os.O_RDWR|os.O_CREATE); !noRoom(err) {
		return err
	}
	full := err
	if l.file, err = l.folder.Open(l.name, os.O_RDONLY); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if l.name != LockFile {
		return full
	}
	l.name = folderItself
	l.file, err = l.folder.Self()
	return err
}

// folderItself is the name of a Held that locks its folder instead of a file in it.
const folderItself = "."

// take locks the file and writes the holder into it; again is true if its last holder removed the file meanwhile.
func (l *Held) take(key string, h Holder) (again bool, err error) {
	locked, prior, err := l.lock()
	if err != nil {
		return false, fmt.Errorf("lock %s: %w", key, err)
	}
	if !locked {
		e := &HeldError{Key: key}
		if prior != nil {
			e.Holder = *prior
		}
		return false, e
	}
	if !l.same() {
		return true, nil
	}
	h.PID = os.Getpid()
	h.Ticks, _ = proc.StartTicks(h.PID) // 0 where the host does not report it
	b, err := json.Marshal(h)
	if err != nil {
		return false, err
	}
	if l.file.Truncate(0) == nil {
		_, _ = l.file.WriteAt(append(b, '\n'), 0) // the lock holds even if its content is unreadable
	}
	l.Stale = prior
	return false, nil
}

// A lock that outlives its holder is tried lingersMost times, lingersEvery apart.
const (
	lingersMost  = 500
	lingersEvery = 10 * time.Millisecond
)

// lock locks the file unless another process holds it. A killed holder may have been about to start a child, which
// shares the lock until it executes another program or ends; lock waits for that.
func (l *Held) lock() (locked bool, prior *Holder, err error) {
	for range lingersMost {
		locked, err = tryLock(l.file)
		if prior = readHolder(l.file); locked || err != nil || !prior.ended() {
			break
		}
		if err = (clock.System{}).Sleep(context.Background(), lingersEvery); err != nil {
			break
		}
	}
	return locked, prior, err
}

// ended reports whether the holder is known to have ended.
func (h *Holder) ended() bool {
	if h == nil || h.Ticks == 0 {
		return false
	}
	ticks, err := proc.StartTicks(h.PID)
	return errors.Is(err, fs.ErrNotExist) || err == nil && ticks != h.Ticks
}

func readHolder(f *os.File) *Holder {
	b := make([]byte, 4096)
	n, err := f.ReadAt(b, 0)
	var h Holder
	// The lock holds even if its content is unreadable.
	if (err != nil && !errors.Is(err, io.EOF)) || json.Unmarshal(b[:n], &h) != nil || h.PID == 0 {
		return nil
	}
	return &h
}

// same reports whether the name still refers to the open file.
func (l *Held) same() bool { return l.folder.Has(l.name, l.file) }

// Unlock releases the lock and removes its file.
func (l *Held) Unlock() error {
	if l.release != nil {
		l.release()
	}
	if l.name == folderItself {
		return errors.Join(l.file.Close(), l.folder.Close())
	}
	// The file is removed while still locked: a process that waits for it sees that it is gone and makes a new one.
	return errors.Join(l.folder.Remove(l.name), l.file.Close(), l.folder.Close())
}

// DropStale removes the locks in folder dir whose holders ended without releasing them. Otherwise they would stay until
// the same target is used again.
func DropStale(dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*.lock"))
	if err != nil || len(names) == 0 {
		return err
	}
	folder, err := files.Leaf(dir)
	if err != nil {
		return fmt.Errorf("remove the locks of runs that have ended: %w", err)
	}
	for _, name := range names {
		err = errors.Join(err, dropStale(folder, filepath.Base(name)))
	}
	return errors.Join(err, folder.Close())
}

// dropStale removes a lock that nobody holds. A process that has opened it meanwhile notices that it is gone (see
// take).
func dropStale(folder *files.Folder, name string) error {
	l := &Held{folder: folder, name: name}
	var err error
	if l.file, err = folder.Open(name, os.O_RDWR); err != nil {
		if errors.Is(err, os.ErrNotExist) { // released meanwhile
			return nil
		}
		return fmt.Errorf("remove lock %s: %w", name, err)
	}
	locked, err := tryLock(l.file)
	if err == nil && locked && l.same() {
		err = folder.Remove(name)
	}
	return errors.Join(err, l.file.Close())
}
