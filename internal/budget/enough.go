package budget

import (
	"fmt"
	"math"
	"time"

	"tare/internal/metric"
	"tare/internal/unit"
)

// z95 is the normal quantile of the two-sided 95 % at which intervals are.
const z95 = 1.959964

// Unprovable says why no run of the planned length can show that b is kept, whatever the target does, and what would
// do; "" where one can, as far as is known. Such a run can still show that b is broken.
func (s *Scope) Unprovable(b Budget) string {
	if s.Rules.Blocks || s.Rules.Rates || s.OwnPace || b.Drift || b.Limit.Against != Absolute {
		return ""
	}
	for _, t := range s.Judged(&b) {
		arm := s.Of(&t)
		resolved, refusal := s.Resolve(b, &t)
		if refusal != nil || arm.Samples == nil {
			continue
		}
		need, why := resolved.leastCalls()
		calls := math.Floor(arm.Samples(resolved.Operation))
		if math.IsInf(need, 1) {
			return why
		}
		if calls > 0 && calls < need {
			return s.tooFew(calls, need, why)
		}
	}
	return ""
}

// leastCalls is how many calls it takes at least to show that b is kept, if they are independent and all are well.
func (b *Budget) leastCalls() (n float64, why string) {
	if b.Metric == metric.Error.Name && b.Op == AtMost {
		share := b.Limit.Value
		if share <= 0 {
			return math.Inf(1), "no number of calls shows that none will ever fail: allow a share, as in \"error <= 0.1%\""
		}
		return math.Ceil(z95 * z95 * (1 - share) / share), "even if none fails"
	}
	switch b.Metric {
	case metric.Response.Name, metric.Service.Name, metric.PoolWait.Name:
	default:
		return 0, ""
	}
	q, ok := Fraction(b.Quantile)
	switch {
	case !ok:
		return 0, ""
	case b.Op == AtLeast:
		q = 1 - q
	}
	return math.Floor(z95*z95*q/(1-q)) + 1, "even if all are well below the limit"
}

// tooFew says that the planned calls are too few, and which length or rate would do.
func (s *Scope) tooFew(calls, need float64, why string) string {
	text := fmt.Sprintf("%.0f calls are too few to show that it is kept, %s: it takes %.0f", calls, why, need)
	if s.Length <= 0 || s.Rate <= 0 {
		return text
	}
	more := need / calls
	length := time.Duration(math.Ceil(s.Length.Seconds()*more)) * time.Second
	rate := math.Ceil(s.Rate * more)
	text += fmt.Sprintf(", as in %s", unit.Duration(length))
	if s.MaxRate == 0 || rate <= s.MaxRate {
		text += fmt.Sprintf(", or at %s", unit.Rate(rate))
	}
	return text
}
