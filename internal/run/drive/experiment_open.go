package drive

import (
	"bytes"
	"context"
	"math"
	"net/netip"
	"slices"
	"time"

	"tare/internal/capacity"
	"tare/internal/limit"
	"tare/internal/load"
	"tare/internal/signature"
)

const (
	// sources is from how many addresses calls come, and sourceExcess by how much more they offer than one of them gets,
	// leastSourceExcess by how much more at least.
	sources, sourceExcess, leastSourceExcess = 4, 3, 2
	// fewRare is how many calls say at least how long a rare call of an operation takes, rarely the share of the capacity
	// up to which calls are rare, and leastDearer by how much longer those of the dearer operation take at least.
	fewRare, rarely, leastDearer = 5, 0.6, 2 * time.Millisecond
)

// openOnes makes the experiments that decide what those with calls in flight and levers have left open.
func (x *experiments) openOnes(ctx context.Context) error {
	if len(x.done) == 0 {
		return nil
	}
	given, ops := x.Open, x.Ops
	defer func() { x.Open, x.Ops = given, ops }()
	for _, try := range []func(context.Context, []limit.Kind) error{x.bySource, x.byOperation, x.freshly} {
		if err := try(ctx, limit.Hypotheses(x.evidence())); err != nil {
			return err
		}
		x.Open, x.Ops = given, ops
	}
	return nil
}

// evidence is what is known of the limit so far.
func (x *experiments) evidence() limit.Evidence {
	return limit.EvidenceOf(&x.found, x.trace, x.operations, x.done)
}

// settled reports whether what sets the rate was shown, so that more calls in flight would not say more.
func (x *experiments) settled() bool {
	v := limit.Judge(x.evidence())
	return v.Known() && v.Certainty == signature.Shown
}

// fits reports whether an experiment that takes so long can be made in the time that there is.
func (x *experiments) fits(length time.Duration) bool {
	return !x.Env.Clock.Now().Add(length).After(x.end)
}

// most is the largest number of calls in flight that was tried.
func (x *experiments) most() int {
	return slices.MaxFunc(x.done, func(a, b limit.Experiment) int { return a.InFlight - b.InFlight }).InFlight
}

// bySource offers calls from several source addresses, where one has met a limit on the rate.
func (x *experiments) bySource(ctx context.Context, kinds []limit.Kind) error {
	offered := x.allowed(sourceExcess * x.rate())
	length := x.length(shortestExperiment)
	warm := max(length/4, x.prime(offered))
	if !slices.Equal(kinds, []limit.Kind{limit.RateLimit}) || !x.hasSources() || !x.fits(warm+length) {
		return nil
	}
	x.rewire(func(w load.Wire) load.Wire { return takesTurns{w} })
	open := x.Open
	if open == nil {
		open = load.Open
	}
	x.Open = func(ctx context.Context, c load.Config) (load.Stream, error) {
		c.Endpoint.Keys, c.Endpoint.Local = sources, sourceOf
		return open(ctx, c)
	}
	_, err := x.offer(ctx, limit.Experiment{
		InFlight: max(sources, x.most()), Offered: offered, Sources: sources,
	}, warm, length)
	return err
}

// hasSources reports whether all calls came from one source address, and others can be tried: the target is on this
// host, which has many, and max_rate allows more than one of them gets.
func (x *experiments) hasSources() bool {
	e, find := x.evidence(), x.Target.Can().Endpoint
	if find == nil || e.Scope != "" || e.Callers > 1 || !x.isWired() ||
		x.allowed(sourceExcess*x.rate()) < leastSourceExcess*x.rate() {
		return false
	}
	endpoint, err := find(x.Treatment)
	return err == nil && endpoint != nil && endpoint.Local == nil && isLoopback4(endpoint.Addr.Addr())
}

// isWired reports whether all calls are requests whose connections the load engine makes.
func (x *experiments) isWired() bool {
	return !slices.ContainsFunc(x.Ops, func(op load.Operation) bool { return op.Wire == nil })
}

// rewire replaces what the operations send.
func (x *experiments) rewire(by func(load.Wire) load.Wire) {
	x.Ops = slices.Clone(x.Ops)
	for i := range x.Ops {
		x.Ops[i].Wire = by(x.Ops[i].Wire)
	}
}

func isLoopback4(a netip.Addr) bool { return a.Unmap().Is4() && a.IsLoopback() }

