package signature

import (
	"cmp"
	"math"
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
)

// This file is about limits that count the calls of the last few seconds: how many calls had been accepted in some time
// before each call that was accepted, and before each that was refused.

// A decision is when a call was sent, whether it was accepted, and how many calls had been accepted before.
type decision struct {
	sent     float64
	accepted bool
	before   int
}

const (
	// counts is the separation from which on the number of calls accepted before decides.
	counts = 0.8
	// asAllowed is the share of what a rate allows in a window that a limit on it accepts at least before it refuses.
	asAllowed = 0.75
	// mostDecisions is about how many calls are looked at.
	mostDecisions = 4000
)

// countBefore finds the window whose count separates refused from accepted calls best, of which at least two were seen;
// and in any window that explains all refusals, how many calls had been accepted before these, relative to what the
// rate that was held allows.
func (f *features) countBefore() {
	if f.rejected == 0 {
		return
	}
	c := counter{}
	c.all, c.accepted = f.decisions()
	for window := 0.05; window < 60; window *= 1.04 {
		f.tryCount(&c, window)
	}
	best := f.countWindow
	for share := 0.96; share < 1.04 && best > 0; share += 0.005 { // a window that is too long by a little blurs the counts
		f.tryCount(&c, share*best)
	}
}

// decisions returns about mostDecisions calls of the judged window that were accepted or refused, and when all that
// were accepted so far were sent, both ascending.
func (f *features) decisions() (all []decision, accepted []float64) {
	n := 0
	f.eachDecision(func(c *load.Call, good bool) {
		if good {
			accepted = append(accepted, c.Sent.Seconds())
		}
		if c.Intended >= f.window.Start {
			n++
		}
	})
	i, share := 0, mostDecisions/float64(n)
	f.eachDecision(func(c *load.Call, good bool) {
		if c.Intended < f.window.Start {
			return
		}
		if i++; math.Mod(float64(i)*math.Phi, 1) <= share { // in no rhythm
			all = append(all, decision{sent: c.Sent.Seconds(), accepted: good})
		}
	})
	slices.Sort(accepted)
	slices.SortStableFunc(all, func(a, b decision) int { return cmp.Compare(a.sent, b.sent) })
	for i := range all {
		all[i].before, _ = slices.BinarySearch(accepted, all[i].sent)
	}
	return all, accepted
}

// eachDecision gives the calls that were accepted or refused until the end of the window, in the order in which they
// were due. A call that waits for ever was accepted.
func (f *features) eachDecision(take func(c *load.Call, accepted bool)) {
	late := f.Now - time.Duration(1e9*f.rejection.most) // later calls may still be refused
	for c := range f.until(f.window.End) {
		open := c.Outstanding(f.Now)
		good := open || c.Outcome.Good() || c.Outcome == load.Timeout
		if c.Sent == 0 || open && c.Sent > late || !good && !f.rejects(c) {
			continue
		}
		take(c, good)
	}
}

// A counter counts the calls that were accepted in a window before each decision. Both its inputs ascend.
type counter struct {
	all       []decision
	accepted  []float64 // when accepted calls were sent
	good, bad []int     // counts before accepted and before refused calls, reused by the next window
	times     []int     // how often each count occurs, reused by the next sorting
}

// count returns the counts in one window before accepted and before refused calls, both ascending.
func (c *counter) count(window float64) (good, bad []int) {
	c.good, c.bad = c.good[:0], c.bad[:0]
	from := 0
	for _, d := range c.all {
		begin := math.Nextafter(d.sent-window, d.sent)
		for from < len(c.accepted) && c.accepted[from] < begin {
			from++
		}
		if d.accepted {
			c.good = append(c.good, d.before-from)
		} else {
			c.bad = append(c.bad, d.before-from)
		}
	}
	c.sort(c.good)
	c.sort(c.bad)
	return c.good, c.bad
}

// sort sorts counts, of which most occur many times.
func (c *counter) sort(counts []int) {
	if len(counts) == 0 || slices.Max(counts) > 4*len(counts) {
		slices.Sort(counts)
		return
	}
	c.times = append(c.times[:0], make([]int, slices.Max(counts)+1)...)
	for _, n := range counts {
		c.times[n]++
	}
	counts = counts[:0]
	for n, times := range c.times {
		for range times {
			counts = append(counts, n)
		}
	}
}

// tryCount looks at the counts in one window.
func (f *features) tryCount(c *counter, window float64) {
	const fewest = 10
	short := 2*window <= f.seconds()
	if !short && f.Sharp.Held <= 0 {
		return
	}
	good, bad := c.count(window)
	if len(bad) < fewest {
		return
	}
	if f.Sharp.Held > 0 {
		least := float64(bad[stat.NearestRank(len(bad), 0.05)-1])
		f.allowed = max(f.allowed, least/(window*f.Sharp.Held))
	}
	if len(good) >= fewest && short {
		if x := 2*auc(bad, good) - 1; x > f.counted {
			f.counted, f.countWindow = x, window
		}
	}
}

// countsCalls reports whether calls are refused when so many were accepted in a window before, and accepted below; and
// that sets the rate: most of the calls that are not served are refused, and those that are served do not pile up.
// Where a service takes the next calls as soon as others end, or in a scheduler's rhythm, so does its window.
func (f *features) countsCalls() bool {
	served := f.countWindow < 10*f.BaseP50.Seconds() || f.countWindow < 5*f.period
	return f.counted >= counts && f.counted > f.separation-0.05 && !served && 2*f.rejected > f.n-f.good &&
		!f.growsBehindRefusals()
}

// refusesEarly reports whether calls are refused before as many were accepted, in whatever window, as the rate that was
// held allows: no limit on the accepted calls explains that.
func (f *features) refusesEarly() bool {
	return f.Sharp.Held > 0 && f.allowed > 0 && f.allowed < asAllowed
}
