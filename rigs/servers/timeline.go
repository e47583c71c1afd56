package servers

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"tare/internal/clock"
)

// A timeline runs what is due at exactly its own instant, however late the host is. What runs sees only now; what it
// schedules counts from now. So a server that serves a call every 10 ms serves 100/s, and not fewer because each timer
// is a little late.
type timeline struct {
	clock clock.Clock
	begun time.Time
	wake  chan struct{} // something new is due first

	mu   sync.Mutex
	now  time.Duration // since begun
	due  agenda
	seq  int
	open map[*call]bool // calls that have no answer yet
	back time.Duration  // crashed until then
	lost func()         // is told of a crash; may be nil

	ran, late int // events, and those that the host was late for
}

// tolerated is how late an event may be without being noticed: a timer of Go's runtime is up to 1 ms late on an idle
// host.
const tolerated = 5 * time.Millisecond

func newTimeline(c clock.Clock) *timeline {
	return &timeline{clock: c, begun: c.Now(), wake: make(chan struct{}, 1), open: map[*call]bool{}}
}

// after has do run d from now.
func (t *timeline) after(d time.Duration, do func()) {
	t.seq++
	heap.Push(&t.due, event{at: t.now + max(d, 0), seq: t.seq, do: do})
	if t.due[0].seq == t.seq {
		select {
		case t.wake <- struct{}{}:
		default:
		}
	}
}

// catchUp runs all that has become due, in order. It needs mu.
func (t *timeline) catchUp() {
	present := t.clock.Now().Sub(t.begun)
	for len(t.due) > 0 && t.due[0].at <= present {
		e := heap.Pop(&t.due).(event)
		t.now = max(t.now, e.at)
		if t.ran++; present-e.at > tolerated {
			t.late++
		}
		e.do()
	}
	t.now = max(t.now, present)
}

// enter has a call arrive at the first part.
func (t *timeline) enter(c *call, first part) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.catchUp()
	c.line, c.arrived = t, t.now
	t.open[c] = true
	if t.now < t.back {
		c.answer(reset)
		return
	}
	first(c)
}

// abandon notes that nobody waits for the answer any more.
func (t *timeline) abandon(c *call) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.catchUp()
	c.gone = true
	delete(t.open, c)
}

// crash loses all calls, and those that come within the next d.
func (t *timeline) crash(d time.Duration) {
	t.back = t.now + d
	for c := range t.open {
		c.answer(reset)
	}
	if t.lost != nil {
		t.lost()
	}
}

// forever is longer than any run.
const forever = 1000 * time.Hour

// run runs what becomes due until ctx ends.
func (t *timeline) run(ctx context.Context) {
	for {
		t.mu.Lock()
		t.catchUp()
		wait := time.Hour
		if len(t.due) > 0 {
			wait = t.begun.Add(t.due[0].at).Sub(t.clock.Now())
		}
		t.mu.Unlock()
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-t.wake:
			timer.Stop()
		case <-timer.C:
		}
	}
}

// A call is one request on its way through a server's parts.
type call struct {
	caller  string // its source address
	arrived time.Duration
	gone    bool // its client has given up

	line     *timeline
	reply    chan reply
	answered bool
	ended    []func() // to be run when it is answered
}

func newCall(caller string) *call { return &call{caller: caller, reply: make(chan reply, 1)} }

// answer ends the call.
func (c *call) answer(r reply) {
	if c.answered {
		return
	}
	c.answered = true
	delete(c.line.open, c)
	c.reply <- r
	for _, do := range c.ended {
		do()
	}
}

// A reply is a status and a body. Status 0 is a connection that is reset.
type reply struct {
	status int
	body   string
}

// The replies.
var (
	good  = reply{200, `{"access_token":"a-token-of-visible-characters","expires_in":3600,"token_type":"Bearer"}`}
	reset = reply{}
)

// An agenda is a heap of events, the first due on top.
type agenda []event

type event struct {
	at  time.Duration
	seq int // among those due at the same instant, the first scheduled runs first
	do  func()
}

// Len implements heap.Interface.
func (a agenda) Len() int { return len(a) }

// Less implements heap.Interface.
func (a agenda) Less(i, j int) bool {
	return a[i].at < a[j].at || a[i].at == a[j].at && a[i].seq < a[j].seq
}

// Swap implements heap.Interface.
func (a agenda) Swap(i, j int) { a[i], a[j] = a[j], a[i] }

// Push implements heap.Interface.
func (a *agenda) Push(x any) { *a = append(*a, x.(event)) }

// Pop implements heap.Interface.
func (a *agenda) Pop() any {
	last := len(*a) - 1
	e := (*a)[last]
	(*a)[last] = event{}
	*a = (*a)[:last]
	return e
}
