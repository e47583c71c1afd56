package capacity

import (
	"fmt"
	"math"
	"time"

	"tare/internal/signature"
	"tare/internal/stat"
	"tare/internal/unit"
)

// This file decides whether a target was warm when a rate broke: caches and compilers are cold at first, and what
// breaks then says nothing of the target that its callers will meet.

const (
	// warmAfter is how many calls a target has to have answered well to count as warm.
	warmAfter = 1000
	// steadyAfter is how many a slow target has to have answered, within a minute of load at least, if the last of them
	// took as long as the first. A target is slow if it does not take warmAfter calls in that minute.
	steadyAfter = 60
)

// A warmth is what shows whether a target was warm when the last confirmation ended.
type warmth struct {
	answered int           // calls that were answered well
	loaded   time.Duration // under load
	slow     bool
	faster   bool // the last calls took clearly less time than the first
}

// warmth looks at the calls until the last confirmation ended; broke is the rate that broke.
func (t Trace) warmth(broke float64) warmth {
	w := warmth{slow: broke*longest.Seconds() < warmAfter}
	var end time.Duration
	for _, s := range t.Steps {
		if confirms(s.Role) {
			end = s.Segment.End
		}
	}
	for _, s := range t.Steps {
		if s.Rate > 0 && s.Role != RoleSingle && s.Segment.End <= end {
			w.loaded += s.Length()
		}
	}
	if w.answered = signature.CountEnds(t.due(0, end+1), 0, end); w.answered >= warmAfter {
		return w // their times do not matter, and they are many
	}
	var took []float64
	for c := range t.due(0, end+1) {
		if c.Done != 0 && c.Done <= end && c.Outcome.Good() {
			took = append(took, c.Response().Seconds())
		}
	}
	first, last := took[:len(took)/3], took[len(took)-len(took)/3:]
	isFaster := func(q float64) bool { return stat.Quantile(last, q) < faster*stat.Quantile(first, q) }
	w.faster = len(first) > 0 && isFaster(0.1) && isFaster(0.5)
	return w
}

// isWarm reports whether what broke the target says something about it.
func (w warmth) isWarm() bool {
	return w.answered >= warmAfter || w.slow && w.answered >= steadyAfter && w.loaded >= longest && !w.faster
}

// missing is how much longer a rate has to be held for the target to count as warm; 0 where it does.
func (w warmth) missing(rate float64) time.Duration {
	switch {
	case w.isWarm():
		return 0
	case w.slow && !w.faster:
		return min(w.until(warmAfter, rate), max(5*time.Second, longest-w.loaded, w.until(steadyAfter, rate)))
	}
	return w.until(warmAfter, rate)
}

// until is how much longer a rate has to be held for so many calls to be answered, at least 5 s; 0 where they were.
func (w warmth) until(n int, rate float64) time.Duration {
	if w.answered >= n {
		return 0
	}
	return lasting(rate, 5*time.Second, 1.1*float64(n-w.answered))
}

// doubt says why the target may not have been warm, and how much longer a rate would have to be offered to tell.
func (w warmth) doubt(rate float64) string {
	if w.isWarm() {
		return ""
	}
	so := ""
	if w.faster {
		so = ", the last of them faster than the first"
	}
	return fmt.Sprintf("the target had answered only %s by then%s: it may be able to take more once it is warm. %s more "+
		"at %s/s would tell (load.max_time)", unit.Count(w.answered, "call"), so,
		unit.Seconds(math.Ceil(w.missing(rate).Seconds())), number(rate))
}

// note says on what a slow target counts as warm; "" where it has answered enough calls.
func (w warmth) note() string {
	if !w.isWarm() || w.answered >= warmAfter {
		return ""
	}
	return fmt.Sprintf("the target had answered %s in %s of load, the last no faster than the first, and counts as warm: "+
		"what becomes warm only with more calls was not seen", unit.Count(w.answered, "call"),
		unit.Seconds(w.loaded.Round(time.Second).Seconds()))
}
