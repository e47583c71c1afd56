package servers

import (
	"time"

	"tare/internal/capacity"
	"tare/internal/limit"
	"tare/internal/signature"
)

const ms = time.Millisecond

// limiters refuse what is beyond a limit.
func limiters() []Fixture {
	return []Fixture{
		{
			Name: "token-bucket",
			Truth: Truth{
				Rate: 100, Burst: 40, Formula: "rate 100/s, burst 40, then 429",
				Classes: classes(signature.TokenBucket),
				Limits:  limits(limit.RateLimit), Seen: true,
			},
			build: func(r *rig) part { return r.bucket(100, 40, refuse(429), r.delay(3*ms, serve)) },
		},
		{
			Name: "error-document",
			Truth: Truth{
				Rate: 80, Burst: 250, Formula: "rate 80/s, burst 250, then 200 with an error",
				Classes: classes(signature.TokenBucket),
				Limits:  limits(limit.RateLimit), Seen: true,
			},
			build: func(r *rig) part { return r.bucket(80, 250, document, r.delay(2*ms, serve)) },
		},
		{
			Name: "gcra", Callers: 2,
			Truth: Truth{
				Rate: 120, Burst: 11, Formula: "a call per 1/120 s, 10 early, then 429; 2 clients",
				Classes: classes(signature.TokenBucket),
				Limits:  limits(limit.RateLimit), Seen: true,
				Findings: []capacity.FindingKind{capacity.LimitShared},
			},
			build: func(r *rig) part { return r.gcra(120, 10, refuse(429), r.delay(2*ms, serve)) },
		},
		{
			Name: "leaky-queue",
			Truth: Truth{
				Rate: 90, Formula: "passes 90/s, 30 wait, then 503",
				Classes: classes(signature.Shedding, signature.TokenBucket, signature.ConcurrencyLimit),
				Limits:  limits(limit.RateLimit), Seen: true,
			},
			build: func(r *rig) part { return r.leaky(90, 30, refuse(503), r.delay(2*ms, serve)) },
		},
		{
			Name: "fixed-window",
			Truth: Truth{
				Rate: 150, Formula: "150 per clock second, then 429",
				Classes: classes(signature.FixedWindow), Limits: limits(limit.RateLimit), Seen: true,
			},
			build: func(r *rig) part { return r.window(150, time.Second, refuse(429), r.delay(4*ms, serve)) },
		},
		{
			Name: "sliding-log",
			Truth: Truth{
				Rate: 110, Formula: "110 per sliding second, then 429",
				Classes: classes(signature.TokenBucket, signature.FixedWindow),
				Limits:  limits(limit.RateLimit), Seen: true,
			},
			build: func(r *rig) part { return r.log(110, time.Second, false, refuse(429), r.delay(3*ms, serve)) },
		},
		{
			Name: "concurrency-limit",
			Truth: Truth{
				Rate: 200, Formula: "10 in progress ÷ 50 ms, then 503",
				Classes: classes(signature.ConcurrencyLimit),
				Limits:  limits(limit.Slots), Slots: 10, Seen: true,
			},
			build: func(r *rig) part { return r.slots(10, refuse(503), r.delay(50*ms, serve)) },
		},
		{
			// A call finds all places taken when it was delayed by 8 ÷ rate − 40 ms less than the eighth before it: 1 %
			// are at 41.7 ms.
			Name: "concurrency-limit-jitter",
			Truth: Truth{
				Rate: 192, Formula: "8 in progress ÷ (40 ms + 1.7 ms of 0…2 ms), then 503",
				Classes: classes(signature.ConcurrencyLimit),
				Limits:  limits(limit.Slots), Slots: 8, Seen: true,
			},
			build: func(r *rig) part { return r.jitter(2*ms, r.slots(8, refuse(503), r.delay(40*ms, serve))) },
		},
		{
			Name: "penalty",
			Truth: Truth{
				Rate: 100, Formula: "100 per sliding second, refused ones count, 429",
				Classes: classes(signature.Penalty),
				Limits:  limits(limit.RateLimit), Seen: true,
			},
			build: func(r *rig) part { return r.log(100, time.Second, true, refuse(429), r.delay(3*ms, serve)) },
		},
		{
			Name: "tarpit",
			Truth: Truth{
				Rate: 100, Burst: 20, Formula: "rate 100/s, burst 20, then 429 after 2 s",
				Classes: classes(signature.TokenBucket),
				Limits:  limits(limit.RateLimit), Seen: true,
			},
			build: func(r *rig) part {
				return r.bucket(100, 20, r.delay(2*time.Second, refuse(429)), r.delay(3*ms, serve))
			},
		},
		{
			Name: "per-client", Callers: 4,
			Truth: Truth{
				Rate: 160, Burst: 40, Formula: "4 clients at 40/s, burst 10 each, then 429",
				Classes: classes(signature.TokenBucket),
				Limits:  limits(limit.RateLimit), Seen: true,
				Findings: []capacity.FindingKind{capacity.LimitPerCaller},
			},
			build: func(r *rig) part {
				return perCaller(func() part { return r.bucket(40, 10, refuse(429), r.delay(3*ms, serve)) })
			},
		},
		{
			Name: "silence",
			Truth: Truth{
				Rate: 100, Burst: 20, Formula: "rate 100/s, burst 20, then no answer",
				Classes: classes(signature.QuotaHang),
				Limits:  limits(limit.RateLimit), Seen: true,
			},
			build: func(r *rig) part { return r.bucket(100, 20, silent, r.delay(3*ms, serve)) },
		},
		{
			Name: "errors-and-bucket",
			Truth: Truth{
				Rate: 120, Burst: 60, Formula: "rate 120/s, burst 60, then 429; 1 % get 500",
				Classes: classes(signature.TokenBucket),
				Limits:  limits(limit.RateLimit), Seen: true,
			},
			build: func(r *rig) part {
				return r.bucket(120, 60, refuse(429), r.delay(3*ms, r.share(0.01, refuse(500), serve)))
			},
		},
	}
}
