package simulation

import (
	"math"
	"math/rand/v2"
)

// shareWithoutLimit is how many of the drawn compositions have no limit below the highest rate.
const shareWithoutLimit = 0.065

// Draw makes composition number i of a seed: at least three parts, one of which is meant to bind. What does bind is
// computed.
func Draw(seed uint64, i int) Composition {
	d := &drawing{rng: rand.New(rand.NewPCG(seed, uint64(i)*0x9e3779b97f4a7c15+hash("composed")))}
	d.c = Composition{
		Seed:    d.rng.Uint64(),
		Timeout: []float64{5, 10, 30}[d.rng.IntN(3)],
		Latency: between(d.rng, 0.0003, 0.01),
	}
	if d.rng.Float64() < shareWithoutLimit {
		d.c.MaxRate = between(d.rng, 500, 4000)
		d.rate = 3 * d.c.MaxRate
		d.serve(d.rate, 1)
		d.limiter(d.rate * d.up(1, 3))
	} else {
		d.rate = between(d.rng, 30, 1000)
		d.c.MaxRate = math.Round(d.rate * d.up(10, 30))
		roles[d.rng.IntN(len(roles))](d)
	}
	d.extras()
	d.order()
	return d.c
}

// drawing is a composition in the making. rate is meant to be its capacity.
type drawing struct {
	rng  *rand.Rand
	c    Composition
	rate float64
}

func (d *drawing) up(a, b float64) float64 { return between(d.rng, a, b) }

func (d *drawing) one(words ...string) string { return words[d.rng.IntN(len(words))] }

func (d *drawing) chance(p float64) bool { return d.rng.Float64() < p }

func (d *drawing) add(k PartKind, with ...any) *Part {
	p := Part{Kind: k, With: map[string]float64{}}
	for i := 0; i < len(with); i += 2 {
		p.With[with[i].(string)] = rounded(with[i+1].(float64))
	}
	d.c.Parts = append(d.c.Parts, p)
	return &d.c.Parts[len(d.c.Parts)-1]
}

// rounded keeps four digits.
func rounded(x float64) float64 { return digitsOf(x, 4) }

// count is a whole number of calls, at least least.
func count(x, least float64) float64 { return math.Max(least, math.Round(x)) }

// serve adds a service of the given rate; slack is how much of it is to be used at most.
func (d *drawing) serve(rate, slack float64) *Part {
	rate /= slack
	workers := count(d.up(1, 32), 1)
	if workers/rate > 0.5 { // no call takes longer by itself
		workers = count(rate/2, 1)
	}
	p := d.add(service, "workers", workers, "mean", workers/rate)
	p.Distribution = d.one(distributions...)
	switch p.Distribution {
	case logNormalTime:
		p.With["spread"] = rounded(d.up(0.2, 1))
	case bimodalTime:
		p.With["spread"] = rounded(d.up(3, 30))
	}
	if d.chance(0.4) {
		p.With["abandoned"] = 1
	}
	return p
}

// fast adds a service that is not the limit.
func (d *drawing) fast() { d.serve(d.rate*d.up(1.5, 10), 1) }

// limiter adds one that takes rate calls a second.
func (d *drawing) limiter(rate float64) *Part {
	period := d.up(0.5, 10)
	kinds := []func() *Part{
		func() *Part { return d.add(tokenBucket, "rate", rate, "burst", count(rate*d.up(0.02, 5), 1)) },
		func() *Part { return d.add(cellRate, "rate", rate, "tolerance", d.up(0.02, 2)) },
		func() *Part { return d.add(fixedWindow, "calls", count(rate*period, 5), "period", period) },
		func() *Part { return d.add(slidingWindow, "calls", count(rate*period, 5), "period", period) },
		func() *Part { return d.add(slidingEstimate, "calls", count(rate*period, 5), "period", period) },
	}
	return d.refuses(kinds[d.rng.IntN(len(kinds))]())
}

func (d *drawing) refuses(p *Part) *Part {
	p.Refusal = d.one(
		refuse429, refuse429, refuse503, refuse503, refuse500, refuseReset, refuseSilent, refuseFailed, refuseWrong)
	if d.chance(0.15) {
		p.With["per_client"] = 1
	}
	return p
}

// roles are the ways in which the part that is meant to bind is drawn. Limiters and queues are about as many.
var roles = []func(*drawing){
	limited, limited, limited, limited, limited, atOnce, atOnce, punishing, trapping, fewConnections, behindQuota,
	plain, plain, slowing, slowing, throttledRole, pausingRole, coldRole, scaling, spending, behindQueue,
	aging, aging, bounded, dropping, newestFirst, accepting, stopping, crashing,
}

