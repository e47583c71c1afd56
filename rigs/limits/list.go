// Package limits holds servers with one thing that sets their rate and another that callers meet above it. Each runs as
// a process of its own, so that what it uses up can be seen from outside.
package limits

import (
	"time"

	"tare/internal/limit"
	"tare/internal/signature"
)

// A Spec describes a server. A call passes its stages in the order of the fields.
type Spec struct {
	Name string `json:"name"`
	// Conns is how many connections are accepted at a time, Backlog how many wait for that; 0: no limit.
	Conns   int `json:"conns,omitempty"`
	Backlog int `json:"backlog,omitempty"`
	// Quota limits the process, in processors; Procs is GOMAXPROCS.
	Quota float64 `json:"quota,omitempty"`
	Procs int     `json:"procs,omitempty"`
	// Bucket refuses calls beyond so many a second, after an allowance of Burst; Pace lets them wait instead.
	Bucket float64 `json:"bucket,omitempty"`
	Burst  float64 `json:"burst,omitempty"`
	Pace   float64 `json:"pace,omitempty"`
	// Refuse refuses calls while so many are in flight; Slots lets them wait.
	Refuse int `json:"refuse,omitempty"`
	Slots  int `json:"slots,omitempty"`
	// Work is the processor time of a call, Rest the time that it waits for something else; Varied draws them.
	Work   time.Duration `json:"work,omitempty"`
	Rest   time.Duration `json:"rest,omitempty"`
	Varied bool          `json:"varied,omitempty"`
	// Bytes is the size of an answer, Bandwidth how many bytes a second all of them get.
	Bytes     int     `json:"bytes,omitempty"`
	Bandwidth float64 `json:"bandwidth,omitempty"`
	// Garbage is how many bytes a call leaves to the collector, beside a heap of Heap.
	Garbage int `json:"garbage,omitempty"`
	Heap    int `json:"heap,omitempty"`

	Truth Truth `json:"-"`
}

// Truth is what is known of a server.
type Truth struct {
	// Rate is about what it sustains, in 1/s, on a quiet host.
	Rate float64
	// Limits and Failures are the right names, the best first.
	Limits   []limit.Kind
	Failures []signature.Class
	// Seen is whether something tells the limit: a lever, or an account of the process.
	Seen bool
}

// All lists the servers.
func All() []Spec {
	is := func(rate float64, seen bool, limits []limit.Kind, failures ...signature.Class) Truth {
		return Truth{rate, limits, failures, seen}
	}
	kinds := func(k ...limit.Kind) []limit.Kind { return k }
	const ms = time.Millisecond
	return []Spec{
		{
			Name: "quota behind accepted connections", Quota: 0.2, Procs: 1, Conns: 64, Backlog: 1024, Work: 1250 * time.Microsecond,
			Truth: is(150, true, kinds(limit.CPUQuota), signature.AcceptQueue),
		},
		{
			Name: "quota", Quota: 0.2, Procs: 1, Work: 1250 * time.Microsecond,
			Truth: is(150, true, kinds(limit.CPUQuota), signature.Queue),
		},
		{
			Name: "connections", Conns: 16, Backlog: 256, Rest: 50 * ms,
			Truth: is(320, true, kinds(limit.Connections), signature.AcceptQueue),
		},
		{
			Name: "pool", Slots: 8, Rest: 40 * ms, Truth: is(200, true, kinds(limit.Slots), signature.Queue),
		},
		{
			Name: "pool of unequal calls", Slots: 4, Rest: 20 * ms, Varied: true,
			Truth: is(200, true, kinds(limit.Slots), signature.Queue),
		},
		{Name: "idle lock", Slots: 1, Rest: 5 * ms, Truth: is(190, true, kinds(limit.Slots), signature.Queue)},
		{
			Name: "pool behind accepted connections", Slots: 4, Rest: 20 * ms, Conns: 48, Backlog: 512,
			Truth: is(195, true, kinds(limit.Slots), signature.AcceptQueue),
		},
		{Name: "busy lock", Slots: 1, Work: 5 * ms, Truth: is(195, true, kinds(limit.OneThread), signature.Queue)},
		{
			Name: "busy lock behind refusals", Slots: 1, Refuse: 32, Work: 5 * ms,
			Truth: is(195, true, kinds(limit.OneThread), signature.ConcurrencyLimit, signature.Shedding),
		},
		{
			Name: "idle lock behind refusals", Slots: 1, Refuse: 32, Rest: 5 * ms,
			Truth: is(190, true, kinds(limit.Slots), signature.ConcurrencyLimit, signature.Shedding),
		},
		{
			Name: "processors", Work: 8 * ms,
			Truth: is(200, true, kinds(limit.Processors), signature.Queue, signature.Collapse),
		},
		{
			Name: "two busy workers", Slots: 2, Work: 8 * ms,
			Truth: is(200, true, kinds(limit.Processors, limit.Slots), signature.Queue, signature.Collapse),
		},
		{
			Name: "refusals in flight", Refuse: 8, Rest: 40 * ms,
			Truth: is(200, true, kinds(limit.Slots), signature.ConcurrencyLimit),
		},
		{
			Name: "bucket before a slow service", Bucket: 150, Burst: 20, Rest: 10 * ms,
			Truth: is(150, true, kinds(limit.RateLimit), signature.TokenBucket),
		},
		{
			Name: "bucket", Bucket: 150, Burst: 20,
			Truth: is(150, true, kinds(limit.RateLimit), signature.TokenBucket),
		},
		{
			Name: "bucket above a pool", Bucket: 400, Burst: 20, Slots: 4, Rest: 20 * ms,
			Truth: is(195, true, kinds(limit.Slots), signature.Queue),
		},
		{Name: "pace", Pace: 150, Truth: is(150, true, kinds(limit.RateLimit), signature.Queue)},
		{
			Name: "pace before a slow service", Pace: 150, Rest: 10 * ms,
			Truth: is(150, false, kinds(limit.RateLimit), signature.Queue),
		},
		{
			Name: "bandwidth", Bytes: 100_000, Bandwidth: 20e6,
			Truth: is(200, false, kinds(limit.Bandwidth), signature.Queue, signature.Collapse),
		},
		{
			Name: "collector", Procs: 1, Garbage: 1 << 20, Heap: 64 << 20,
			Truth: is(0, true, kinds(limit.Collector, limit.OneThread, limit.Processors), signature.Queue, signature.Pauses,
				signature.Collapse),
		},
	}
}
