package limit

import (
	"fmt"
	"math"

	"tare/internal/signature"
	"tare/internal/unit"
)

// Evidence is all that Judge looks at.
type Evidence struct {
	Rate, Lo, Hi float64           // the capacity with its interval, 1/s; 0: not known
	Signature    signature.Verdict // how the target broke, from outside
	// Idle is the median response time well below the capacity, in seconds; 0: not known.
	Idle float64
	// Accepted is how many connections were served while others, which were established, never were; 0: all were.
	Accepted int
	// Scope says whose limit it is, where that was tried.
	Scope       string
	Experiments []Experiment
	Local       signature.Local
}

// facts are the evidence with what follows from it at once.
type facts struct {
	Evidence
	curve
	usage
}

// Judge names what sets the rate: by a lever that was moved, by what the target used up, by how the rate grows with the
// calls in flight, or by how it refuses. The first that the evidence supports is named; without one it is not known.
func Judge(e Evidence) Verdict {
	f := &facts{Evidence: e, curve: curveOf(e.Experiments)}
	f.usage = usageOf(f.full(), &e.Local)
	if f.Rate == 0 && f.most.rate > 0 && f.flat { // the search gave no number, and the experiments do
		f.Rate, f.Lo, f.Hi = f.most.rate, f.most.rate-2*f.most.err, f.most.rate+2*f.most.err
	}
	v := Verdict{Kind: Unknown, Certainty: signature.NotKnown}
	for _, rule := range []func(*facts) *Verdict{
		moved, quota, collector, processors, disk, oneThread, limiter, refusedInFlight, bandwidth, paced, connections, slots,
	} {
		if found := rule(f); found != nil {
			v = *found
			break
		}
	}
	if v.Kind == Unknown {
		v.Evidence = f.unexplained()
	}
	v.Scope = e.Scope
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
	switch n := f.atOnce(); {
	case len(f.all) == 0:
		out = append(out, "no experiment was made that would tell")
	case n >= 0.8 && f.grows() && f.keepsBusy():
		out = append(out, served(n)+" at a time: processors, workers, a pool or a lock look alike from outside")
	case f.sameRate() != "":
		out = append(out, fmt.Sprintf("the rate is %s: what it is short of cannot be seen from outside", f.sameRate()))
	default:
		out = append(out, "how the rate grows with the calls in flight fits no single limit")
	}
	if f.account != nil && f.cpu >= 0 && f.host >= 0 {
		out = append(out, fmt.Sprintf("%s, and the host was busy for %s of the time", f.used(), percent(f.host)))
	}
	return out
}

// served says how many calls are served: a whole number where it is close to one.
func served(n float64) string {
	nearest := math.Round(n)
	switch {
	case nearest < 1.5:
		return "it serves one call"
	case n < 10 && math.Abs(n-nearest) < 0.15*nearest:
		return fmt.Sprintf("it serves %.0f calls", nearest)
	}
	return fmt.Sprintf("it serves about %s calls", unit.Decimal(n, 2))
}

// perSecond prints a rate with four digits.
func perSecond(x float64) string { return unit.Decimal(x, 4) + "/s" }

// percent prints a share as a percentage.
func percent(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }
