package limit

import (
	"fmt"
	"slices"
)

// severalTimes is how many times as much calls from several source addresses get, at least, if each has a limit of its
// own.
const severalTimes = 1.5

// ofCallers says whether each caller has a limit of its own or all share one, with what was seen of that; of a limit on
// the rate also that it was not tried.
func (v *Verdict) ofCallers(f *facts) {
	v.Scope = f.Scope
	each, seen := f.bySource()
	switch {
	case !v.counts():
		return
	case v.Scope != "":
		seen = f.ScopeSeen
	case v.Kind != RateLimit:
		return
	case each:
		v.Scope = EachCaller
	case seen != "":
	case f.Callers > 1:
		seen = fmt.Sprintf("whether each of the %d callers has a limit of its own is not known", f.Callers)
	default:
		seen = "whether each caller has a limit of its own was not tried: all calls were those of one caller"
	}
	if seen != "" {
		v.Evidence = slices.Insert(v.Evidence, min(1, len(v.Evidence)), seen)
	}
}

// bySource says what calls from several source addresses got, and whether each address has a limit of its own; "" where
// that was not tried.
func (f *facts) bySource() (each bool, seen string) {
	for i := range f.Experiments {
		x := &f.Experiments[i]
		one, m := f.before(), x.measured()
		if f.Rate > 0 {
			one = measured{f.Rate, (f.Hi - f.Lo) / 4}
		}
		if x.Sources < 2 || x.Late != "" {
			continue
		}
		seen = fmt.Sprintf("calls from %d source addresses got ", x.Sources)
		switch {
		case x.hangs():
			seen += "no answers any more"
		case one.rate == 0:
			seen += perSecond(m.rate) + ", and what those from one get is not known"
		case m.rate-noise*m.err > severalTimes*(one.rate+noise*one.err):
			return true, seen + fmt.Sprintf("%s, where those from one get %s: each address has a limit of its own",
				perSecond(m.rate), perSecond(one.rate))
		case x.TookAll():
			seen += fmt.Sprintf("all of the %s that were offered", perSecond(m.rate))
		case m.isAbout(one):
			return false, seen + perSecond(m.rate) + ", as those from one: the limit is not one on each address"
		default:
			seen += fmt.Sprintf("%s, where those from one get %s", perSecond(m.rate), perSecond(one.rate))
		}
		seen += ", which does not tell whether each address has a limit of its own"
	}
	return false, seen
}