func limited(d *drawing) { d.limiter(d.rate); d.fast() }

func atOnce(d *drawing) {
	n := d.atMost(128)
	p := d.add(concurrency, "limit", n)
	d.refuses(p)
	s := d.serve(d.rate, 1)
	s.With["workers"], s.With["mean"] = 10*n, rounded(n/d.rate)
}

// atMost draws a limit on calls at once that leaves a call half a second at most.
func (d *drawing) atMost(n float64) float64 {
	return count(d.up(4, math.Max(5, math.Min(n, d.rate/2))), 4)
}

func punishing(d *drawing) {
	period := d.up(0.5, 10)
	d.refuses(d.add(penalty, "calls", count(d.rate*period, 5), "period", period))
	d.fast()
}

func trapping(d *drawing) {
	p := d.limiter(d.rate)
	p.Refusal = d.one(refuse429, refuse503, refuse500, refuseReset)
	d.add(tarpit, "delay", d.up(0.5, 4))
	d.fast()
}

func fewConnections(d *drawing) {
	n := d.atMost(128)
	d.add(connectionLimit, "limit", n)
	s := d.serve(d.rate, 1)
	s.With["workers"], s.With["mean"] = 10*n, rounded(n/d.rate)
}

func behindQuota(d *drawing) {
	d.add(dependencyQuota, "rate", d.rate, "burst", count(d.rate*d.up(0.02, 3), 1))
	d.fast()
}

func plain(d *drawing) { d.serve(d.rate, 1) }

func slowing(d *drawing) {
	d.serve(d.rate, 1)
	p := d.add(slower, "knee", count(d.rate*d.up(0.03, 0.5), 2), "slope", d.up(1, 10)/d.rate, "worst", d.up(1.5, 8))
	if d.chance(0.3) {
		p.With["by_concurrency"] = 1
		if s, ok := d.c.part(service); ok {
			p.With["knee"] = count(s.With["workers"]*d.up(0.2, 1), 1)
			p.With["slope"] = rounded(d.up(0.3, 3) / s.With["workers"])
		}
	}
}

func throttledRole(d *drawing) {
	share := d.up(0.1, 0.7)
	d.serve(d.rate, share)
	d.add(cpuQuota, "period", []float64{0.05, 0.1, 0.1, 0.1, 0.2, 0.25}[d.rng.IntN(6)], "share", share)
}

func pausingRole(d *drawing) {
	every, length := d.up(0.3, 3), d.up(0.03, 0.4)
	d.serve(d.rate, every/(every+length))
	d.add(pauses, "every", every, "length", length, "growth", d.up(0.02, 2)/d.rate)
}

func coldRole(d *drawing) {
	d.serve(d.rate, 1)
	if d.chance(0.5) {
		d.add(coldCount, "calls", count(d.up(100, 3000), 1), "factor", d.up(2, 20))
		return
	}
	d.add(coldTime, "seconds", d.up(3, 40), "factor", d.up(2, 20))
}

func scaling(d *drawing) {
	d.serve(d.rate, 1)
	d.add(autoscaling, "after", d.up(10, 60), "factor", d.up(1.3, 4))
}

func spending(d *drawing) {
	factor := d.up(1.3, 5)
	s := d.serve(d.rate, 1/factor)
	d.add(credits, "seconds", s.With["workers"]*(1-1/factor)*d.up(10, 60), "factor", factor)
}

func behindQueue(d *drawing) {
	d.fast()
	p := d.add(dependency, "rate", d.rate, "workers", count(d.up(1, 16), 1))
	p.Distribution = d.one(distributions...)
}

func aging(d *drawing) {
	d.queued()
	d.add(shedByAge, "age", d.up(0.05, 2)).Refusal = d.one(refuse503, refuse503, refuse429, refuse500, refuseReset)
}

func bounded(d *drawing) {
	d.queued()
	p := d.add(shedByLength, "length", count(d.rate*d.up(0.03, 1), 3))
	p.Refusal = d.one(refuse503, refuse503, refuse429, refuse500, refuseReset)
}

func dropping(d *drawing) {
	d.queued()
	low := count(d.rate*d.up(0.02, 0.3), 2)
	d.add(earlyDrop, "low", low, "high", count(low*d.up(2, 5), low+2)).Refusal = d.one(refuse503, refuse429, refuse500)
}

func newestFirst(d *drawing) {
	d.queued()
	d.add(lastInFirstOut, "length", count(d.rate*d.up(0.05, 0.5), 3))
}

