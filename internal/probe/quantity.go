package probe

import (
	"math"
	"slices"
	"time"

	"tare/internal/metric"
)

// A Quantity is a metric that probes read, and how it behaves over time.
type Quantity struct {
	metric.Metric
	Kind Kind
}

// Kind says how two readings of a quantity are compared.
type Kind uint8

// The kinds.
const (
	Counter  Kind = iota // only grows: the difference is the cost of the interval
	Gauge                // a level: the later reading counts
	Lifetime             // a counter of the subject's process, from 0 when it starts
	Birth                // identifies the subject's process: if it differs, the two readings are of different processes
)

// lower returns a quantity of which less is better.
func lower(name string, unit metric.Unit, kind Kind, help string) Quantity {
	return Quantity{metric.Metric{Name: name, Unit: unit, Better: metric.Lower, Help: help}, kind}
}

// The quantities that the probes of this package read. CPU times of a tree or host are in CPU-seconds; elapsed times
// are in seconds.
var (
	CPU = lower("cpu", metric.CPUSeconds, Lifetime,
		"CPU time, user and system, of the subject's processes, live and reaped children included "+
			"(CLOCK_PROCESS_CPUTIME_ID, proc_pid_stat(5) cutime and cstime); of a process on another host, its own "+
			"(process_cpu_seconds_total).")
	RSS = lower("rss", metric.Bytes, Gauge,
		"Resident memory, summed over the subject's processes; pages that they share count once for each "+
			"(proc_pid_smaps_rollup, else proc_pid_stat(5)).")
	PSS = lower("pss", metric.Bytes, Gauge,
		"Proportional resident memory: a page shared by n processes counts 1/n for each (proc_pid_smaps_rollup).")
	RSSPeak = lower("rss_peak", metric.Bytes, Gauge,
		"Largest resident memory since the process started, summed over the subject's processes (VmHWM).")
	Threads   = lower("threads", metric.Count, Gauge, "Threads of the subject's processes.")
	FDs       = lower("fds", metric.Count, Gauge, "Open file descriptors of the subject's processes.")
	Processes = lower("processes", metric.Count, Gauge, "Live processes in the subject's tree.")

	Started = lower("started", metric.Count, Birth,
		"When the subject's root process was started, in clock ticks since the host's boot (proc_pid_stat(5), "+
			"starttime), or, on another host, in seconds since the epoch (process_start_time_seconds). A process that "+
			"was replaced has other counters than its successor.")

	CgroupCPU = lower("cgroup_cpu", metric.CPUSeconds, Counter,
		"CPU time of all processes that were in the control group (cpu.stat usage_usec, cpuacct.usage).")
	Periods = lower("periods", metric.Count, Counter,
		"CFS periods in which the control group had work (cpu.stat nr_periods).")
	ThrottledPeriods = lower("throttled_periods", metric.Count, Counter,
		"CFS periods in which the control group used up its quota and had to wait (cpu.stat nr_throttled).")
	ThrottledTime = lower("throttled_time", metric.Seconds, Counter,
		"Time for which the control group was held back, summed over CPUs (cpu.stat throttled_usec, throttled_time).")
	Memory = lower("memory", metric.Bytes, Gauge,
		"Memory charged to the control group, page cache included (memory.current, memory.usage_in_bytes).")
	MemoryPeak = lower("memory_peak", metric.Bytes, Gauge,
		"Largest memory charged to the control group since it was made (memory.peak, memory.max_usage_in_bytes).")

	CgroupPressureCPU = lower("cgroup_pressure_cpu", metric.Seconds, Counter,
		"Time in which some task of the control group waited for a CPU, its own quota included (cpu.pressure, some).")
	CgroupPressureMemory = lower("cgroup_pressure_memory", metric.Seconds, Counter,
		"Time in which some task of the control group waited for memory, its own limit included (memory.pressure, "+
			"some).")
	CgroupPressureIO = lower("cgroup_pressure_io", metric.Seconds, Counter,
		"Time in which some task of the control group waited for I/O (io.pressure, some).")

	ListenQueueDepth = lower("listen_queue", metric.Count, Gauge,
		"Connections that the kernel has established and the server has not accepted: the listening socket's "+
			"idiag_rqueue (sock_diag(7)), or rx_queue (/proc/net/tcp).")
	ListenQueueLimit = Quantity{metric.Metric{
		Name: "listen_queue_limit", Unit: metric.Count, Better: metric.Higher,
		Help: "The listening socket's backlog; the kernel queues one connection more than this (sock_diag(7), " +
			"idiag_wqueue).",
	}, Gauge}

	PressureCPU = lower("pressure_cpu", metric.Seconds, Counter,
		"Time in which some task of the host waited for a CPU (/proc/pressure/cpu, some).")
	PressureMemory = lower("pressure_memory", metric.Seconds, Counter,
		"Time in which some task of the host waited for memory (/proc/pressure/memory, some).")
	PressureIO = lower("pressure_io", metric.Seconds, Counter,
		"Time in which some task of the host waited for I/O (/proc/pressure/io, some).")

	Upstream = lower("upstream_calls", metric.Count, Counter,
		"Calls that the target made, or tried to make, to what stands behind it: at a token endpoint, exchanges at "+
			"its STS.")
	CacheHits = Quantity{metric.Metric{
		Name: "cache_hits", Unit: metric.Count, Better: metric.Higher,
		Help: "Calls that the target answered from its cache, by its own count.",
	}, Lifetime}
	CacheMisses = lower("cache_misses", metric.Count, Lifetime,
		"Calls for which the target's cache had nothing good, by its own count; concurrent calls that share an "+
			"answer count once.")
	CacheRenewed = lower("cache_renewals", metric.Count, Lifetime,
		"Cached values that the target renewed before they expired, by its own count.")
	Distinct = lower("distinct_tokens", metric.Count, Counter,
		"Different tokens among all answers, as the callers saw them: one for each identity where the endpoint "+
			"caches, one for each call where it does not.")

	GCCount = lower("gc_count", metric.Count, Lifetime,
		"Garbage collections, by collector: of a JVM from its performance data (sun.gc.collector.N.invocations), of "+
			"a Go program from go_gc_duration_seconds_count.")
	GCTime = lower("gc_time", metric.Seconds, Lifetime,
		"Time that the program stood still for garbage collections, by collector (sun.gc.collector.N.time ÷ "+
			"sun.os.hrt.frequency; go_gc_duration_seconds_sum).")
	HeapUsed = lower("heap_used", metric.Bytes, Gauge,
		"Heap in use: of a JVM the sum of its generations' spaces, of a Go program go_memstats_heap_inuse_bytes.")
	HeapCommitted = lower("heap_committed", metric.Bytes, Gauge,
		"Heap that the program holds from the operating system, used or not.")
	Metaspace  = lower("metaspace", metric.Bytes, Gauge, "Memory of a JVM's class metadata (sun.gc.metaspace.used).")
	Safepoints = lower("safepoints", metric.Count, Lifetime,
		"Times that a JVM stopped all its threads, for garbage collections and anything else (sun.rt.safepoints).")
	SafepointTime = lower("safepoint_time", metric.Seconds, Lifetime,
		"Time for which a JVM's threads stood still at safepoints (sun.rt.safepointTime).")
	Goroutines  = lower("goroutines", metric.Count, Gauge, "Goroutines of a Go program (go_goroutines).")
	SeriesTotal = lower("series_total", metric.Count, Lifetime,
		"What a counter of the target's metrics endpoint grew by; the part names the series.")
	SeriesValue = lower("series_value", metric.Count, Gauge,
		"What a gauge of the target's metrics endpoint said last; the part names the series.")
	StartSeconds = lower("start_seconds", metric.Seconds, Gauge,
		"Time from the start of the target's process until it answered, its policies loaded.")
	LoadSeconds = lower("load_seconds", metric.Seconds, Gauge,
		"Time that the target took to load its policies, by its own clock; part of start_seconds.")

	HostCPU = lower("host_cpu", metric.CPUSeconds, Counter,
		"CPU time that the host's CPUs spent busy, that is, neither idle, nor waiting for I/O, nor stolen "+
			"(/proc/stat).")
	HostAll = lower("host_all", metric.CPUSeconds, Counter,
		"All time of the host's CPUs: busy, idle, waiting and stolen (/proc/stat). The denominator of shares.")
	Steal = lower("steal", metric.CPUSeconds, Counter,
		"CPU time that the hypervisor gave to others while this host wanted it (/proc/stat, steal).")
	Load = lower("load", metric.Count, Gauge, "Tasks that ran or waited, averaged over a minute (/proc/loadavg).")

	// Records of older releases hold these; no probe reads them now.
	TCPInUse    = lower("tcp_in_use", metric.Count, Gauge, "TCP sockets in use (/proc/net/sockstat).")
	TCPTimeWait = lower("tcp_time_wait", metric.Count, Gauge,
		"TCP sockets in TIME_WAIT; each holds an ephemeral port (/proc/net/sockstat).")
	TCPOrphans = lower("tcp_orphans", metric.Count, Gauge,
		"TCP sockets that no process holds any more (/proc/net/sockstat).")
	ListenOverflows = lower("listen_overflows", metric.Count, Counter,
		"Times that a connection found a full listen queue, over all sockets (/proc/net/netstat, ListenOverflows).")
	ListenDrops = lower("listen_drops", metric.Count, Counter,
		"Connection requests dropped at listening sockets for any reason (/proc/net/netstat, ListenDrops).")
	TCPRetransmitted = lower("tcp_retransmitted", metric.Count, Counter,
		"TCP segments sent again (/proc/net/snmp, RetransSegs).")
)

