package limit

import (
	"testing"

	"tare/internal/signature"
)

// slow returns an experiment with calls of 150 ms, most in flight at most, of which some were refused.
func slow(most, bad int, counts ...int) Experiment {
	return Experiment{
		InFlight: most, Offered: 150, Seconds: 1, Counts: counts, Bad: bad, Service: 0.15, Spread: new(0.0005),
	}
}

// TestAnAllowanceIsNoPlace: what serves more at first than later, each call as fast, has no fixed number of places.
func TestAnAllowanceIsNoPlace(t *testing.T) {
	even := []int{10, 10, 10, 10, 10, 10, 10, 10, 10, 10}
	first := []int{15, 15, 14, 10, 10, 10, 10, 10, 10, 10}
	one := slow(1, 0, 1, 0, 1, 1, 0, 1, 1, 0, 1, 1)
	for name, c := range map[string]struct {
		counts []int
		class  signature.Class
		want   Kind
	}{
		"an allowance":              {first, signature.ConcurrencyLimit, RateLimit},
		"an allowance, no class":    {first, signature.Unknown, RateLimit},
		"places":                    {even, signature.ConcurrencyLimit, Slots},
		"nothing more, no class":    {even, signature.Unknown, Unknown},
		"more, and not at first":    {[]int{10, 10, 10, 10, 10, 15, 15, 14, 10, 10}, signature.Unknown, Unknown},
		"a little more than chance": {[]int{11, 10, 10, 10, 10, 10, 10, 10, 10, 10}, signature.ConcurrencyLimit, Slots},
	} {
		got := Judge(Evidence{
			Rate: 100, Lo: 95, Hi: 105, Idle: 0.15, Signature: signature.Verdict{Class: c.class, InFlight: 15},
			Experiments: []Experiment{one, slow(32, 44, c.counts...), slow(64, 44, c.counts...)},
		})
		if got.Kind != c.want {
			t.Errorf("%s: %s %q, want %s", name, got.Kind, got.Evidence, c.want)
		}
	}
}

// TestConnectionsAreToldFromPlaces by whether calls wait for each other, or hang on their connections.
func TestConnectionsAreToldFromPlaces(t *testing.T) {
	x := func(most int, service float64, count int) Experiment {
		e := Experiment{InFlight: most, Offered: 600, Seconds: 1, Service: service, Spread: new(0.0003), Even: new(0.0)}
		for range 10 {
			e.Counts = append(e.Counts, count)
		}
		return e
	}
	idle := &Account{Seconds: 1.25, CPU: new(0.02), Processors: 2, HostBusy: new(0.02)}
	for name, c := range map[string]struct {
		accepted int
		all      []Experiment
		want     Kind
	}{
		"8 connections": {0, []Experiment{
			x(1, .0503, 2), x(4, .0507, 8), x(8, .0505, 16), x(16, .0509, 16), x(32, .0508, 16),
		}, Connections},
		"4 places that 4 connections seem to be": {4, []Experiment{
			x(1, .0253, 4), x(4, .0259, 16), x(8, .0499, 16), x(16, .1, 16),
		}, Slots},
	} {
		for i := range c.all {
			c.all[i].Account = idle
		}
		got := Judge(Evidence{
			Rate: 160, Lo: 155, Hi: 165, Idle: 0.025, Accepted: c.accepted,
			Signature: signature.Verdict{Class: signature.AcceptQueue, Stuck: 257}, Experiments: c.all,
		})
		if got.Kind != c.want {
			t.Errorf("%s: %s %q, want %s", name, got.Kind, got.Evidence, c.want)
		}
	}
}
