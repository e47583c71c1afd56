package simulated

import (
	"container/heap"
	"time"

	"tare/internal/load"
)

// event is something that will happen: a function to call, or a job's answer.
type event struct {
	at      time.Duration
	seq     uint64
	do      func()
	job     *job
	outcome load.Outcome
	status  uint16
	hangup  bool
}

// agenda holds what will happen, the earliest first; what was pushed first comes first at the same instant.
type agenda struct {
	queue events
	seq   uint64
}

func (a *agenda) push(e event) {
	a.seq++
	e.seq = a.seq
	heap.Push(&a.queue, e)
}

func (a *agenda) pop() event { return heap.Pop(&a.queue).(event) }

func (a *agenda) next() (time.Duration, bool) {
	if len(a.queue) == 0 {
		return 0, false
	}
	return a.queue[0].at, true
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || (e[i].at == e[j].at && e[i].seq < e[j].seq)
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	old[len(old)-1] = event{}
	*e = old[:len(old)-1]
	return x
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
