package signature

import (
	"fmt"
	"iter"
	"time"

	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/stat"
	"tare/internal/unit"
)

// Audit is what the generator did in a segment of load. Durations are in seconds.
type Audit struct {
	// Valid is false where the generator could not keep up: it sent late in the median, or left more unsent at the end
	// than a stall of the host explains.
	Valid bool
	// LatenessP50, LatenessP99 and LatenessMax are quantiles of sent − max(intended, ready).
	LatenessP50, LatenessP99, LatenessMax float64
	// Limit is the largest lateness that counts as none: max(1 ms, 10 % of the median response).
	Limit float64
	// Late is whether more than 1 % of the calls (and more than one) were sent later than Limit: their times are in doubt,
	// and rates are not.
	Late bool
	// Displaced is the largest number of calls that were due and unsent at one time, though connections were free; Bunched
	// is how many calls were displaced together with another.
	Displaced, Bunched int
	AchievedRatio      float64 // calls sent, or delayed by busy connections, ÷ scheduled calls
	CPUSeconds         float64 // the generator's own CPU time
	Reason             string
}

// aMoment is how much later than a call was due its connection may be free, for it not to have waited for that.
const aMoment = 100 * time.Microsecond

// Stall is how long a host may stand still without that the generator counts as too slow.
const Stall = 30 * time.Millisecond

// AuditCalls judges the generator by calls that were read at now. due is how many there should have been; 0: as many as
// there are.
func AuditCalls(calls iter.Seq[*load.Call], now time.Duration, due int) Audit {
	a := Auditor{Now: now}
	for c := range calls {
		a.Add(c)
	}
	return a.Audit(due)
}

// An Auditor judges the generator by calls that it is given one by one, in the order in which they were due. The zero
// value, with Now, is ready to use.
type Auditor struct {
	Now            time.Duration // when the calls were read
	late, response hist.Sorter
	n, kept        int // all calls, and those that the generator had a connection for and did not send
	first, last    time.Duration
	bunch          bunch
}

// Add takes in a call that was due.
func (a *Auditor) Add(c *load.Call) {
	l := c.Lateness()
	if c.Sent == 0 && c.Ready != 0 && (c.Done == 0 || c.Outcome != load.ConnFailed) {
		end := a.Now
		if c.Done != 0 {
			end = min(end, c.Done)
		}
		l = max(0, end-max(c.Intended, c.Ready))
		a.kept++
	}
	if a.n == 0 {
		a.first = c.Intended
	}
	a.n++
	a.last = c.Intended
	a.late.Add(int64(l))
	a.bunch.add(c.Intended, max(c.Intended, c.Ready)+l, c.Ready-c.Intended < aMoment)
	if c.Done != 0 && c.Outcome.Good() {
		a.response.Add(int64(c.Response()))
	}
}

// Audit judges all calls that were added. due is how many there should have been; 0: as many as there are. It forgets
// the calls.
func (a *Auditor) Audit(due int) Audit {
	out := Audit{Valid: true, Limit: LatenessLimit(0), AchievedRatio: 1, Displaced: a.bunch.most, Bunched: a.bunch.n}
	if a.n == 0 {
		return out
	}
	if response := a.response.Sorted(); response.Len() > 0 {
		out.Limit = LatenessLimit(quantile(response, 0.5))
	}
	// A call that was due at the very end may be counted on either side of it.
	due = max(a.n, due-1)
	out.AchievedRatio = min(1, float64(a.n-a.kept)/float64(due))
	late := a.late.Sorted()
	over := 0
	late.Each(0, func(ns int64) bool {
		if time.Duration(ns).Seconds() > out.Limit {
			over++
		}
		return true
	})
	out.LatenessP50, out.LatenessP99, out.LatenessMax = quantile(late, 0.5), quantile(late, 0.99), quantile(late, 1)
	out.Late = over > 1 && over*100 > late.Len()
	switch unsent := a.kept + due - a.n; {
	case out.LatenessP50 > out.Limit && out.Displaced > 1:
		out.Valid, out.Reason = false, SentLateInMedian(out.LatenessP50, out.Limit)
	case unsent > 1 && float64(unsent) > max(a.inStall(), (1-LeastAchieved)*float64(due)):
		out.Valid, out.Reason = false, SentTooLittle(out.AchievedRatio)
	}
	return out
}

// inStall is how many calls come due while the host stands still.
func (a *Auditor) inStall() float64 {
	if a.last <= a.first {
		return 0
	}
	return float64(a.n-1) / (a.last - a.first).Seconds() * Stall.Seconds()
}

// quantile returns a quantile of durations, in seconds.
func quantile(of *hist.Exact, p float64) float64 {
	return time.Duration(of.At(stat.NearestRank(of.Len(), p) - 1)).Seconds()
}

// OnTime returns a as it is judged where times of calls are compared: a late tail and a missing hundredth make it
// invalid, too.
func (a Audit) OnTime() Audit {
	switch {
	case !a.Valid:
	case a.Late:
		a.Valid, a.Reason = false, sentLate(a.LatenessP99, a.Limit)
	case a.AchievedRatio < LeastAchieved:
		a.Valid, a.Reason = false, SentTooLittle(a.AchievedRatio)
	}
	return a
}

// LeastAchieved is the minimum share of the possible calls that a generator must send.
const LeastAchieved = 0.99

// LatenessLimit is the largest delay by the generator, in seconds, that counts as none beside a median response of the
// target (0: unknown).
func LatenessLimit(median float64) float64 { return max(0.001, 0.1*median) }

// sentLate explains why a generator whose p99 exceeded its limit is not to be trusted.
func sentLate(p99, limit float64) string { return "the generator sent late: " + Late(p99, limit) }

// SentLateInMedian explains why a generator that sent half of the calls late did not keep up.
func SentLateInMedian(p50, limit float64) string {
	return fmt.Sprintf("the generator could not keep up: it sent half of the calls more than %s late, where %s is allowed",
		short(p50), short(limit))
}

// Late gives the p99 of the generator's delay beside its limit.
func Late(p99, limit float64) string {
	return fmt.Sprintf("p99 %s, where %s is allowed", short(p99), short(limit))
}

// SentTooLittle explains the same of a generator that did not send what it could.
func SentTooLittle(achieved float64) string {
	return fmt.Sprintf("the generator sent %.1f %% of what was due, though connections were free", 100*achieved)
}

// short prints seconds with a fitting unit.
func short(s float64) string { return unit.Seconds(s) }

// A bunch counts calls that were due and unsent at the same time, though connections were free: a generator that was
// stopped for a moment sends them together. The zero value is ready to use.
type bunch struct {
	sent    []time.Duration // of the calls that may still be unsent, in the order in which they were due
	most, n int
}

// add takes in a call, in the order in which calls were due. free says that a connection was free when it was due.
func (b *bunch) add(due, sent time.Duration, free bool) {
	gone := 0
	for gone < len(b.sent) && b.sent[gone] <= due {
		gone++
	}
	b.sent = b.sent[gone:]
	if !free || sent <= due {
		return
	}
	b.sent = append(b.sent, sent)
	switch waiting := len(b.sent); {
	case waiting == 2:
		b.n += 2
	case waiting > 2:
		b.n++
	}
	b.most = max(b.most, len(b.sent))
}
