package reference

import (
	"sync"
	"time"
)

// A gate counts its users, and can be closed and waited for. Unlike a sync.WaitGroup it may be entered while it is
// being closed.
type gate struct {
	mu     sync.Mutex
	n      int
	closed bool
	empty  chan struct{}
}

func newGate() *gate { return &gate{empty: make(chan struct{})} }

// enter reports whether the gate is still open, and then counts the caller.
func (g *gate) enter() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return false
	}
	g.n++
	return true
}

func (g *gate) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.n--
	if g.closed && g.n == 0 {
		close(g.empty)
	}
}

// shut closes the gate and waits until everybody has left. It is called once.
func (g *gate) shut() {
	g.mu.Lock()
	g.closed = true
	if g.n == 0 {
		close(g.empty)
	}
	g.mu.Unlock()
	<-g.empty
}

// A bucket is a token bucket. In mode Queue it lends tokens: the borrower waits until its token would have come.
type bucket struct {
	rate, burst float64
	lend        bool

	mu     sync.Mutex
	tokens float64
	last   time.Time
}

func newBucket(k STSKnobs, now time.Time) *bucket {
	return &bucket{
		rate: k.QuotaRate, burst: float64(k.QuotaBurst), lend: k.QuotaMode == Queue,
		tokens: float64(k.QuotaBurst), last: now,
	}
}

// take takes a token at now. ok is false if none is left; wait is how long a borrower has to wait.
func (b *bucket) take(now time.Time) (wait time.Duration, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if d := now.Sub(b.last); d > 0 {
		b.tokens = min(b.burst, b.tokens+d.Seconds()*b.rate)
		b.last = now
	}
	if b.tokens < 1 && !b.lend {
		return 0, false
	}
	b.tokens--
	if b.tokens >= 0 {
		return 0, true
	}
	return time.Duration(-b.tokens / b.rate * float64(time.Second)), true
}
