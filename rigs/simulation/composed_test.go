package simulation

import (
	"math"
	"testing"
)

// TestTruthOfSimpleCompositions: the capacity of simple compositions follows from arithmetic.
func TestTruthOfSimpleCompositions(t *testing.T) {
	of := func(parts ...Part) Composition {
		return Composition{Seed: 3, MaxRate: 2000, Timeout: 10, Latency: 0.002, Parts: parts}
	}
	part := func(k PartKind, with map[string]float64) Part { return Part{Kind: k, With: with} }
	work := func(workers, mean float64) Part {
		return part(service, map[string]float64{"workers": workers, "mean": mean})
	}
	exponential := work(4, 0.04)
	exponential.Distribution = exponentialTime
	for _, c := range []struct {
		name   string
		c      Composition
		want   float64
		within float64 // relative
	}{
		{"bucket", of(work(32, 0.01), part(tokenBucket, map[string]float64{"rate": 90, "burst": 200})), 90, 0.006},
		{"gcra", of(work(32, 0.01), part(cellRate, map[string]float64{"rate": 70, "tolerance": 0.5})), 70, 0.006},
		{"fixed window", of(work(32, 0.01), part(fixedWindow, map[string]float64{"calls": 300, "period": 5})), 60, 0.006},
		{"sliding window", of(work(32, 0.01), part(slidingWindow, map[string]float64{"calls": 120, "period": 2})), 60, 0.012},
		{
			"sliding counter", of(work(32, 0.01), part(slidingEstimate, map[string]float64{"calls": 120, "period": 2})), 60,
			0.012,
		},
		{"penalty", of(work(32, 0.01), part(penalty, map[string]float64{"calls": 400, "period": 4})), 100, 0.012},
		{"workers", of(work(3, 0.02)), 150, 0.006},
		{"exponential", of(exponential), 100, 0.02},
		{"CPU quota", of(work(4, 0.01), part(cpuQuota, map[string]float64{"period": 0.1, "share": 0.3})), 120, 0.01},
		{"pauses", of(work(2, 0.01), part(pauses, map[string]float64{"every": 0.8, "length": 0.2, "growth": 0})), 160, 0.03},
		{"credits", of(work(2, 0.01), part(credits, map[string]float64{"seconds": 40, "factor": 2})), 100, 0.01},
		{"scaled", of(work(2, 0.01), part(autoscaling, map[string]float64{"after": 20, "factor": 2})), 200, 0.006},
		{"warm", of(work(2, 0.01), part(coldCount, map[string]float64{"calls": 500, "factor": 9})), 200, 0.006},
		{"dependency", of(work(32, 0.01), part(dependency, map[string]float64{"rate": 80, "workers": 2})), 80, 0.006},
		// Little's law: 20 calls at once, 0.1 s each. Answers leave the server before the network delays them.
		{"concurrency", of(work(500, 0.1), part(concurrency, map[string]float64{"limit": 20})), 200, 0.03},
		{"errors", of(work(2, 0.01), part(errorShare, map[string]float64{"share": 0.01})), 200 / 0.99, 0.01},
		{"no limit", of(work(50, 0.01)), math.Inf(1), 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if err := c.c.Validate(); err != nil {
				t.Fatal(err)
			}
			got := c.c.sustained(c.c.MaxRate)
			if math.IsInf(c.want, 1) != math.IsInf(got, 1) || !math.IsInf(got, 1) && math.Abs(got/c.want-1) > c.within {
				t.Errorf("sustains %.2f/s, want %.2f/s", got, c.want)
			}
		})
	}
}
