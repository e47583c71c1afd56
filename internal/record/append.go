package record

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/files"
)

// appendTo opens the record in dir so that a new process can continue the run. It cuts off a torn last line and writes
// a warning.
func appendTo(dir string, c clock.Clock, by resumption) (*Writer, error) {
	folder, err := files.Reach(dir)
	if err != nil {
		return nil, fmt.Errorf("append to record: %w", err)
	}
	dropped, err := mendTail(folder, JournalFile)
	if err == nil {
		if _, err = mendTail(folder, LatencyFile); errors.Is(err, os.ErrNotExist) {
			err = nil
		}
	}
	var f *os.File
	if err == nil {
		f, err = folder.Open(JournalFile, os.O_WRONLY|os.O_APPEND)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("append to record: %w", err), folder.Close())
	}
	w := newWriter(folder, f, c)
	w.run = nameOf(by.ID)
	if err := w.put(KindResume, by); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	if dropped > 0 {
		err := w.Warning(Warning{Text: fmt.Sprintf("the journal ended in a torn line of %d bytes, which was dropped",
			dropped)})
		if err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return w, nil
}

// Continue opens a record that was read, to append to it: it cuts off a torn last line, with a warning. It seals what
// it writes if the key is that of the record.
func (r *Record) Continue(key Key, c clock.Clock) (*Writer, error) {
	return r.goOn(key, c, resumption{ID: rand.Text()})
}

// MarkUndone records that changes are undone. The run's status stays as it was.
func (r *Record) MarkUndone(key Key, changes []area.Change, c clock.Clock) error {
	w, err := r.goOn(key, c, resumption{ID: rand.Text(), Undo: true})
	if err != nil {
		return err
	}
	for _, x := range changes {
		err = errors.Join(err, w.Undone(x))
	}
	return errors.Join(err, w.Close())
}

func (r *Record) goOn(key Key, c clock.Clock, by resumption) (*Writer, error) {
	// What is written is sealed after the last line that was read.
	if st, err := os.Stat(filepath.Join(r.Dir, JournalFile)); err != nil || st.Size() != r.size {
		return nil, errors.Join(fmt.Errorf("append to record %s: its journal has changed since it was read", r.Dir), err)
	}
	w, err := appendTo(r.Dir, c, by)
	if err == nil && r.Genuine(key) {
		w.key, w.id, w.sealed = key, r.Header.ID, r.Header.Seal
		if n := len(r.seals); n > 0 {
			w.sealed = r.seals[n-1].seal
		}
	}
	return w, err
}

// mendTail makes the file end with a complete line: it adds a missing line break, and cuts off a torn line.
func mendTail(folder *files.Folder, name string) (dropped int, err error) {
	f, err := folder.Open(name, os.O_RDWR)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	size, tail, err := lastLine(f)
	if err != nil || len(tail) == 0 {
		return 0, err
	}
	if json.Valid(tail) {
		_, err = f.WriteAt([]byte("\n"), size)
		return 0, err
	}
	return len(tail), f.Truncate(size - int64(len(tail)))
}

// lastLine returns what follows the last line break. It searches from the end.
func lastLine(f *os.File) (size int64, tail []byte, err error) {
	st, err := f.Stat()
	if err != nil {
		return 0, nil, err
	}
	size = st.Size()
	for at := size; at > 0; {
		n := min(at, 1<<16)
		at -= n
		b := make([]byte, n)
		if _, err := f.ReadAt(b, at); err != nil {
			return size, nil, err
		}
		if i := bytes.LastIndexByte(b, '\n'); i >= 0 {
			return size, append(b[i+1:], tail...), nil
		}
		tail = append(b, tail...)
	}
	return size, tail, nil
}