// Quantities returns all quantities that the probes of this package read, for "tare explain" and for Delta.
func Quantities() []Quantity {
	return []Quantity{
		CPU, RSS, PSS, RSSPeak, Threads, FDs, Processes, Started,
		CgroupCPU, Periods, ThrottledPeriods, ThrottledTime, Memory, MemoryPeak,
		CgroupPressureCPU, CgroupPressureMemory, CgroupPressureIO,
		ListenQueueDepth, ListenQueueLimit,
		PressureCPU, PressureMemory, PressureIO,
		Upstream, CacheHits, CacheMisses, CacheRenewed, Distinct,
		GCCount, GCTime, HeapUsed, HeapCommitted, Metaspace, Safepoints, SafepointTime, Goroutines,
		SeriesTotal, SeriesValue,
		StartSeconds, LoadSeconds,
		HostCPU, HostAll, Steal, Load,
		TCPInUse, TCPTimeWait, TCPOrphans, ListenOverflows, ListenDrops, TCPRetransmitted,
	}
}

// Known looks up a metric of calls and batches, a quantity that a probe reads, or one of an area's own, by its name.
func Known(name string, own ...metric.Metric) (metric.Metric, bool) {
	for _, q := range Quantities() {
		if q.Name == name {
			own = []metric.Metric{q.Metric}
		}
	}
	return metric.Find(name, own...)
}

