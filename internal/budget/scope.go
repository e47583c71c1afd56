package budget

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/spelling"
	"tare/internal/unit"
)

// A Scope is what an experiment measures: what a budget may speak of. Validation makes one from a file, and analysis
// one from a record, so that both agree on which budgets can be judged.
type Scope struct {
	Rules      Rules // of the question
	Treatments []design.Treatment
	// OwnPace says that the operations have a clock of their own, and that nothing is offered to them.
	OwnPace bool
	// Rate is what is offered throughout, in 1/s; 0: no fixed rate. Of a search it is where it starts.
	Rate float64
	// MaxRate is the most that may be offered; 0: no bound.
	MaxRate float64
	// Ladder are the rates of a ladder; empty: there is none.
	Ladder []float64
	// Planned says that Ladder and Rate are all that is known to be offered; without it other rates may have been.
	Planned bool
	// Objective says that a latency objective is given.
	Objective bool
	// Length is how long a trial measures; 0: not known.
	Length time.Duration
	// Blocks is how many blocks there are at most; 0: not known.
	Blocks int
	// Own are the quantities that only the area measures.
	Own []metric.Metric
	// Of says what is measured under a treatment.
	Of func(t *design.Treatment) Arm
}

// An Arm is what the trials of one treatment measure.
type Arm struct {
	Operations []string // nil: only the run will tell
	Idle       []string // those that do nothing: what they cost is the harness's own
	Metrics    []string // besides what every call has
	Open       bool     // there may be further metrics
	// Unread says why nothing can be read of the target's processes, Instead what to do about it; empty: they are read.
	Unread, Instead string
	// Samples are the values of an operation's calls in one block, or in all of a soak; 0: not known. May be nil.
	Samples func(operation string) float64

	known, idle map[string]bool // Operations and Idle; nil: they are few
}

// Indexed is the arm with its operations as sets, for a record that has as many budgets as operations.
func (a Arm) Indexed() Arm {
	a.known, a.idle = map[string]bool{}, map[string]bool{}
	for _, name := range a.Operations {
		a.known[name] = true
	}
	for _, name := range a.Idle {
		a.idle[name] = true
	}
	return a
}

func (a *Arm) has(operation string) bool {
	if a.known != nil {
		return a.known[operation]
	}
	return slices.Contains(a.Operations, operation)
}

// isIdle reports whether an operation does nothing.
func (a *Arm) isIdle(operation string) bool {
	if a.idle != nil {
		return a.idle[operation]
	}
	return slices.Contains(a.Idle, operation)
}

// A Refusal says why a budget cannot be judged.
type Refusal struct {
	Part   Part   // what is wrong
	Reason string // why
	Write  string // what to write instead, or to do; may be empty
	// OfBaseline says that only the baseline lacks it: it may be new in the treatment.
	OfBaseline bool
}

// Error implements error.
func (r *Refusal) Error() string {
	if r.Write == "" {
		return r.Reason
	}
	return r.Reason + ": " + r.Write
}

func refuse(part Part, write, format string, args ...any) *Refusal {
	return &Refusal{Part: part, Reason: fmt.Sprintf(format, args...), Write: write}
}

// Judged are the treatments that b speaks of: every one that it names, or all but the baselines, or all if there is
// nothing else. A limit against the baseline does not speak of a baseline.
func (s *Scope) Judged(b *Budget) []design.Treatment {
	var all, treated []design.Treatment
	for _, t := range s.Treatments {
		if t.Control != design.None || (b.Treatment != "" && !t.Named(b.Treatment)) {
			continue
		}
		all = append(all, t)
		if !t.Baseline {
			treated = append(treated, t)
		}
	}
	if len(treated) > 0 && (b.Treatment == "" || b.Limit.Against != Absolute) {
		return treated
	}
	return all
}

// baselineOf is the treatment that t is compared with.
func (s *Scope) baselineOf(t *design.Treatment) (design.Treatment, bool) {
	var bases []design.Treatment
	var levels []map[string]string
	for _, x := range s.Treatments {
		if x.Baseline && x.Control == design.None {
			bases, levels = append(bases, x), append(levels, x.Levels)
		}
	}
	for _, x := range bases {
		if design.Beside(x.Levels, t.Levels, levels) {
			return x, true
		}
	}
	return design.Treatment{}, false
}

