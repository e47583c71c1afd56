package limit

import (
	"fmt"

	"tare/internal/signature"
	"tare/internal/unit"
)

// excluded lists the alternatives to k that an observation contradicts.
func (f *facts) excluded(k Kind) (out []signature.Exclusion) {
	add := func(not Kind, what, by string) {
		if k != not && by != "" {
			out = append(out, signature.Exclusion{What: what, By: by})
		}
	}
	add(Connections, "a limit on connections", f.againstConnections())
	add(CPUQuota, "a CPU quota", f.againstQuota())
	if f.cpu >= 0 && f.processors >= 0 && f.processors < 0.7 && f.host >= 0 && f.host < 0.9 {
		add(Processors, "the processors", f.used())
	}
	if f.collecting >= 0 && f.collecting < 0.2 {
		add(Collector, "garbage collection", "it stopped the target for "+percent(f.collecting)+" of the time")
	}
	if n := f.atOnce(); n >= 1.8 && f.grows() {
		add(OneThread, "one call at a time", fmt.Sprintf("with %d in flight it does %s times as much as with one",
			f.least.InFlight, unit.Decimal(n, 2)))
	}
	return out
}

// againstConnections is the observation that fewer connections than are served do as well.
func (f *facts) againstConnections() string {
	if s := f.sameRate(); s != "" && 2*f.least.InFlight <= f.Accepted {
		return "the rate is " + s
	}
	return ""
}

// againstQuota is the observation that a quota does not act, or that moving it changed nothing.
func (f *facts) againstQuota() string {
	for i := range f.Experiments {
		x := &f.Experiments[i]
		if x.Lever != nil && x.Lever.Kind == CPUQuota && x.Late == "" && x.measured().isAbout(f.before()) {
			return fmt.Sprintf("with %s it did %s, as before", x.Lever.To, perSecond(x.measured().rate))
		}
	}
	if f.account != nil && f.account.Quota > 0 && f.throttled >= 0 && f.throttled < 0.1 {
		return "it was throttled in " + percent(f.throttled) + " of its periods"
	}
	return ""
}
