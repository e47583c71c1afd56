package limit

import (
	"fmt"
	"math"
	"slices"

	"tare/internal/signature"
	"tare/internal/unit"
)

const (
	// full is the share of a resource from which on it is used up.
	full = 0.85
	// partly is the share from which on the host's other work explains the rest.
	partly = 0.5
	// packet is how many bytes one packet carries. With leastBandwidth bytes per second or more, they are taken for what
	// sets the rate.
	packet, leastBandwidth = 1460, 100_000
	// farBeyond is by how much an experiment must exceed the rate at which a target breaks to be about something else: an
	// allowance, or a host that is less busy, explains less.
	farBeyond = 2
)

// moved names the limit that was moved, if the rate moved with it.
func moved(f *facts) *Verdict {
	for i := range f.Experiments {
		x := &f.Experiments[i]
		rise, least, ok := f.rise(x)
		if !ok || least < 0.3 {
			continue // it did not, or that is not clear
		}
		v := likely(x.Lever.Kind, x.Lever.From, f.usageText(x.Lever.Kind)...)
		if came(rise, least) {
			v.Certainty = signature.Shown
		} else {
			v.Evidence = append(v.Evidence, fmt.Sprintf("with %s the rate rose, but not as it would if nothing else limited it",
				x.Lever.To))
		}
		return v
	}
	return nil
}

// rise is by how much the rate rose when a lever was moved, as a share of what it would if that limit alone set it, and
// how much that is at least; ok is false where no lever was moved, or nothing can be compared.
func (f *facts) rise(x *Experiment) (rise, least float64, ok bool) {
	before, after := f.before(), x.measured()
	if x.Lever == nil || x.Late != "" || !(x.Lever.Factor > 1) || before.rate == 0 || after.rate == 0 {
		return 0, 0, false
	}
	ratio := after.rate / before.rate
	rise = (ratio - 1) / (x.Lever.Factor - 1)
	err := ratio * math.Hypot(after.err/after.rate, before.err/before.rate) / (x.Lever.Factor - 1)
	return rise, rise - noise*err, true
}

// came reports whether the rate rose as predicted, clearly.
func came(rise, least float64) bool { return math.Abs(rise-1) <= 0.25 && least >= partly }

// before is the rate before a lever was moved.
func (f *facts) before() measured {
	if f.most.rate > 0 {
		return f.most
	}
	return measured{f.Rate, (f.Hi - f.Lo) / 4}
}

// usageText says how much of a limit was used up.
func (f *facts) usageText(k Kind) (out []string) {
	if u := f.mostThrottled(); k == CPUQuota && u.throttled >= 0 {
		out = append(out, percent(u.throttled)+" of its periods were throttled")
	}
	if s := f.sameRate(); s != "" {
		out = append(out, "the rate is "+s)
	}
	return out
}

// quota names a CPU quota that acts.
func quota(f *facts) *Verdict {
	u := f.mostThrottled()
	acts := u.throttled >= 0.8 || u.throttled >= 0.5 && (u.quota < 0 || u.quota >= full)
	switch {
	case acts:
		value := ""
		if u.account != nil && u.account.Quota > 0 {
			value = unit.Decimal(1000*u.account.Quota, 4) + "m"
		}
		return likely(CPUQuota, value, f.usageText(CPUQuota)...)
	case f.throttled < 0 && f.account == nil && f.untimed() != "":
		return likely(CPUQuota, "", append(slices.Clone(f.Signature.Evidence), f.untimed())...)
	}
	return nil
}

// untimed says that calls do not wait for the clock in whose bursts answers come unless many come: a timer that answers
// what has come since it last did lets each wait, and a quota only those for which no time is left. "" if that was not
// seen.
func (f *facts) untimed() string {
	one, period := f.single(), f.Signature.Period
	most := period / 4
	if f.Signature.Class != signature.CPUThrottling || one == nil || period <= 0 || f.Idle <= 0 || f.Idle > most ||
		one.Service <= 0 || one.Service > most {
		return ""
	}
	return fmt.Sprintf("one call at a time takes %s, and a rare one %s: these do not wait for a timer of %s",
		unit.Seconds(one.Service), unit.Seconds(f.Idle), unit.Seconds(period))
}

// collector names garbage collection that takes most of the time.
func collector(f *facts) *Verdict {
	if f.collecting < partly {
		return nil
	}
	return likely(Collector, "", fmt.Sprintf("garbage collection stopped it for %s of the time", percent(f.collecting)))
}

