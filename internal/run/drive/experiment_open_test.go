package drive

import (
	"bytes"
	"context"
	"net/netip"
	"slices"
	"testing"
	"time"

	"tare/area"
	"tare/internal/capacity"
	"tare/internal/clock"
	"tare/internal/design"
	"tare/internal/limit"
	"tare/internal/load"
	"tare/internal/run"
	"tare/internal/signature"
)

// A mixTarget serves operations that take different times, in virtual time.
type mixTarget struct {
	exactTarget
	clock     *clock.Fake
	addr      string
	takes     map[string]time.Duration
	slots     int     // served at a time; 0: any number
	rate      float64 // 1/s, at which calls are let in; 0: at any
	refuses   bool    // it refuses the others; false: they wait
	perSource bool    // the rate is that of each source address
	opened    []load.Config
	peak      float64
}

func (v *mixTarget) Can() area.Can { return area.Can{Endpoint: v.Endpoint} }

func (v *mixTarget) Endpoint(design.Treatment) (*load.Endpoint, error) {
	return &load.Endpoint{Addr: netip.MustParseAddrPort(v.addr), Keys: 1}, nil
}

// A mixStream is a stream of calls to a mixTarget.
type mixStream struct {
	slotStream

	to  *mixTarget
	cfg load.Config
}

func (s *mixStream) Offer(_ context.Context, p load.Process, _ time.Duration, _ func() bool) (load.Segment, error) {
	s.to.peak = max(s.to.peak, p.Peak())
	seg := load.Segment{Start: time.Second, End: time.Second + p.Length()}
	conns := make([]time.Duration, s.cfg.MaxConns)
	slots := make([]time.Duration, max(s.to.slots, 1))
	next := map[netip.Addr]time.Duration{} // when the limit lets in the next call
	for a := p.Start(); ; seg.Offered++ {
		at, more := a.Next()
		if !more {
			break
		}
		i := uint64(seg.Offered)
		op := i % uint64(len(s.cfg.Operations))
		c := load.Call{Intended: seg.Start + at, Operation: uint8(op), Conn: uint32(1 + i%uint64(len(conns)))}
		request := s.cfg.Operations[op].Wire.Render([]byte("kept"), i)
		if bytes.Contains(request, []byte("Connection: close")) {
			c.Conn = uint32(1000 + i)
		}
		conn := least(conns)
		if sent := max(c.Intended, *conn); sent < seg.End {
			c.Ready, c.Sent = sent, sent
			s.serve(&c, slots, next, i)
			*conn = c.Done
			if c.Done > seg.End {
				c.Done = 0
			}
		}
		s.calls = append(s.calls, c)
	}
	s.to.clock.Advance(p.Length())
	return seg, nil
}

func (s *mixStream) serve(c *load.Call, slots []time.Duration, next map[netip.Addr]time.Duration, i uint64) {
	op, source, start := &s.cfg.Operations[c.Operation], netip.Addr{}, c.Sent
	if local := s.cfg.Endpoint.Local; local != nil && s.to.perSource {
		source = local(op.Wire.ConnKey(i))
	}
	if s.to.rate > 0 {
		if s.to.refuses && start < next[source] {
			c.Done, c.Outcome = start+100*time.Microsecond, load.Refused
			return
		}
		start = max(start, next[source])
		next[source] = max(next[source], start-time.Second/20) + time.Duration(float64(time.Second)/s.to.rate)
	}
	if s.to.slots > 0 {
		slot := least(slots)
		start = max(start, *slot)
		*slot = start + s.to.takes[op.Name]
	}
	c.Done = start + s.to.takes[op.Name]
}

func (s *mixStream) Fresh(context.Context, int, uint64, time.Duration) load.Call {
	return load.Call{Done: 1}
}

// A getWire asks for a page.
type getWire struct{ area.Unexplained }

func (getWire) ConnKey(uint64) int { return 0 }
func (getWire) Render(dst []byte, _ uint64) []byte {
	return append(dst, "GET / HTTP/1.1\r\nHost: a\r\n\r\n"...)
}
func (getWire) Check(uint64, int, []byte) load.Outcome { return load.OK }

