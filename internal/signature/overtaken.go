package signature

import (
	"slices"
	"sort"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
)

// outlived examines the calls that were outstanding at the end of the window and older than those that were being
// answered.
func (f *features) outlived(e Evidence) {
	end := f.window.End
	mid := f.window.Start + (end-f.window.Start)/2 // earlier answers may be of what a ramp has left in the queue
	recent, service := recentAnswers(e.Calls, f.window)
	if len(recent) < 3 {
		return
	}
	median := time.Duration(stat.Quantile(recent, 0.5) * 1e9)
	answered := map[uint32]bool{}
	for _, c := range e.Calls {
		if c.Conn != 0 && c.FirstByte != 0 && c.FirstByte <= end {
			answered[c.Conn] = true
		}
	}
	var age []float64
	long := max(4*e.BaseP99, time.Duration(5e9*stat.Quantile(service, 0.5)))
	var late []load.Call // good calls that took far longer than others
	for _, c := range e.Calls {
		if c.Sent == 0 || c.Sent > end {
			continue
		}
		if c.Done != 0 && c.Done <= end {
			if c.Done > mid && c.Outcome.Good() && c.Service() > long {
				late = append(late, c)
			}
			continue
		}
		f.outstanding++
		if c.Done > end+2*e.BaseP99 && c.Outcome.Good() {
			late = append(late, c) // no served call takes that long
		}
		if c.Sent >= median-2*e.BaseP99 || !c.Outstanding(e.Now) && f.rejects(c) { // it was answered later, with a refusal
			continue
		}
		age = append(age, (end - c.Sent).Seconds())
		if answered[c.Conn] {
			f.stuckLater++
		} else {
			f.stuckFirst++
		}
	}
	if f.outstanding > 5 {
		f.overtaking = float64(len(age)) / float64(f.outstanding)
	}
	f.newestFirst = len(late) >= 5 && leftBehind(e.Calls, late, e.Timeout)
	f.hung = len(age) > 0 && stat.Quantile(age, 0.75) > 2*stat.Quantile(service, 0.99)
}

// leftBehind reports whether calls that took long were overtaken by most of those that were answered meanwhile. In a
// queue that is served in order, those before them were answered meanwhile. The calls are in the order of Intended.
func leftBehind(calls, late []load.Call, timeout time.Duration) bool {
	const looked = 40
	due := func(t time.Duration) int {
		return sort.Search(len(calls), func(i int) bool { return calls[i].Intended >= t })
	}
	behind, n := 0, 0
	for i := 0; i < len(late); i += max(1, len(late)/looked) {
		older, younger := 0, 0
		to := due(late[i].Done)
		from := min(to, due(late[i].Sent-timeout)) // a damaged record can say anything
		for _, c := range calls[from:to] {
			switch {
			case c.Sent == 0 || c.Done <= late[i].Sent || c.Done >= late[i].Done || !c.Outcome.Good():
			case c.Sent > late[i].Sent:
				younger++
			default:
				older++
			}
		}
		if n++; younger > older {
			behind++
		}
	}
	return 2*behind > n
}

// recentAnswers returns the send instants and service times (s) of the good calls that ended last in the window: in its
// last half second, or the last twenty.
func recentAnswers(calls []load.Call, w Window) (sent, service []float64) {
	last := newest(calls, w.Start, w.End)
	for i, c := range last {
		if i >= 20 && c.Done < w.End-time.Second/2 {
			break
		}
		sent = append(sent, c.Sent.Seconds())
		service = append(service, c.Service().Seconds())
	}
	return sent, service
}

// newest returns the good calls that ended between two instants, the last first.
func newest(calls []load.Call, from, to time.Duration) []load.Call {
	var out []load.Call
	for _, c := range calls {
		if c.Done > from && c.Done <= to && c.Sent != 0 && c.Outcome.Good() {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b load.Call) int { return int(b.Done - a.Done) })
	return out
}

// fill counts the calls that were stuck at the end of each fill window on connections that never answered.
func (f *features) fill(e Evidence) {
	for _, w := range e.Windows {
		if w.Role == "fill" {
			f.fills = append(f.fills, Stuck(e.Calls, w.End))
			f.fillRates = append(f.fillRates, w.Rate)
		}
	}
}

// Stuck counts the calls that at the instant at had been sent on a connection that never carried an answer, and had
// been overtaken: a call that was sent later had been answered. Calls that have been abandoned since count: a
// connection keeps its place in the listen queue when the client closes it. A listen queue of length backlog holds
// backlog + 1 of them.
func Stuck(calls []load.Call, at time.Duration) int {
	answered := map[uint32]bool{}
	var newest time.Duration
	for _, c := range calls {
		if c.FirstByte != 0 {
			answered[c.Conn] = true
			if c.FirstByte <= at {
				newest = max(newest, c.Sent)
			}
		}
	}
	n := 0
	for _, c := range calls {
		open := c.Done == 0 || c.Done > at || c.Outcome == load.Timeout
		if c.Sent != 0 && c.Sent < newest && open && c.Conn != 0 && !answered[c.Conn] {
			n++
		}
	}
	return n
}
