package simulation

import (
	"math"
	"math/rand/v2"
	"time"

	"tare/internal/load"
)

// server is the target.
type server interface {
	// dial receives a connection attempt, which ends in World.connected, World.refused or nothing.
	dial(w *World, c *conn)
	// request receives a call.
	request(w *World, j *job, c *conn)
	// hangup learns that the client has closed c, or that the server itself has.
	hangup(w *World, c *conn)
}

// answer is what a server that knows the outcome at once says to a call that arrives at t seconds. done is +Inf for
// never.
type answer struct {
	done    float64
	outcome load.Outcome
	status  uint16
}

// rule decides each call when it arrives; calls come in order of t.
type rule interface{ decide(t float64) answer }

// roundTrip is how long a connection takes to be made.
const roundTrip = 100 * time.Microsecond

// open is a server that takes every connection and decides by a rule.
type open struct {
	rule rule
	// hangs closes each connection behind its answer, as servers without keep-alive do.
	hangs bool
}

func (s open) dial(w *World, c *conn) { w.connected(c, w.now+roundTrip) }

func (s open) request(w *World, j *job, _ *conn) {
	a := s.rule.decide(seconds(w.now))
	if !math.IsInf(a.done, 1) {
		w.reply(j, instant(a.done), a.outcome, a.status, s.hangs)
	}
}

func (s open) hangup(*World, *conn) {}

// dialed is a server whose connections are subject to a rule: a call that the rule refuses fails at the dial with
// errno.
type dialed struct {
	gate  rule
	serve rule
	errno uint16
}

func (s dialed) dial(w *World, c *conn) {
	if a := s.gate.decide(seconds(w.now)); a.outcome != load.OK {
		w.refused(c, w.now+roundTrip, s.errno)
		return
	}
	w.connected(c, w.now+roundTrip)
}

func (s dialed) request(w *World, j *job, c *conn) { open{rule: s.serve, hangs: true}.request(w, j, c) }
func (s dialed) hangup(*World, *conn)              {}

func seconds(d time.Duration) float64 { return float64(d) / 1e9 }
func instant(t float64) time.Duration { return time.Duration(math.Round(t * 1e9)) }

// latency draws log-normal response times.
type latency struct {
	rng    *rand.Rand
	median float64
}

func (l latency) draw() float64 {
	if l.median == 0 {
		return 0
	}
	return l.median * math.Exp(0.3*l.rng.NormFloat64())
}

func ok(done float64) answer { return answer{done: done, outcome: load.OK, status: 200} }

func rejected(done float64) answer { return answer{done: done, outcome: load.Refused, status: 429} }

// instantly answers every call after a latency.
type instantly struct{ latency latency }

func (s instantly) decide(t float64) answer { return ok(t + s.latency.draw()) }

// never answers no call.
type never struct{}

func (never) decide(float64) answer { return answer{done: math.Inf(1)} }

// faulty fails a share of all calls, whatever the rate; the others go on to next. Failed calls use no capacity when
// free is set.
type faulty struct {
	next  rule
	rng   *rand.Rand
	share float64
	free  bool
}

func (s faulty) decide(t float64) answer {
	bad := s.rng.Float64() < s.share
	if bad && s.free {
		return answer{done: t + 0.001, outcome: load.Failed, status: 500}
	}
	a := s.next.decide(t)
	if bad && a.outcome == load.OK {
		a.outcome, a.status = load.Failed, 500
	}
	return a
}