// processors names processors that are all busy, with the target for the most part.
func processors(f *facts) *Verdict {
	switch {
	case f.account == nil || f.processors < partly || f.isSingle() || f.spins():
		return nil
	case f.processors >= full:
		return likely(Processors, processorsOf(f.account.Processors), f.used())
	case f.host >= 0.95 && !f.Signature.Class.Traits().Limiter:
		return likely(Processors, processorsOf(f.account.Processors), f.used(), fmt.Sprintf("with the generator and other "+
			"work they were busy for %s of the time", percent(f.host)))
	}
	return nil
}

// used says how many processors the target used.
func (f *facts) used() string {
	return fmt.Sprintf("it used %s of %s", unit.Decimal(f.cpu, 2), processorsOf(f.account.Processors))
}

func processorsOf(n int) string { return unit.Count(n, "processor") }

// isSingle reports whether the target uses one of several processors all the time, and not more.
func (f *facts) isSingle() bool {
	if f.account == nil || f.account.Processors < 2 {
		return false
	}
	return f.busiest >= full && f.cpu-f.busiest < 0.2 || f.cpu >= 0.9 && f.cpu <= 1.1 && f.host >= 0 && !f.crowded()
}

// spins reports whether the target used as much processor time for a rate far below the plateau: that is no work on
// calls.
func (f *facts) spins() bool {
	one := f.single()
	if one == nil || one.Account == nil || 1.5*one.measured().rate > f.most.rate {
		return false
	}
	return usageOf(one, &f.Local).cpu > 0.85*f.cpu
}

// oneThread names a target that computes one thing at a time.
func oneThread(f *facts) *Verdict {
	if !f.isSingle() || f.spins() {
		return nil
	}
	out := likely(OneThread, "", f.used())
	if f.busiest >= full {
		out.Evidence = append(out.Evidence, fmt.Sprintf("one thread was busy for %s of the time", percent(min(1, f.busiest))))
	}
	return out
}

// disk names a disk that threads wait for. A busy host does not matter: what waits for a processor does not wait for a
// disk.
func disk(f *facts) *Verdict {
	if f.diskWait < partly || f.cpu < 0 || f.processors >= partly || f.throttled >= 0.2 {
		return nil
	}
	return likely(Disk, "", fmt.Sprintf("in %s of the looks a thread waited for a disk", percent(f.diskWait)), f.used())
}

// shownLimiter names a limit on the rate that an idle target shows, whatever else it computes meanwhile.
func shownLimiter(f *facts) *Verdict {
	if v := limiter(f); v != nil && v.Certainty == signature.Shown {
		return v
	}
	return nil
}

// limiter names a limit on the rate of calls, which refuses calls, or lets them hang, while the target is idle.
func limiter(f *facts) *Verdict {
	idle := f.refusesIdle()
	switch f.Signature.Class { //nolint:exhaustive // the others are no limits on the rate
	case signature.TokenBucket, signature.FixedWindow, signature.Penalty, signature.QuotaHang:
	case signature.Unknown:
		if idle != "" {
			break
		}
		if seen := f.allowance(); seen != "" {
			return likely(RateLimit, f.setting(), seen)
		}
		return nil
	default:
		return nil
	}
	if f.Signature.Queued && idle == "" {
		return nil // what was served had waited: the service itself may be at its end
	}
	v := likely(RateLimit, f.setting(), f.Signature.Evidence...)
	if idle != "" {
		v.Certainty = signature.Shown
		v.Evidence = []string{idle} // the rest is how it fails
	}
	return v
}

// refusesIdle says that the target refuses calls though hardly anything of it is in use: with one call in flight at
// most it is busy for rate × service of the time. "" if that was not seen.
func (f *facts) refusesIdle() string {
	one := f.single()
	if one == nil || f.Rate == 0 {
		return ""
	}
	m, refused := one.measured(), float64(one.Bad)/float64(max(1, one.Bad+total(one.Counts)))
	busy := m.rate * one.Service
	if refused < 0.05 || busy <= 0 || busy >= partly || !m.isAbout(measured{f.Rate, (f.Hi - f.Lo) / 4}) {
		return ""
	}
	return fmt.Sprintf("with one call in flight at most, and none for %s of the time, it refuses calls all the same",
		percent(1-busy))
}

