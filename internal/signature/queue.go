package signature

import (
	"fmt"
	"math"
)

// queue is about what waits, first come first served, when more is offered than the capacity.
var queue = definition{
	class: Queue, phrase: "a queue that drops nothing", byTimes: true,
	traits: Traits{Waits: true, Served: true, Lossless: true, MaySave: true},
	score:  (*features).queueScore,
	doubt: func(f *features) string {
		// a rate just above one that was held had much less answered, and nothing refused: a queue would go on answering
		if f.Sharp.Failed > 0 && f.Sharp.Failed < 1.3*f.Sharp.Held && f.Sharp.Goodput < 0.75*(1-f.ErrorFloor)*f.Sharp.Held &&
			f.late < 0.75*f.Sharp.Held && f.share(f.rejected) < 0.05 {
			return fmt.Sprintf("%s/s were held, and of %s/s only %s/s were answered", rate(f.Sharp.Held), rate(f.Sharp.Failed),
				rate(f.Sharp.Goodput))
		}
		// it has not become faster meanwhile
		if f.answeredLess() {
			return fmt.Sprintf("%s/s were held, and under overload only %s/s were answered",
				rate(f.Sharp.Held*(1-f.ErrorFloor)), rate(f.late))
		}
		return ""
	},
	shown: func(f *features) bool { // responses grow as they should, and answers come in the order of the calls
		return !f.newestFirst && f.fifo > 0.95 && math.Abs(f.drift/f.wantDrift-1) < 0.15 && f.nothingLike(Queue)
	},
}

func (f *features) queueScore() classScore {
	if !(f.wantDrift > 0) || f.good == 0 {
		return classScore{}
	}
	// Of a call that was due at t and waits behind all others, the response grows by rate ÷ capacity − 1 per second; of
	// those that ended within the window as well.
	s := (1 - math.Abs(f.drift/f.wantDrift-1)/0.6) * min(1, f.fifo/0.9)
	grown := float64(f.outstanding) / max(1, (f.window.Rate-f.Capacity)*f.seconds())
	losses := math.Max(0, f.share(f.failed+f.timed+f.unconnected())+float64(f.refused)/float64(f.n-f.left)-f.ErrorFloor)
	if f.newestFirst { // calls that are left behind may time out, and are the same that others have left behind before
		s, losses = max(s, 0.6), losses-f.share(f.timed)
	} else if math.Abs(grown-1) < 0.5 && f.slower > 2 && !f.hung { // not in order, and yet a queue
		s = max(s, wins)
	}
	return classScore{
		score:    s * (1 - clamp(losses/0.1)),
		evidence: f.queueEvidence(),
		against: fmt.Sprintf("responses grow by %.3f s per second, where a queue at this rate gives %.3f", f.drift,
			f.wantDrift),
	}
}

func (f *features) queueEvidence() string {
	if f.newestFirst && f.fifo < 0.9 {
		return fmt.Sprintf("%.0f %% of the outstanding calls were overtaken by later ones, and they are answered once "+
			"fewer come: a queue that serves the newest call first", 100*f.overtaking)
	}
	return fmt.Sprintf("responses grow by %.3f s per second, where an endless queue at this rate gives %.3f; answers "+
		"come in the order of the calls (r = %.2f)", f.drift, f.wantDrift, f.fifo)
}
