package limit

import "fmt"

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
