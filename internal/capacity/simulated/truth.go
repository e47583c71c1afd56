package simulated

import (
	"math"
	"slices"
	"time"

	"tare/internal/capacity"
	"tare/internal/signature"
)

const (
	removalTime  = 40 * time.Second // how long a copy without one of its parts is tried
	removalGain  = 1.05             // the rate that it has to sustain, relative to the truth
	overloadTime = 20 * time.Second
	overloadRate = 1.5 // relative to the truth
	// Goodput above the capacity, relative to it: less than collapsed has fallen, more than kept has not.
	collapsed, kept = 0.8, 0.9
)

// Truth computes what the server does: see sustained for the capacity, and classes for its class.
func (c Composition) Truth() Truth {
	rate := c.sustained(c.MaxRate)
	switch {
	case rate == 0:
		return Truth{Stop: capacity.StopFailing}
	case math.IsInf(rate, 1):
		return Truth{Stop: capacity.StopMaxRate, Findings: c.cold(nil)}
	}
	v := c.overloaded(rate)
	v.binding = c.binding(rate)
	if i := slices.IndexFunc(c.Parts, func(p Part) bool { return p.Kind == slower }); i >= 0 && v.goodput < collapsed*rate {
		v.slows = c.without(i).overloaded(rate).goodput > kept*rate
	}
	classes, part := v.classes()
	return Truth{Classes: classes, Capacity: rate, Stop: capacity.StopFound, Part: part, Findings: c.findings(rate, v)}
}

// binding lists the parts without any one of which the server sustains clearly more. The time is the shortest in which the server with
// all its parts does not.
func (c Composition) binding(rate float64) []int {
	floor, most := c.floor(rate), math.Min(rate*removalGain, 2*c.MaxRate)
	var length time.Duration
	for _, length = range []time.Duration{removalTime, 3 * removalTime, trialTime} {
		if held, _ := c.sustains(most, floor, length); !held {
			break
		}
	}
	var parts []int
	for i, p := range c.Parts {
		if neverBinds(p.Kind) {
			continue
		}
		if held, _ := c.without(i).sustains(most, floor, length); held {
			parts = append(parts, i)
		}
	}
	return parts
}

// neverBinds reports whether a part cannot lower the rate that a warm server sustains.
func neverBinds(k PartKind) bool {
	switch k {
	case tarpit, jitter, lastInFirstOut, coldCount, coldTime, autoscaling, errorShare:
		return true
	default:
		return false
	}
}

// view is what is seen of a server above its capacity.
type view struct {
	composition Composition
	rate        float64
	binding     []int
	refused     []int
	lost        int     // calls that did not end well
	goodput     float64 // in the second half, in 1/s
	slows       bool    // that falls because the service slows down
	dead        bool
}

// overloaded offers the server more than it takes.
func (c Composition) overloaded(rate float64) view {
	t := c.newTrial(true)
	t.run(rate, time.Second, -1)
	clear(t.server.refused)
	t.begun, t.good, t.bad = t.world.now, 0, 0
	begin, half, calls := seconds(t.world.now), 0, 0
	note := t.world.ended
	t.world.ended = func(j *job) {
		note(j)
		if j.client && j.Outcome.Good() && seconds(j.Done) > begin+seconds(overloadTime)/2 {
			half++
		}
	}
	for at := 0.0; at < seconds(overloadTime); at += 1 / (overloadRate * rate) {
		t.world.advance(instant(begin + at))
		t.world.arrive()
		calls++
	}
	t.world.advance(instant(begin) + overloadTime)
	return view{
		composition: c, rate: rate, refused: slices.Clone(t.server.refused), lost: calls - t.good, dead: t.server.memory.dead,
		goodput: float64(half) / (seconds(overloadTime) / 2),
	}
}

// part is the kind of part number i.
func (v view) part(i int) PartKind { return v.composition.Parts[i].Kind }

// binds reports whether the server sustains more without its part of that kind.
func (v view) binds(k PartKind) bool {
	return slices.ContainsFunc(v.binding, func(i int) bool { return v.part(i) == k })
}

// classes are the right names of the failure, the best first, and the part that it is due to: the limiter whose removal raises the rate;
// else the part that ends most of the lost calls; else what makes calls wait.
func (v view) classes() ([]signature.Class, PartKind) {
	var classes []signature.Class
	var due PartKind
	for _, i := range v.binding {
		if limits(v.part(i)) {
			classes = append(classes, v.refusing(i)...)
			if due == "" {
				due = v.part(i)
			}
		}
	}
	for i := range v.composition.Parts {
		if share := float64(v.refused[i]) / float64(max(1, v.lost)); share > 0.5 || share > 0.3 && len(classes) == 0 {
			classes = append(classes, v.refusing(i)...)
			if due == "" {
				due = v.part(i)
			}
		}
	}
	if len(classes) == 0 {
		classes = v.waiting()
		due = v.slowest()
	}
	unique := classes[:0]
	for _, x := range classes {
		if !slices.Contains(unique, x) {
			unique = append(unique, x)
		}
	}
	return unique, due
}

