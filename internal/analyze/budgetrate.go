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
	here     report.Verdict // the verdict if the budget were at the rate of the stretch
	over     bool           // the value is beyond the limit
	note     string         // what is to be said beside it
	same     bool           // the stretch is at the budget's rate
}

// decideAt judges a budget at a rate by the best testimony that decides it, that no other one puts in doubt, and that
// agrees with the best of all. Without such a testimony the budget is undecided.
func decideAt(b *budget.Budget, operation int, trace *capacity.Trace) finding {
	said := testimonies(b, operation, trace)
	if len(said) == 0 {
		return unmeasured("no load was offered near %s for long enough", unit.PerSecond(b.At))
	}
	best := &said[0]
	var first, doubt *testimony
	for i := range said {
		x := &said[i]
		if !x.decides() || x.apart(best) {
			continue
		}
		y := x.doubtedBy(said)
		if y == nil {
			return x.finding()
		}
		if first == nil {
			first, doubt = x, y
		}
	}
	if first == nil {
		return best.finding()
	}
	return first.against(doubt)
}

// finding is what a testimony says by itself.
func (x *testimony) finding() finding {
	return finding{Interval: x.interval, verdict: x.verdict, how: x.how()}
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
		x.over = x.interval.Value > b.Limit.Value == (b.Op == budget.AtMost)
		carries := x.verdict == report.Pass && s.rate > b.At || x.verdict == report.Fail && s.rate < b.At
		x.here = x.verdict
		switch {
		case !x.same && !carries:
			x.verdict = report.Inconclusive
		case x.verdict == report.Pass && !lasts:
			x.verdict, x.here = report.Inconclusive, report.Inconclusive
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

// doubtedBy is the first of the others that leaves in doubt what x decides; nil: none does.
func (x *testimony) doubtedBy(others []testimony) *testimony {
	for i := range others {
		if y := &others[i]; y != x && y.doubts(x) {
			return y
		}
	}
	return nil
}

// doubts reports whether y leaves in doubt what x decides. What a stretch of weight at the rate of x, or at a lower
// one, does not keep is not known to be kept at the rate of x, nor is what one at a higher rate does not break known
// to be broken there. Over a time that is no shorter, y says the opposite, or leaves it open: at the same rate, or with
// a value on the other side of the limit. A shorter one says the opposite at the same rate, or of the budget's. A
// stretch that was made for the rate comes last, when a target is warm: only the opposite at that rate, over a time
// that is no shorter, casts doubt on it.
func (y *testimony) doubts(x *testimony) bool {
	if y.role == capacity.RoleRamp || y.length() < leastStretch {
		return false
	}
	longer := y.made() || y.length() >= x.length()
	opposite := y.decidesHere() && y.here != x.verdict
	kept := x.verdict == report.Pass
	alike := math.Abs(y.rate-x.rate) <= budget.RateTolerance*x.rate
	switch {
	case x.made():
		return y.same && opposite && y.length() >= x.length()
	case !alike && y.rate > x.rate == kept:
		return false
	}
	if opposite {
		return longer || y.decides() || alike && y.role != capacity.RoleBusy // which keeps a queue
	}
	return longer && !y.decidesHere() && (alike || y.over == kept)
}

func (x *testimony) decidesHere() bool { return x.here == report.Pass || x.here == report.Fail }

// how says what a testimony was measured on.
func (x *testimony) how() string {
	return fmt.Sprintf("measured at %s over %s%s", unit.PerSecond(x.rate), unit.Count(x.count(), "call"), x.note)
}

// against is undecided, since y leaves in doubt what x decides.
func (x *testimony) against(y *testimony) finding {
	if !y.decidesHere() {
		word := "kept"
		if x.verdict == report.Fail {
			word = "broken"
		}
		return finding{
			Interval: y.interval, verdict: report.Inconclusive,
			how: fmt.Sprintf("%s; %s at %s over %s", y.how(), word, unit.PerSecond(x.rate), unit.Count(x.count(), "call")),
		}
	}
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
