package doctor

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"tare/internal/load"
	"tare/internal/unit"
)

// latenessRate is the rate at which the generator's lateness is measured.
const latenessRate = 1000

const (
	// latenessLimit is the lateness up to which nothing is said: above it in the median, a generator does not keep up; in
	// the tail, it was stopped for moments, which times show.
	latenessLimit = time.Millisecond
	// longStall is a stall that explains calls that are due and unsent at the end.
	longStall = 30 * time.Millisecond
)

// Lateness is how much later than scheduled the generator sent, in seconds, in an open loop of Rate calls a second.
type Lateness struct {
	Rate     float64 `json:"rate"`
	Seconds  float64 `json:"seconds"`
	Calls    uint64  `json:"calls"`
	P50      float64 `json:"p50"`
	P99      float64 `json:"p99"`
	Max      float64 `json:"max"`
	Achieved float64 `json:"achieved_ratio"` // sent ÷ scheduled
}

// lateness measures the generator's lateness under load on a local server, as a run would.
func lateness(ctx context.Context, addr netip.AddrPort, length time.Duration) (*Lateness, Check) {
	c := Check{Group: groupGenerator, Name: "lateness", State: OK}
	late, err := measureLateness(ctx, addr, length)
	if err != nil {
		c.State, c.Found, c.Cause = Broken, fmt.Sprintf("no load of %d/s could be offered", latenessRate), err.Error()
		c.Next = "every run offers load in this way: see the checks above"
		return nil, c
	}
	c.Found = fmt.Sprintf("%d/s for %s on loopback: sent late by p50 %s, p99 %s, max %s; %s of the calls due were sent",
		latenessRate, unit.Seconds(late.Seconds),
		unit.Seconds(late.P50), unit.Seconds(late.P99), unit.Seconds(late.Max), unit.Share(late.Achieved))
	c.Values = map[string]float64{"p50": late.P50, "p99": late.P99, "max": late.Max, "achieved_ratio": late.Achieved}
	c.State, c.Cause, c.Next = late.judge()
	return late, c
}

// judge distinguishes a generator that cannot keep up, which is late in the median, from one that is stopped for
// moments and is late in the tail.
func (l *Lateness) judge() (state State, cause, next string) {
	unsent := (1 - l.Achieved) * l.Rate * l.Seconds
	switch {
	case l.P50 > latenessLimit.Seconds() || unsent > l.Rate*longStall.Seconds():
		return Limited, fmt.Sprintf("the generator does not keep up with %s here: a run at such a rate is invalid",
				unit.PerSecond(l.Rate)),
			"stop what else runs here, allow more CPUs, or give the generator a CPU of its own (pin)"
	case l.P99 > latenessLimit.Seconds():
		return Limited, "the generator was stopped for moments: response times hold these delays, and each report says how " +
				"much of them that can be; rates, errors and CPU times are sound",
			"stop what else runs here if times of less than ten times this p99 matter"
	}
	return OK, "", ""
}

func measureLateness(ctx context.Context, addr netip.AddrPort, length time.Duration) (*Lateness, error) {
	s, err := openStream(ctx, addr)
	if err != nil {
		return nil, err
	}
	defer s.Close() //nolint:errcheck // nothing to lose
	// The first calls open connections and fault pages in: they are warm-up.
	if _, err := s.Offer(ctx, load.Constant{Rate: 100, Duration: 100 * time.Millisecond}, 0, nil); err != nil {
		return nil, err
	}
	if _, err := awaitCalls(ctx, s); err != nil {
		return nil, err
	}
	g, err := s.Offer(ctx, load.Constant{Rate: latenessRate, Duration: length}, 0, nil)
	if err != nil {
		return nil, err
	}
	sum, err := awaitCalls(ctx, s)
	if err != nil {
		return nil, err
	}
	h := &sum.lateness
	return &Lateness{
		Rate: latenessRate, Seconds: (g.End - g.Start).Seconds(), Calls: sum.response.Count(),
		Achieved: float64(g.Sent) / float64(max(g.Offered, 1)),
		P50:      h.Quantile(.5) / 1e9, P99: h.Quantile(.99) / 1e9, Max: float64(h.Max()) / 1e9,
	}, nil
}