// sourceOf is the source address of connections with a key.
func sourceOf(key int) netip.Addr { return netip.AddrFrom4([4]byte{127, 0, 0, byte(2 + key)}) }

// takesTurns sends calls from one source address after another.
type takesTurns struct{ load.Wire }

// ConnKey implements load.Wire.
func (takesTurns) ConnKey(i uint64) int { return int(i % sources) }

// byOperation offers the cheapest and the dearest operation of the mix alone, where a limit on the rate is open beside
// what a dear call uses more of.
func (x *experiments) byOperation(ctx context.Context, kinds []limit.Kind) error {
	if len(kinds) < 2 || !slices.Contains(kinds, limit.RateLimit) {
		return nil
	}
	idle, mean := x.rareCalls()
	cheap, dear := -1, -1
	for op, takes := range idle {
		if takes > 0 && (cheap < 0 || takes < idle[cheap]) {
			cheap = op
		}
		if takes > 0 && (dear < 0 || takes > idle[dear]) {
			dear = op
		}
	}
	length := x.length(shortestExperiment)
	if cheap < 0 || idle[dear] < max(limit.Dearer*idle[cheap], idle[cheap]+leastDearer.Seconds()) ||
		!x.fits(2*(length+length/4)) {
		return nil
	}
	ops := x.Ops
	for _, op := range []int{cheap, dear} {
		e := limit.Experiment{
			// more in flight than the rate of the mix would keep, so that they do not set the rate
			InFlight:  min(mostInFlight, max(x.most(), int(math.Ceil(2*x.rate()*idle[op])))),
			Offered:   x.allowed(excess * x.rate() * max(1, mean/idle[op])),
			Operation: ops[op].Name, Idle: idle[op],
		}
		x.Ops = ops[op : op+1]
		if made, err := x.offer(ctx, e, length/4, length); err != nil || !made {
			return err
		}
	}
	lone := limit.LoneOperation(x.evidence())
	if lone == nil || !x.fits(length+length/4) {
		return nil
	}
	x.Ops = ops[cheap : cheap+1]
	_, err := x.offer(ctx, *lone, length/4, length)
	return err
}

// rareCalls are the median responses of each operation in the search well below the capacity, in seconds, and that of
// the mix on average; 0: too few were made.
func (x *experiments) rareCalls() (idle []float64, mean float64) {
	responses := make([][]float64, len(x.Ops))
	for i := range x.trace.Steps {
		s := &x.trace.Steps[i]
		if s.Role != capacity.RoleRamp || s.Passed == nil || !*s.Passed || s.Rate > rarely*x.rate() {
			continue
		}
		for c := range x.trace.Calls.Due(s.Segment.Start, s.Segment.End) {
			if op := int(c.Operation); op < len(responses) && c.Done != 0 && c.Outcome.Good() && x.Ops[op].Twin == "" {
				responses[op] = append(responses[op], c.Response().Seconds())
			}
		}
	}
	idle = make([]float64, len(x.Ops))
	weights := 0.0
	for op, r := range responses {
		if len(r) >= fewRare {
			idle[op] = median(r)
			mean += float64(len(r)) * idle[op]
			weights += float64(len(r))
		}
	}
	return idle, mean / max(1, weights)
}

// freshly offers calls with a new connection each, where connections are among what may set the rate.
func (x *experiments) freshly(ctx context.Context, kinds []limit.Kind) error {
	length := x.length(shortestExperiment)
	if len(kinds) < 2 || !slices.Contains(kinds, limit.Connections) || !x.isWired() || !x.fits(length+length/4) {
		return nil
	}
	x.rewire(func(w load.Wire) load.Wire { return closesAfter{w} })
	_, err := x.offer(ctx, limit.Experiment{
		InFlight: x.most(), Offered: x.allowed(excess * x.rate()), Fresh: true,
	}, length/4, length)
	return err
}

// closesAfter has the target close the connection after each answer.
type closesAfter struct{ load.Wire }

// Render implements load.Wire.
func (w closesAfter) Render(dst []byte, i uint64) []byte {
	const header = "\r\nConnection: close"
	from := len(dst)
	dst = w.Wire.Render(dst, i)
	line := bytes.Index(dst[from:], []byte("\r\n"))
	if line < 0 {
		return dst
	}
	return slices.Insert(dst, from+line, []byte(header)...)
}