// setting is what a limit on the rate is set to, of the calls that it counts. Of a limit for each caller the search
// does not tell it.
func (f *facts) setting() string {
	if !f.searched || f.Scope == EachCaller {
		return ""
	}
	rate := f.Rate
	if _, share, seen := f.refusedOnly(); seen != "" {
		rate *= share
	}
	return "about " + unit.Decimal(rate, 3) + "/s"
}

// refusedInFlight names a limit on calls in flight that refuses: if fewer in flight get less in proportion, the limit
// sets the rate, and otherwise the service behind it does.
func refusedInFlight(f *facts) *Verdict {
	n := float64(f.places())
	if n == 0 {
		return nil
	}
	if seen := f.allowance(); seen != "" {
		return likely(RateLimit, f.setting(), seen)
	}
	value := fmt.Sprintf("%.0f in flight", n)
	one := f.single()
	switch {
	case f.againstPlaces() != "":
		return nil
	case one != nil && f.Rate > 0:
		if each := f.Rate / one.measured().rate; math.Abs(each-n) > 0.25*n+0.5 {
			return nil
		}
		return likely(Slots, value, append([]string{fmt.Sprintf("one call at a time gets %s: %.0f get the capacity",
			perSecond(one.measured().rate), n)}, f.Signature.Evidence...)...)
	case f.Idle > 0 && f.Rate > 0 && math.Abs(f.Rate*f.Idle-n) <= 0.25*n+0.5:
		return likely(Slots, value, append([]string{fmt.Sprintf("calls take %s however many there are, and %s of them keep "+
			"%.0f in flight", unit.Seconds(f.Idle), perSecond(f.Rate), f.Rate*f.Idle)}, f.Signature.Evidence...)...)
	}
	return nil
}

// bandwidth names a limit on bytes: with more calls in flight, each answer takes longer from its first byte on.
func bandwidth(f *facts) *Verdict {
	x := f.full()
	if x == nil || !f.flat || x.Service == 0 || x.Transfer < partly*x.Service || f.least.Transfer == 0 || x.isSmall() ||
		x.Bytes > 0 && x.Bytes*x.Rate() < leastBandwidth ||
		f.crowded() && !f.idles() || f.cpu >= full {
		return nil
	}
	grown := x.Transfer / f.least.Transfer
	if more := float64(x.InFlight) / float64(f.least.InFlight); grown < 1+(more-1)/2 {
		return nil
	}
	return likely(Bandwidth, "", fmt.Sprintf("%s of an answer's time passes after its first byte, and %s times as much "+
		"with %d in flight as with %d", percent(x.Transfer/x.Service), unit.Decimal(grown, 2), x.InFlight, f.least.InFlight))
}

// isSmall reports whether answers are so small that each takes one packet, so that none has a time from its first byte
// to its last but that of the target.
func (x *Experiment) isSmall() bool { return x.Bytes > 0 && x.Bytes <= packet }

// paced names a limit that lets calls wait: a single caller waits far longer than a call takes, and nothing is busy.
func paced(f *facts) *Verdict {
	one := f.single()
	if one == nil || !f.flat || f.least.InFlight > 1 || f.Idle <= 0 || !f.idles() ||
		f.Signature.Scores[signature.CPUThrottling] >= 0.3 || f.Signature.Period > 0 {
		return nil
	}
	m := one.measured()
	whole := 0.75 * math.Sqrt(float64(len(one.Counts))) / one.Seconds // the noise of counts, which are whole
	if !f.waitsAlone() || m.rate*f.Idle > partly || m.err > 0.02*m.rate+whole {
		return nil
	}
	return likely(RateLimit, f.setting(), fmt.Sprintf("one call at a time takes %s, where a rare one takes %s, and "+
		"answers come as evenly as by a clock", unit.Seconds(one.Service), unit.Seconds(f.Idle)), f.used())
}

// waitsAlone reports whether a single caller waits, though no other call is in flight.
func (f *facts) waitsAlone() bool {
	one := f.single()
	return one != nil && f.Idle > 0 && one.Service > 2*f.Idle+0.002
}

// connections names a limit on the connections that are served: each of them is busy all the time.
func connections(f *facts) *Verdict {
	one, n := f.single(), float64(f.Accepted)
	served, hang := f.servedAtOnce()
	if n == 0 && hang {
		n = math.Round(served)
	}
	if one == nil || n < 2 || f.Rate == 0 || served > 1.2*n || f.account != nil && !f.idles() {
		return nil
	}
	if busy := f.Rate / one.measured().rate; math.Abs(busy-n) > 0.2*n {
		return nil
	}
	return likely(Connections, fmt.Sprintf("%.0f at a time", n), fmt.Sprintf("%.0f connections were served, and others "+
		"never: one call at a time gets %s, and %.0f of them the capacity", n, perSecond(one.measured().rate), n))
}

