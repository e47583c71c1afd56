package limit

import (
	"fmt"

	"tare/internal/signature"
)

// freshly compares the rate of calls with a new connection each with that of calls on kept ones: the sign of the
// difference, and what was seen; "" where that was not tried, or is not clear.
func (f *facts) freshly() (sign int, seen string) {
	for i := range f.Experiments {
		x := &f.Experiments[i]
		m, kept := x.measured(), f.before()
		if !x.Fresh || x.Late != "" || m.rate == 0 || kept.rate == 0 || 10*x.Connections < 9*total(x.Counts) {
			continue // the target may have kept them
		}
		seen = fmt.Sprintf("with a new connection for each call it does %s, with kept ones %s", perSecond(m.rate),
			perSecond(kept.rate))
		switch {
		case m.isAbout(kept):
			return 0, seen
		case x.TookAll() && m.rate < kept.rate:
			return 0, ""
		case m.rate < kept.rate:
			return -1, seen
		}
		return 1, seen
	}
	return 0, ""
}

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

// excludedFurther are the alternatives to k that those experiments contradict.
func (f *facts) excludedFurther(k Kind) (out []signature.Exclusion) {
	if _, otherRate, _ := f.byOperation(); otherRate != "" && k != RateLimit {
		out = append(out, signature.Exclusion{What: "one limit on the rate of all calls", By: otherRate})
	}
	if sign, seen := f.freshly(); seen != "" && sign == 0 {
		out = append(out, signature.Exclusion{What: "opening connections", By: seen})
	}
	return out
}
