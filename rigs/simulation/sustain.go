package simulation

import (
	"math"
	"time"
)

// The definition of a sustained rate. A warmed-up copy (warm, scaled, no allowance or credits left) is offered calls at
// even distances for ten minutes, after a gentle start. It sustains the rate when
//   - at least 99 % of the share of calls that is good at a very low rate is good at this one, and
//   - responses do not grow: those of the last third take on average no longer than those of the first, but for 0.25 %
//     of the time between and three standard errors, and no ten seconds 4 s longer than the first sixth.
//
// The capacity is the highest such rate, less the share of good calls that it may lose: a bucket of 100/s sustains
// 101/s by that definition, and takes 100/s.
const (
	trialTime   = 10 * time.Minute
	leadTime    = 6 * time.Second // the gentle start
	goodEnough  = 0.99
	mostGrowth  = 0.0025
	mostSurplus = 4.0   // seconds
	resolves    = 1.005 // the ratio of the rates that bracket the truth
)

// trial is a rate that is tried.
type trial struct {
	world  *World
	server *composed
	begun  time.Duration
	length time.Duration
	// good and bad calls of those that were due since begun, and the sums of the responses of the good ones, by thirds.
	good, bad  int
	sums       [3]float64
	squares    [3]float64
	counts     [3]int
	window     int // the running ten seconds, with their responses
	sum        float64
	count      int
	early      float64 // mean response of the first sixth
	earlyCount int
	surplus    bool
}

// run offers rate for length. It ends early once more than most calls have ended badly (most < 0: never).
func (t *trial) run(rate float64, length time.Duration, most int) {
	w := t.world
	w.ended = t.note
	begin := w.now
	t.begun, t.length = begin+leadTime, length
	lead := []struct {
		share float64
		until time.Duration
	}{{0.7, leadTime / 3}, {0.9, 2 * leadTime / 3}, {1, leadTime + length}}
	at := 0.0
	for _, part := range lead {
		gap := 1 / (rate * part.share)
		for ; at < seconds(part.until); at += gap {
			w.advance(begin + instant(at))
			if most >= 0 && (t.bad > most || t.surplus) {
				return
			}
			w.arrive(false)
		}
	}
	w.advance(begin + leadTime + length)
	// Calls that are still open may end well, but not those that have been for far longer than others.
	old := w.now - max(time.Second, instant(3*t.mean(2)))
	for _, j := range w.jobs[w.expired:] {
		if j.Done == 0 && j.Intended >= t.begun && j.Intended < old {
			t.bad++
		}
	}
}

// offer offers rate for length from now on, and returns how many calls that are.
func (t *trial) offer(rate float64, length time.Duration) int {
	begin, calls := seconds(t.world.now), 0
	for at := 0.0; at < seconds(length); at += 1 / rate {
		t.world.advance(instant(begin + at))
		t.world.arrive(false)
		calls++
	}
	t.world.advance(instant(begin) + length)
	return calls
}

// note takes a call that has ended.
func (t *trial) note(j *job) {
	if !j.client || j.Intended < t.begun {
		return
	}
	if !j.Outcome.Good() {
		t.bad++
		return
	}
	t.good++
	since, response := seconds(j.Intended-t.begun), seconds(j.Response())
	share := since / seconds(t.length)
	if share < 1.0/6 {
		t.early += response
		t.earlyCount++
	}
	third := min(2, int(3*share))
	t.sums[third] += response
	t.squares[third] += response * response
	t.counts[third]++
	if s := int(seconds(j.Done-t.begun) / 10); s != t.window {
		if t.count > 0 && share > 1.0/6 && t.earlyCount > 0 {
			t.surplus = t.surplus || t.sum/float64(t.count) > t.early/float64(t.earlyCount)+mostSurplus
		}
		t.window, t.sum, t.count = s, 0, 0
	}
	t.sum += response
	t.count++
}

func (t *trial) mean(third int) float64 { return t.sums[third] / math.Max(1, float64(t.counts[third])) }

// errorOf is the variance of a mean response, as if the responses were independent.
func (t *trial) errorOf(third int) float64 {
	n, m := math.Max(1, float64(t.counts[third])), t.mean(third)
	return math.Max(0, t.squares[third]/n-m*m) / n
}

// share is how many of the calls were good.
func (t *trial) share() float64 { return float64(t.good) / math.Max(1, float64(t.good+t.bad)) }

// grows reports whether responses grew.
func (t *trial) grows() bool {
	return t.surplus || t.counts[2] == 0 ||
		t.mean(2)-t.mean(0) > mostGrowth*seconds(t.length)*2/3+3*math.Sqrt(t.errorOf(0)+t.errorOf(2))
}

// newTrial makes a copy of the server, warm or not.
func (c Composition) newTrial(warm bool) *trial {
	s := c.server()
	if warm {
		s.warm()
	}
	return &trial{server: s, world: &World{server: s, timeout: c.timeout(), maxConns: c.Options().MaxConns}}
}

// floor is the share of calls that fails at a very low rate.
func (c Composition) floor(about float64) float64 {
	if !c.has(errorShare) {
		return 0
	}
	rate := about / 20
	t := c.newTrial(true)
	t.run(rate, instant(math.Min(4000/rate, 1200)), -1)
	return 1 - t.share()
}

// sustains tries a rate for length, and says how much of it the server takes.
func (c Composition) sustains(rate, floor float64, length time.Duration) (held bool, takes float64) {
	t := c.newTrial(true)
	least := goodEnough * (1 - floor)
	calls := rate * seconds(length)
	t.run(rate, length, int((1-least)*calls))
	share := t.share()
	return share >= least && !t.grows(), rate * math.Min(1, share/(1-floor))
}

// sustained is the highest rate that the server sustains, as much of it as it takes; +Inf when that is at least most, 0
// when it sustains none.
func (c Composition) sustained(most float64) float64 {
	guess := math.Min(c.ceiling(), most)
	floor := c.floor(guess)
	var lo, hi, takes float64 // held, failed
	try := func(rate float64, length time.Duration) bool {
		held, n := c.sustains(rate, floor, length)
		switch {
		case !held:
			hi = rate
		case length == trialTime:
			lo, takes = rate, n
		}
		return held
	}
	if guess >= most {
		if held, _ := c.sustains(most, floor, 30*time.Second); held {
			return math.Inf(1)
		}
		hi = most
	}
	for _, step := range []float64{1.012, 1.06, 1.3, 2, 4, 10, 100, 1e4} {
		if lo == 0 {
			if rate := guess / step * 1.008; hi == 0 || rate < hi {
				try(rate, trialTime)
			}
		}
		if hi == 0 {
			try(math.Min(guess*step, most), trialTime)
			if hi == 0 && guess*step >= most {
				return math.Inf(1)
			}
		}
		if lo > 0 && hi > 0 {
			break
		}
	}
	for lo > 0 && hi/lo > resolves {
		try(math.Sqrt(lo*hi), trialTime)
	}
	return takes
}
