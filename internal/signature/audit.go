package signature

import (
	"fmt"
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
// should have been; 0: as many as there are. The trial is invalid when more than 1 % of the calls (and more than one)
// were sent later than max(1 ms, 10 % of the median response), or when less than 99 % were sent or waited for a
// connection.
func AuditCalls(calls []load.Call, from, to, now time.Duration, due int) Audit {
	var late, response []float64
	kept := 0.0 // calls that the generator had a connection for and did not send
	n := 0
	for _, c := range calls {
		if c.Intended < from || c.Intended >= to {
			continue
		}
		n++
		l := c.Lateness()
		if c.Sent == 0 && c.Ready != 0 && (c.Done == 0 || c.Outcome != load.ConnFailed) {
			l = max(0, min(now, ended(c, now))-max(c.Intended, c.Ready))
			kept++
		}
		late = append(late, l.Seconds())
		if c.Done != 0 && c.Outcome.Good() {
			response = append(response, c.Response().Seconds())
		}
	}
	a := Audit{Valid: true, Limit: LatenessLimit(0), AchievedRatio: 1}
	if n == 0 {
		return a
	}
	if len(response) > 0 {
		a.Limit = LatenessLimit(stat.Quantile(response, 0.5))
	}
	// A call that was scheduled at the very end may count on either side of it.
	a.AchievedRatio = min(1, (float64(n)-kept)/float64(max(n, due-1)))
	return a.judge(late)
}

func ended(c load.Call, now time.Duration) time.Duration {
	if c.Done == 0 {
		return now
	}
	return c.Done
}

func (a Audit) judge(late []float64) Audit {
	over := 0
	for _, l := range late {
		if l > a.Limit {
			over++
		}
	}
	a.LatenessP50, a.LatenessP99, a.LatenessMax = stat.Quantile(late, 0.5), stat.Quantile(late, 0.99),
		stat.Quantile(late, 1)
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
