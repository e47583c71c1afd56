package simulation

import (
	"math"
	"math/rand/v2"
	"syscall"
	"time"

	"tare/internal/load"
)

// composed is a server made of the parts of a composition. What a call goes through: the entrance, the network, errors,
// the limiters, the queue and its workers, a dependency.
type composed struct {
	composition Composition
	rng         *rand.Rand
	entrance    entrance
	limiters    []*limiter
	// limits are those on the calls at once; inside counts those calls.
	limits []*limiter
	inside int
	queue  *station
	// behind is the dependency: a queue, or a quota.
	behind *station
	quota  *limiter
	memory memory
	tarpit float64 // seconds
	errors float64 // share
	jitter float64 // seconds
	// refused counts the calls that each part has ended badly, by its index.
	refused []int
}

// limiter is a part that refuses calls by a rule.
type limiter struct {
	rule      rule
	limit     int // calls at once, for limits
	part      int
	refusal   string
	perClient bool // fresh calls are another client's
}

// memory is what a server does when too many calls wait.
type memory struct {
	stopAt, crashAt     int
	stopPart, crashPart int
	refusesWhenDead     bool
	down                time.Duration
	dead                bool
	backAt              time.Duration
}

func (s *composed) dial(w *World, c *conn) {
	m := &s.memory
	if down := w.now < m.backAt; down || m.dead && m.refusesWhenDead {
		if down {
			s.refused[m.crashPart]++
		} else {
			s.refused[m.stopPart]++
		}
		w.refused(c, w.now+roundTrip, uint16(syscall.ECONNREFUSED))
		return
	}
	s.entrance.dial(s, w, c)
}

func (s *composed) request(w *World, j *job, c *conn) {
	c.serving = j
	if s.entrance.accept != nil && !c.accepted {
		c.pending = j
		s.entrance.accept.waited[c] = struct{}{}
		return
	}
	s.deliver(w, j)
}

// deliver brings a request over the network.
func (s *composed) deliver(w *World, j *job) {
	if s.jitter > 0 {
		w.after(w.now+instant(s.jitter*s.rng.Float64()), func() { s.arrive(w, j) })
		return
	}
	s.arrive(w, j)
}

func (s *composed) arrive(w *World, j *job) {
	switch {
	case s.memory.dead:
		s.refused[s.memory.stopPart]++
		return
	case w.now < s.memory.backAt:
		s.refused[s.memory.crashPart]++
		w.reset(j, w.now)
		return
	case s.errors > 0 && s.rng.Float64() < s.errors:
		s.answer(w, j, 0, load.Failed, 500)
		return
	}
	for _, l := range s.limiters {
		if !l.admits(seconds(w.now), j) {
			s.refuse(w, j, l.part, l.refusal)
			return
		}
	}
	for _, l := range s.limits {
		if s.inside >= l.limit && (j.client || !l.perClient) {
			s.refuse(w, j, l.part, l.refusal)
			return
		}
	}
	s.inside++
	j.inside = true
	s.queue.enter(w, j)
}

func (l *limiter) admits(t float64, j *job) bool {
	if l.perClient && !j.client {
		return true
	}
	return l.rule.decide(t).outcome == load.OK
}

// refuse ends a call in the way of the part that refuses it.
func (s *composed) refuse(w *World, j *job, part int, how string) {
	s.refused[part]++
	s.leave(j)
	switch delay := 0.0003 + s.tarpit; how {
	case refuseSilent:
	case refuseReset:
		w.reset(j, w.now+instant(delay))
	case refuse503:
		s.answer(w, j, delay, load.Refused, 503)
	case refuse500:
		s.answer(w, j, delay, load.Failed, 500)
	case refuseFailed:
		s.answer(w, j, delay, load.Failed, 200)
	case refuseWrong:
		s.answer(w, j, delay, load.Wrong, 200)
	default:
		s.answer(w, j, delay, load.Refused, 429)
	}
}

// answer sends an answer after delay seconds; the network takes its time on top.
func (s *composed) answer(w *World, j *job, delay float64, o load.Outcome, status uint16) {
	network := s.composition.Latency
	if s.jitter > 0 {
		network += s.jitter * s.rng.Float64()
	}
	w.reply(j, w.now+instant(delay+network), o, status, false)
}

// leave gives up a call's place among those at once.
func (s *composed) leave(j *job) {
	if j.inside {
		j.inside = false
		s.inside--
	}
}

// served is what comes behind the service.
func (s *composed) served(w *World, j *job) {
	switch {
	case s.quota != nil && !s.quota.admits(seconds(w.now), j):
		s.refuse(w, j, s.quota.part, refuse500)
	case s.behind != nil:
		s.behind.enter(w, j)
	default:
		s.done(w, j)
	}
}

func (s *composed) done(w *World, j *job) {
	s.leave(j)
	s.answer(w, j, 0, load.OK, 200)
}

func (s *composed) hangup(w *World, c *conn) {
	s.entrance.hangup(s, w, c)
	if j := c.serving; j != nil && j.at != nil && !s.queue.abandoned {
		j.at.remove(j)
		s.leave(j)
	}
}

// filled looks at the memory after a call has joined the queue.
func (s *composed) filled(w *World) {
	m := &s.memory
	switch n := s.queue.live; {
	case m.stopAt > 0 && n >= m.stopAt && !m.dead:
		m.dead = true
		s.refused[m.stopPart] += n + s.queue.busy
		s.lose(w, m.refusesWhenDead)
	case m.crashAt > 0 && n >= m.crashAt:
		m.backAt = w.now + m.down
		s.refused[m.crashPart] += n + s.queue.busy
		s.lose(w, true)
	}
}

// lose forgets all calls; with severed their connections are reset.
func (s *composed) lose(w *World, severed bool) {
	lost := s.queue.clear()
	if s.behind != nil {
		lost = append(lost, s.behind.clear()...)
	}
	for _, j := range lost {
		s.leave(j)
		if severed {
			w.reset(j, w.now)
		}
	}
	if severed {
		w.after(w.now, w.sever)
	}
}

// warm brings the server into the state that it has after long load: warm, scaled, with no allowance left.
func (s *composed) warm() {
	for _, l := range s.limiters {
		if b, ok := l.rule.(*bucket); ok {
			b.tokens = 0
		}
		if g, ok := l.rule.(*gcra); ok {
			g.theoretical = g.tolerance
		}
	}
	if s.quota != nil {
		s.quota.rule.(*bucket).tokens = 0
	}
	s.queue.speed.warm()
}

// reset ends j at t with a reset connection.
func (w *World) reset(j *job, t time.Duration) {
	w.after(t, func() {
		if j.Done == 0 {
			j.Errno = uint16(syscall.ECONNRESET)
			w.end(j, load.ConnFailed, 0)
		}
	})
}

func boolean(x float64) bool { return x != 0 }

func whole(x float64) int { return int(math.Round(x)) }
