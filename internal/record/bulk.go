package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"tare/internal/load"
)

// Calls adds raw calls, in the order of their intended instants, to the open trial of this treatment and block. It may
// be called again with later calls.
func (w *Writer) Calls(treatment string, block int, calls []load.Call) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	f, err := w.callsFile(trialKey{treatment, block})
	if err != nil {
		return fmt.Errorf("write calls: %w", err)
	}
	var b []byte
	for len(calls) > 0 {
		n := min(len(calls), chunkCalls)
		var prev time.Duration
		b = b[:0]
		for i := range calls[:n] {
			b = appendCall(b, &calls[i], prev)
			prev = calls[i].Intended
		}
		if err := writeChunk(f, chunkCall, n, b); err != nil {
			return w.fail(err)
		}
		calls = calls[n:]
	}
	return nil
}

// callsFile opens the trial's file, journaling its name first.
func (w *Writer) callsFile(key trialKey) (*os.File, error) {
	if w.err != nil {
		return nil, w.err
	}
	if f := w.calls[key]; f != nil {
		return f, nil
	}
	t, ok := w.trials[key]
	if !ok {
		return nil, fmt.Errorf("no open trial of %q in block %d", key.treatment, key.block)
	}
	meta, err := json.Marshal(callsMeta{
		Schema: Schema, Treatment: key.treatment, Block: key.block,
		Operations: t.operations,
	})
	if err != nil {
		return nil, err
	}
	f, err := w.newCallsFile()
	if err != nil {
		return nil, err
	}
	w.calls[key] = f
	ref := callsRef{Treatment: key.treatment, Block: key.block, File: filepath.Base(f.Name())}
	if err := w.putLocked(KindCalls, ref); err != nil {
		return nil, err
	}
	return f, w.fail(writeChunk(f, chunkMeta, 0, meta))
}

func (w *Writer) newCallsFile() (*os.File, error) {
	for i := 0; ; i++ {
		f, err := w.folder.Open(fmt.Sprintf("calls-%04d.bin", i), os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND)
		if err == nil || !errors.Is(err, os.ErrExist) {
			return f, err
		}
	}
}

// Cells adds the histograms of the open trial of this treatment and block, except empty ones.
func (w *Writer) Cells(treatment string, block int, cells []load.Cell) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err != nil {
		return w.err
	}
	t, ok := w.trials[trialKey{treatment, block}]
	if !ok {
		return fmt.Errorf("write histograms: no open trial of %q in block %d", treatment, block)
	}
	now := w.clock.Now()
	lines, counts, err := encodeCells(Interval{
		Treatment: treatment, Block: block, Start: t.begin,
		Length: now.Sub(t.begin),
	}, t.operations, cells)
	if err != nil {
		return err
	}
	at, err := w.appendLatency(lines, t.begin)
	if err != nil {
		return w.fail(err)
	}
	return w.putLocked(KindCells, cellsRef{
		Treatment: treatment, Block: block, Offset: at, Length: int64(len(lines)),
		Counts: counts,
	})
}

// encodeCells returns the lines of the latency file and the counts for the journal. base carries the coordinates that
// all cells share.
func encodeCells(base Interval, operations []string, cells []load.Cell) (lines []byte, counts []Count, err error) {
	for _, c := range cells {
		if c.Operation < 0 || c.Operation >= len(operations) {
			return nil, nil, fmt.Errorf("write histograms: no operation %d among %q", c.Operation, operations)
		}
		iv := base
		iv.Operation, iv.Outcome = operations[c.Operation], c.Outcome
		if c.Response != nil && c.Response.Count() > 0 {
			counts = append(counts, Count{
				Operation: iv.Operation, Outcome: c.Outcome, Count: c.Response.Count(),
				Unsent: c.Unsent,
			})
		}
		for _, part := range parts(&c) {
			if part.hist == nil || part.hist.Count() == 0 {
				continue
			}
			iv.Measure, iv.Hist = part.measure, part.hist
			if lines, err = appendInterval(lines, &iv); err != nil {
				return nil, nil, err
			}
		}
	}
	return lines, counts, nil
}

func (w *Writer) appendLatency(lines []byte, start time.Time) (at int64, err error) {
	if w.latency == nil {
		f, err := w.folder.Open(LatencyFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND)
		if err != nil {
			return 0, err
		}
		w.latency = f
	}
	st, err := w.latency.Stat()
	if err != nil {
		return 0, err
	}
	at = st.Size()
	if at == 0 {
		head := latencyHead(start)
		if _, err := w.latency.Write(head); err != nil {
			return 0, err
		}
		at = int64(len(head))
	}
	_, err = w.latency.Write(lines)
	return at, err
}
