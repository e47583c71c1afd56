package analyze

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"tare/internal/budget"
	"tare/internal/capacity"
	"tare/internal/metric"
	"tare/internal/report"
	"tare/internal/unit"
)

// leastStretch is how long a stretch must be for what holds in it to count: a moment may live on an allowance.
const leastStretch = 2 * time.Second

// A testimony is what a stretch says of a budget at a rate.
type testimony struct {
	stretch
	interval budget.Interval
	verdict  report.Verdict
	note     string // what is to be said beside it
	same     bool   // the stretch is at the budget's rate
}

// decideAt judges a budget at a rate by the best testimony. One that leaves it open gives way to the next that does not
// and that agrees with it. Where one of weight says the opposite, the budget is undecided.
func decideAt(b *budget.Budget, operation int, trace *capacity.Trace) finding {
	said := testimonies(b, operation, trace)
	if len(said) == 0 {
		return unmeasured("no load was offered near %s for long enough", unit.PerSecond(b.At))
	}
	best := &said[0]
	for i := range said {
		switch x := &said[i]; {
		case !x.decides():
		case !best.decides():
			if !x.apart(best) {
				best = x
			}
		case x.verdict != best.verdict && x.outweighs(best):
			return best.against(x)
		}
	}
	return finding{Interval: best.interval, verdict: best.verdict, how: best.how()}
}

// testimonies are those of a trace, the best first: at the budget's rate, and where limits are carried over from other
// rates, at these. One caller alone is another load, and says nothing.
func testimonies(b *budget.Budget, operation int, trace *capacity.Trace) (all []testimony) {
	// Only an upper limit of an absolute value may be carried over from another rate.
	absolute := b.Limit.Against == budget.Absolute
	monotone := b.Op == budget.AtMost && absolute
	for _, s := range stretches(trace) {
		x := testimony{stretch: s, same: math.Abs(s.rate-b.At) <= budget.RateTolerance*b.At}
		x.operation = operation
		lasts := s.length() >= leastStretch || x.made()
		if usable := x.same && absolute || (x.same || monotone) && lasts; !usable || s.role == capacity.RoleAlone {
			continue
		}
		if x.interval = x.of(b); math.IsNaN(x.interval.Value) {
			continue
		}
		x.verdict, x.note = x.judged(b, x.interval)
		if b.Metric == metric.Error.Name && x.interval.Value == 0 {
			x.note += ", none of which failed; " + missedOutages
		}
		carries := x.verdict == report.Pass && s.rate > b.At || x.verdict == report.Fail && s.rate < b.At
		switch {
		case !x.same && !carries:
			x.verdict = report.Inconclusive
		case x.verdict == report.Pass && !lasts:
			x.verdict = report.Inconclusive
			x.note += fmt.Sprintf("; %s are too short to show that it is kept: it takes %s", unit.Seconds(s.length().Seconds()),
				unit.Seconds(leastStretch.Seconds()))
		}
		all = append(all, x)
	}
	slices.SortStableFunc(all, func(x, y testimony) int {
		return cmp.Or(
			cmp.Compare(x.rank(), y.rank()), cmp.Compare(y.length(), x.length()),
			cmp.Compare(math.Abs(x.rate-b.At), math.Abs(y.rate-b.At)),
		)
	})
	return all
}

// made reports whether the rate was offered in order to judge it.
func (x *testimony) made() bool {
	return x.same && (x.role == capacity.RoleRate || x.role == capacity.RolePoint)
}

// rank is lower for a better testimony; among equals the longest is the best. The ramp only looks for the order of
// magnitude, with a target that may be cold or have an allowance.
func (x *testimony) rank() int {
	switch {
	case x.made():
		return 0
	case !x.same && !x.decides():
		return 3
	case x.role == capacity.RoleRamp || x.length() < leastStretch:
		return 2
	}
	return 1
}

func (x *testimony) decides() bool { return x.verdict == report.Pass || x.verdict == report.Fail }

// apart reports whether x and y cannot both be right.
func (x *testimony) apart(y *testimony) bool {
	return x.interval.Hi < y.interval.Lo || y.interval.Hi < x.interval.Lo
}

// outweighs reports whether the opposite, said by x, leaves what best says in doubt. A stretch that was made for the
// rate comes last, when a target is warm: only one at that rate that is as long casts doubt on it.
func (x *testimony) outweighs(best *testimony) bool {
	return x.rank() <= 1 && (!best.made() || x.same && x.length() >= best.length())
}

// how says what a testimony was measured on.
func (x *testimony) how() string {
	return fmt.Sprintf("measured at %s over %s%s", unit.PerSecond(x.rate), unit.Count(x.count(), "call"), x.note)
}

// against is undecided, since y says the opposite of x.
func (x *testimony) against(y *testimony) finding {
	whole := budget.Interval{
		Value: x.interval.Value, Lo: min(x.interval.Lo, y.interval.Lo), Hi: max(x.interval.Hi, y.interval.Hi),
	}
	kept, broken := x, y
	if x.verdict == report.Fail {
		kept, broken = y, x
	}
	return finding{
		Interval: whole, verdict: report.Inconclusive,
		how: fmt.Sprintf("kept at %s over %s, and broken at %s over %s", unit.PerSecond(kept.rate),
			unit.Count(kept.count(), "call"), unit.PerSecond(broken.rate), unit.Count(broken.count(), "call")),
	}
}
