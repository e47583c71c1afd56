//go:build amd64 || arm64 || riscv64

package load

import (
	"fmt"
	"runtime"
	"sync"
	"time"
)

// fastMissing says why engine fast is not available on this system.
const fastMissing = ""

// fast carries HTTP/1.1, in plaintext or over TLS: one event loop per shard, each on an OS thread of its own.
type fast struct {
	shards []*shard
	loops  sync.WaitGroup
}

var _ carrier = (*fast)(nil)

func newFast(c Config, clock streamClock) (carrier, error) {
	f := &fast{}
	handoff := c.Shards >= runtime.GOMAXPROCS(0)
	for k := range c.Shards {
		s, err := newShard(c, clock, k)
		if err != nil {
			_ = f.close()
			return nil, fmt.Errorf("start engine fast: %w", err)
		}
		s.handoff = handoff
		f.shards = append(f.shards, s)
		f.loops.Go(s.run)
	}
	return f, nil
}

func (f *fast) begin(g *segment) {
	g.left = len(f.shards)
	for _, s := range f.shards {
		s.post(func() { s.begin(g) })
	}
}

func (f *fast) end(g *segment) {
	for _, s := range f.shards {
		s.post(func() { s.end(g) })
	}
}

func (f *fast) progress(p *Progress) {
	for _, s := range f.shards {
		s.board.addTo(p)
	}
}

func (f *fast) meter(m *Meter) {
	m.loops, m.threads = true, map[int]threadTime{}
	for _, s := range f.shards {
		id := int(s.thread.Load())
		if t, ok := threadTimes(id); ok {
			m.threads[id] = t
		}
		m.ids, m.spun = append(m.ids, id), append(m.spun, s.spun.Load())
		s.unread.addTo(&m.unread)
	}
}

func (f *fast) calls(since time.Duration) [][]Call {
	lists := make([][]Call, len(f.shards))
	for k, s := range f.shards {
		lists[k] = s.ledger.since(since)
	}
	return lists
}

func (f *fast) take() []table {
	tables := make([]table, len(f.shards))
	f.each(func(k int, s *shard) { tables[k], s.table = s.table, newTable(len(s.cfg.Operations)) })
	return tables
}

func (f *fast) dropIdle() { f.each(func(_ int, s *shard) { s.dropIdle() }) }
func (f *fast) reset()    { f.each(func(_ int, s *shard) { s.reset() }) }

// each runs do in every shard and waits for all.
func (f *fast) each(do func(k int, s *shard)) {
	var all sync.WaitGroup
	for k, s := range f.shards {
		all.Add(1)
		s.post(func() {
			defer all.Done()
			do(k, s)
			s.board.publish(&s.tally)
		})
	}
	all.Wait()
}

func (f *fast) close() error {
	for _, s := range f.shards {
		s.post(func() { s.closing = true })
	}
	f.loops.Wait()
	return nil
}
