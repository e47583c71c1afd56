package record

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"
	"math"
	"os"
	"path/filepath"
	"slices"
	"time"

	"tare/internal/load"
)

// A callsChunk is where a chunk of calls begins, and when its first and last calls were due.
type callsChunk struct {
	file        int   // index into Trial.calls
	at          int64 // offset in it
	first, last time.Duration
}

// chunkOf returns where calls lie that begin at an offset in a file. Those of a damaged record may be in any order.
func chunkOf(file int, at int64, calls []load.Call) callsChunk {
	x := callsChunk{file: file, at: at, first: calls[0].Intended, last: calls[0].Intended}
	for i := range calls {
		x.first, x.last = min(x.first, calls[i].Intended), max(x.last, calls[i].Intended)
	}
	return x
}

// keptChunks is how many chunks a CallLog keeps in memory: half a million calls, which take 30 MB.
const keptChunks = 64

// A CallLog reads the raw calls of a trial chunk by chunk, so that they need not all fit into memory. It implements
// load.Log, except that a file that cannot be read ends it early: see Err.
type CallLog struct {
	t      *Trial
	reader callsReader
	kept   []*keptChunk // the one that was used last is the last
	err    error
}

// A keptChunk is a chunk in memory, by its index into Trial.chunks.
type keptChunk struct {
	index int
	calls []load.Call
	users int // how many iterations are in it
}

// Log returns the trial's raw calls, which are read when they are asked for.
func (t *Trial) Log() *CallLog { return &CallLog{t: t} }

// Len implements load.Log.
func (l *CallLog) Len() int { return l.t.held }

// Err returns the first error of reading the calls. What follows damage is left out without an error; Open has warned
// of it.
func (l *CallLog) Err() error { return l.err }

// Due implements load.Log.
func (l *CallLog) Due(from, to time.Duration) iter.Seq[*load.Call] {
	return func(yield func(*load.Call) bool) {
		for i := range l.t.chunks {
			if x := &l.t.chunks[i]; x.last < from || x.first >= to {
				continue
			}
			if !l.chunk(i).yieldDue(from, to, yield) {
				return
			}
		}
	}
}

// yieldDue yields the calls that were due in [from, to), until yield returns false.
func (x *keptChunk) yieldDue(from, to time.Duration, yield func(*load.Call) bool) bool {
	x.users++
	defer func() { x.users-- }()
	for k := range x.calls {
		if c := &x.calls[k]; c.Intended >= from && c.Intended < to && !yield(c) {
			return false
		}
	}
	return true
}

// chunk returns a chunk, without calls if they cannot be read.
func (l *CallLog) chunk(i int) *keptChunk {
	if k := slices.IndexFunc(l.kept, func(x *keptChunk) bool { return x.index == i }); k >= 0 {
		x := l.kept[k]
		l.kept = append(slices.Delete(l.kept, k, k+1), x)
		return x
	}
	x := l.place()
	calls, err := l.read(&l.t.chunks[i], x.calls[:0])
	if err != nil {
		if !errors.Is(err, errTorn) && !errors.Is(err, os.ErrNotExist) && l.err == nil {
			l.err = fmt.Errorf("read %s: %w", l.t.calls[l.t.chunks[i].file], err)
		}
		return &keptChunk{}
	}
	x.index, x.calls = i, calls
	l.kept = append(l.kept, x)
	return x
}

// place returns a place for a chunk: that of the chunk which was not used for the longest time, if as many are kept as
// may be, with the memory of its calls.
func (l *CallLog) place() *keptChunk {
	if len(l.kept) < keptChunks {
		return &keptChunk{}
	}
	k := slices.IndexFunc(l.kept, func(x *keptChunk) bool { return x.users == 0 })
	if k < 0 {
		return &keptChunk{}
	}
	x := l.kept[k]
	l.kept = slices.Delete(l.kept, k, k+1)
	return x
}

// read decodes a chunk behind the calls in dst.
func (l *CallLog) read(x *callsChunk, dst []load.Call) (calls []load.Call, err error) {
	c := &l.reader
	c.file = l.t.calls[x.file]
	f, err := openFile(filepath.Join(l.t.dir, c.file))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	chunk := io.NewSectionReader(f, x.at, math.MaxInt64-x.at)
	if c.r == nil {
		c.r = bufio.NewReaderSize(chunk, 1<<16)
	}
	c.r.Reset(chunk)
	return c.next(dst)
}