// Refuse says why b cannot be judged under any treatment, or under one of those that it speaks of; nil: it can be, as
// far as is known.
func (s *Scope) Refuse(b Budget) *Refusal {
	if b.Treatment != "" && len(s.Treatments) > 0 && len(s.Judged(&b)) == 0 {
		return s.unknownTreatment(&b)
	}
	judged := s.Judged(&b)
	if len(judged) == 0 { // the treatments cannot be told yet
		judged = []design.Treatment{{}}
	}
	for i := range judged {
		t := &judged[i]
		if _, r := s.Resolve(b, t); r != nil {
			if len(judged) > 1 && s.refusedUnder(b, judged) < len(judged) {
				r.Reason = fmt.Sprintf("under %s, %s", t.ID, r.Reason)
			}
			return r
		}
	}
	return nil
}

// Misfit says why b can be judged under none of the treatments that it speaks of, whatever was measured: a name that is
// misspelt, or a limit without its unit. It is nil where b can be judged, or lacks only what is of the baseline.
func (s *Scope) Misfit(b Budget) *Refusal {
	judged := s.Judged(&b)
	if len(judged) == 0 && len(s.Treatments) > 0 {
		return s.Refuse(b)
	}
	var first *Refusal
	for i := range judged {
		_, r := s.Resolve(b, &judged[i])
		if r == nil || r.OfBaseline {
			return nil
		}
		if first == nil {
			first = r
		}
	}
	return first
}

func (s *Scope) refusedUnder(b Budget, judged []design.Treatment) (n int) {
	for i := range judged {
		if _, r := s.Resolve(b, &judged[i]); r != nil {
			n++
		}
	}
	return n
}

