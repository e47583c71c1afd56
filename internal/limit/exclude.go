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
	add(Processors, "the processors", f.againstProcessors())
	add(Bandwidth, "bandwidth", f.againstBandwidth())
	if f.collecting >= 0 && f.collecting < 0.2 {
		add(Collector, "garbage collection", "it stopped the target for "+percent(f.collecting)+" of the time")
	}
	add(Slots, "places for calls", f.againstPlaces())
	_, otherRate, _ := f.byOperation()
	add(RateLimit, "one limit on the rate of all calls", otherRate)
	if sign, seen := f.freshly(); sign == 0 && seen != "" {
		out = append(out, signature.Exclusion{What: "opening connections", By: seen})
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

// againstProcessors is the observation that the target left processors unused that nothing else kept busy.
func (f *facts) againstProcessors() string {
	if f.cpu < 0 || f.processors < 0 || f.processors >= 0.7 || f.host < 0 || f.crowded() {
		return ""
	}
	return f.used()
}

// againstBandwidth is the observation that the time of an answer passes after its first byte, and the answer is small.
func (f *facts) againstBandwidth() string {
	x := f.full()
	if x == nil || x.Service == 0 || x.Transfer < partly*x.Service || !x.isSmall() {
		return ""
	}
	return fmt.Sprintf("%s of an answer's time passes after its first byte, and it has %s: it begins at once, and the "+
		"rest waits for something else", percent(x.Transfer/x.Service), unit.Count(int(x.Bytes), "byte"))
}

// againstQuota is the observation that a quota does not act, or that moving it changed nothing.
func (f *facts) againstQuota() string {
	for i := range f.Experiments {
		x := &f.Experiments[i]
		if x.Lever != nil && x.Lever.Kind == CPUQuota && x.Late == "" && x.measured().isAbout(f.before()) && !f.crowded() {
			return fmt.Sprintf("with %s it did %s, as before", x.Lever.To, perSecond(x.measured().rate))
		}
	}
	// a host that others keep busy gives the target less than its quota, and few calls in flight ask for less
	if f.account != nil && f.account.Quota > 0 && f.throttled >= 0 && f.throttled < 0.1 && f.quota < 0.7 && f.flat &&
		!f.crowded() {
		return "it was throttled in " + percent(f.throttled) + " of its periods"
	}
	return ""
}
