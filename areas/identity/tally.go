package identity

import (
	"context"
	"hash/maphash"
	"sync"
	"sync/atomic"

	"tare/internal/metric"
	"tare/internal/probe"
)

// A tally counts the different tokens that callers got. Each reading of the probe begins anew, so that the tokens of
// one point of a ladder are counted whether or not an earlier point had them, too; the sum goes on. It keeps hashes, no
// tokens.
type tally struct {
	seed  maphash.Seed
	epoch atomic.Uint64
	last  []atomic.Uint64 // by identity: the hash of its last token in this epoch

	mu    sync.Mutex
	seen  map[uint64]struct{}
	total uint64 // of earlier epochs
	full  bool   // there were more than can be counted
}

var _ probe.Probe = (*tally)(nil)

// maxTokens bounds the memory of a tally to some 40 MB.
const maxTokens = 1 << 20

func newTally(identities int) *tally {
	return &tally{seed: maphash.MakeSeed(), last: make([]atomic.Uint64, identities), seen: map[uint64]struct{}{}}
}

// saw takes in a good token of an identity. A nil tally counts nothing.
func (t *tally) saw(key int, token []byte) {
	if t == nil {
		return
	}
	h := maphash.Bytes(t.seed, token)
	mark := h ^ t.epoch.Load()
	if t.last[key].Load() == mark {
		return
	}
	t.mu.Lock()
	if t.full = t.full || len(t.seen) == maxTokens; !t.full {
		t.seen[h] = struct{}{}
	}
	t.mu.Unlock()
	t.last[key].Store(mark)
}

// Subject implements probe.Probe.
func (*tally) Subject() string { return serverEndpoint }

// Read implements probe.Probe.
func (t *tally) Read(context.Context) ([]metric.Sample, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.total += uint64(len(t.seen))
	clear(t.seen)
	t.epoch.Add(0x9e3779b97f4a7c15) // any odd number: no epoch comes twice
	if t.full {
		return nil, nil // not known is absent
	}
	return []metric.Sample{{Subject: serverEndpoint, Metric: probe.Distinct.Name, Value: float64(t.total)}}, nil
}
