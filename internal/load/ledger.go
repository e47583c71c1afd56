package load

import (
	"math"
	"slices"
	"sort"
	"sync/atomic"
	"time"
)

// An entry is one call's record in 32 bytes: the intended instant in nanoseconds and the others as ticks of the ledger
// after it. Its words are atomic so that readers need not stop the shard that writes them.
//
//	word 0  intended in the low 56 bits, which are two years; cause
//	word 1  ready, sent
//	word 2  first byte, done: written last, read first
//	word 3  connection, operation, outcome, status or errno
//
// A delta is stored plus one: zero means that it has not happened.
type entry [4]atomic.Uint64

// causeShift is where the cause begins in word 0.
const (
	causeShift = 56
	dueMask    = 1<<causeShift - 1
)

const chunkLen = 4096

// maxTimeout bounds the timeout.
const maxTimeout = time.Hour

// A ledger keeps the calls of one shard in order of their intended instant. One goroutine writes, any may read.
type ledger struct {
	tick   uint // its instants are multiples of 2^tick ns: what a call lasts has room in 32 bits
	chunks atomic.Pointer[[]*[chunkLen]entry]
	n      atomic.Int64
}

// tickFor returns the tick of a ledger whose calls end, by and large, within a timeout. Four times the timeout has
// room; what is later counts as that.
func tickFor(timeout time.Duration) (tick uint) {
	for 4*timeout>>tick > math.MaxUint32 {
		tick++
	}
	return tick
}

func (l *ledger) add(intended int64, op uint8) *entry {
	n := l.n.Load()
	var have []*[chunkLen]entry
	if p := l.chunks.Load(); p != nil {
		have = *p
	}
	if int(n/chunkLen) == len(have) {
		have = append(slices.Clip(have), new([chunkLen]entry))
		l.chunks.Store(&have)
	}
	e := &have[n/chunkLen][n%chunkLen]
	e[0].Store(uint64(intended))
	e[3].Store(uint64(op) << 32)
	l.n.Store(n + 1)
	return e
}

func (l *ledger) delta(at, intended int64) uint64 {
	if at == 0 {
		return 0
	}
	return uint64(min(max(at-intended, 0)>>l.tick+1, math.MaxUint32))
}

// held records when the call could have been sent without the rate limit.
func (l *ledger) held(e *entry, intended, ready int64) { e[1].Store(l.delta(ready, intended)) }

// sent records that the call was sent.
func (l *ledger) sent(e *entry, intended, ready, sent int64, op uint8, conn uint32) {
	e[3].Store(uint64(conn) | uint64(op)<<32)
	e[1].Store(l.delta(ready, intended) | l.delta(sent, intended)<<32)
}

// ended records how the call ended. code is the errno of a ConnFailed call, the status of any other.
func (l *ledger) ended(e *entry, c *Call, code uint16) {
	at := int64(c.Intended)
	if c.Cause != 0 {
		e[0].Store(uint64(at) | uint64(c.Cause)<<causeShift)
	}
	e[1].Store(l.delta(int64(c.Ready), at) | l.delta(int64(c.Sent), at)<<32)
	e[3].Store(uint64(c.Conn) | uint64(c.Operation)<<32 | uint64(c.Outcome)<<40 | uint64(code)<<48)
	e[2].Store(l.delta(int64(c.FirstByte), at) | l.delta(int64(c.Done), at)<<32)
}

func (l *ledger) call(e *entry) Call {
	ends := e[2].Load()
	starts := e[1].Load()
	what := e[3].Load()
	due := e[0].Load()
	at := time.Duration(due & dueMask)
	instant := func(d uint64) time.Duration {
		if d &= math.MaxUint32; d == 0 {
			return 0
		}
		return at + time.Duration(d-1)<<l.tick
	}
	c := Call{
		Operation: uint8(what >> 32), Conn: uint32(what), Intended: at,
		Ready: instant(starts), Sent: instant(starts >> 32), FirstByte: instant(ends), Done: instant(ends >> 32),
	}
	if ends>>32 == 0 {
		return c
	}
	c.Outcome, c.Cause = Outcome(what>>40), Cause(due>>causeShift)
	if c.Outcome == ConnFailed {
		c.Errno = uint16(what >> 48)
	} else {
		c.Status = uint16(what >> 48)
	}
	return c
}

// since returns the calls that were scheduled at or after t.
func (l *ledger) since(t time.Duration) []Call {
	n := int(l.n.Load())
	if n == 0 {
		return nil
	}
	chunks := *l.chunks.Load()
	at := func(i int) *entry { return &chunks[i/chunkLen][i%chunkLen] }
	first := sort.Search(n, func(i int) bool { return time.Duration(at(i)[0].Load()&dueMask) >= t })
	calls := make([]Call, 0, n-first)
	for i := first; i < n; i++ {
		calls = append(calls, l.call(at(i)))
	}
	return calls
}

// mergeCalls merges lists that are each in order of the intended instant.
func mergeCalls(lists [][]Call) []Call {
	lists = slices.DeleteFunc(lists, func(l []Call) bool { return len(l) == 0 })
	if len(lists) == 1 {
		return lists[0]
	}
	total := 0
	for _, l := range lists {
		total += len(l)
	}
	out := make([]Call, 0, total)
	for len(lists) > 0 {
		k := 0
		for j := range lists {
			if lists[j][0].Intended < lists[k][0].Intended {
				k = j
			}
		}
		out = append(out, lists[k][0])
		if lists[k] = lists[k][1:]; len(lists[k]) == 0 {
			lists = slices.Delete(lists, k, k+1)
		}
	}
	return out
}
