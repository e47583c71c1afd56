package workload

import (
	"math"
	"slices"
	"testing"
	"time"
)

// BenchmarkKind runs batches of each kind's Span and reports median CPU and wall time per call, and the interquartile
// range of CPU time over the batches in percent of the median: what one call costs on this host, and how far single
// batches scatter.
func BenchmarkKind(b *testing.B) {
	c, _ := start(b)
	for _, k := range Kinds() {
		b.Run(k.Name, func(b *testing.B) {
			n := calibrate(b, c, k)
			var cpu, wall []float64
			for range max(20, b.N) {
				cost, err := c.Run(b.Context(), k.Name, n)
				if err != nil {
					b.Fatal(err)
				}
				cpu = append(cpu, float64(cost.CPU)/float64(n))
				wall = append(wall, float64(cost.Wall)/float64(n))
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(n), "calls/batch")
			b.ReportMetric(quantile(cpu, .5), "cpu-ns/call")
			b.ReportMetric(quantile(wall, .5), "wall-ns/call")
			b.ReportMetric(100*(quantile(cpu, .75)-quantile(cpu, .25))/quantile(cpu, .5), "cpu-iqr-%")
			b.ReportMetric(100*(quantile(wall, .75)-quantile(wall, .25))/quantile(wall, .5), "wall-iqr-%")
		})
	}
}

// calibrate finds how many calls take the kind's Span of CPU time: on a busy machine wall time would end the search too
// early.
func calibrate(t testing.TB, c *Client, k Kind) int {
	t.Helper()
	n := 1
	for {
		cost, err := c.Run(t.Context(), k.Name, n)
		if err != nil {
			t.Fatal(err)
		}
		if cost.CPU > k.Span/2 || n > 1<<24 {
			return max(1, int(float64(n)*float64(k.Span)/float64(max(cost.CPU, time.Microsecond))))
		}
		n *= 4
	}
}

func quantile(x []float64, q float64) float64 {
	s := slices.Sorted(slices.Values(x))
	return s[int(math.Round(q*float64(len(s)-1)))]
}
