package limit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"tare/internal/capacity"
	"tare/internal/signature"
	"tare/internal/unit"
)

// Evidence is all that Judge looks at.
type Evidence struct {
	Rate, Lo, Hi float64           // the capacity with its interval, 1/s; 0: not known
	AtLeast      float64           // a rate that the target holds, 1/s; 0: none is known
	AtMost       float64           // a rate that it does not, 1/s; 0: none is known, or Rate is
	Signature    signature.Verdict // how the target broke, from outside
	// Idle is the median response time well below the capacity, in seconds; 0: not known.
	Idle float64
	// Accepted is how many connections were served while others, which were established, never were; 0: all were.
	Accepted int
	// Hung is what became of calls at the lowest rate at which many got no answer.
	Hung Hung
	// Scope says whose limit it is, where that was tried with the Callers that take turns; ScopeSeen is what showed it.
	Scope, ScopeSeen string

	// Answered says what became of the calls of each operation; nil: all calls are of one.
	Answered []Answered

	Callers     int // 0 and 1: all calls are those of one caller
	Experiments []Experiment
	Local       signature.Local
	Overload    capacity.Use // what the processors did in the overload that Signature is about
	// Crowded says that other work may have kept the target from its processors then.
	Crowded bool
}

// Hung says which calls got no answer at a rate, while others did.
type Hung struct {
	Rate  float64 // offered, 1/s; 0: at no rate many got none
	Calls int     // got none before the timeout
	// Unserved are those of Calls on connections that never carried an answer.
	Unserved int
	// Service is the median time from sending to the answer's end of those that were answered, in seconds; 0: none was.
	Service float64
}

// fewEnds is how many calls must have ended for how a rate grows.
const fewEnds = 30

// facts are the evidence with what follows from it at once.
type facts struct {
	Evidence
	curve
	usage
	// searched says that Rate is the search's, and not of the short experiments, in which a limiter gives what it has
	// saved up, too.
	searched bool
}

func factsOf(e *Evidence) *facts {
	answered := slices.DeleteFunc(slices.Clone(e.Experiments), func(x Experiment) bool { return x.hangs() })
	f := &facts{Evidence: *e, curve: curveOf(answered), searched: e.Rate > 0}
	f.flat = f.flat && !f.fallsShort(f.most) && f.beyond() == nil && (f.levelsOff() || f.fills(f.least))
	f.usage = usageOf(f.full(), &e.Local)
	return f
}

// fallsShort reports whether a rate is so far below one that the target is known to hold that it was not full.
func (f *facts) fallsShort(m measured) bool { return m.rate+noise*m.err < partly*f.holds() }

// beyond is the experiment whose rate is far above any at which the target could have broken, without refusals: what it
// does then is not what breaks. nil: none is. The highest of several is so.
func (f *facts) beyond() (best *Experiment) {
	breaks := f.AtMost
	if f.searched {
		breaks = f.Hi
	}
	if breaks <= 0 {
		return nil
	}
	for _, x := range f.all {
		m := x.measured()
		if 20*x.Bad <= total(x.Counts) && m.rate-noise*m.err > farBeyond*breaks && (best == nil || m.rate > best.Rate()) {
			best = x
		}
	}
	return best
}

// fills reports whether calls that take as long as in x, and are as many, do all that the search found.
func (f *facts) fills(x *Experiment) bool {
	return f.searched && f.Hi > 0 && f.Hi*x.Service < 1.2*float64(x.InFlight)
}

// holds is the highest rate that the target is known to hold; 0: none.
func (f *facts) holds() float64 { return max(f.Lo, f.AtLeast) }

// Judge names what sets the rate: by a lever that was moved, by what the target used up, by how the rate grows with the
// calls in flight, or by how it refuses. The first that the evidence supports is named; without one it is not known.
func Judge(e Evidence) Verdict {
	f := factsOf(&e)
	if f.Rate == 0 && f.most.rate > 0 && f.flat { // the search gave no number, and the experiments do
		f.Rate, f.Lo, f.Hi = f.most.rate, f.most.rate-2*f.most.err, f.most.rate+2*f.most.err
	}
	v := Verdict{Kind: Unknown, Certainty: signature.NotKnown}
	for _, rule := range []func(*facts) *Verdict{
		moved, moreConnections, quota, collector, shownLimiter, processors, oneThread, limiter, disk, refusedInFlight,
		bandwidth, paced, bothOperations, connections, slots,
	} {
		if found := rule(f); found != nil {
			v = *found
			break
		}
	}
	if v.Kind == Unknown {
		v.Evidence = append(f.unexplained(), f.further()...)
	}
	v.ofCallers(f)
	v.ofOperations(f)
	v.Excluded = f.excluded(v.Kind)
	v.predict(f)
	return v
}

// likely returns a verdict that the evidence supports.
func likely(k Kind, value string, evidence ...string) *Verdict {
	return &Verdict{Kind: k, Certainty: signature.Likely, Value: value, Evidence: evidence}
}

// sameRate says that the target does as much with few calls in flight as with many; "" if that was not seen.
func (f *facts) sameRate() string {
	if f.least == nil || f.Rate == 0 || !f.flat {
		return ""
	}
	if m := f.least.measured(); m.isAbout(measured{f.Rate, (f.Hi - f.Lo) / 4}) {
		return fmt.Sprintf("%s with %d in flight at most", perSecond(m.rate), f.least.InFlight)
	}
	return ""
}

