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
	kept   []keptChunk // the one that was used last is the last
	err    error
}

// A keptChunk is a chunk in memory, by its index into Trial.chunks.
type keptChunk struct {
	index int
	calls []load.Call
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
			calls := l.chunk(i)
			for k := range calls {
				if c := &calls[k]; c.Intended >= from && c.Intended < to && !yield(c) {
					return
				}
			}
		}
	}
}

// chunk returns the calls of a chunk; none if they cannot be read.
func (l *CallLog) chunk(i int) []load.Call {
	if k := slices.IndexFunc(l.kept, func(x keptChunk) bool { return x.index == i }); k >= 0 {
		x := l.kept[k]
		l.kept = append(slices.Delete(l.kept, k, k+1), x)
		return x.calls
	}
	calls, err := l.read(&l.t.chunks[i])
	if err != nil {
		if !errors.Is(err, errTorn) && !errors.Is(err, os.ErrNotExist) && l.err == nil {
			l.err = fmt.Errorf("read %s: %w", l.t.calls[l.t.chunks[i].file], err)
		}
		return nil
	}
	if len(l.kept) == keptChunks {
		l.kept = slices.Delete(l.kept, 0, 1)
	}
	l.kept = append(l.kept, keptChunk{i, calls})
	return calls
}

// read decodes a chunk.
func (l *CallLog) read(x *callsChunk) (calls []load.Call, err error) {
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
	return c.next(nil)
}
