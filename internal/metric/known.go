package metric

import "slices"

func lower(name string, unit Unit, help string) Metric {
	return Metric{Name: name, Unit: unit, Better: Lower, Help: help}
}

func higher(name string, unit Unit, help string) Metric {
	return Metric{Name: name, Unit: unit, Better: Higher, Help: help}
}

// What calls and batches of calls are measured by.
var (
	Response = lower("response", Seconds,
		"Time from the instant at which a call was due to its last byte: what a user waits.")
	Service = lower("service", Seconds,
		"Time from the instant at which a call was sent to its last byte.")
	Wall = lower("wall", Seconds,
		"Elapsed time of one call, by the target's own clock (CLOCK_MONOTONIC).")
	CPU = lower("cpu", CPUSeconds,
		"CPU time that the target spent on one call, children included: the primary cost on a noisy host.")
	Instructions = lower("instructions", Count,
		"Instructions that one call retired, where the host has a counter (perf_event_open), or the lab VM executes them.")
	Error = lower("error", Ratio,
		"Share of the calls that did not end as expected.")
	Goodput = higher("goodput", PerSecond,
		"Calls per second that ended as expected.")
	Allocations = lower("allocations", Count,
		"Objects that one call allocated on the heap, counted by the target's runtime: allocs/op.")
	Allocated = lower("allocated", Bytes,
		"Bytes that one call allocated on the heap, counted by the target's runtime: B/op.")
	KernelMemory = lower("kernel-memory", Bytes,
		"Memory of the kernel that cannot be reclaimed, by which one call lets it grow (/proc/meminfo).")
	Hits = higher("hits", Ratio,
		"Share of the calls for which what was asked for was known already, counted by the target.")
	CacheHits = higher("cache-hits", Ratio,
		"Share of the calls that were answered from memory alone, counted by the target.")
)

// What only budgets name: parts of other metrics, and what a search finds.
var (
	PoolWait = lower("pool_wait", Seconds,
		"How long a call waited for a free connection: the target's slowness, part of the response time.")
	Capacity = higher("capacity", PerSecond,
		"Highest rate at which calls end as expected for as long as it lasts.")
	SLOCapacity = higher("slo_capacity", PerSecond,
		"Highest rate at which the latency objective of the load holds.")
)

// What guard measures of calls that the control must refuse.
var (
	Permitted = lower("permitted", Ratio,
		"Share of the trespasses, calls that the control must refuse, that it permitted; of those that it decided.")
	Revoke = lower("revoke", Seconds,
		"Time from the withdrawal of a permission until the last call that was granted on it.")
)

// Known are the metrics that calls and batches are measured by.
func Known() []Metric {
	return []Metric{
		Response, Service, Wall, CPU, Instructions, Error, Goodput, Allocations, Allocated, KernelMemory,
		Hits, CacheHits,
	}
}

// Find looks a metric up by its name, among the known ones and then among an area's own.
func Find(name string, own ...Metric) (Metric, bool) {
	all := append(Known(), own...)
	i := slices.IndexFunc(all, func(m Metric) bool { return m.Name == name })
	if i < 0 {
		return Metric{}, false
	}
	return all[i], true
}