// Stamp sets the samples' time, and omits values that are not finite: an endpoint may report NaN, which no record can
// hold.
func Stamp(samples []metric.Sample, at time.Duration) []metric.Sample {
	out := make([]metric.Sample, 0, len(samples))
	for _, s := range samples {
		if s.At = at; !math.IsNaN(s.Value) && !math.IsInf(s.Value, 0) {
			out = append(out, s)
		}
	}
	return out
}

// Delta returns what happened between two readings: the differences of counters, and the later values of gauges. It
// leaves out a counter that is missing before, that went backwards, or whose subject was replaced meanwhile, and a
// metric that is neither in Quantities nor in more, since its kind is unknown.
func Delta(before, after []metric.Sample, more ...Quantity) []metric.Sample {
	kinds := make(map[string]Kind)
	for _, q := range slices.Concat(Quantities(), more) {
		kinds[q.Name] = q.Kind
	}
	type key struct{ subject, metric, part string }
	first := make(map[key]float64, len(before))
	for _, s := range before {
		first[key{s.Subject, s.Metric, s.Part}] = s.Value
	}
	replaced := map[string]bool{}
	for _, s := range after {
		if was, ok := first[key{s.Subject, s.Metric, s.Part}]; ok && kinds[s.Metric] == Birth && was != s.Value {
			replaced[s.Subject] = true
		}
	}
	var out []metric.Sample
	for _, s := range after {
		kind, known := kinds[s.Metric]
		if !known || kind == Birth {
			continue
		}
		if kind == Counter || kind == Lifetime {
			was, ok := first[key{s.Subject, s.Metric, s.Part}]
			if !ok || s.Value < was || (kind == Lifetime && replaced[s.Subject]) {
				continue
			}
			s.Value -= was
		}
		out = append(out, s)
	}
	return out
}

// Find returns the value of a metric about a subject, if it is among the samples.
func Find(samples []metric.Sample, subject string, q Quantity) (float64, bool) {
	i := slices.IndexFunc(samples, func(s metric.Sample) bool { return s.Subject == subject && s.Metric == q.Name })
	if i < 0 {
		return 0, false
	}
	return samples[i].Value, true
}

// Share returns the quotient of two metrics of a subject, such as steal over host_all, or throttled_periods over
// periods. ok is false unless both are present and whole is positive.
func Share(samples []metric.Sample, subject string, part, whole Quantity) (float64, bool) {
	p, ok1 := Find(samples, subject, part)
	w, ok2 := Find(samples, subject, whole)
	if !ok1 || !ok2 || w <= 0 {
		return 0, false
	}
	return p / w, true
}