// explored makes all experiments on a target after a search with a result, and returns them.
func (v *mixTarget) explored(t *testing.T, r capacity.Result) []limit.Experiment {
	t.Helper()
	v.clock = clock.NewFake(time.Unix(0, 0))
	if v.addr == "" {
		v.addr = "192.0.2.1:80" // nobody looks for the process that listens there
	}
	req, _ := start(t, &v.exactTarget, run.Blocks{})
	req.Env.Clock, req.Load = v.clock, usualLoad()
	req.Open = func(_ context.Context, c load.Config) (load.Stream, error) {
		v.opened = append(v.opened, c)
		return &mixStream{to: v, cfg: c, slotStream: slotStream{to: &slotTarget{clock: v.clock}}}, nil
	}
	a := &run.Arm{Stage: &run.Stage{Request: req, Target: v}, Treatment: design.Treatment{ID: "on"}}
	a.Trial.Treatment = "on"
	trace := &capacity.Trace{Steps: []capacity.Step{{
		Role: capacity.RoleRamp, Rate: r.Rate / 4, Passed: new(true), Segment: load.Segment{Start: 0, End: 10 * time.Second},
	}}}
	var calls []load.Call
	for i, name := range []string{"cheap", "dear"} {
		a.Ops = append(a.Ops, load.Operation{Name: name, Weight: 1, Wire: getWire{}})
		for k := range 20 {
			at := time.Duration(k) * 100 * time.Millisecond
			calls = append(calls, load.Call{
				Intended: at, Ready: at, Sent: at, Done: at + v.takes[name], Operation: uint8(i),
			})
		}
	}
	slices.SortStableFunc(calls, func(a, b load.Call) int { return int(a.Intended - b.Intended) })
	trace.Calls, trace.Read = load.Calls(calls), 20*time.Second
	x := &experiments{Arm: a, trace: trace, found: r, arrivals: arrivals(&a.Load, 1), next: 1000}
	ops := slices.Clone(a.Ops)
	if err := x.all(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(a.Ops) != len(ops) || a.Ops[0].Wire != ops[0].Wire {
		t.Errorf("the operations afterwards: %+v", a.Ops)
	}
	if v.peak > a.Load.MaxRate {
		t.Errorf("%v/s were offered, where %v/s are allowed", v.peak, a.Load.MaxRate)
	}
	return x.done
}

// others are the experiments with something else than the calls in flight.
func others(made []limit.Experiment) (out []limit.Experiment) {
	for _, e := range made {
		if e.Operation != "" || e.Sources > 0 || e.Fresh {
			out = append(out, e)
		}
	}
	return out
}

func found(rate float64, class signature.Class) capacity.Result {
	r := capacity.Result{Rate: rate, Lo: 0.98 * rate, Hi: 1.02 * rate, BaseP50: 0.004}
	r.Signature.Class, r.Signature.Evidence = class, []string{"it was seen"}
	return r
}

func both(takes time.Duration) map[string]time.Duration {
	return map[string]time.Duration{"cheap": takes, "dear": takes}
}

func unequal() map[string]time.Duration {
	return map[string]time.Duration{"cheap": 4 * time.Millisecond, "dear": 32 * time.Millisecond}
}

// TestExperimentsByOperation: a limit on the rate serves as many dear calls as cheap ones, and slots do not.
func TestExperimentsByOperation(t *testing.T) {
	for name, c := range map[string]struct {
		target      *mixTarget
		rate        float64
		cheap, dear float64
		kind        limit.Kind
	}{
		"refuses at a rate": {
			&mixTarget{addr: "127.0.0.1:80", rate: 100, refuses: true, takes: unequal()}, 100, 100, 100, limit.RateLimit,
		},
		"lets wait": {&mixTarget{rate: 100, takes: unequal()}, 100, 100, 100, limit.RateLimit},
		"slots":     {&mixTarget{slots: 2, takes: unequal()}, 111, 500, 62.5, limit.Unknown},
		"alike":     {&mixTarget{slots: 2, takes: both(18 * time.Millisecond)}, 111, 0, 0, limit.Unknown},
	} {
		made := c.target.explored(t, found(c.rate, signature.Unknown))
		also := others(made)
		if c.cheap == 0 {
			if len(also) > 0 {
				t.Errorf("%s: %+v", name, also)
			}
			continue
		}
		lone := c.kind == limit.RateLimit && !c.target.refuses // one call at a time besides
		if lone != (len(also) == 3) || len(also) < 2 || also[0].Operation != "cheap" || also[1].Operation != "dear" ||
			also[1].Idle != 0.032 {
			t.Errorf("%s: %+v", name, also)
			continue
		}
		for i, want := range []float64{c.cheap, c.dear} {
			if got := also[i].Rate(); got < 0.9*want || got > 1.1*want {
				t.Errorf("%s: %s alone gets %v/s, want %v/s", name, also[i].Operation, got, want)
			}
		}
		v := limit.Judge(limit.Evidence{
			Rate: c.rate, Lo: c.rate, Hi: c.rate, Idle: 0.004, Experiments: made,
			Signature: signature.Verdict{Class: signature.Unknown},
		})
		if v.Kind != c.kind {
			t.Errorf("%s: %s, %q; want %s", name, v.Kind, v.Evidence, c.kind)
		}
	}
}

// TestExperimentsBySource: calls from several addresses show whether each has a limit of its own.
func TestExperimentsBySource(t *testing.T) {
	for name, c := range map[string]struct {
		addr      string
		perSource bool
		want      float64
		scope     string
	}{
		"each address":          {"127.0.0.1:80", true, 300, limit.EachCaller},
		"all together":          {"127.0.0.1:80", false, 100, ""},
		"not on this host":      {"192.0.2.1:80", true, 0, ""},
		"this host over v6":     {"[::1]:80", true, 0, ""},
		"this host, v4 over v6": {"[::ffff:127.0.0.1]:80", true, 300, limit.EachCaller},
	} {
		v := &mixTarget{
			addr: c.addr, rate: 100, refuses: true, perSource: c.perSource, takes: both(2 * time.Millisecond),
		}
		made := v.explored(t, found(100, signature.TokenBucket))
		also := others(made)
		if c.want == 0 {
			if len(also) > 0 {
				t.Errorf("%s: %+v", name, also)
			}
			continue
		}
		if len(also) != 1 || also[0].Sources != sources || also[0].Offered > usualLoad().MaxRate {
			t.Errorf("%s: %+v", name, also)
			continue
		}
		if got := also[0].Rate(); got < 0.9*c.want || got > 1.15*c.want {
			t.Errorf("%s: %v/s, want %v/s", name, got, c.want)
		}
		e := limit.Evidence{Rate: 100, Lo: 98, Hi: 102, Experiments: made, Idle: 0.002}
		e.Signature.Class = signature.TokenBucket
		if verdict := limit.Judge(e); verdict.Kind != limit.RateLimit || verdict.Scope != c.scope {
			t.Errorf("%s: %s %q, want %q", name, verdict.Kind, verdict.Scope, c.scope)
		}
		if took := v.clock.Now().Sub(time.Unix(0, 0)); took > limiterTime+longestPause {
			t.Errorf("%s: took %v", name, took)
		}
	}
}

// TestExperimentsBetween: two calls in flight, which were left out for the sake of other addresses, are allowed after
// all where four did more than one.
func TestExperimentsBetween(t *testing.T) {
	for name, x := range map[string]struct {
		takes time.Duration
		want  []int
	}{"four do more": {20 * time.Millisecond, []int{1, 4, 2}}, "one does all": {2 * time.Millisecond, []int{1, 4}}} {
		v := &mixTarget{addr: "127.0.0.1:80", rate: 100, takes: both(x.takes)}
		r := found(100, signature.TokenBucket)
		r.Signature.Queued = true
		if made := v.explored(t, r); !slices.Equal(inFlightOf(made), x.want) {
			t.Errorf("%s: at most %v in flight, want %v", name, inFlightOf(made), x.want)
		}
	}
}

// TestExperimentsWithFreshConnections: only where callers meet the limit at connections, and the target is asked for
// new ones.
func TestExperimentsWithFreshConnections(t *testing.T) {
	for class, want := range map[signature.Class]int{signature.AcceptQueue: 1, signature.Queue: 0} {
		v := &mixTarget{slots: 2, takes: both(18 * time.Millisecond)}
		also := others(v.explored(t, found(111, class)))
		if len(also) != want {
			t.Errorf("%s: %+v, want %d", class, also, want)
			continue
		}
		if want > 0 && (!also[0].Fresh || also[0].Connections < 9*int(also[0].Rate()*also[0].Seconds)/10) {
			t.Errorf("%s: %+v", class, also[0])
		}
	}
	if got := string(closesAfter{getWire{}}.Render([]byte("x"), 1)); got !=
		"xGET / HTTP/1.1\r\nConnection: close\r\nHost: a\r\n\r\n" {
		t.Errorf("the request %q", got)
	}
}