// unexplained says what was seen where no limit is known.
func (f *facts) unexplained() (out []string) {
	switch {
	case len(f.all) == 0:
		return []string{cmp.Or(f.clock(), f.untold())}
	case f.refusesUnslowed() != "":
		out = append(out, f.refusesUnslowed())
	case f.beyond() != nil:
		out = append(out, f.farAbove()+": it broke by how many calls or connections there were at a time, or the "+
			"host was busier then")
	case f.clock() != "":
		out = append(out, f.clock())
	case f.flat && f.waitsAlone():
		out = append(out, fmt.Sprintf("one call in flight at a time takes %s, and a rare one %s: it waits for something "+
			"else than other calls", unit.Seconds(f.single().Service), unit.Seconds(f.Idle)))
	case f.atOnce() >= 0.8 && f.grows() && f.keepsBusy():
		out = append(out, fmt.Sprintf("it is full with %s: %s, or a limit that lets calls wait look alike from outside",
			f.inFlight(f.atOnce()), strings.Join(f.fillable(), ", ")))
	case f.sameRate() != "":
		out = append(out, fmt.Sprintf("the rate is %s: what it is short of cannot be seen from outside", f.sameRate()))
	case f.fallsShort(f.full().measured()) && f.full().Service < 1.5*f.all[0].Service:
		x := f.full()
		out = append(out, fmt.Sprintf("the experiments ended before it was full: with %d in flight at most it does %s, "+
			"where a call takes %s, and it holds %s", x.InFlight, perSecond(x.Rate()), unit.Seconds(x.Service),
			perSecond(f.holds())))
	case !f.flat && total(f.full().Counts) < fewEnds:
		x := f.full()
		out = append(out, fmt.Sprintf("too few calls ended in the experiments to tell: with %d in flight at most %d in %s",
			x.InFlight, total(x.Counts), unit.Seconds(x.Seconds)))
	default:
		out = append(out, "how the rate grows with the calls in flight fits no single limit")
	}
	if f.account != nil && f.cpu >= 0 && f.host >= 0 {
		out = append(out, fmt.Sprintf("%s, and the host was busy for %s of the time", f.used(), percent(f.host)))
	}
	return out
}

// clock says that answers come in bursts with a period, which several things make; "" where they do not.
func (f *facts) clock() string {
	if f.Signature.Class != signature.CPUThrottling || f.Signature.Period <= 0 {
		return ""
	}
	return fmt.Sprintf("answers come in step with a clock of %s: a CPU quota, a timer, or batches look alike from outside",
		unit.Seconds(f.Signature.Period))
}

// untold says why no experiment tells a rate.
func (f *facts) untold() string {
	var late, hung int
	var because string
	for i := range f.Experiments {
		switch x := &f.Experiments[i]; {
		case x.Late != "":
			late, because = late+1, cmp.Or(because, x.Late)
		case x.hangs():
			hung++
		}
	}
	made := unit.Count(len(f.Experiments), "experiment")
	switch {
	case late > 0:
		return fmt.Sprintf("of %s, the generator spoiled %d: %s", made, late, because)
	case hung > 0:
		return fmt.Sprintf("of %s, calls hung in %d", made, hung)
	}
	return "no experiment was made that would tell"
}

// fillable are the things that look alike from outside when so many calls fill the target, without those that an
// observation contradicts.
func (f *facts) fillable() (out []string) {
	if f.againstProcessors() == "" {
		out = append(out, "processors")
	}
	out = append(out, "workers", "a pool", "a lock")
	if f.againstBandwidth() == "" {
		out = append(out, "bandwidth")
	}
	return out
}

// farAbove says by how much an experiment exceeds what breaks the target; there must be one beyond.
func (f *facts) farAbove() string {
	x, breaks := f.beyond(), "the capacity"
	than := f.Rate
	if !f.searched {
		than, breaks = f.AtMost, "the rate at which it broke"
	}
	return fmt.Sprintf("with %d in flight at most it does %s, %s times %s", x.InFlight, perSecond(x.Rate()),
		unit.Decimal(x.Rate()/than, 2), breaks)
}

// refusesUnslowed says that calls are refused while those that are served take as long as ever; "" if that was not
// seen.
func (f *facts) refusesUnslowed() string {
	x, one := f.full(), f.single()
	if one == nil || 10*x.Bad < total(x.Counts) || one.Service == 0 || x.Service > 1.2*one.Service {
		return ""
	}
	return fmt.Sprintf("with %d in flight at most it refuses calls, and those that it serves take %s, as with one: a "+
		"limit that was set, on calls in flight or per time", x.InFlight, unit.Seconds(x.Service))
}

// perSecond prints a rate with four digits.
func perSecond(x float64) string { return unit.Decimal(x, 4) + "/s" }

// percent prints a share as a percentage.
func percent(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

// further is what the experiments with something else than the calls in flight show where no limit is named.
func (f *facts) further() (out []string) {
	sameRate, otherRate, _ := f.byOperation()
	switch {
	case sameRate != "":
		out = append(out, sameRate+": a dear call needs no more of what it is short of than a cheap one")
	case otherRate != "":
		out = append(out, otherRate+": a dear call needs more of what it is short of")
	}
	switch sign, seen := f.freshly(); {
	case sign < 0:
		out = append(out, seen+": connections cost it what it is short of, or are limited themselves")
	case sign > 0:
		out = append(out, seen+": kept connections do not reach all that it has")
	}
	return out
}
