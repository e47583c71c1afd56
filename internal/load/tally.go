package load

import (
	"runtime"
	"sync/atomic"
)

// The counters of a tally, in order.
const (
	nDue = iota
	nSent
	nUnsent
	nHeld
	nWaiting
	nInFlight
	nEstablished
	nConnecting
	nBytesIn
	nBytesOut
	nDone    // Outcomes of them
	counters = nDone + Outcomes
)

// A tally is what one shard has counted since the stream was opened.
type tally [counters]uint64

// A board publishes a shard's tally to other goroutines: a sequence lock, since the counters belong together.
type board struct {
	seq   atomic.Uint64
	shown [counters]atomic.Uint64
}

// publish shows t. Only one goroutine may call it.
func (b *board) publish(t *tally) {
	b.seq.Add(1)
	for i, v := range t {
		if b.shown[i].Load() != v {
			b.shown[i].Store(v)
		}
	}
	b.seq.Add(1)
}

// addTo adds the last published tally.
func (b *board) addTo(p *Progress) {
	var t tally
	for {
		before := b.seq.Load()
		for i := range t {
			t[i] = b.shown[i].Load()
		}
		if before%2 == 0 && b.seq.Load() == before {
			break
		}
		runtime.Gosched()
	}
	t.addTo(p)
}

func (t *tally) addTo(p *Progress) {
	p.Due += t[nDue]
	p.Sent += t[nSent]
	p.UnsentTimeouts += t[nUnsent]
	p.Held += t[nHeld]
	p.Waiting += int(t[nWaiting])
	p.InFlight += int(t[nInFlight])
	p.Established += int(t[nEstablished])
	p.Connecting += int(t[nConnecting])
	p.BytesIn += t[nBytesIn]
	p.BytesOut += t[nBytesOut]
	for i := range p.Done {
		p.Done[i] += t[nDone+i]
	}
}
