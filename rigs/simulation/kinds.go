package simulation

import (
	"math"
	"math/rand/v2"
	"slices"
	"syscall"
	"time"

	"tare/internal/capacity"
	"tare/internal/signature"
)

// Truth is what a simulated server is known to do.
type Truth struct {
	// Classes are the right names of its failure, the best first; none when it never fails.
	Classes []signature.Class
	// Capacity in 1/s; 0 when it has none, or is not to be reached.
	Capacity float64
	// Stop is how the search should end.
	Stop capacity.Stop
	// Part is the part that a composed server's failure is due to, Findings what should be seen beside its class, and
	// Possible what may be said beside it.
	Part               PartKind
	Findings, Possible []capacity.FindingKind
	// Soft says that hardly more calls fail at a clearly higher rate.
	Soft  bool
	Burst *float64 // calls beyond the rate that it takes after a rest; nil: not defined
}

// Kind is a kind of simulated server.
type Kind struct {
	Name string
	// Extra kinds are variants: the search was not designed around them.
	Extra bool
	make  func(*recipe)
}

// recipe is an instance in the making.
type recipe struct {
	rng      *rand.Rand
	capacity float64
	latency  latency
	world    *World
	options  capacity.Options
	truth    Truth
}

// Kinds lists all kinds by the order of the published table.
func Kinds() []Kind {
	return slices.Concat(limiterKinds(), queueKinds(), connectionKinds(), variantKinds())
}

// Instance makes instance number i of kind k, drawn from seed. The options are what the search should be called with.
func Instance(k Kind, seed uint64, i int) (*World, capacity.Options, Truth) {
	rng := rand.New(rand.NewPCG(seed, uint64(i)*0x9e3779b97f4a7c15+hash(k.Name)))
	r := &recipe{rng: rng, capacity: between(rng, 50, 2000)}
	r.latency = latency{rng: rand.New(rand.NewPCG(seed+1, uint64(i))), median: between(rng, 0.001, 0.02)}
	r.options = capacity.Options{MaxRate: 20_000}.Defaults()
	r.truth = Truth{Capacity: r.capacity, Stop: capacity.StopFound}
	r.world = &World{}
	k.make(r)
	r.world.timeout, r.world.maxConns, r.world.maxRate = r.options.Timeout, r.options.MaxConns, r.options.MaxRate
	return r.world, r.options, r.truth
}

func hash(s string) uint64 {
	h := uint64(14695981039346656037)
	for i := range len(s) {
		h = (h ^ uint64(s[i])) * 1099511628211
	}
	return h
}

// between draws log-uniformly.
func between(rng *rand.Rand, a, b float64) float64 { return a * math.Exp(rng.Float64()*math.Log(b/a)) }

func (r *recipe) is(s server, classes ...signature.Class) {
	r.world.server, r.truth.Classes = s, classes
}

func (r *recipe) uniform(a, b float64) float64 { return a + (b-a)*r.rng.Float64() }

// bucket is a token bucket at the instance's capacity.
func (r *recipe) bucket(burst float64, hang bool) *bucket {
	return &bucket{latency: r.latency, rate: r.capacity, burst: burst, tokens: burst, hang: hang}
}

// line is a queue before workers that together serve the capacity; spread 0 is deterministic, 1 exponential service.
func (r *recipe) line(workers int, spread float64) *line {
	mean, rng := float64(workers)/r.capacity, r.latency.rng
	return &line{latency: r.latency, free: make([]float64, workers), service: func(float64) float64 {
		if spread == 1 {
			return mean * rng.ExpFloat64()
		}
		return mean * (1 + spread*(2*rng.Float64()-1))
	}}
}

func limiterKinds() []Kind {
	return []Kind{
		{Name: "token-bucket", make: func(r *recipe) {
			r.is(open{rule: r.bucket(1+2*r.capacity*r.rng.Float64(), false)}, signature.TokenBucket)
		}},
		{Name: "fixed-window", make: func(r *recipe) {
			p := []float64{0.5, 1, 1, 2, 5}[r.rng.IntN(5)]
			n := math.Round(r.capacity * p)
			r.truth.Capacity = n / p
			r.is(open{rule: &lumps{latency: r.latency, per: n, burst: n, period: p, offset: r.uniform(0, p)}},
				signature.FixedWindow)
		}},
		{Name: "quota-hang", make: func(r *recipe) {
			r.is(open{rule: r.bucket(1+r.capacity*r.rng.Float64(), true)}, signature.QuotaHang)
		}},
		{Name: "concurrency-limit", make: func(r *recipe) {
			n := 8 + r.rng.IntN(120)
			d, rng := float64(n)/r.capacity, r.latency.rng
			r.is(open{rule: &inFlight{n: n, service: func() float64 { return d * (0.98 + 0.04*rng.Float64()) }}},
				signature.ConcurrencyLimit)
		}},
	}
}

