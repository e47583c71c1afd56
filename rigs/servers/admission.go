package servers

import "time"

// A part of a server takes a call: it answers it, passes it on, or keeps it until later.
type part func(c *call)

// serve answers well.
func serve(c *call) { c.answer(good) }

// refuse answers with a status.
func refuse(status int) part {
	return func(c *call) { c.answer(reply{status, `{"error":"rejected"}`}) }
}

// document refuses with status 200, as some gateways do.
func document(c *call) { c.answer(reply{200, `{"error":"rate_limited","retry_after":1}`}) }

// silent never answers.
func silent(*call) {}

// delay passes calls on after d.
func (r *rig) delay(d time.Duration, next part) part {
	return func(c *call) { r.after(d, func() { next(c) }) }
}

// jitter passes calls on after a time drawn evenly from 0 to most.
func (r *rig) jitter(most time.Duration, next part) part {
	return func(c *call) { r.after(time.Duration(r.rng.Float64()*float64(most)), func() { next(c) }) }
}

// bucket lets rate calls a second pass, and burst at once from a full bucket.
func (r *rig) bucket(rate, burst float64, refuse, next part) part {
	tokens, last := burst, r.now
	return func(c *call) {
		tokens = min(burst, tokens+rate*(r.now-last).Seconds())
		if last = r.now; tokens < 1 {
			refuse(c)
			return
		}
		tokens--
		next(c)
	}
}

// gcra is the generic cell rate algorithm: a call may come up to ahead calls earlier than their spacing of 1/rate says.
func (r *rig) gcra(rate float64, ahead int, refuse, next part) part {
	gap := seconds(1 / rate)
	var expected time.Duration
	return func(c *call) {
		if r.now < expected-time.Duration(ahead)*gap {
			refuse(c)
			return
		}
		expected = max(expected, r.now) + gap
		next(c)
	}
}

// leaky passes calls on with a spacing of 1/rate. At most room calls wait.
func (r *rig) leaky(rate float64, room int, refuse, next part) part {
	gap := seconds(1 / rate)
	var free time.Duration // when the next call may pass
	return func(c *call) {
		wait := max(0, free-r.now)
		if wait > time.Duration(room)*gap {
			refuse(c)
			return
		}
		free = r.now + wait + gap
		r.after(wait, func() { next(c) })
	}
}

// window lets n calls pass in each period; periods begin at multiples of it.
func (r *rig) window(n int, period time.Duration, refuse, next part) part {
	current, passed := time.Duration(-1), 0
	return func(c *call) {
		if k := r.now / period; k != current {
			current, passed = k, 0
		}
		if passed >= n {
			refuse(c)
			return
		}
		passed++
		next(c)
	}
}

// log lets a call pass if fewer than n calls have been counted in the period before it. Refused calls count where penal
// is true.
func (r *rig) log(n int, period time.Duration, penal bool, refuse, next part) part {
	var counted []time.Duration
	return func(c *call) {
		for len(counted) > 0 && counted[0] <= r.now-period {
			counted = counted[1:]
		}
		full := len(counted) >= n
		if !full || penal {
			counted = append(counted, r.now)
		}
		if full {
			refuse(c)
			return
		}
		next(c)
	}
}

// slots lets n calls be in progress.
func (r *rig) slots(n int, refuse, next part) part {
	busy := 0
	return func(c *call) {
		if busy >= n {
			refuse(c)
			return
		}
		busy++
		c.ended = append(c.ended, func() { busy-- })
		next(c)
	}
}

// perCaller gives each source address a part of its own.
func perCaller(build func() part) part {
	own := map[string]part{}
	return func(c *call) {
		if own[c.caller] == nil {
			own[c.caller] = build()
		}
		own[c.caller](c)
	}
}

// share sends a share of the calls, drawn at random, elsewhere.
func (r *rig) share(p float64, elsewhere, next part) part {
	return func(c *call) {
		if r.rng.Float64() < p {
			elsewhere(c)
			return
		}
		next(c)
	}
}

// seconds turns seconds into a duration.
func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