// limits reports whether a part refuses calls by itself, not because others wait.
func limits(k PartKind) bool {
	switch k {
	case tokenBucket, cellRate, fixedWindow, slidingWindow, slidingEstimate, concurrency, penalty, connectionLimit, dependencyQuota:
		return true
	default:
		return false
	}
}

// refusing are the right classes where a part ends calls.
func (v view) refusing(i int) []signature.Class {
	p := v.composition.Parts[i]
	silent := p.Refusal == refuseSilent
	switch p.Kind {
	case tokenBucket, cellRate, dependencyQuota:
		return hanging(silent, signature.TokenBucket)
	case slidingWindow, slidingEstimate:
		return hanging(silent, signature.TokenBucket, signature.FixedWindow)
	case fixedWindow:
		return hanging(silent, signature.FixedWindow)
	case penalty:
		if silent {
			return []signature.Class{signature.Penalty, signature.QuotaHang}
		}
		return []signature.Class{signature.Penalty}
	case concurrency:
		classes := []signature.Class{signature.ConcurrencyLimit}
		if !slices.Contains(v.binding, i) { // the service is the limit, and this bounds its queue
			classes = append(classes, signature.Shedding)
		}
		if silent {
			classes = append(classes, signature.QuotaHang)
		}
		return classes
	case connectionLimit:
		return []signature.Class{signature.ConnectionRefused}
	case acceptLimit:
		return []signature.Class{signature.AcceptQueue}
	case shedByAge:
		return v.beside(signature.Shedding)
	case shedByLength, earlyDrop:
		return v.beside(signature.Shedding, signature.ConcurrencyLimit)
	case stopsForGood, crash:
		return append(v.waiting(), signature.Collapse)
	default:
		return v.waiting()
	}
}

// hanging are the classes of a limiter, which hangs instead when it refuses by silence.
func hanging(silent bool, classes ...signature.Class) []signature.Class {
	if !silent {
		return classes
	}
	return append([]signature.Class{signature.QuotaHang}, classes[1:]...)
}

// beside adds the class of a service that has a name of its own to that of the queue before it.
func (v view) beside(classes ...signature.Class) []signature.Class {
	for _, x := range v.waiting() {
		if x != signature.Queue {
			classes = append(classes, x)
		}
	}
	return classes
}

// waiting are the right classes where calls wait.
func (v view) waiting() []signature.Class {
	var classes []signature.Class
	for _, p := range v.composition.Parts {
		x := p.With
		switch {
		case !v.binds(p.Kind):
		case p.Kind == cpuQuota:
			classes = append(classes, signature.CPUThrottling)
			if v.rate*x["period"] < 5 { // too few calls in a period to see it
				classes = append(classes, signature.Queue)
			}
		case p.Kind == pauses:
			classes = append(classes, signature.Pauses)
			if x["length"] < 0.1*x["every"] || v.rate*x["length"] < 5 {
				classes = append(classes, signature.Queue)
			}
		}
	}
	if v.slows {
		return append(classes, signature.Collapse)
	}
	if !v.binds(cpuQuota) && !v.binds(pauses) {
		classes = append(classes, signature.Queue)
	}
	if v.goodput < kept*v.rate {
		classes = append(classes, signature.Collapse)
	}
	return classes
}

// slowest is the part that makes calls wait.
func (v view) slowest() PartKind {
	for _, k := range []PartKind{cpuQuota, pauses, credits, slower, handshake, dependency} {
		if v.binds(k) {
			return k
		}
	}
	if v.slows {
		return slower
	}
	for _, k := range []PartKind{autoscaling, coldCount, coldTime, lastInFirstOut} {
		if v.composition.has(k) {
			return k
		}
	}
	return service
}

// findings are what should be seen beside the class.
func (c Composition) findings(rate float64, v view) []capacity.FindingKind {
	var found []capacity.FindingKind
	found = c.cold(found)
	if p, ok := c.part(service); ok {
		speed := p.With["workers"] / p.With["mean"]
		if x, ok := c.part(autoscaling); ok && speed/x.With["factor"] < rate/removalGain {
			found = append(found, capacity.Autoscaling)
		}
	}
	if v.binds(credits) {
		found = append(found, capacity.SpentCredits)
	}
	if v.dead {
		found = append(found, capacity.StaysDown)
	}
	return found
}

// cold adds that the first calls are clearly slower.
func (c Composition) cold(found []capacity.FindingKind) []capacity.FindingKind {
	for _, k := range []PartKind{coldCount, coldTime} {
		if p, ok := c.part(k); ok && p.With["factor"] >= 2 {
			return append(found, capacity.ColdStart)
		}
	}
	return found
}

// right reports whether a finding is expected.
func (t Truth) expects(k capacity.FindingKind) bool { return slices.Contains(t.Findings, k) }
