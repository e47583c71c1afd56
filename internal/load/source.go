package load

import "time"

// source produces one shard's part of a segment: every shards'th arrival of an open loop, from its own copy of the
// process, or the calls of every shards'th worker of a closed loop.
type source struct {
	k, shards int
	seg       *segment // nil between segments
	over      bool     // it starts no more calls

	i uint64 // number within the segment of the next call

	arrivals Arrivals
	at       int64 // when the next arrival is due
	hasNext  bool

	started int   // workers that have started
	ready   int   // workers without a call
	paused  queue // workers without a call that pause: until when
	next    int64 // with a bounded rate: when the next call may start
	gap     int64
}

func (s *source) begin(g *segment) {
	*s = source{k: s.k, shards: s.shards, seg: g, i: uint64(s.k)}
	if g.process != nil {
		s.arrivals = g.process.Start()
		s.skip(s.k)
		return
	}
	s.next = g.start
	if g.rate > 0 {
		s.gap = int64(1e9 / g.rate * float64(s.shards))
	}
}

// stop ends the segment and returns it with its sums.
func (s *source) stop() (g *segment, offered int, next uint64) {
	g = s.seg
	s.seg = nil
	return g, int((s.i - uint64(s.k)) / uint64(s.shards)), g.base + s.i*g.stride
}

func (s *source) isOpen() bool   { return s.seg != nil && s.seg.process != nil }
func (s *source) isClosed() bool { return s.seg != nil && s.seg.process == nil }
func (s *source) end() int64     { return s.seg.start + s.seg.length }

// hasEnded reports whether the segment has ended, given how many calls have not.
func (s *source) hasEnded(now int64, calls int) bool {
	s.over = s.seg != nil && now >= s.end() && (!s.isOpen() || !s.hasNext)
	return s.over && (!s.seg.drains || calls == 0)
}

// skip skips n arrivals.
func (s *source) skip(n int) {
	for range n + 1 {
		at, ok := s.arrivals.Next()
		s.at, s.hasNext = s.seg.start+int64(at), ok
		if !ok {
			return
		}
	}
}

// nextDue returns the next call that is due: its number in the stream, its intended instant and, in a closed loop, the
// segment whose worker makes it.
func (s *source) nextDue(now int64) (i uint64, at int64, worker uint32, ok bool) {
	if s.seg == nil {
		return 0, 0, 0, false
	}
	if s.seg.process != nil {
		if !s.hasNext || s.at > now {
			return 0, 0, 0, false
		}
		i, at = s.seg.base+s.i*s.seg.stride, s.at
		s.i += uint64(s.shards)
		s.skip(s.shards - 1)
		return i, at, 0, true
	}
	if s.ready == 0 || now < s.next || now >= s.end() {
		return 0, 0, 0, false
	}
	if s.gap > 0 {
		s.next = max(s.next, now-s.gap) + s.gap
	}
	s.ready--
	i = s.seg.base + s.i*s.seg.stride
	s.i += uint64(s.shards)
	return i, now, s.seg.id, true
}

// leastPause is how long a worker of a closed loop waits after a connection that could not be established. With many
// workers it is longer: each calls an unreachable target at most 20 times a second, and all together at most 1000
// times. Without a pause they would call it as fast as the host can fail. An open loop does not pause: its calls come
// due in any case, and only its dials keep a gap.
const leastPause = int64(50 * time.Millisecond)

func pause(workers int) int64 { return max(leastPause, int64(workers)*int64(time.Millisecond)) }

// startWorkers starts the workers that are due, and ends the pauses that are over.
func (s *source) startWorkers(now int64) {
	for s.paused.n > 0 && s.paused.first() <= now {
		s.paused.pop()
		s.ready++
	}
	if !s.isClosed() || now < s.seg.start || s.started == s.seg.closed.Workers {
		return
	}
	if begun := s.seg.workers(now-s.seg.start, s.k, s.shards); begun > s.started {
		s.ready += begun - s.started
		s.started = begun
	}
}

// release records that a call has ended at that instant, which frees its worker or makes it pause.
func (s *source) release(worker uint32, at int64, paused bool) {
	switch {
	case worker == 0 || !s.isClosed() || s.seg.id != worker:
	case paused:
		s.paused.push(at + pause(s.seg.closed.Workers))
	default:
		s.ready++
	}
}

// queue holds instants in order.
type queue struct {
	at   []int64
	head int
	n    int
}

func (q *queue) first() int64 { return q.at[q.head] }

func (q *queue) push(at int64) {
	if q.n == len(q.at) {
		grown := make([]int64, max(16, 2*q.n))
		for i := range q.n {
			grown[i] = q.at[(q.head+i)%len(q.at)]
		}
		q.at, q.head = grown, 0
	}
	q.at[(q.head+q.n)%len(q.at)] = at
	q.n++
}

func (q *queue) pop() {
	q.head = (q.head + 1) % len(q.at)
	q.n--
}

// due returns when the segment has to act next.
func (s *source) due() int64 {
	if s.seg == nil || s.over {
		return never
	}
	if s.isOpen() {
		if s.hasNext {
			return s.at
		}
		return s.end()
	}
	due := s.end()
	if s.ready > 0 {
		due = min(due, s.next)
	}
	if s.paused.n > 0 {
		due = min(due, s.paused.first())
	}
	if ramp := int64(s.seg.closed.Ramp); s.started < s.seg.workers(ramp, s.k, s.shards) {
		w := s.k + s.started*s.shards
		due = min(due, s.seg.start+int64(float64(w)/float64(s.seg.closed.Workers)*float64(ramp))+1)
	}
	return due
}

// never is later than any instant.
const never = int64(1) << 62
