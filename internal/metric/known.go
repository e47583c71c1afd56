package metric

import "slices"

// What calls and batches of calls are measured by.
var (
	Response = Metric{
		"response", Seconds, Lower, Noisy,
		"Time from the instant at which a call was due to its last byte: what a user waits.",
	}
	Service = Metric{
		"service", Seconds, Lower, Noisy,
		"Time from the instant at which a call was sent to its last byte.",
	}
	Wall = Metric{
		"wall", Seconds, Lower, Noisy,
		"Elapsed time of one call, by the target's own clock (CLOCK_MONOTONIC).",
	}
	CPU = Metric{
		"cpu", CPUSeconds, Lower, Noisy,
		"CPU time that the target spent on one call, children included: the primary cost on a noisy host.",
	}
	Instructions = Metric{
		"instructions", Count, Lower, Noisy,
		"Instructions that one call retired, where the host has a counter (perf_event_open), or the lab VM executes them.",
	}
	Error       = Metric{"error", Ratio, Lower, Noisy, "Share of the calls that did not end as expected."}
	Goodput     = Metric{"goodput", PerSecond, Higher, Noisy, "Calls per second that ended as expected."}
	Allocations = Metric{
		"allocations", Count, Lower, Noisy,
		"Objects that one call allocated on the heap, counted by the target's runtime: allocs/op.",
	}
	Allocated = Metric{
		"allocated", Bytes, Lower, Noisy,
		"Bytes that one call allocated on the heap, counted by the target's runtime: B/op.",
	}
	KernelMemory = Metric{
		"kernel-memory", Bytes, Lower, Noisy,
		"Memory of the kernel that cannot be reclaimed, by which one call lets it grow (/proc/meminfo).",
	}
	Hits = Metric{
		"hits", Ratio, Higher, Noisy,
		"Share of the calls for which what was asked for was known already, counted by the target.",
	}
	CacheHits = Metric{
		"cache-hits", Ratio, Higher, Noisy,
		"Share of the calls that were answered from memory alone, counted by the target.",
	}
)

// What only budgets name: parts of other metrics, and what a search finds.
var (
	PoolWait = Metric{
		"pool_wait", Seconds, Lower, Noisy,
		"How long a call waited for a free connection: the target's slowness, part of the response time.",
	}
	Capacity = Metric{
		"capacity", PerSecond, Higher, Noisy,
		"Highest rate at which calls end as expected for as long as it lasts.",
	}
	SLOCapacity = Metric{
		"slo_capacity", PerSecond, Higher, Noisy,
		"Highest rate at which the latency objective of the load holds.",
	}
)

// What guard measures of calls that the control must refuse.
var (
	Permitted = Metric{
		"permitted", Ratio, Lower, Noisy,
		"Share of the trespasses, calls that the control must refuse, that it permitted; of those that it decided.",
	}
	Revoke = Metric{
		"revoke", Seconds, Lower, Noisy,
		"Time from the withdrawal of a permission until the last call that was granted on it.",
	}
)

// Known are the metrics that calls and batches are measured by.
func Known() []Metric {
	return []Metric{
		Response, Service, Wall, CPU, Instructions, Error, Goodput, Allocations, Allocated, KernelMemory,
		Hits, CacheHits,
	}
}

// Find looks a metric up by its name.
func Find(name string) (Metric, bool) {
	all := Known()
	i := slices.IndexFunc(all, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return Metric{}, false
	}
	return all[i], true
}
