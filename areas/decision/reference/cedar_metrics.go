package reference

import (
	"fmt"
	"math"
	"runtime/metrics"
	"strings"
	"sync/atomic"

	"github.com/cedar-policy/cedar-go"
)

// cedarCounts are the decision point's own counts since its start.
type cedarCounts struct {
	permits, denies, errors, policyErrors atomic.Int64
}

func (c *cedarCounts) count(permit bool, why cedar.Diagnostic) {
	if permit {
		c.permits.Add(1)
	} else {
		c.denies.Add(1)
	}
	if n := len(why.Errors); n > 0 {
		c.policyErrors.Add(int64(n))
	}
}

func (c *cedarCounts) text() string {
	var b strings.Builder
	header(&b, "authzen_decisions_total", "counter", "Decisions given, by kind.")
	fmt.Fprintf(&b, "authzen_decisions_total{decision=\"permit\"} %d\n", c.permits.Load())
	fmt.Fprintf(&b, "authzen_decisions_total{decision=\"deny\"} %d\n", c.denies.Load())
	header(&b, "authzen_request_errors_total", "counter", "Requests refused with a status of 400 or above.")
	fmt.Fprintf(&b, "authzen_request_errors_total %d\n", c.errors.Load())
	header(&b, "cedar_policy_errors_total", "counter",
		"Evaluations of single policies that failed; Cedar leaves such a policy out of the decision.")
	fmt.Fprintf(&b, "cedar_policy_errors_total %d\n", c.policyErrors.Load())
	return b.String()
}

func header(b *strings.Builder, name, kind, help string) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// The runtime's own figures, by their names in runtime/metrics, which does not stop the world as ReadMemStats does.
const (
	heapObjects = "/memory/classes/heap/objects:bytes"
	heapUnused  = "/memory/classes/heap/unused:bytes"
	gcCycles    = "/gc/cycles/total:gc-cycles"
	gcPauses    = "/sched/pauses/total/gc:seconds"
	goroutines  = "/sched/goroutines:goroutines"
)

// goMetrics returns the series that Go's Prometheus client has under these names.
func goMetrics() string {
	samples := []metrics.Sample{
		{Name: heapObjects},
		{Name: heapUnused},
		{Name: gcCycles},
		{Name: gcPauses},
		{Name: goroutines},
	}
	metrics.Read(samples)
	var b strings.Builder
	header(&b, "go_memstats_heap_alloc_bytes", "gauge", "Bytes of allocated heap objects.")
	fmt.Fprintf(&b, "go_memstats_heap_alloc_bytes %d\n", uint64Of(samples[0]))
	header(&b, "go_memstats_heap_inuse_bytes", "gauge", "Bytes in heap spans that are in use.")
	fmt.Fprintf(&b, "go_memstats_heap_inuse_bytes %d\n", uint64Of(samples[0])+uint64Of(samples[1]))
	header(&b, "go_gc_duration_seconds", "summary",
		"Pauses of garbage collection; the sum is exact to the width of the runtime's buckets, about 10 %.")
	fmt.Fprintf(&b, "go_gc_duration_seconds_sum %g\n", pauseSeconds(samples[3]))
	fmt.Fprintf(&b, "go_gc_duration_seconds_count %d\n", uint64Of(samples[2]))
	header(&b, "go_goroutines", "gauge", "Goroutines that exist.")
	fmt.Fprintf(&b, "go_goroutines %d\n", uint64Of(samples[4]))
	return b.String()
}

// uint64Of returns 0 for a figure that this version of Go does not have.
func uint64Of(s metrics.Sample) uint64 {
	if s.Value.Kind() != metrics.KindUint64 {
		return 0
	}
	return s.Value.Uint64()
}

// pauseSeconds adds up a histogram by the middles of its buckets, or the bound that an open bucket has.
func pauseSeconds(s metrics.Sample) float64 {
	if s.Value.Kind() != metrics.KindFloat64Histogram {
		return 0
	}
	h := s.Value.Float64Histogram()
	sum := 0.0
	for i, n := range h.Counts {
		lo, hi := h.Buckets[i], h.Buckets[i+1]
		switch {
		case math.IsInf(lo, -1):
			lo = hi
		case math.IsInf(hi, 1):
			hi = lo
		}
		if n > 0 {
			sum += float64(n) * (lo + hi) / 2
		}
	}
	return sum
}
