package simulation

import (
	"container/heap"
	"time"

	"tare/internal/load"
)

// event is something that will happen: a function to call, a worker that may be done, or a job's answer.
type event struct {
	at      time.Duration
	do      func()
	worker  *worker
	job     *job
	turn    int
	outcome load.Outcome
	status  uint16
	hangup  bool
}

// agenda holds what will happen, the earliest first; what was pushed first comes first at the same instant. The heap
// itself holds no pointers, so that the garbage collector need not watch it move.
type agenda struct {
	heap   []entry
	events []event
	free   []int32 // places in events that are free
	seq    uint64
}

// entry is an event's place in time, and in the list of events.
type entry struct {
	at    time.Duration
	seq   uint64
	place int32
}

func (e *entry) before(o *entry) bool { return e.at < o.at || e.at == o.at && e.seq < o.seq }

func (a *agenda) push(e event) {
	a.seq++
	x := entry{at: e.at, seq: a.seq}
	if n := len(a.free); n > 0 {
		x.place = a.free[n-1]
		a.free = a.free[:n-1]
		a.events[x.place] = e
	} else {
		x.place = int32(len(a.events))
		a.events = append(a.events, e)
	}
	a.heap = append(a.heap, x)
	q, i := a.heap, len(a.heap)-1
	for i > 0 {
		up := (i - 1) / 2
		if !x.before(&q[up]) {
			break
		}
		q[i] = q[up]
		i = up
	}
	q[i] = x
}

func (a *agenda) pop() event {
	first, n := a.heap[0], len(a.heap)-1
	x := a.heap[n]
	a.heap = a.heap[:n]
	q, i := a.heap, 0
	for 2*i+1 < n {
		down := 2*i + 1
		if down+1 < n && q[down+1].before(&q[down]) {
			down++
		}
		if !q[down].before(&x) {
			break
		}
		q[i] = q[down]
		i = down
	}
	if n > 0 {
		q[i] = x
	}
	e := a.events[first.place]
	a.events[first.place] = event{}
	a.free = append(a.free, first.place)
	return e
}

func (a *agenda) next() (time.Duration, bool) {
	if len(a.heap) == 0 {
		return 0, false
	}
	return a.heap[0].at, true
}

// instants is a heap of points in time.
type instants []float64

func (h instants) Len() int           { return len(h) }
func (h instants) Less(i, j int) bool { return h[i] < h[j] }
func (h instants) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *instants) Push(x any)        { *h = append(*h, x.(float64)) }
func (h *instants) Pop() any {
	old := *h
	x := old[len(old)-1]
	*h = old[:len(old)-1]
	return x
}

// until removes the instants up to t and returns how many remain.
func (h *instants) until(t float64) int {
	for len(*h) > 0 && (*h)[0] <= t {
		heap.Pop(h)
	}
	return len(*h)
}

func (h *instants) add(t float64) { heap.Push(h, t) }
