package simulation

import (
	"math"
	"slices"
	"time"

	"tare/internal/capacity"
	"tare/internal/signature"
)

const (
	removalTime          = 40 * time.Second // how long a copy without one of its parts is tried at first
	removalCheck         = 3 * removalTime  // and then, where it held: a queue that grows by 5 % is seen by then
	removalGain          = 1.05             // the rate that it has to sustain, relative to the truth
	overloadTime         = 20 * time.Second
	firstTime            = 5 * time.Second // of the overload
	overloadRate         = 1.5             // relative to the truth
	softRate, softShare  = 1.25, 0.9
	burstTime, burstRate = 8 * time.Second, 3.0
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
		t := Truth{Stop: capacity.StopMaxRate}
		t.Findings, t.Possible = c.findings(rate, view{composition: c})
		return t
	}
	v := c.overloaded(rate, overloadRate*rate, overloadTime)
	v.binding = c.binding(rate)
	i := slices.IndexFunc(c.Parts, func(p Part) bool { return p.Kind == slower })
	if i >= 0 && v.goodput < collapsed*rate {
		v.slows = c.without(i).overloaded(rate, overloadRate*rate, overloadTime).goodput > kept*rate
	}
	classes, part := v.classes()
	t := Truth{Classes: classes, Capacity: rate, Stop: capacity.StopFound, Part: part, Burst: c.burst(rate, part)}
	t.Findings, t.Possible = c.findings(rate, v)
	t.Soft = c.soft(rate)
	return t
}

// soft reports whether the server hardly does worse at a clearly higher rate: more than 90 % are good there, and
// responses do not grow.
func (c Composition) soft(rate float64) bool {
	t := c.newTrial(true)
	t.run(softRate*rate, removalTime, -1)
	return t.share() > softShare && !t.grows()
}

// binding lists the parts without any one of which the server sustains clearly more. The time is the shortest in which
// the server with all its parts does not.
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
		if mechanisms[p.Kind].harmless {
			continue
		}
		if held, _ := c.without(i).sustains(most, floor, length); !held {
			continue
		}
		if held, _ := c.without(i).sustains(most, floor, removalCheck); length >= removalCheck || held {
			parts = append(parts, i)
		}
	}
	return parts
}

// view is what is seen of a server above its capacity.
type view struct {
	composition Composition
	rate        float64
	binding     []int
	refused     []int
	lost        int     // calls that did not end well
	waits       bool    // hardly a call is refused at first
	goodput     float64 // in the second half, in 1/s
	slows       bool    // that falls because the service slows down
	dead        bool
}

// metAt are the right names of what callers of a server of that capacity meet where a search overloaded it: a limit on
// connections, say, is reached by a longer overload than that of Truth.
func (c Composition) metAt(rate, offered float64, length time.Duration) []signature.Class {
	if !(rate > 0) || offered <= rate || length < time.Second {
		return nil
	}
	v := c.overloaded(rate, offered, length)
	v.binding = c.binding(rate)
	classes, _ := v.classes()
	// Pauses that grow with the queue may be short at the capacity, and be what stops the target above it.
	i := slices.IndexFunc(c.Parts, func(p Part) bool { return p.Kind == pauses })
	if i >= 0 && v.goodput < kept*rate && c.without(i).overloaded(rate, offered, length).goodput > kept*rate {
		classes = append(classes, signature.Pauses)
	}
	return classes
}

// overloaded offers the server more than its rate for some time.
func (c Composition) overloaded(rate, offered float64, length time.Duration) view {
	t := c.newTrial(true)
	t.run(rate, time.Second, -1)
	clear(t.server.refused)
	t.begun, t.good, t.bad = t.world.now, 0, 0
	begin, half := t.world.now, 0
	note := t.world.ended
	t.world.ended = func(j *job) {
		note(j)
		if j.client && j.Outcome.Good() && j.Done > begin+length/2 {
			half++
		}
	}
	first := min(firstTime, length/2)
	calls, early := t.offer(offered, first), 0
	for i, n := range t.server.refused {
		if i == len(c.Parts) || c.Parts[i].Kind != acceptLimit { // whose client waits, and tries again
			early += n
		}
	}
	waits := float64(early) < (1-goodEnough)*float64(calls)
	calls += t.offer(offered, length-first)
	return view{
		composition: c, waits: waits, rate: rate, refused: slices.Clone(t.server.refused), lost: calls - t.good,
		dead:    t.server.memory.dead,
		goodput: float64(half) / (seconds(length) / 2),
	}
}

