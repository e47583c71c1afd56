package analyze

import (
	"fmt"
	"math"
	"net/http"
	"slices"

	"tare/internal/guard"
	"tare/internal/hist"
	"tare/internal/load"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/unit"
)

// tallies are the calls of a soak that ended while it was measured, by operation in the order of the record.
type tallies struct {
	names []string
	per   map[string]*soakTally
}

// A soakTally counts the calls of one operation.
type soakTally struct {
	tally
	in, out uint64 // bytes
	unclear uint64 // answers that are no error, and not the expected ones
}

// tallied adds up slices.
func tallied(t *record.Trial, of []record.Slice) tallies {
	out := tallies{per: map[string]*soakTally{}}
	for _, name := range t.Operations {
		out.of(name)
	}
	for i := range of {
		for k := range of[i].Operations {
			x := &of[i].Operations[k]
			y := out.of(x.Operation)
			y.in, y.out = y.in+x.BytesIn, y.out+x.BytesOut
			for j := range x.Outcomes {
				y.add(&x.Outcomes[j], t, slices.Index(t.Operations, x.Operation))
			}
		}
	}
	return out
}

func (t *tallies) of(name string) *soakTally {
	x := t.per[name]
	if x == nil {
		x = &soakTally{}
		t.per[name] = x
		t.names = append(t.names, name)
	}
	return x
}

// add counts the calls that ended with one outcome. operation is the index of theirs, −1: not one of the trial's.
func (x *soakTally) add(o *record.SliceOutcome, t *record.Trial, operation int) {
	*field(&x.outcomes, o.Outcome) += o.Count
	x.outcomes.Unsent += o.Unsent
	if o.Outcome.Good() {
		x.answered(answerOf(t, operation), o.Count)
		return
	}
	var own []string
	if operation >= 0 {
		own = ownCauses(t, operation)
	}
	told := uint64(0)
	for _, c := range o.Causes {
		x.causes.count(report.Cause{Outcome: o.Outcome.String(), Cause: countedCause(o.Outcome, c, own)}, c.Count)
		x.answered(causeAnswerOf(t, operation, c.Cause), c.Count)
		told += c.Count
		if guard.Unclear(o.Outcome, c.Status) {
			x.unclear += c.Count
		}
	}
	if told < o.Count {
		x.causes.count(report.Cause{Outcome: o.Outcome.String(), Cause: "not known"}, o.Count-told)
	}
}

// countedCause says in words why calls did not end well, of which only a count is left.
func countedCause(o load.Outcome, n load.CauseCount, own []string) string {
	if o == load.Timeout && n.Cause == 0 {
		if n.Status != 0 {
			return fmt.Sprintf(
				"no whole answer before the timeout, after status %d %s", n.Status, http.StatusText(int(n.Status)),
			)
		}
		return "no answer before the timeout"
	}
	return causeOf(&load.Call{Outcome: o, Cause: n.Cause, Status: n.Status, Errno: n.Errno}, own)
}

// timings are the merged histograms of what was measured, in nanoseconds.
type timings struct {
	per      map[string]map[record.Measure]*hist.Histogram
	all      map[record.Measure]*hist.Histogram
	good     *hist.Histogram            // response times of calls that were answered well
	goodPer  map[string]*hist.Histogram // the same by operation
	lateness *hist.Histogram
}

// timings reads the histograms of a soak.
func (a *analysis) timings(s *soak) {
	x := &timings{
		per: map[string]map[record.Measure]*hist.Histogram{}, all: map[record.Measure]*hist.Histogram{}, good: compact(),
		goodPer: map[string]*hist.Histogram{}, lateness: compact(),
	}
	s.hists = x
	damaged, err := s.trial.Histograms(func(iv *record.Interval) {
		if x.per[iv.Operation] == nil {
			x.per[iv.Operation] = map[record.Measure]*hist.Histogram{}
		}
		merge(x.per[iv.Operation], iv)
		merge(x.all, iv)
		switch {
		case iv.Measure == record.Lateness:
			x.lateness.Merge(iv.Hist)
		case iv.Measure == record.Response && iv.Outcome.Good():
			x.good.Merge(iv.Hist)
			if x.goodPer[iv.Operation] == nil {
				x.goodPer[iv.Operation] = compact()
			}
			x.goodPer[iv.Operation].Merge(iv.Hist)
		}
	})
	if err != nil {
		a.warn(s.trial.Treatment, "%v", err)
	}
	if damaged > 0 {
		a.warn(s.trial.Treatment, "%s could not be read", unit.Count(damaged, "histogram"))
	}
}

func merge(into map[record.Measure]*hist.Histogram, iv *record.Interval) {
	if into[iv.Measure] == nil {
		into[iv.Measure] = compact()
	}
	into[iv.Measure].Merge(iv.Hist)
}

