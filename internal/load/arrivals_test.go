package load

import (
	"math"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

var _ = []Process{Constant{}, Poisson{}, Ramp{}, Steps{}, Burst{}}

// instants are all arrivals of p.
func instants(p Process) (at []time.Duration) {
	a := p.Start()
	for t, ok := a.Next(); ok; t, ok = a.Next() {
		at = append(at, t)
	}
	return at
}

func TestBurst(t *testing.T) {
	const ms = time.Millisecond
	for name, c := range map[string]struct {
		burst  Burst
		at     []time.Duration
		peak   float64
		length time.Duration
	}{
		"spread": {
			Burst{Calls: 4, Over: 20 * ms, Duration: 100 * ms},
			[]time.Duration{0, 5 * ms, 10 * ms, 15 * ms},
			200, 100 * ms,
		},
		"at once":       {Burst{Calls: 3, Duration: 50 * ms}, []time.Duration{0, 0, 0}, math.Inf(1), 50 * ms},
		"one":           {Burst{Calls: 1, Over: 10 * ms, Duration: 10 * ms}, []time.Duration{0}, 100, 10 * ms},
		"no silence":    {Burst{Calls: 2, Over: 10 * ms}, []time.Duration{0, 5 * ms}, 200, 10 * ms},
		"nothing":       {Burst{Over: 10 * ms, Duration: 30 * ms}, nil, 0, 30 * ms},
		"backwards":     {Burst{Calls: 2, Over: -10 * ms, Duration: -ms}, []time.Duration{0, 0}, math.Inf(1), 0},
		"fewer than 0":  {Burst{Calls: -2, Duration: ms}, nil, 0, ms},
		"no even split": {Burst{Calls: 3, Over: 10, Duration: 10}, []time.Duration{0, 3, 6}, 3e8, 10},
	} {
		t.Run(name, func(t *testing.T) {
			if d := cmp.Diff(c.at, instants(c.burst)); d != "" {
				t.Error(d)
			}
			if d := cmp.Diff(instants(c.burst), instants(c.burst)); d != "" {
				t.Errorf("the second start differs: %s", d)
			}
			if p := c.burst.Peak(); p != c.peak && math.Abs(p-c.peak) > c.peak*1e-9 {
				t.Errorf("peak %g, want %g", p, c.peak)
			}
			if l := c.burst.Length(); l != c.length {
				t.Errorf("length %v, want %v", l, c.length)
			}
		})
	}
}

// Every process keeps to its length, its order and its count.
func TestProcessesKeepTheirPromises(t *testing.T) {
	for name, c := range map[string]struct {
		p    Process
		n    int // −1: any
		last time.Duration
	}{
		"constant": {Constant{Rate: 50, Duration: time.Second}, 50, 980 * time.Millisecond},
		"poisson":  {Poisson{Rate: 300, Duration: time.Second, Seed: 5}, -1, 0},
		"ramp":     {Ramp{From: 0, To: 100, Duration: time.Second}, 50, time.Duration(math.Sqrt(49.0/50) * 1e9)},
		"burst":    {Burst{Calls: 10000, Over: time.Second, Duration: 3 * time.Second}, 10000, 999900 * time.Microsecond},
		"bursts": {Steps{
			Burst{Calls: 3, Duration: time.Second},
			Constant{Rate: 10, Duration: time.Second},
			Burst{Calls: 2, Over: time.Second},
		}, 15, 2500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			at := instants(c.p)
			if !slices.IsSorted(at) {
				t.Error("out of order")
			}
			last := at[len(at)-1]
			if last >= c.p.Length() {
				t.Errorf("the last is at %v, beyond %v", last, c.p.Length())
			}
			if c.n >= 0 && (len(at) != c.n || (last-c.last).Abs() > time.Microsecond) {
				t.Errorf("%d arrivals, the last at %v; want %d and %v", len(at), last, c.n, c.last)
			}
		})
	}
}

// A burst at once is offered at once, and the silence after it belongs to the segment.
func TestBurstIsOffered(t *testing.T) {
	eachEngine(t, func(t *testing.T, set func(*Config)) {
		const n, length = 50, 300 * time.Millisecond
		s := open(t, newTarget(t, says(good)).addr, set)
		g := offer(t, s, Burst{Calls: n, Duration: length})
		p := drain(t, s)
		if g.Offered != n || p.Done[OK] != n || g.End-g.Start != length || s.Now() < g.End {
			t.Errorf("%+v, %+v", g, p)
		}
		for _, c := range audit(t, s, 0) {
			if c.Intended != g.Start {
				t.Errorf("a call was intended at %v, want %v", c.Intended, g.Start)
			}
		}
	})
}

// A burst at once has no rate that a bound could allow.
func TestBurstIsBounded(t *testing.T) {
	s := open(t, netip.MustParseAddrPort("127.0.0.1:1"), func(c *Config) { c.MaxRate = 1000 })
	if _, err := s.Offer(t.Context(), Burst{Calls: 1, Duration: time.Second}, 0, nil); err == nil ||
		!strings.Contains(err.Error(), "1000/s") {
		t.Errorf("error %v", err)
	}
}