func accepting(d *drawing) {
	d.queued()
	d.add(acceptLimit, "slots", count(d.up(16, 128), 16), "backlog", []float64{128, 256, 511, 1024}[d.rng.IntN(4)])
}

func stopping(d *drawing) {
	d.queued()
	p := d.add(stopsForever, "length", count(d.rate*d.up(0.2, 3), 10))
	if d.chance(0.3) {
		p.With["refuses"] = 1
	}
}

func crashing(d *drawing) {
	d.queued()
	d.add(crash, "length", count(d.rate*d.up(0.2, 3), 10), "down", d.up(1, 20))
}

// queued adds a service that is the limit, in one of its ways.
func (d *drawing) queued() {
	ways := []func(*drawing){plain, plain, plain, slowing, throttledRole, pausingRole}
	ways[d.rng.IntN(len(ways))](d)
}

// extras adds one to three parts that are not meant to bind, of kinds that are not there yet, so that there are three
// at least.
func (d *drawing) extras() {
	for n := 1 + d.rng.IntN(3); n > 0 || len(d.c.Parts) < 3; n-- {
		x := extras[d.rng.IntN(len(extras))]
		if !d.c.has(x.kind) && (x.fits == nil || x.fits(d)) {
			x.add(d)
		} else if len(d.c.Parts) < 3 {
			n++
		}
	}
}

// extra is a part that is not meant to bind.
type extra struct {
	kind PartKind
	fits func(*drawing) bool
	add  func(*drawing)
}

func (d *drawing) refusesAtOnce() bool {
	for _, p := range d.c.Parts {
		if p.Refusal != "" && p.Refusal != refuseSilent {
			return true
		}
	}
	return false
}

var extras = []extra{
	{jitter, nil, func(d *drawing) { d.add(jitter, "most", d.up(0.0005, 0.005)) }},
	{jitter, nil, func(d *drawing) { d.add(jitter, "most", d.up(0.0005, 0.005)) }},
	{errorShare, nil, func(d *drawing) { d.add(errorShare, "share", d.up(0.002, 0.015)) }},
	{neighbours, nil, func(d *drawing) {
		d.add(neighbours, "every", d.up(3, 30), "length", d.up(0.3, 3), "factor", d.up(1.1, 2))
	}},
	{drift, nil, func(d *drawing) { d.add(drift, "period", d.up(30, 300), "share", d.up(0.01, 0.05)) }},
	{tarpit, (*drawing).refusesAtOnce, func(d *drawing) { d.add(tarpit, "delay", d.up(0.05, 3)) }},
	{handshake, nil, func(d *drawing) { d.add(handshake, "cost", d.up(0.0005, 0.01)) }},
	{coldCount, func(d *drawing) bool { return !d.c.has(coldTime) }, func(d *drawing) {
		d.add(coldCount, "calls", count(d.up(50, 1000), 1), "factor", d.up(1.5, 10))
	}},
	{lastInFirstOut, nil, func(d *drawing) { d.add(lastInFirstOut, "length", count(d.rate*d.up(0.1, 1), 3)) }},
	{shedByAge, nil, func(d *drawing) { d.add(shedByAge, "age", d.up(0.1, 3)) }},
	{shedByLength, nil, func(d *drawing) { d.add(shedByLength, "length", count(d.rate*d.up(0.1, 3), 5)) }},
	{connectionLimit, nil, func(d *drawing) { d.add(connectionLimit, "limit", count(d.up(1000, 4000), 1)) }},
	{acceptLimit, nil, func(d *drawing) { d.add(acceptLimit, "slots", 4096.0, "backlog", 511.0) }},
	{tokenBucket, nil, func(d *drawing) {
		rate := d.rate * d.up(1.3, 8)
		d.refuses(d.add(tokenBucket, "rate", rate, "burst", count(rate*d.up(0.05, 2), 1)))
	}},
	{concurrency, nil, func(d *drawing) { d.refuses(d.add(concurrency, "limit", count(d.rate*d.up(0.5, 5), 20))) }},
	{dependencyQuota, nil, func(d *drawing) {
		rate := d.rate * d.up(1.3, 8)
		d.add(dependencyQuota, "rate", rate, "burst", count(rate*d.up(0.05, 2), 1))
	}},
}

// order puts the limiters in an order of their own: what comes first refuses first.
func (d *drawing) order() {
	d.rng.Shuffle(len(d.c.Parts), func(i, j int) { d.c.Parts[i], d.c.Parts[j] = d.c.Parts[j], d.c.Parts[i] })
}
