package signature

import (
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"tare/internal/load"
)

// acceptQueue is about calls that are stuck on connections that never answered at all.
var acceptQueue = definition{
	class: AcceptQueue, phrase: "connections that are never accepted",
	traits: Traits{Unaccepted: true, Steady: true, Strands: true},
	score: func(f *features) classScore {
		stuck := f.stuckFirst + f.stuckLater
		if stuck == 0 || !f.hung {
			return classScore{}
		}
		x := classScore{against: fmt.Sprintf("%d of %d stuck calls were on connections that had answered before",
			f.stuckLater, stuck)}
		switch first := float64(f.stuckFirst) / float64(stuck); {
		case first < 0.9 || f.stuckFirst < 5:
		case len(f.fills) > 0:
			return f.filled()
		default:
			x.score, x.evidence = 0.7, fmt.Sprintf("%d calls were stuck, %.0f %% of them on established connections that never "+
				"answered at all", stuck, 100*first)
		}
		return x
	},
	shown: func(f *features) bool {
		read := f.Local.ListenQueue
		return f.levelsOff() || read != nil && *read > 0 && math.Abs(float64(*read-f.stuckNow())) <= 1
	},
	seen: func(l Local) string {
		if l.ListenQueue == nil {
			return ""
		}
		return fmt.Sprintf("the listen queue on the target's host held %d connections", *l.ListenQueue)
	},
}

// quotaHang is about calls that are never answered while later ones are, on connections that had answered before.
var quotaHang = definition{
	class: QuotaHang, phrase: "a limit that leaves calls unanswered", least: 0.8,
	traits: Traits{Steady: true, Saves: true, Strands: true, Limiter: true},
	score: func(f *features) classScore {
		if !f.hung || f.overtaking <= 0 || f.newestFirst {
			return classScore{}
		}
		x := classScore{
			score: clamp(f.overtaking / 0.6), // 30 % is enough
			evidence: fmt.Sprintf("%.0f %% of the outstanding calls were overtaken: sent before calls that have long been "+
				"answered; %d of these %d are on connections that had answered before",
				100*f.overtaking, f.stuckLater, f.stuckFirst+f.stuckLater),
		}
		switch {
		case f.levelsOff():
			x.score *= 0.4
			x.against = "stuck calls would grow with the rate, and they stayed at " + fmt.Sprint(f.stuckNow())
		case f.stuckFirst > 9*f.stuckLater && len(f.fills) == 0:
			x.score *= 0.4
			x.against = "calls would hang on connections that had answered before, too"
		}
		return x
	},
}

// fewWaits is how many calls wait for a connection at least where a listen queue is full.
const fewWaits = 5

// levelsOff reports whether the number of stuck calls was the same at all fill rates, and calls waited to connect.
func (f *features) levelsOff() bool {
	n := len(f.fills)
	if n < 2 || f.fills[n-1] == 0 {
		return false
	}
	a, b := float64(f.fills[n-2]), float64(f.fills[n-1])
	return math.Abs(a-b) <= max(1, 0.005*b) && f.fillWaits >= fewWaits
}

// filled scores the calls that were stuck when the listen queue was filled.
func (f *features) filled() classScore {
	n := len(f.fills)
	last, at := f.fills[n-1], make([]string, n)
	for i, r := range f.fillRates {
		at[i] = rate(r) + "/s"
	}
	where := strings.Join(at, " and at ")
	switch {
	case f.levelsOff():
		return classScore{score: 1, evidence: fmt.Sprintf("%d calls on established connections were never answered, at %s "+
			"alike = a backlog of %d + 1", last, where, last-1)}
	case f.fillWaits < fewWaits:
		return classScore{score: 0.2, against: fmt.Sprintf("at %s no call waited for a connection: so few fill no queue",
			at[n-1])}
	case n > 1 && float64(last) > 1.5*float64(f.fills[0]):
		return classScore{score: 0.2, against: "the number of stuck calls grew with the rate"}
	}
	return classScore{
		score: 0.55, evidence: fmt.Sprintf("%v calls on established connections were never answered at %s: connections "+
			"that were never accepted, though the queue was not seen full", f.fills, where),
		against: "the number of stuck calls did not level off",
	}
}

func (f *features) stuckNow() int {
	if n := len(f.fills); n > 0 {
		return f.fills[n-1]
	}
	return f.stuckFirst
}

// countStuck counts the calls that were stuck at the end of each fill window on connections that never answered.
func (f *features) countStuck() {
	for _, w := range f.windowsOf("fill") {
		f.fills = append(f.fills, Stuck(f.all(), w.End))
		f.fillRates = append(f.fillRates, w.Rate)
		f.fillWaits = f.unsent(w)
	}
}

// unsent counts the calls of a window that still waited at its end for a connection that the target did not take. Where
// the client has opened as many as it may, they wait for the client.
func (f *features) unsent(w Window) int {
	n, open := 0, 0
	for c := range f.until(w.End) {
		switch {
		case c.Sent == 0 || c.Sent > w.End:
			if c.Intended >= w.Start && c.Intended < w.End {
				n++
			}
		case c.Outstanding(w.End):
			open++
		}
	}
	if f.MaxConns > 0 && open > f.MaxConns*9/10 {
		return 0
	}
	return n
}

// Stuck counts the calls that at the instant at had been sent on a connection that never carried an answer, and had
// been overtaken: a call that was sent later had been answered. Calls that have been abandoned since count: a
// connection keeps its place in the listen queue when the client closes it. A listen queue of length backlog holds
// backlog + 1 of them.
func Stuck(calls iter.Seq[*load.Call], at time.Duration) int {
	answered := map[uint32]bool{}
	var newest time.Duration
	for c := range calls {
		if c.FirstByte != 0 {
			answered[c.Conn] = true
			if c.FirstByte <= at {
				newest = max(newest, c.Sent)
			}
		}
	}
	n := 0
	for c := range calls {
		open := c.Done == 0 || c.Done > at || c.Outcome == load.Timeout
		if c.Sent != 0 && c.Sent < newest && open && c.Conn != 0 && !answered[c.Conn] {
			n++
		}
	}
	return n
}
