package reference

import "sync"

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
