package load

import (
	"math"
	"math/bits"
	"runtime/metrics"
	"slices"
	"sync/atomic"
)

// Effort is what the generator's own threads did in a segment of load, and what delayed them. It is the evidence for
// judging the generator in a closed loop, where calls are never late. Shares are of the segment.
type Effort struct {
	Seconds float64 `json:"seconds"`
	// Busy is for which share of the segment the busiest event loop ran, without configured spinning. For engine std,
	// whose calls any thread may carry, it is the CPU time of the process divided by that of its usable processors.
	Busy float64 `json:"busy"`
	// Queued is for which share of the segment an event loop was ready to run and had no processor; nil: the kernel does
	// not report it. For engine std it is the average number of such threads.
	Queued *float64 `json:"queued,omitempty"`
	// Loops is the number of event loops; 0: engine std.
	Loops int `json:"loops,omitempty"`
	// Unread is how long arrived answers waited until they were read; nil: unknown. It is nil for open loops that reap
	// lazily: there the instant of an answer is the kernel's.
	Unread *Delays `json:"unread,omitempty"`
	// CPU is the CPU time of the whole process in seconds.
	CPU float64 `json:"cpu"`
	// Host is the use of the processors in the same period; nil: unknown.
	Host *Processors `json:"host,omitempty"`
}

// Delays summarize how long something took, in seconds.
type Delays struct {
	N    uint64  `json:"n"`
	Mean float64 `json:"mean"`
	P99  float64 `json:"p99"`
}

// Processors are CPU times of some processors, in CPU-seconds, and what a quota took from this process. All are
// counters.
type Processors struct {
	All    float64 `json:"all"` // busy, idle and stolen
	Busy   float64 `json:"busy"`
	Stolen float64 `json:"stolen"`
	// Throttled is for how long the process's control group was throttled by its quota, in seconds, summed over
	// processors.
	Throttled float64 `json:"throttled,omitempty"`
}

// A Meter is a reading of all that Effort is computed from; see Stream.Meter.
type Meter struct {
	at      int64
	cpu     float64
	threads map[int]threadTime
	loops   bool    // the threads are event loops, each of which must keep up
	spun    []int64 // by event loop, in ns
	ids     []int   // of their threads
	unread  delayCounts
	sched   []uint64 // the Go scheduler's delays, for engine std
	bounds  []float64
	usable  int // processors
	host    *Processors
}

// threadTime is the kernel's times of a thread, in ns (proc/PID/task/TID/schedstat).
type threadTime struct{ ran, queued int64 }

// Since returns what happened between an earlier reading and this one; nil if no time has passed.
func (m *Meter) Since(before *Meter) *Effort {
	wall := float64(m.at - before.at)
	if wall <= 0 {
		return nil
	}
	e := &Effort{Seconds: wall / 1e9, CPU: m.cpu - before.cpu}
	if m.loops {
		e.Loops = len(m.ids)
		m.eventLoops(before, wall, e)
		e.Unread = m.unread.since(&before.unread)
	} else {
		e.Busy = e.CPU * 1e9 / wall / float64(max(1, m.usable))
		var queued int64
		for id, t := range m.threads {
			queued += t.queued - before.threads[id].queued
		}
		if len(m.threads) > 0 {
			e.Queued = new(float64(queued) / wall)
		}
		e.Unread = goDelays(before.sched, m.sched, m.bounds)
	}
	if m.host != nil && before.host != nil {
		a, b := m.host, before.host
		e.Host = &Processors{
			All: a.All - b.All, Busy: a.Busy - b.Busy, Stolen: a.Stolen - b.Stolen,
			Throttled: a.Throttled - b.Throttled,
		}
	}
	return e
}

func (m *Meter) eventLoops(before *Meter, wall float64, e *Effort) {
	for k, id := range m.ids {
		now, known := m.threads[id]
		was := before.threads[id]
		if !known {
			continue
		}
		spun := m.spun[k]
		if k < len(before.spun) {
			spun -= before.spun[k]
		}
		e.Busy = max(e.Busy, min(1, float64(now.ran-was.ran-spun)/wall))
		queued := min(1, float64(now.queued-was.queued)/wall)
		if e.Queued == nil || queued > *e.Queued {
			e.Queued = &queued
		}
	}
	if e.Queued == nil { // the kernel does not report it: the whole process stands for its loops
		e.Busy = min(1, e.CPU*1e9/wall/float64(max(1, len(m.ids))))
	}
}