func queueKinds() []Kind {
	return []Kind{
		{Name: "mm1", make: func(r *recipe) { r.is(open{rule: r.line(1, 1)}, signature.Queue) }},
		{Name: "mdc", make: func(r *recipe) { r.is(open{rule: r.line(1+r.rng.IntN(16), 0.02)}, signature.Queue) }},
		{Name: "cfs", make: func(r *recipe) { r.throttle(0.1) }},
		{Name: "cfs-other-period", make: func(r *recipe) { r.throttle([]float64{0.05, 0.2, 0.25}[r.rng.IntN(3)]) }},
		{Name: "pauses", make: pausing},
		{Name: "collapse", make: func(r *recipe) {
			s := &thrashing{
				latency: r.latency, service: 1 / r.capacity, knee: int(r.uniform(0.05, 0.2)*r.capacity) + 5, slope: 5 / r.capacity,
				worst: r.uniform(2, 6), fails: r.rng.IntN(2) == 0,
			}
			r.is(open{rule: s}, signature.Collapse)
		}},
	}
}

func (r *recipe) throttle(period float64) {
	cpus := float64(2 + r.rng.IntN(7))
	share := cpus * r.uniform(0.15, 0.65)
	cost, rng := share/r.capacity, r.latency.rng
	s := &quota{
		latency: r.latency, period: period, offset: r.uniform(0, period), cpus: cpus, allowance: share * period, number: -1,
		cost: func() float64 { return cost * (0.7 + 0.6*rng.Float64()) },
	}
	r.is(open{rule: s}, signature.CPUThrottling)
}

func pausing(r *recipe) {
	every, long := between(r.rng, 0.4, 2), between(r.rng, 0.05, 0.25)
	var s stops
	for t := 0.0; t < 2000; {
		t += every * r.uniform(0.7, 1.3)
		end := t + long*r.uniform(0.7, 1.3)
		s.begin, s.end = append(s.begin, t), append(s.end, end)
		t = end
	}
	l := r.line(1+r.rng.IntN(8), 0)
	l.pauses = s.at
	r.truth.Capacity = r.capacity * (1 - long/(every+long))
	r.is(open{rule: l}, signature.Pauses)
}

func connectionKinds() []Kind {
	dial := func(c signature.Class, errno syscall.Errno) func(*recipe) {
		return func(r *recipe) {
			r.capacity = between(r.rng, 50, 500)
			r.truth.Capacity = r.capacity
			gate := r.bucket(r.capacity*r.uniform(1, 4), false)
			r.is(dialed{gate: gate, serve: instantly{r.latency}, errno: uint16(errno)}, c)
		}
	}
	return []Kind{
		{Name: "connection-refused", make: dial(signature.ConnectionRefused, syscall.ECONNREFUSED)},
		{Name: "port-exhaustion", make: dial(signature.PortExhaustion, syscall.EADDRNOTAVAIL)},
		{Name: "fd-exhaustion", make: dial(signature.FDExhaustion, syscall.EMFILE)},
		{Name: "accept-queue", make: func(r *recipe) {
			r.capacity = between(r.rng, 50, 500)
			r.truth.Capacity = r.capacity
			r.throttle(0.1)
			q := r.world.server.(open).rule
			r.is(&backlog{serve: q, slots: 16 + r.rng.IntN(64), backlog: []int{128, 256, 511, 1024}[r.rng.IntN(4)]},
				signature.AcceptQueue)
		}},
		{Name: "client-limited", make: func(r *recipe) {
			r.world.sendGap = time.Duration(1e9 / r.capacity)
			r.truth.Capacity, r.truth.Stop = 0, capacity.StopClient
			r.is(open{rule: instantly{r.latency}}, signature.Client)
		}},
		{Name: "no-limit", make: func(r *recipe) {
			r.options.MaxRate = between(r.rng, 500, 10_000)
			r.truth.Capacity, r.truth.Stop = 0, capacity.StopMaxRate
			r.is(open{rule: instantly{r.latency}})
		}},
	}
}
