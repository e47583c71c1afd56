package servers

import (
	"runtime"
	"time"

	"tare/internal/capacity"
	"tare/internal/limit"
	"tare/internal/signature"
)

// twofold have one limit that sets the rate, and fail in the way of another one.
func twofold() []Fixture {
	one := func(rate float64) *station { return &station{servers: 1, service: constant(seconds(1 / rate))} }
	return []Fixture{
		{
			Name: "connections-slow-service", conns: 8, backlog: 256,
			Truth: Truth{
				Rate: 160, AtMost: true, Formula: "8 connections ÷ 50 ms, backlog 256",
				Classes: classes(signature.AcceptQueue),
				Limits:  limits(limit.Connections), Slots: 8, Seen: true,
			},
			build: func(r *rig) part { return r.delay(50*ms, serve) },
		},
		{
			Name: "pool-behind-connections", conns: 32, backlog: 128,
			Truth: Truth{
				Rate: 160, Formula: "a pool of 4 ÷ 25 ms behind 32 connections, backlog 128",
				Classes: classes(signature.AcceptQueue, signature.Queue),
				Limits:  limits(limit.Slots), Slots: 4, Seen: true,
			},
			build: func(r *rig) part { return r.station(&station{servers: 4, service: constant(25 * ms)}) },
		},
		{
			Name: "pool-slow-backend",
			Truth: Truth{
				Rate: 160, Formula: "a pool of 8 ÷ 50 ms of the backend",
				Classes: classes(signature.Queue),
				Limits:  limits(limit.Slots), Slots: 8, Seen: true,
			},
			build: func(r *rig) part { return r.station(&station{servers: 8, service: constant(50 * ms)}) },
		},
		{
			Name: "lock-behind-threads",
			Truth: Truth{
				Rate: 160, Formula: "20 ms in parallel, then 1 ÷ 6.25 ms under a lock",
				Classes: classes(signature.Queue),
				Limits:  limits(limit.Slots), // a limit that passes calls at intervals looks alike
			},
			build: func(r *rig) part { return r.delay(20*ms, r.station(one(160))) },
		},
		{
			Name: "concurrency-limit-above-pool",
			Truth: Truth{
				Rate: 160, Formula: "a pool of 2 ÷ 12.5 ms, 503 with 30 in progress",
				Classes: classes(signature.ConcurrencyLimit, signature.Shedding),
				Limits:  limits(limit.Slots), Slots: 2, Seen: true,
			},
			build: func(r *rig) part {
				pool := &station{servers: 2, service: constant(seconds(0.0125))}
				return r.slots(30, refuse(503), r.station(pool))
			},
		},
		{
			Name: "bucket-slow-service",
			Truth: Truth{
				Rate: 100, Burst: 20, Formula: "rate 100/s, burst 20, then 429; 150 ms of service",
				Classes: classes(signature.TokenBucket),
				Limits:  limits(limit.RateLimit), Seen: true,
			},
			build: func(r *rig) part { return r.bucket(100, 20, refuse(429), r.delay(150*ms, serve)) },
		},
		{
			Name: "bucket-above-service",
			Truth: Truth{
				Rate: 150, Formula: "1 ÷ 6.67 ms; rate 400/s, burst 50, then 429",
				Classes: classes(signature.Queue),
				Limits:  limits(limit.Slots), Slots: 1, Seen: true,
			},
			build: func(r *rig) part { return r.bucket(400, 50, refuse(429), r.station(one(150))) },
		},
		{
			Name: "paced-slow-service",
			Truth: Truth{
				Rate: 90, Formula: "passes 90/s, 1000 wait, then 503; 40 ms of service",
				Classes: classes(signature.Queue),
				Limits:  limits(limit.RateLimit), // a lock behind what calls do side by side looks alike
			},
			build: func(r *rig) part { return r.leaky(90, 1000, refuse(503), r.delay(40*ms, serve)) },
		},
		{
			Name: "paced-queue",
			Truth: Truth{
				Rate: 90, Formula: "passes 90/s, 1000 wait, then 503",
				Classes: classes(signature.Queue),
				Limits:  limits(limit.RateLimit), Seen: true,
			},
			build: func(r *rig) part { return r.leaky(90, 1000, refuse(503), r.delay(2*ms, serve)) },
		},
		{
			Name: "per-client-before-global", Callers: 4,
			Truth: Truth{
				Rate: 120, Formula: "4 clients at 30/s, burst 10 each, before 200/s, burst 50; 429",
				Classes:  classes(signature.TokenBucket),
				Findings: []capacity.FindingKind{capacity.LimitPerCaller},
				Limits:   limits(limit.RateLimit), Seen: true,
			},
			build: func(r *rig) part {
				all := r.bucket(200, 50, refuse(429), r.delay(3*ms, serve))
				return perCaller(func() part { return r.bucket(30, 10, refuse(429), all) })
			},
		},
		{
			Name: "global-behind-per-client", Callers: 4,
			Truth: Truth{
				Rate: 120, Formula: "4 clients at 90/s, burst 10 each, before 120/s, burst 20; 429",
				Classes:  classes(signature.TokenBucket),
				Findings: []capacity.FindingKind{capacity.LimitShared},
				Limits:   limits(limit.RateLimit), Seen: true,
			},
			build: func(r *rig) part {
				all := r.bucket(120, 20, refuse(429), r.delay(3*ms, serve))
				return perCaller(func() part { return r.bucket(90, 10, refuse(429), all) })
			},
		},
		{
			Name: "bandwidth", bandwidth: 100 * longAnswer,
			Truth: Truth{
				Rate: 100, Formula: "20 MB/s ÷ 200 kB",
				Classes: classes(signature.Collapse, signature.Queue), // answers that nobody waits for take from the others
				Limits:  limits(limit.Bandwidth), Seen: true,
			},
			build: func(*rig) part { return serve },
		},
		{
			Name: "disk-before-pool", syncs: true,
			Truth: Truth{
				Rate: 100, AtMost: true, Formula: "writes to a disk for 10 ms, one call at a time, before a pool of 8 ÷ 20 ms",
				Classes: classes(signature.Queue),
				Limits:  limits(limit.Disk, limit.Slots), Seen: true, // one writer at a time is a slot, too
			},
			build: func(r *rig) part {
				return r.sync(10*ms, r.station(&station{servers: 8, service: constant(20 * ms)}))
			},
		},
		{
			Name: "haproxy-maxconn-queue",
			Truth: Truth{
				Rate: 160, Formula: "maxconn 8 ÷ 50 ms of the backend, timeout queue 1m",
				Classes: classes(signature.Queue),
				Limits:  limits(limit.Slots), Slots: 8, Seen: true,
			},
			build: func(r *rig) part { return r.delay(50*ms, serve) },
			proxy: haproxy("", "timeout queue 1m", "maxconn 8"),
		},
	}
}

