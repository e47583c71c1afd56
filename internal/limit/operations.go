package limit

import (
	"fmt"
	"math"

	"tare/internal/signature"
	"tare/internal/unit"
)

const (
	// Dearer is how many times as long a rare call of one operation takes as one of another, at least, for their rates to
	// tell limits apart.
	Dearer = 2
	// unlike is how many times as high the rate of the cheaper operation is, at least, where it differs.
	unlike = 1.3
)

// operations are the experiments with the cheapest and the dearest operation alone; nil where they cannot be compared.
func (f *facts) operations() (cheap, dear *Experiment) {
	for i := range f.Experiments {
		x := &f.Experiments[i]
		// where the calls in flight are too few for a higher rate, they set it
		if x.Operation == "" || x.Late != "" || x.Idle <= 0 || x.measured().rate*x.Idle > 0.75*float64(x.InFlight) {
			continue
		}
		if cheap == nil || x.Idle < cheap.Idle {
			cheap = x
		}
		if dear == nil || x.Idle > dear.Idle {
			dear = x
		}
	}
	if cheap == nil || dear.Idle < Dearer*cheap.Idle || dear.TookAll() {
		return nil, nil
	}
	return cheap, dear
}

// triedOperations reports whether operations were compared.
func (f *facts) triedOperations() bool {
	cheap, _ := f.operations()
	return cheap != nil
}

// byOperation says that calls of the cheapest and the dearest operation reach the same rate, or that they do not. Both
// are "" where that was not tried, or is not clear.
func (f *facts) byOperation() (sameRate, otherRate string, inFlight float64) {
	cheap, dear := f.operations()
	if cheap == nil {
		return "", "", 0
	}
	c, d := cheap.measured(), dear.measured()
	said := fmt.Sprintf("alone, %s gets %s, where a rare call takes %s, and %s %s, where one takes %s", cheap.Operation,
		perSecond(c.rate), unit.Seconds(cheap.Idle), dear.Operation, perSecond(d.rate), unit.Seconds(dear.Idle))
	switch {
	case d.rate == 0:
	case c.isAbout(d) && !cheap.TookAll():
		return said, "", 0
	case c.rate-noise*c.err > unlike*(d.rate+noise*d.err):
		if a, b := c.rate*cheap.Idle, d.rate*dear.Idle; math.Abs(a-b) <= 0.15*(a+b) && !cheap.TookAll() {
			inFlight = (a + b) / 2
		}
		return "", said, inFlight
	}
	return "", "", 0
}

// LoneOperation returns the experiment in which one call at a time of the cheapest operation would tell a limit that
// lets calls wait from a step that all calls share: with the limit, each waits, though no other is in flight. It is nil
// where that would decide nothing.
func LoneOperation(e Evidence) *Experiment {
	f := factsOf(&e)
	sameRate, _, _ := f.byOperation()
	cheap, _ := f.operations()
	if sameRate == "" || f.refusesUnslowed() != "" || cheap.measured().rate*cheap.Idle > partly {
		return nil
	}
	return &Experiment{InFlight: 1, Offered: cheap.Offered, Operation: cheap.Operation, Idle: cheap.Idle}
}

// waitsByItself says that a single call of one operation waits though no other is in flight, and gets the rate of the
// target all the same; "" if that was not seen.
func (f *facts) waitsByItself() string {
	for i := range f.Experiments {
		x := &f.Experiments[i]
		if x.Operation != "" && x.InFlight == 1 && x.Late == "" && x.Service > 1.5*x.Idle+0.001 && !x.TookAll() &&
			x.measured().isAbout(f.before()) {
			return fmt.Sprintf("one call of %s at a time takes %s, where a rare one takes %s: it waits though no other is in "+
				"flight", x.Operation, unit.Seconds(x.Service), unit.Seconds(x.Idle))
		}
	}
	return ""
}

// bothOperations names a limit of which a dear call needs as much as a cheap one, or which it holds for as long as it
// takes: where calls are refused, though those that are served are not slower for it, or a single call waits.
func bothOperations(f *facts) *Verdict {
	sameRate, otherRate, n := f.byOperation()
	refuses, waits := f.refusesUnslowed(), f.waitsByItself()
	switch {
	case sameRate != "" && refuses != "":
		return likely(RateLimit, f.setting(), sameRate, refuses)
	case sameRate != "" && waits != "" && (f.account == nil || f.idles()) &&
		f.Signature.Scores[signature.CPUThrottling] < 0.3 && f.Signature.Period == 0:
		return likely(RateLimit, f.setting(), waits, sameRate)
	case n >= 0.8 && refuses != "":
		return likely(Slots, f.inFlight(n), otherRate, refuses)
	}
	return nil
}
