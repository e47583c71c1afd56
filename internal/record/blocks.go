package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
)

// ReadHeader reads only the header of the record in dir.
func ReadHeader(dir string) (h Header, err error) {
	f, err := openFile(filepath.Join(dir, JournalFile))
	if err != nil {
		return h, fmt.Errorf("open record: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	line, _, err := readLine(bufio.NewReader(f))
	if err != nil {
		return h, fmt.Errorf("open record %s: %w", dir, err)
	}
	var e Entry
	if err := json.Unmarshal(line, &e); err != nil || e.Kind != KindHeader {
		return h, fmt.Errorf("open record %s: %w", dir, errNoHeader)
	}
	if err := checkSchema(JournalFile, e.Schema); err != nil {
		return h, err
	}
	err = json.Unmarshal(e.Data, &h)
	return h, err
}

// CompleteBlocks counts the leading complete blocks: those in which every treatment of the plan was measured to its
// end.
func (r *Record) CompleteBlocks() int {
	done := map[int]map[string]bool{}
	for _, t := range r.Trials {
		if done[t.Block] == nil {
			done[t.Block] = map[string]bool{}
		}
		done[t.Block][t.Treatment] = t.Complete() // the last attempt counts
	}
	for b := 0; ; b++ {
		if len(r.Plan.Treatments) == 0 {
			return 0
		}
		for _, t := range r.Plan.Treatments {
			if !done[b][t.ID] {
				return b
			}
		}
	}
}

// BatchSizes returns the number of calls in a batch by operation and treatment, which is the same in all blocks of a
// run.
func (r *Record) BatchSizes() map[string]map[string]int {
	sizes := map[string]map[string]int{}
	for _, t := range r.Trials {
		for _, b := range t.Batches {
			if sizes[b.Operation] == nil {
				sizes[b.Operation] = map[string]int{}
			}
			if sizes[b.Operation][b.Treatment] == 0 {
				sizes[b.Operation][b.Treatment] = b.N
			}
		}
	}
	return sizes
}
