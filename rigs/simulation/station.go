package simulation

import (
	"time"

	"tare/internal/load"
)

// station is a queue before workers.
type station struct {
	server  *composed
	workers int
	draw    func() float64 // seconds of work for the next call
	// leave takes a call that has been served.
	leave func(w *World, j *job)
	// abandoned says that calls are served though their clients have given up.
	abandoned bool
	speed     *speed
	clock     *workClock // nil: workers never stall
	policy    policy

	queue []waiting // from head on, the oldest first
	head  int
	live  int // calls that wait
	busy  int
	idle  []*worker
	all   []*worker
	timed bool // a look at the oldest call is on the agenda
}

// policy is what a queue does with too many calls. 0: nothing.
type policy struct {
	age                           time.Duration
	length, lifo                  int
	low, high                     float64
	agePart, lengthPart, dropPart int
	ageSays, lengthSays, dropSays string
	watched                       bool // the server's memory looks at this queue
}

type waiting struct {
	j  *job
	at time.Duration
}

// worker serves one call at a time. A crash raises its turn, so that what it had begun is forgotten.
type worker struct {
	station *station
	j       *job
	target  float64 // on the work clock
	turn    int
}

func newStation(server *composed, workers int, draw func() float64, leave func(*World, *job)) *station {
	return &station{server: server, workers: max(1, workers), draw: draw, leave: leave, speed: &speed{}}
}

func (s *station) enter(w *World, j *job) {
	if s.clock != nil {
		s.clock.advance(seconds(w.now), s.busy, s.live)
	}
	if s.busy < s.workers {
		s.start(w, j)
		return
	}
	p := &s.policy
	switch n := float64(s.live); {
	case p.length > 0 && s.live >= p.length:
		s.server.refuse(w, j, p.lengthPart, p.lengthSays)
		return
	case p.high > 0 && n > p.low && s.server.rng.Float64() < (n-p.low)/(p.high-p.low):
		s.server.refuse(w, j, p.dropPart, p.dropSays)
		return
	}
	s.push(waiting{j: j, at: w.now})
	if p.age > 0 && !s.timed {
		s.timed = true
		w.after(w.now+p.age, func() { s.shed(w) })
	}
	if p.watched {
		s.server.filled(w)
	}
}

func (s *station) push(x waiting) {
	if s.head > 64 && s.head > len(s.queue)/2 {
		s.queue = s.queue[:copy(s.queue, s.queue[s.head:])]
		s.head = 0
	}
	s.queue = append(s.queue, x)
	x.j.at = s
	s.live++
}

// remove takes a waiting call out whose client has given up; its entry stays until the queue comes to it.
func (s *station) remove(j *job) {
	j.at = nil
	s.live--
}

// pop takes the call that is to be served next, nil when none waits.
func (s *station) pop() *job {
	for s.head < len(s.queue) {
		var x waiting
		if n := len(s.queue) - 1; s.policy.lifo > 0 && s.live > s.policy.lifo {
			x = s.queue[n]
			s.queue = s.queue[:n]
		} else {
			x = s.queue[s.head]
			s.queue[s.head] = waiting{}
			s.head++
		}
		if x.j.at == s {
			s.remove(x.j)
			return x.j
		}
	}
	return nil
}

// shed refuses the calls that have waited too long.
func (s *station) shed(w *World) {
	s.timed = false
	for s.head < len(s.queue) {
		x := s.queue[s.head]
		if x.j.at == s && x.at+s.policy.age > w.now {
			s.timed = true
			w.after(x.at+s.policy.age, func() { s.shed(w) })
			return
		}
		s.queue[s.head] = waiting{}
		s.head++
		if x.j.at == s {
			s.remove(x.j)
			s.server.refuse(w, x.j, s.policy.agePart, s.policy.ageSays)
		}
	}
}

func (s *station) start(w *World, j *job) {
	need := s.draw() * s.speed.factor(seconds(w.now), s)
	s.speed.spent(need)
	s.busy++
	var x *worker
	if n := len(s.idle); n > 0 {
		x = s.idle[n-1]
		s.idle = s.idle[:n-1]
	} else {
		x = &worker{station: s}
		s.all = append(s.all, x)
	}
	x.j = j
	if s.clock == nil {
		w.work(w.now+instant(need), x)
		return
	}
	x.target = s.clock.worked + need
	w.work(instant(s.clock.earliest(seconds(w.now), x.target)), x)
}

// complete is when a worker may have finished its call.
func (x *worker) complete(w *World) {
	s := x.station
	now := seconds(w.now)
	if s.clock != nil {
		s.clock.advance(now, s.busy, s.live)
		if s.clock.worked < x.target-1e-9 {
			w.work(instant(s.clock.earliest(now, x.target)), x)
			return
		}
	}
	j := x.j
	s.speed.watch(now, s)
	s.busy--
	x.j = nil
	s.idle = append(s.idle, x)
	s.leave(w, j)
	if next := s.pop(); next != nil {
		s.start(w, next)
	}
}

// clear forgets all calls and returns them.
func (s *station) clear() []*job {
	var lost []*job
	for _, x := range s.all {
		x.turn++
		if x.j != nil {
			lost = append(lost, x.j)
			x.j = nil
		}
	}
	for _, x := range s.queue[s.head:] {
		if x.j.at == s {
			x.j.at = nil
			lost = append(lost, x.j)
		}
	}
	s.idle = append(s.idle[:0], s.all...)
	s.queue, s.head, s.live, s.busy = s.queue[:0], 0, 0, 0
	return lost
}

// work calls x at t, unless it has forgotten its call by then.
func (w *World) work(t time.Duration, x *worker) {
	w.events.push(event{at: max(t, w.now), worker: x, turn: x.turn, outcome: load.OK})
}