func (s *Scope) unknownTreatment(b *Budget) *Refusal {
	var names []string
	for _, t := range s.Treatments {
		if t.Control != design.None {
			continue
		}
		names = append(names, t.ID)
		for factor, level := range t.Levels {
			names = append(names, level, factor+"="+level)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	near := spelling.DidYouMean(b.Treatment, names[:min(len(names), mostOffered)])
	return refuse(PartTreatment, "", "there is no treatment %q%s", b.Treatment, near)
}

// Resolve is b as it is judged under t: with the name under which its operation was measured, and without one where
// what it limits is of all operations together and there is only one. The refusal says why it cannot be judged.
func (s *Scope) Resolve(b Budget, t *design.Treatment) (Budget, *Refusal) {
	if b.Drift && !s.Rules.Drift {
		return b, refuse(PartDrift, "leave it out to limit the level, or ask question: soak",
			"a drift needs the question soak, and this is %s", s.Rules.Question)
	}
	arm := s.Of(t)
	k, r := s.kindOf(&b, &arm)
	if r != nil {
		return b, r
	}
	b.Operation = arm.named(b.Operation)
	for _, check := range []func() *Refusal{
		func() *Refusal { return s.checkOperation(&b, &arm, k) },
		func() *Refusal { return b.checkUnit(k.Metric) },
		func() *Refusal { return s.checkQuantile(&b, k) },
		func() *Refusal { return s.checkBaseline(b, t) },
		func() *Refusal { return s.checkRate(&b, k) },
		func() *Refusal { return s.checkLength(&b, &arm, k) },
	} {
		if r := check(); r != nil {
			return b, r
		}
	}
	return b, nil
}

// dryRun ends the names of operations that change nothing: a budget may leave it out.
const dryRun = "-dry-run"

// named is the operation that a budget means: a file that asks for create-pod-dry-run may speak of create-pod.
func (a *Arm) named(operation string) string {
	if operation != "" && !a.has(operation) && a.has(operation+dryRun) {
		return operation + dryRun
	}
	return operation
}

// busy are the operations that do something, at most so many.
func (a *Arm) busy(most int) (out []string) {
	for _, name := range a.Operations {
		if len(out) == most {
			break
		}
		if !a.isIdle(name) {
			out = append(out, name)
		}
	}
	return out
}

func (s *Scope) checkOperation(b *Budget, arm *Arm, k Kind) *Refusal {
	if b.Operation == "" || arm.Operations == nil {
		return nil
	}
	switch {
	case arm.isIdle(b.Operation):
		return refuse(PartOperation, "", "%s does nothing: what it costs is the harness's own, and is not judged",
			b.Operation)
	case !arm.has(b.Operation):
		return refuse(PartOperation, "", "there is no operation %q; there is %s", b.Operation, arm.offer(b.Operation))
	case k.Whole && len(arm.busy(2)) > 1:
		return refuse(PartOperation, fmt.Sprintf("leave out %q, or measure one operation only", b.Operation+"."),
			"%s is of all calls together and cannot be told apart by operation", b.Metric)
	case k.Whole && !s.Rules.Blocks:
		b.Operation = ""
	}
	return nil
}

// mostOffered bounds the names that a refusal lists, and among which it looks for the one that was meant: a record from
// elsewhere can have thousands of them, and as many budgets.
const mostOffered = 200

// offer lists the operations that do something, with the one that is nearest to what was written.
func (a *Arm) offer(written string) string {
	names, more := a.busy(mostOffered+1), ""
	if len(names) > mostOffered {
		names, more = names[:mostOffered], ", …"
	}
	return strings.Join(names, ", ") + more + spelling.DidYouMean(written, names)
}

// RateTolerance is how far an offered rate may be from the budget's and still be the same, as a share of it.
const RateTolerance = 0.005

func sameRate(offered, at float64) bool { return math.Abs(offered-at) <= RateTolerance*at }

// checkRate looks at what stands behind "at".
func (s *Scope) checkRate(b *Budget, k Kind) *Refusal {
	leave := fmt.Sprintf("leave out %q", "at "+unit.Rate(b.At).String())
	switch {
	case k.AtRate:
		return s.checkSearched(b)
	case b.At == 0:
		return nil
	case k.Found:
		return refuse(PartRate, leave, "a capacity is a rate itself, and is not measured at one")
	case s.Rules.Rates:
		return refuse(PartRate, leave, "%s is of the whole search, and not of one rate", b.Metric)
	case s.OwnPace:
		return refuse(PartRate, leave, "nothing is offered at a rate to operations that run at their own pace")
	case s.Rate == 0:
		return refuse(PartRate, leave, "no fixed rate is offered")
	case !sameRate(s.Rate, b.At):
		return refuse(PartRate, leave, "%s is offered, not %s", unit.PerSecond(s.Rate), unit.PerSecond(b.At))
	}
	return nil
}

// monotone reports whether what holds at a rate can be concluded from another one: responses and errors do not fall as
// the rate rises.
func (b *Budget) monotone() bool { return b.Op == AtMost && b.Limit.Against == Absolute }

// checkSearched looks at the rate of a budget that is judged at one of the many rates of a search or a ladder.
func (s *Scope) checkSearched(b *Budget) *Refusal {
	if b.At == 0 {
		rate := unit.Rate(50)
		if s.MaxRate > 0 {
			rate = min(rate, unit.Rate(s.MaxRate))
		}
		if len(s.Ladder) > 0 {
			rate = unit.Rate(s.Ladder[0])
		}
		return refuse(PartMetric, fmt.Sprintf("write %q", b.Text+" at "+rate.String()),
			"the question %s offers many rates, so that %s needs one", s.Rules.Question, b.Metric)
	}
	if b.monotone() || !s.Planned {
		return nil
	}
	offered := s.Ladder
	if len(offered) == 0 && s.Rate > 0 {
		offered = []float64{s.Rate}
	}
	if slices.ContainsFunc(offered, func(rate float64) bool { return sameRate(rate, b.At) }) {
		return nil
	}
	why := "a limit from below"
	if b.Limit.Against != Absolute {
		why = "a limit against the baseline"
	}
	return refuse(PartRate, fmt.Sprintf("offer it: load: {rates: [%s], duration: 30s}", unit.Rate(b.At)),
		"%s is judged at its own rate only, and %s is not sure to be offered", why, unit.PerSecond(b.At))
}

// checkBaseline looks for what a limit with a sign is against.
func (s *Scope) checkBaseline(b Budget, t *design.Treatment) *Refusal {
	if b.Limit.Against == Absolute || len(s.Treatments) == 0 {
		return nil
	}
	base, ok := s.baselineOf(t)
	leave := "leave out the sign for a limit of the value itself"
	switch {
	case t.Baseline && len(s.Treatments) > 1 && b.Treatment != "":
		return refuse(PartTreatment, leave, "a limit with a sign is against the baseline, and %s is the baseline itself",
			t.ID)
	case !ok, t.Baseline:
		return refuse(PartLimit, leave, "a limit with a sign is against the baseline, and there is none")
	}
	b.Limit.Against, b.Limit.Value = Absolute, math.Abs(b.Limit.Value)
	arm := s.Of(&base)
	if k, r := s.kindOf(&b, &arm); r != nil {
		r.Reason, r.OfBaseline = fmt.Sprintf("of the baseline, %s: %s", base.ID, r.Reason), true
		return r
	} else if r := s.checkOperation(&b, &arm, k); r != nil {
		r.Reason, r.OfBaseline = fmt.Sprintf("of the baseline, %s: %s", base.ID, r.Reason), true
		return r
	}
	return nil
}
