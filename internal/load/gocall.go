package load

import "context"

// goCall is a call that engine std carries. The engine's lock guards it.
type goCall struct {
	i            uint64
	rec          Call // Done is set once it has ended, even when its worker is still busy with it
	entry        *entry
	cancel       context.CancelFunc // while a worker has it
	segment      uint32
	worker       uint32 // the closed loop whose worker made it, 0: none
	free         int64  // when a worker was free for it
	key          int
	link         *link       // that carries it
	answer       chan ending // how it ended on its link
	older        *goCall
	newer        *goCall
	queue        *waitList
	given        bool // it has a worker, and is not sent yet
	ended        bool
	held         bool   // delayed by the rate limit
	ready        int64  // when it would have been sent without the rate limit, if that delayed it
	counted      int64  // when the rate limit counted it, until it is sent
	waitsForDial bool   // it waits for an HTTP/2 connection
	in, out      uint64 // bytes of answer and request
	marks        []Mark // the phases that it reported
}

// ending is how and when a call ended. code is a status, or the errno of a ConnFailed call.
type ending struct {
	outcome Outcome
	code    uint16
	cause   Cause
	at      int64
}

// recordDelay records that the rate limit delays c, which could have been sent at ready.
func (c *goCall) recordDelay(ready int64, l *ledger) {
	c.held = true
	if c.ready == 0 {
		c.ready = ready
	}
	if c.entry != nil {
		l.held(c.entry, int64(c.rec.Intended), c.ready)
	}
}

// goCalls holds the calls that have not ended, in order of the intended instant.
type goCalls struct{ oldest, newest *goCall }

func (l *goCalls) add(c *goCall) {
	if c.older = l.newest; c.older != nil {
		c.older.newer = c
	} else {
		l.oldest = c
	}
	l.newest = c
}

func (l *goCalls) remove(c *goCall) {
	if c.older != nil {
		c.older.newer = c.newer
	} else {
		l.oldest = c.newer
	}
	if c.newer != nil {
		c.newer.older = c.older
	} else {
		l.newest = c.older
	}
}

// waitList is the queue of calls without a worker. Those that have ended meanwhile are skipped when their turn comes.
type waitList struct {
	calls []*goCall
	live  int
}

func (w *waitList) push(c *goCall) {
	w.calls = append(w.calls, c)
	c.queue = w
	w.live++
}

func (w *waitList) pop() *goCall {
	c := w.first()
	if c != nil {
		c.unqueue()
		w.trim()
	}
	return c
}

// first returns the call that has waited longest; nil: none waits.
func (w *waitList) first() *goCall {
	w.trim()
	if len(w.calls) == 0 {
		return nil
	}
	return w.calls[0]
}

// unqueue removes c from its list: it has found a worker, or has ended.
func (c *goCall) unqueue() {
	if c.queue != nil {
		c.queue.live--
		c.queue = nil
	}
}

// trim drops calls that no longer wait from the front.
func (w *waitList) trim() {
	for len(w.calls) > 0 && w.calls[0].queue != w {
		w.calls[0] = nil
		w.calls = w.calls[1:]
	}
}

// worker carries one call at a time.
type worker struct {
	next          chan *goCall // closed at the end
	request, body []byte
}

// unreached reports whether the target could not be reached. For a Go call only its outcome says so.
func (e *std) unreached(c *goCall, end ending) bool {
	return end.outcome == ConnFailed && end.cause != CauseAbandoned &&
		(c.rec.Sent == 0 || e.cfg.Operations[c.rec.Operation].Call != nil)
}
