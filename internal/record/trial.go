package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"tare/internal/load"
)

// HasCalls reports whether raw calls of the trial were kept.
func (t *Trial) HasCalls() bool { return len(t.calls) > 0 }

// Calls reads the trial's raw calls, in the order of writing. From a damaged file it returns what precedes the damage;
// Open has warned of the rest.
func (t *Trial) Calls() ([]load.Call, error) {
	out := make([]load.Call, 0, t.held)
	err := t.EachCalls(func(calls []load.Call) { out = append(out, calls...) })
	return out, err
}

// EachCalls gives the trial's raw calls to f in parts, in the order in which they were written, so that they need not
// all fit into memory. f must not keep a part: the next one takes its place.
func (t *Trial) EachCalls(f func([]load.Call)) error {
	var part []load.Call
	for _, name := range t.calls {
		err := eachChunk(filepath.Join(t.dir, name), func(c *callsReader) (err error) {
			if part, err = c.next(part[:0]); err == nil {
				f(part)
			}
			return err
		})
		if err != nil && !errors.Is(err, errTorn) && !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("read %s: %w", name, err)
		}
	}
	return nil
}

// eachChunk opens a calls file and calls next until it fails. The end of the file is no error.
func eachChunk(path string, next func(*callsReader) error) (err error) {
	f, err := openFile(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	c, err := newCallsReader(f, filepath.Base(path))
	for err == nil {
		err = next(c)
	}
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// checkCalls reads all calls files once, so that damage is known before anything is computed. It keeps where the
// calls are, and no calls.
func (r *Record) checkCalls() error {
	for _, t := range r.Trials {
		for file, name := range t.calls {
			calls, scratch := 0, []load.Call(nil)
			err := eachChunk(filepath.Join(r.Dir, name), func(c *callsReader) (err error) {
				at := c.at
				if scratch, err = c.next(scratch[:0]); len(scratch) > 0 {
					t.chunks = append(t.chunks, chunkOf(file, at, scratch))
				}
				calls += len(scratch)
				return err
			})
			t.held += calls
			var newer *NewerError
			switch {
			case err == nil:
			case errors.As(err, &newer):
				return err
			case errors.Is(err, os.ErrNotExist):
				r.warn("%s is missing: the raw calls of %q in block %d are lost", name, t.Treatment, t.Block)
			default:
				r.warn("%s can be read up to call %d only: the rest is %v", name, calls, err)
			}
		}
	}
	return nil
}

// Histograms reads the trial's histograms one by one. It skips damaged ones and returns their number.
func (t *Trial) Histograms(each func(*Interval)) (damaged int, err error) {
	if len(t.cells) == 0 {
		return 0, nil
	}
	f, err := openFile(filepath.Join(t.dir, LatencyFile))
	if err != nil {
		return 0, fmt.Errorf("read histograms: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	st, err := f.Stat()
	if err != nil {
		return 0, fmt.Errorf("read histograms: %w", err)
	}
	for _, c := range t.cells {
		if c.Offset < 0 || c.Length < 0 || c.Offset > st.Size() || c.Length > st.Size()-c.Offset {
			damaged += len(c.Counts)
			continue
		}
		b := make([]byte, c.Length)
		if _, err := f.ReadAt(b, c.Offset); err != nil {
			return damaged, fmt.Errorf("read histograms: %w", err)
		}
		for line := range bytes.Lines(b) {
			iv, err := parseInterval(strings.TrimSuffix(string(line), "\n"))
			if err != nil || iv.Treatment != t.Treatment || iv.Block != t.Block {
				damaged++
				continue
			}
			each(iv)
		}
	}
	return damaged, nil
}

// addSlice keeps a slice small in memory, since a long run has thousands: it trims the lists' capacity, and shares
// names with the previous slice.
func (t *Trial) addSlice(x Slice) {
	var before Slice
	if n := len(t.Slices); n > 0 {
		before = t.Slices[n-1]
	}
	shareName(&x.Treatment, before.Treatment)
	x.Operations, x.Samples = exact(x.Operations), exact(x.Samples)
	for i := range x.Operations {
		o := &x.Operations[i]
		if i < len(before.Operations) {
			shareName(&o.Operation, before.Operations[i].Operation)
		}
		o.Outcomes = exact(o.Outcomes)
		for k := range o.Outcomes {
			o.Outcomes[k].Causes = exact(o.Outcomes[k].Causes)
		}
	}
	for i := range x.Samples {
		if i < len(before.Samples) {
			s, b := &x.Samples[i], &before.Samples[i]
			shareName(&s.Subject, b.Subject)
			shareName(&s.Metric, b.Metric)
			shareName(&s.Part, b.Part)
		}
	}
	t.Slices = append(t.Slices, x)
}

// shareName makes equal names share their storage.
func shareName(s *string, kept string) {
	if *s == kept {
		*s = kept
	}
}

// exact returns s, or a copy of it without spare capacity.
func exact[T any](s []T) []T {
	if len(s) == cap(s) {
		return s
	}
	return slices.Clip(append(make([]T, 0, len(s)), s...))
}
