package servers

import (
	"time"

	"tare/internal/capacity"
	"tare/internal/limit"
	"tare/internal/signature"
)

// queues have servers, and calls wait for them.
func queues() []Fixture {
	return []Fixture{
		{
			Name: "fifo",
			Truth: Truth{
				Rate: 160, Formula: "1 ÷ 6.25 ms",
				Classes: classes(signature.Queue), Limits: limits(limit.Slots), Slots: 1, Seen: true,
			},
			build: func(r *rig) part { return r.station(&station{servers: 1, service: constant(seconds(1.0 / 160))}) },
		},
		{
			Name: "exponential",
			Truth: Truth{
				Rate: 160, Formula: "4 servers ÷ 25 ms, exponential",
				Classes: classes(signature.Queue), Limits: limits(limit.Slots), Slots: 4, Seen: true,
			},
			build: func(r *rig) part {
				exponential := func(int) time.Duration { return seconds(0.025 * r.rng.ExpFloat64()) }
				return r.station(&station{servers: 4, service: exponential})
			},
		},
		{
			Name: "queue-timeout",
			Truth: Truth{
				Rate: 150, Formula: "1 ÷ 6.67 ms, 503 after 200 ms in the queue",
				Classes: classes(signature.Shedding),
				Limits:  limits(limit.Slots), Slots: 1, Seen: true,
			},
			build: func(r *rig) part {
				return r.station(&station{
					servers: 1, service: constant(seconds(1.0 / 150)), patience: 200 * ms, refuse: refuse(503),
				})
			},
		},
		{
			Name: "bounded-queue",
			Truth: Truth{
				Rate: 140, Formula: "1 ÷ 7.14 ms, 503 when 25 wait",
				Classes: classes(signature.Shedding, signature.ConcurrencyLimit),
				Limits:  limits(limit.Slots), Slots: 1, Seen: true,
			},
			build: func(r *rig) part {
				return r.station(&station{
					servers: 1, service: constant(seconds(1.0 / 140)), room: 25, refuse: refuse(503),
				})
			},
		},
		{
			Name: "lifo",
			Truth: Truth{
				Rate: 120, Formula: "1 ÷ 8.33 ms, newest first when over 10 wait",
				Classes: classes(signature.Queue),
				Limits:  limits(limit.Slots), Slots: 1, Seen: true,
			},
			build: func(r *rig) part {
				return r.station(&station{servers: 1, service: constant(seconds(1.0 / 120)), lifo: 10})
			},
		},
		{
			Name: "early-drop",
			Truth: Truth{
				Rate: 150, Formula: "1 ÷ 6.67 ms; 503 for 0…100 % as 10…40 wait",
				Classes: classes(signature.Shedding, signature.ConcurrencyLimit),
				Limits:  limits(limit.Slots), Slots: 1, Seen: true,
			},
			build: func(r *rig) part {
				drop := func(waiting int) float64 { return float64(waiting-10) / 30 }
				return r.station(&station{
					servers: 1, service: constant(seconds(1.0 / 150)), drop: drop, refuse: refuse(503),
				})
			},
		},
		{
			Name: "collapse",
			Truth: Truth{
				Rate: 150, Formula: "1 ÷ 6.67 ms, to 20 ms as 0…100 wait; abandoned calls are served",
				Classes: classes(signature.Collapse),
				Limits:  limits(limit.Slots), Seen: true,
			},
			build: func(r *rig) part {
				return r.station(&station{servers: 1, diligent: true, service: func(waiting int) time.Duration {
					return seconds((1 + 0.02*min(100, float64(waiting))) / 150)
				}})
			},
		},
		{
			Name: "pauses",
			Truth: Truth{
				Rate: 170, Formula: "1 ÷ 5 ms, 300 ms pause every 2 s",
				Classes: classes(signature.Pauses), Limits: limits(limit.Slots), Seen: true,
			},
			build: func(r *rig) part {
				service := func(int) time.Duration { return r.paused(5*ms, 2*time.Second, 300*ms) }
				return r.station(&station{servers: 1, service: service})
			},
		},
		{
			Name: "accept-queue", conns: 24, backlog: 128,
			Truth: Truth{
				Rate: 120, Formula: "1 ÷ 8.33 ms, 24 connections, backlog 128",
				Classes: classes(signature.AcceptQueue, signature.Queue),
				Limits:  limits(limit.Slots), Slots: 1, Seen: true,
			}, // the service is the limit; beyond it calls are lost before it
			build: func(r *rig) part { return r.station(&station{servers: 1, service: constant(seconds(1.0 / 120))}) },
		},
		{
			Name: "cold-start",
			Truth: Truth{
				Rate: 150, Formula: "1 ÷ 6.67 ms, the first 300 calls 5 times as long",
				Classes: classes(signature.Queue),
				Limits:  limits(limit.Slots), Seen: true,
				Findings: []capacity.FindingKind{capacity.ColdStart},
			},
			build: func(r *rig) part {
				return r.station(&station{servers: 1, service: cold(300, 5, seconds(1.0/150))})
			},
		},
		{
			Name: "autoscaling",
			Truth: Truth{
				Rate: 200, Formula: "1 ÷ 10 ms, 2 ÷ 10 ms after 20 s of work", Classes: classes(signature.Queue),
				Limits: limits(limit.Slots), Seen: true,
				Findings: []capacity.FindingKind{capacity.Autoscaling},
			},
			build: func(r *rig) part { return r.scaling(10*ms, 20*time.Second) },
		},
		{
			Name: "burst-credits",
			Truth: Truth{
				Rate: 100, Formula: "200/s, 100/s when 1500 credits of 100/s are spent",
				Classes:  classes(signature.Queue),
				Limits:   limits(limit.RateLimit, limit.Slots),
				Findings: []capacity.FindingKind{capacity.SpentCredits},
			},
			build: func(r *rig) part { return r.station(&station{servers: 1, service: r.credits(200, 100, 1500)}) },
		},
	}
}

// cold makes the first n services longer by a factor.
func cold(n int, factor float64, d time.Duration) func(int) time.Duration {
	served := 0
	return func(int) time.Duration {
		if served++; served <= n {
			return time.Duration(factor * float64(d))
		}
		return d
	}
}

// paused is how long a service of d takes that begins now, when the server stands still for length at the end of every
// period.
func (r *rig) paused(d, period, length time.Duration) time.Duration {
	runs := period - length
	within := r.now % period
	end := min(within, runs) + d
	if end >= runs {
		end += length
	}
	return end - within
}

// scaling has one server for services of d, and a second one for good when the first has worked for so long.
func (r *rig) scaling(d, after time.Duration) part {
	worked := time.Duration(0)
	s := &station{servers: 1}
	s.service = func(int) time.Duration {
		if worked += d; worked >= after {
			s.servers = 2
		}
		return d
	}
	return r.station(s)
}

// credits serves at the fast rate while there are credits, of which each service takes one; they come back at the slow
// rate, up to most.
func (r *rig) credits(fast, slow, most float64) func(int) time.Duration {
	left, last := most, r.now
	return func(int) time.Duration {
		left = min(most, left+slow*(r.now-last).Seconds())
		last = r.now
		if left--; left < 0 {
			return seconds(1 / slow) // it earns the credit that it takes
		}
		return seconds(1 / fast)
	}
}