// work computes, under a quota or a lock. The processor time of a call is its thread's own, however busy the host is.
func work() []Fixture {
	const each = 5 * time.Millisecond
	quota := func(name string, f Fixture) Fixture {
		f.Name, f.computes, f.quota = name, true, 0.5
		f.Truth.Rate, f.Truth.Limits, f.Truth.Seen = 100, limits(limit.CPUQuota), true
		f.Truth.AtMost = true
		return f
	}
	return []Fixture{
		quota("cpu-quota", Fixture{
			Truth: Truth{Formula: "a quota of 500m ÷ 5 ms of CPU", Classes: classes(signature.Queue)},
			build: func(r *rig) part { return r.compute(each, 4, serve) },
		}),
		quota("cpu-quota-behind-connections", Fixture{
			conns: 24, backlog: 128,
			Truth: Truth{
				Formula: "a quota of 500m ÷ 5 ms of CPU, 24 connections, backlog 128",
				Classes: classes(signature.AcceptQueue),
			},
			build: func(r *rig) part { return r.compute(each, 4, serve) },
		}),
		quota("cpu-quota-refuses", Fixture{
			Truth: Truth{
				Formula: "a quota of 500m ÷ 5 ms of CPU, 503 with 30 in progress",
				Classes: classes(signature.ConcurrencyLimit, signature.Shedding),
			},
			build: func(r *rig) part { return r.slots(30, refuse(503), r.compute(each, 4, serve)) },
		}),
		{
			Name: "cpu-lock", computes: true,
			Truth: Truth{
				Rate: 125, AtMost: true, Formula: "8 ms of CPU under a lock",
				Classes: classes(signature.Queue), Limits: limits(limit.OneThread, limit.Slots),
			},
			build: func(r *rig) part { return r.compute(8*ms, 1, serve) },
		},
		{
			Name: "processors", computes: true,
			Truth: Truth{
				Rate: float64(runtime.NumCPU()) / 0.02, AtMost: true, Formula: "20 ms of CPU, on all processors",
				Classes: classes(signature.Queue), Limits: limits(limit.Processors), Seen: true,
			},
			build: func(r *rig) part { return r.compute(20*ms, 4*runtime.NumCPU(), serve) },
		},
	}
}
