package simulation

import (
	"math"
	"sort"
	"time"

	"tare/internal/load"
)

// line is a first-come-first-served queue before one or more workers.
type line struct {
	latency latency // of the network, on top
	free    []float64
	service func(t float64) float64
	// pauses, when set, says for an instant when the pause that it lies in ends; or, negated, when the next one begins.
	pauses func(t float64) float64
	// room bounds the calls in the system; others are rejected. 0: no bound.
	room   int
	inside instants
}

func (s *line) decide(t float64) answer {
	if s.room > 0 && s.inside.until(t) >= s.room {
		return answer{done: t + 0.0003, outcome: load.Refused, status: 503}
	}
	k := 0
	for i := range s.free {
		if s.free[i] < s.free[k] {
			k = i
		}
	}
	start := math.Max(t, s.free[k])
	done := s.work(start, s.service(start))
	s.free[k] = done
	if s.room > 0 {
		s.inside.add(done)
	}
	return ok(done + 0.2*s.latency.draw())
}

// work is when need seconds of work that begin at start are done, pauses left out.
func (s *line) work(start, need float64) float64 {
	for s.pauses != nil {
		if end := s.pauses(start); end > 0 {
			start = end
			continue
		} else if begin := -end; start+need > begin {
			need -= begin - start
			start = begin + 1e-9
			continue
		}
		break
	}
	return start + need
}

// stops is a list of pauses.
type stops struct{ begin, end []float64 }

func (s stops) at(t float64) float64 {
	i := sort.SearchFloat64s(s.end, t+1e-12)
	switch {
	case i >= len(s.begin):
		return -1e12
	case s.begin[i] <= t:
		return s.end[i]
	}
	return -s.begin[i]
}

// quota is a queue before a process that may use so much CPU time per period of the completely fair scheduler.
type quota struct {
	latency        latency
	period, offset float64
	cpus           float64 // threads that work at once
	allowance      float64 // CPU seconds per period
	cost           func() float64
	free, used     float64
	number         float64
}

func (s *quota) decide(t float64) answer {
	at, need := math.Max(t, s.free), s.cost()
	for need > 1e-12 {
		k := math.Floor((at + s.offset) / s.period)
		if k != s.number {
			s.number, s.used = k, 0
		}
		end, left := (k+1)*s.period-s.offset, s.allowance-s.used
		if left <= 1e-12 || end-at < 1e-12 {
			at = end + 1e-9
			continue
		}
		x := math.Min(need, math.Min(left, (end-at)*s.cpus))
		need, s.used, at = need-x, s.used+x, at+x/s.cpus
	}
	s.free = at
	return ok(at + 0.2*s.latency.draw())
}

// thrashing is a queue whose service slows down with its length; with fails set, a long queue fails calls after the
// work.
type thrashing struct {
	latency latency
	service float64 // seconds per call while the queue is short
	knee    int     // length at which it begins to slow down
	slope   float64 // relative slowdown per call beyond
	worst   float64
	fails   bool
	free    float64
	inside  instants
}

func (s *thrashing) decide(t float64) answer {
	n := s.inside.until(t)
	slow := math.Min(s.worst, 1+s.slope*math.Max(0, float64(n-s.knee)))
	s.free = math.Max(t, s.free) + s.service*slow
	s.inside.add(s.free)
	a := ok(s.free + 0.2*s.latency.draw())
	if s.fails && slow > 1.5 {
		a.outcome, a.status = load.Failed, 500
	}
	return a
}

// sharing serves all calls at once, each at an equal share of the rate.
type sharing struct {
	rate    float64
	work    func() float64 // mean 1
	virtual float64        // work that every call present has received
	last    float64
	present []*shared
	version int
}

type shared struct {
	j    *job
	ends float64 // virtual time
}

func (s *sharing) dial(w *World, c *conn) { w.connected(c, w.now+roundTrip) }
func (s *sharing) hangup(*World, *conn)   {}

func (s *sharing) request(w *World, j *job, _ *conn) {
	s.pass(w.now)
	x := &shared{j: j, ends: s.virtual + s.work()}
	i := sort.Search(len(s.present), func(i int) bool { return s.present[i].ends > x.ends })
	s.present = append(s.present, nil)
	copy(s.present[i+1:], s.present[i:])
	s.present[i] = x
	s.plan(w)
}

func (s *sharing) pass(now time.Duration) {
	t := seconds(now)
	if n := len(s.present); n > 0 {
		s.virtual += (t - s.last) * s.rate / float64(n)
	}
	s.last = t
}

func (s *sharing) plan(w *World) {
	s.version++
	if len(s.present) == 0 {
		return
	}
	mine := s.version
	wait := math.Max(0, s.present[0].ends-s.virtual) * float64(len(s.present)) / s.rate
	w.after(w.now+instant(wait), func() {
		if mine != s.version {
			return
		}
		s.pass(w.now)
		x := s.present[0]
		s.present = s.present[1:]
		w.reply(x.j, w.now, load.OK, 200, false)
		s.plan(w)
	})
}
