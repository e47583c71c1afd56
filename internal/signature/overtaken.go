package signature

import (
	"cmp"
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
)

// examineOutstanding examines the calls that were outstanding at the end of the window and older than those that were
// being answered.
func (f *features) examineOutstanding() {
	end := f.window.End
	recent, service := f.recentAnswers()
	if len(recent) < 3 {
		return
	}
	median := time.Duration(stat.Quantile(recent, 0.5) * 1e9)
	answered := map[uint32]bool{}
	for c := range f.until(end) {
		if c.Conn != 0 && c.FirstByte != 0 && c.FirstByte <= end {
			answered[c.Conn] = true
		}
	}
	var age []float64
	long := max(4*f.BaseP99, time.Duration(5e9*stat.Quantile(service, 0.5)))
	old := 2 * max(f.BaseP99, time.Duration(1e9*stat.Quantile(service, 0.99)))
	var late []answer // to calls that took far longer than others
	for c := range f.until(end) {
		if c.Sent == 0 || c.Sent > end {
			continue
		}
		open := c.Done == 0 || c.Done > end
		// no served call takes that long; answers of the first half may be of what a ramp has left in the queue
		if c.Outcome.Good() && (open && (c.Done > end+old || c.Done != 0 && c.Service() > old) ||
			!open && c.Done > f.mid() && c.Service() > max(long, old)) {
			late = append(late, answer{c.Sent, c.Done})
		}
		if !open {
			continue
		}
		f.outstanding++
		if c.Sent >= median-2*f.BaseP99 || !c.Outstanding(f.Now) && f.rejects(c) { // it was answered later, with a refusal
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
	f.newestFirst = len(late) >= 5 && leftBehind(f.Calls, late, f.Timeout)
	f.hung = len(age) > 0 && stat.Quantile(age, 0.75) > 2*stat.Quantile(service, 0.99)
}

// leftBehind reports whether calls that took long were overtaken by most of those that were answered meanwhile. In a
// queue that is served in order, those before them were answered meanwhile.
func leftBehind(calls load.Log, late []answer, timeout time.Duration) bool {
	const looked = 40
	behind, n := 0, 0
	for i := 0; i < len(late); i += max(1, len(late)/looked) {
		older, younger := 0, 0
		for c := range calls.Due(late[i].sent-timeout, late[i].done) {
			switch {
			case c.Sent == 0 || c.Done <= late[i].sent || c.Done >= late[i].done || !c.Outcome.Good():
			case c.Sent > late[i].sent:
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
func (f *features) recentAnswers() (sent, service []float64) {
	const least = 20
	begin := f.window.End - time.Second/2
	for i, x := range f.newest(f.window.Start, f.window.End, least, begin) {
		if i >= least && x.done < begin {
			break
		}
		sent = append(sent, x.sent.Seconds())
		service = append(service, x.service().Seconds())
	}
	return sent, service
}

// An answer is when a call was sent and when it ended well.
type answer struct{ sent, done time.Duration }

func (a answer) service() time.Duration { return a.done - a.sent }

// newest returns the answers between two instants, the last first: all from since on, and at least as many as are asked
// for, if there are.
func (f *features) newest(from, to time.Duration, least int, since time.Duration) []answer {
	const batch = 1000
	var out, earlier []answer
	newestFirst := func(a, b answer) int { return cmp.Compare(b.done, a.done) }
	for c := range f.answers(from, to) {
		switch {
		case c.Sent == 0:
		case c.Done >= since:
			out = append(out, answer{c.Sent, c.Done})
		default:
			if earlier = append(earlier, answer{c.Sent, c.Done}); len(earlier) == batch {
				slices.SortStableFunc(earlier, newestFirst)
				earlier = earlier[:least]
			}
		}
	}
	out = append(out, earlier...)
	slices.SortStableFunc(out, newestFirst)
	return out
}
