package signature

import (
	"fmt"
	"slices"
	"time"

	"tare/internal/load"
	"tare/internal/stat"
	"tare/internal/unit"
)

// Audit is what the generator did in a segment of load. Durations are in seconds.
type Audit struct {
	Valid bool `json:"valid"`
	// LatenessP50, LatenessP99 and LatenessMax are quantiles of sent − max(intended, ready).
	LatenessP50 float64 `json:"lateness_p50"`
	LatenessP99 float64 `json:"lateness_p99"`
	LatenessMax float64 `json:"lateness_max"`
	// Limit is the largest valid p99: max(1 ms, 10 % of the median response).
	Limit float64 `json:"limit"`
	// AchievedRatio is calls sent, or delayed by busy connections, ÷ scheduled calls.
	AchievedRatio float64 `json:"achieved_ratio"`
	// CPUSeconds is the generator's own CPU time.
	CPUSeconds float64 `json:"cpu_seconds"`
	Reason     string  `json:"reason,omitempty"`
}

// AuditCalls judges the generator by the calls that were scheduled in [from, to), read at now. due is how many there
// should have been; 0: as many as there are.
func AuditCalls(calls []load.Call, from, to, now time.Duration, due int) Audit {
	a := Auditor{Now: now}
	for i := range calls {
		if c := &calls[i]; c.Intended >= from && c.Intended < to {
			a.Add(c)
		}
	}
	return a.Audit(due)
}

// An Auditor judges the generator by calls that it is given one by one. The zero value, with Now, is ready to use.
type Auditor struct {
	Now            time.Duration // when the calls were read
	late, response []float64
	kept           float64 // calls that the generator had a connection for and did not send
}

// Add takes in a call that was due.
func (a *Auditor) Add(c *load.Call) {
	l := c.Lateness()
	if c.Sent == 0 && c.Ready != 0 && (c.Done == 0 || c.Outcome != load.ConnFailed) {
		l = max(0, min(a.Now, ended(c, a.Now))-max(c.Intended, c.Ready))
		a.kept++
	}
	a.late = append(a.late, l.Seconds())
	if c.Done != 0 && c.Outcome.Good() {
		a.response = append(a.response, c.Response().Seconds())
	}
}

// Audit judges all calls that were added. due is how many there should have been; 0: as many as there are. The trial is
// invalid when more than 1 % of the calls (and more than one) were sent later than max(1 ms, 10 % of the median
// response), or when less than 99 % were sent or waited for a connection. Add may be called again afterwards.
func (a *Auditor) Audit(due int) Audit {
	out, n := Audit{Valid: true, Limit: LatenessLimit(0), AchievedRatio: 1}, len(a.late)
	if n == 0 {
		return out
	}
	if len(a.response) > 0 {
		slices.Sort(a.response)
		out.Limit = LatenessLimit(stat.SortedQuantile(a.response, 0.5))
	}
	// A call that was due at the very end may be counted on either side of it.
	out.AchievedRatio = min(1, (float64(n)-a.kept)/float64(max(n, due-1)))
	slices.Sort(a.late)
	return out.judge(a.late)
}

func ended(c *load.Call, now time.Duration) time.Duration {
	if c.Done == 0 {
		return now
	}
	return c.Done
}

// judge takes how late calls were sent, in ascending order.
func (a Audit) judge(late []float64) Audit {
	over := 0
	for _, l := range late {
		if l > a.Limit {
			over++
		}
	}
	a.LatenessP50, a.LatenessP99 = stat.SortedQuantile(late, 0.5), stat.SortedQuantile(late, 0.99)
	a.LatenessMax = stat.SortedQuantile(late, 1)
	switch {
	case over > 1 && over*100 > len(late):
		a.Valid, a.Reason = false, SentLate(a.LatenessP99, a.Limit)
	case a.AchievedRatio < LeastAchieved:
		a.Valid, a.Reason = false, SentTooLittle(a.AchievedRatio)
	}
	return a
}

// LeastAchieved is the minimum share of the possible calls that a generator must send.
const LeastAchieved = 0.99

// LatenessLimit is the limit of the p99 of the generator's own delay, in seconds, for a median response of the target
// (0: unknown).
func LatenessLimit(median float64) float64 { return max(0.001, 0.1*median) }

// SentLate explains why a generator whose p99 exceeded its limit is not to be trusted.
func SentLate(p99, limit float64) string {
	return fmt.Sprintf("the generator sent late: p99 %s, where %s is allowed", short(p99), short(limit))
}

// SentTooLittle explains the same of a generator that did not send what it could.
func SentTooLittle(achieved float64) string {
	return fmt.Sprintf("the generator sent %.1f %% of what was due, though connections were free", 100*achieved)
}

// short prints seconds with a fitting unit.
func short(s float64) string {
	return unit.Seconds(s)
}