// moreConnections names a limit on the connections of a target that serves far more calls per second on few than it
// breaks at on many: calls hang there on connections that never carry an answer, while others are answered as fast as
// ever.
func moreConnections(f *facts) *Verdict {
	h, x := &f.Hung, f.beyond()
	if x == nil || h.Calls < fewEnds || 10*h.Unserved < 9*h.Calls || h.Service <= 0 ||
		h.Service > 3*max(f.Idle, x.Service) || x.Rate() < farBeyond*h.Rate {
		return nil
	}
	return likely(Connections, "", f.farAbove(), fmt.Sprintf("at %s %d of %d calls without an answer were on connections "+
		"that never carried one, and the other calls took %s", perSecond(h.Rate), h.Unserved, h.Calls,
		unit.Seconds(h.Service)))
}

// servedAtOnce returns how many calls were served at a time at most (Little's law), in any experiment: that many
// connections were served at least. hang says that of a target with a full listen queue no more were served with more
// calls in flight, and those as fast as one alone: calls did not wait for each other, they hung on their connections.
func (f *facts) servedAtOnce() (most float64, hang bool) {
	one, x := f.single(), f.full()
	if one == nil {
		return 0, false
	}
	for _, e := range f.all {
		most = max(most, e.measured().rate*e.Service)
	}
	return most, f.Signature.Class == signature.AcceptQueue && x.measured().rate*x.Service < 0.7*float64(x.InFlight) &&
		x.Service < 1.2*one.Service
}

// slots names places for so many calls, where the target is seen to be idle meanwhile. A single one is busy all the
// time with one call in flight. Several look like a lock, or a paced limit, behind what calls do side by side, unless
// calls end independently of each other.
func slots(f *facts) *Verdict {
	n := f.atOnce()
	one := f.single()
	if n < 0.85 || !f.grows() || !f.idles() || f.Idle > 0 && one.Service > 1.5*f.Idle+0.002 || !f.keepsBusy() ||
		f.Signature.Scores[signature.CPUThrottling] >= 0.5 {
		return nil
	}
	x := f.full()
	mayTransfer := x.Transfer >= partly*x.Service && !x.isSmall()
	if _, hang := f.servedAtOnce(); hang || mayTransfer || n > 1.15 && !f.independent() ||
		20*x.Bad > total(x.Counts) && x.Service < 1.5*one.Service || f.waitsForProcessors() {
		return nil
	}
	with := f.inFlight(n)
	return likely(Slots, with, fmt.Sprintf("it is full with %s: with %d each takes %s, and with %d %s", with,
		one.InFlight, unit.Seconds(one.Service), x.InFlight, unit.Seconds(x.Service)), f.used())
}

// waitsForProcessors reports whether what a single call takes may be the wait for a processor that others keep busy:
// that is long in one call and short in the next.
func (f *facts) waitsForProcessors() bool {
	one := f.single()
	return f.crowded() && (one.Spread == nil || *one.Spread > tolerance*one.Service)
}

// inFlight says with how many calls in flight the target is full. It says nothing of how many are served at a time: a
// lock behind what calls do side by side is full with more than one.
func (f *facts) inFlight(n float64) string {
	one, least := f.single(), f.least
	switch {
	case n >= 1.5:
		return fmt.Sprintf("about %s in flight", unit.Decimal(n, 2))
	case one != nil && least != nil && least.InFlight > 1 && !one.measured().isAbout(f.most):
		return fmt.Sprintf("more than 1 and at most %d in flight", least.InFlight)
	}
	return "1 in flight"
}

// keepsBusy reports whether one call in flight at most was one nearly all the time, and was served: what refuses calls
// while it is idle has no number of places.
func (f *facts) keepsBusy() bool {
	one := f.single()
	served, least := float64(total(one.Counts)), 0.4 // a median is below the mean
	if one.Spread != nil && *one.Spread < tolerance*one.Service {
		least = 0.75 // little, if most calls take as long
	}
	return float64(one.Bad) < 0.05*served && f.each().rate*one.Service > least
}