// soakOperations are the operations' tables, and that of all together.
func (a *analysis) soakOperations(s *soak) ([]report.Operation, *report.Total) {
	seconds := s.seconds()
	var ops []report.Operation
	var all soakTally
	for _, name := range s.total.names {
		x := s.total.per[name]
		if x.outcomes.Ended() == 0 {
			continue
		}
		op := x.operation(seconds)
		op.Treatment, op.Operation = s.trial.Treatment, name
		s.times(&op)
		ops = append(ops, op)
		all.merge(&x.tally)
		all.in, all.out = all.in+x.in, all.out+x.out
	}
	total := &report.Total{Operation: all.operation(seconds)}
	total.Treatment = s.trial.Treatment
	s.times(&total.Operation)
	if due, sent := s.offered(); seconds > 0 {
		offered, achieved := due/seconds, sent/seconds
		total.Offered, total.Achieved = &offered, &achieved
		if len(ops) == 1 {
			ops[0].Offered, ops[0].Achieved = &offered, &achieved
		}
	}
	total.Little = a.little(s, &total.Operation)
	if cpu, good := s.spent(); good > 0 && isFinite(cpu) {
		v := cpu / good
		total.CPUPerOp = &v
	}
	a.missingTimes(s, all.outcomes.Ended())
	return ops, total
}

// operation is the table's line, without times.
func (x *soakTally) operation(seconds float64) report.Operation {
	op := x.tally.operation(0)
	if x.in+x.out > 0 {
		op.BytesIn, op.BytesOut = &x.in, &x.out
	}
	if seconds > 0 {
		sent, good := float64(
			x.outcomes.Ended()-min(x.outcomes.Unsent, x.outcomes.Ended()),
		)/seconds, float64(x.outcomes.Good())/seconds
		op.Achieved, op.Goodput = &sent, &good
	}
	return op
}

// times fills in the distributions.
func (s *soak) times(op *report.Operation) {
	of := s.histogramsOf(op.Operation)
	op.Response, op.Service, op.PoolWait = summed(
		of[record.Response],
	), summed(of[record.Service]), summed(of[record.PoolWait])
	s.ownIn(op.Response, op.Operation)
}

// offered is how many calls came due and were sent while it was measured.
func (s *soak) offered() (due, sent float64) {
	for i := range s.measured() {
		x := &s.measured()[i]
		due, sent = due+float64(x.Due), sent+float64(x.Sent)
	}
	return due, sent
}

// spent is the CPU time of the target over what was measured, and the calls that were answered well meanwhile.
func (s *soak) spent() (cpu, good float64) {
	cpu = math.NaN()
	for subject, sums := range s.parts.sums {
		if v, ok := cpuOf(sums); ok && partOfTarget(subject) {
			cpu = plus(cpu, v)
		}
	}
	for _, x := range s.total.per {
		good += float64(x.outcomes.Good())
	}
	return cpu, good
}

// missingTimes says so when calls ended whose times are in no histogram: of a run that was killed.
func (a *analysis) missingTimes(s *soak, ended uint64) {
	n := uint64(0)
	if h := s.hists.all[record.Response]; h != nil {
		n = h.Count()
	}
	const enough = 0.999
	if ended > 0 && float64(n) < enough*float64(ended) {
		a.warn(
			s.trial.Treatment, "the times of %d of %d calls were not written to the record: distributions are of the others",
			ended-n, ended,
		)
	}
}

// littleTolerance is how far rate × mean response may be from the concurrency.
const littleTolerance = 0.1

// little holds the callers of a closed loop against rate × mean response (Little 1961).
func (a *analysis) little(s *soak, all *report.Operation) *report.Little {
	workers, id := float64(a.rec.Plan.Load.Workers), s.trial.Treatment
	if workers == 0 || all.Response == nil || !(s.seconds() > 0) {
		return nil
	}
	if slices.Contains(s.out[s.first:], true) {
		addOnce(&a.rep.Notes, of(id)+"Little's law is not checked: in an outage callers wait without calling")
		return nil
	}
	if most := a.rec.Plan.Load.MaxRate; most > 0 && float64(all.Outcomes.Ended())/s.seconds() >= (1-littleTolerance)*most {
		addOnce(&a.rep.Notes, of(id)+"Little's law is not checked: max_rate held the callers back")
		return nil
	}
	l := &report.Little{Expected: workers, Observed: float64(all.Outcomes.Ended()) / s.seconds() * all.Response.Mean}
	if off := l.Observed/l.Expected - 1; abs(off) > littleTolerance {
		a.warn(
			id,
			"rate × mean response is %.2f, and there are %.0f callers (%+.0f %%): by Little's law some of their time is not "+
				"accounted for",
			l.Observed, l.Expected, 100*off,
		)
	}
	return l
}