// burst is how many calls the server takes beyond its rate when it has saved up all that it can: those that are good
// while three times the rate is offered, less the rate. nil where no such allowance binds, or where the service itself
// cannot take that much.
func (c Composition) burst(rate float64, part PartKind) *float64 {
	if part != tokenBucket && part != cellRate && part != dependencyQuota {
		return nil
	}
	if p, ok := c.part(service); ok && p.With["workers"]/p.With["mean"]*c.share() < 2*burstRate*rate {
		return nil
	}
	t := c.newTrial(false)
	t.world.ended = t.note
	t.length = burstTime
	t.offer(burstRate*rate, burstTime)
	n := max(0, float64(t.good)-rate*seconds(burstTime))
	return &n
}

// part is the kind of part number i.
func (v view) part(i int) PartKind { return v.composition.Parts[i].Kind }

// binds reports whether the server sustains more without its part of that kind.
func (v view) binds(k PartKind) bool {
	return slices.ContainsFunc(v.binding, func(i int) bool { return v.part(i) == k })
}

// bindsPart reports whether the server sustains more without its part number i.
func (v view) bindsPart(i int) bool { return slices.Contains(v.binding, i) }

// classes are the right names of the failure, the best first, and the part that it is due to: the limiter whose removal
// raises the rate. Else the part that ends most of the lost calls, and with it what makes calls wait, if hardly a call
// is refused at first. Else what makes calls wait.
func (v view) classes() ([]signature.Class, PartKind) {
	var classes []signature.Class
	var due PartKind
	for _, i := range v.binding {
		if mechanisms[v.part(i)].limits {
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
	limited := slices.ContainsFunc(v.binding, func(i int) bool {
		return mechanisms[v.part(i)].limits ||
			v.part(i) == acceptLimit
	})
	if !limited && (v.waits || v.dead || v.slows) {
		// so it is the service that limits the rate, and calls are refused only later
		classes = append(classes, v.waiting()...)
	}
	if due == "" {
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

// refusing are the right classes where part number i ends calls.
func (v view) refusing(i int) []signature.Class {
	if classes := mechanisms[v.part(i)].classes; classes != nil {
		return classes(v, i)
	}
	return v.waiting()
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
	if v.composition.has(lastInFirstOut) { // the oldest calls get nothing
		classes = append(classes, signature.Shedding)
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

// findings are what should be seen beside the class, and what may be said of the server in any case.
func (c Composition) findings(rate float64, v view) (expected, possible []capacity.FindingKind) {
	expected, possible = c.cold()
	if x, ok := c.part(autoscaling); ok {
		possible = append(possible, capacity.Autoscaling)
		if p, ok := c.part(service); ok && p.With["workers"]/p.With["mean"]/x.With["factor"] < rate/removalGain {
			expected = append(expected, capacity.Autoscaling)
		}
	}
	if c.has(credits) {
		possible = append(possible, capacity.SpentCredits)
		if v.binds(credits) {
			expected = append(expected, capacity.SpentCredits)
		}
	}
	if c.has(stopsForever) {
		possible = append(possible, capacity.StaysDown)
		if v.dead {
			expected = append(expected, capacity.StaysDown)
		}
	}
	return expected, possible
}

// cold is whether the first calls are slower: that should be seen where they take clearly longer, the network included.
func (c Composition) cold() (expected, possible []capacity.FindingKind) {
	for _, k := range []PartKind{coldCount, coldTime} {
		if p, ok := c.part(k); ok {
			possible = []capacity.FindingKind{capacity.ColdStart}
			if mean := c.held(); (p.With["factor"]-1)*mean >= mean+c.Latency {
				return possible, possible
			}
		}
	}
	return nil, possible
}