// delayBuckets hold delays of up to 2^40 ns, eight to an octave.
const (
	delayBuckets = 8 * 41
	delayBits    = 3
)

// delays counts delays. One goroutine adds, any may read.
type delays struct {
	n, sum  atomic.Uint64
	buckets [delayBuckets]atomic.Uint64
}

// delayCounts is a copy of delays.
type delayCounts struct {
	n, sum  uint64
	buckets [delayBuckets]uint64
}

func (d *delays) add(ns int64) {
	v := uint64(max(ns, 0))
	d.n.Store(d.n.Load() + 1)
	d.sum.Store(d.sum.Load() + v)
	b := &d.buckets[delayBucket(v)]
	b.Store(b.Load() + 1)
}

func delayBucket(v uint64) int {
	if v < 1<<delayBits {
		return int(v)
	}
	shift := bits.Len64(v) - 1 - delayBits
	return min(delayBuckets-1, (shift+1)<<delayBits+int(v>>shift)-1<<delayBits)
}

// delayBound returns the upper end of a bucket, in ns.
func delayBound(i int) float64 {
	if i < 1<<delayBits {
		return float64(i + 1)
	}
	shift := i>>delayBits - 1
	return math.Ldexp(float64(i&(1<<delayBits-1)+1<<delayBits+1), shift)
}

func (d *delays) addTo(c *delayCounts) {
	c.n += d.n.Load()
	c.sum += d.sum.Load()
	for i := range c.buckets {
		c.buckets[i] += d.buckets[i].Load()
	}
}

// since returns the sum of what was added after before; nil: nothing was.
func (c *delayCounts) since(before *delayCounts) *Delays {
	n := c.n - before.n
	if n == 0 {
		return nil
	}
	out := &Delays{N: n, Mean: float64(c.sum-before.sum) / float64(n) / 1e9}
	left := n / 100
	for i := delayBuckets - 1; i >= 0; i-- {
		k := c.buckets[i] - before.buckets[i]
		if k > left {
			out.P99 = delayBound(i) / 1e9
			break
		}
		left -= k
	}
	return out
}

// schedLatencies is how long runnable goroutines had to wait for a thread.
const schedLatencies = "/sched/latencies:seconds"

// goScheduler reads the Go scheduler's delays: counts, and the bounds of their buckets in seconds.
func goScheduler() (counts []uint64, bounds []float64) {
	sample := []metrics.Sample{{Name: schedLatencies}}
	metrics.Read(sample)
	if sample[0].Value.Kind() != metrics.KindFloat64Histogram {
		return nil, nil
	}
	h := sample[0].Value.Float64Histogram()
	return append([]uint64(nil), h.Counts...), h.Buckets
}

// goDelays returns what was added to a histogram of the Go runtime between two readings; nil: nothing was.
func goDelays(before, after []uint64, bounds []float64) *Delays {
	if len(before) != len(after) || len(bounds) != len(after)+1 {
		return nil
	}
	out := &Delays{}
	for i := range after {
		k := after[i] - before[i]
		out.N += k
		out.Mean += float64(k) * finiteBound(bounds, i)
	}
	if out.N == 0 {
		return nil
	}
	out.Mean /= float64(out.N)
	left := out.N / 100
	for i, n := range slices.Backward(after) {
		k := n - before[i]
		if k > left {
			out.P99 = finiteBound(bounds, i)
			break
		}
		left -= k
	}
	return out
}

// finiteBound returns the upper bound of a bucket; for the last, which has none, the lower one.
func finiteBound(bounds []float64, i int) float64 {
	if b := bounds[i+1]; !math.IsInf(b, 0) {
		return max(0, b)
	}
	return max(0, bounds[i])
}

func (s *stream) Meter() Meter {
	m := Meter{at: s.clock.now(), cpu: ProcessCPU(), usable: usableProcessors()}
	if s.closed {
		return m
	}
	if s.cfg.Host != nil {
		m.host = s.cfg.Host()
	}
	s.engine.meter(&m)
	return m
}
