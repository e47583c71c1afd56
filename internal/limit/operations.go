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

// bothOperations names a limit of which a dear call needs as much as a cheap one, or which it holds for as long as it
// takes: where calls are refused, though those that are served are not slower for it, or a single call waits.
func bothOperations(f *facts) *Verdict {
	sameRate, otherRate, n := f.byOperation()
	refuses := f.refusesUnslowed()
	switch {
	case sameRate != "" && refuses != "":
		return likely(RateLimit, f.setting(), sameRate, refuses)
	case sameRate != "" && f.account == nil && f.flat && f.least.InFlight == 1 && f.waitsAlone() &&
		f.Signature.Scores[signature.CPUThrottling] < 0.3 && f.Signature.Period == 0:
		return likely(RateLimit, f.setting(), sameRate, fmt.Sprintf("one call at a time takes %s, where a rare one takes %s",
			unit.Seconds(f.single().Service), unit.Seconds(f.Idle)))
	case n >= 0.8 && refuses != "":
		return likely(Slots, inFlight(n), otherRate, refuses)
	}
	return nil
}
