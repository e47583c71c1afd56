package simulated

import "fmt"

// NamedComposition returns the one of that name.
func NamedComposition(name string) (Composition, error) {
	for _, c := range NamedCompositions() {
		if c.Name == name {
			return c, nil
		}
	}
	return Composition{}, fmt.Errorf("unknown composition %q", name)
}

// NamedCompositions are servers that the search once answered wrongly.
func NamedCompositions() []Composition {
	of := func(name string, timeout float64, parts ...Part) Composition {
		return Composition{Name: name, Seed: 1, MaxRate: 5000, Timeout: timeout, Latency: 0.002, Parts: parts}
	}
	work := func(workers, mean float64, distribution string) Part {
		return Part{Kind: service, Distribution: distribution, With: map[string]float64{"workers": workers, "mean": mean}}
	}
	fast := work(64, 0.02, logNormalTime)
	part := func(k PartKind, with map[string]float64) Part { return Part{Kind: k, With: with} }
	stubborn := work(2, 0.01, exponentialTime)
	stubborn.With["abandoned"] = 1
	return []Composition{
		of("quota-answers-200", 10,
			Part{Kind: tokenBucket, Refusal: refuseFailed, With: map[string]float64{"rate": 120, "burst": 600}},
			fast, part(jitter, map[string]float64{"most": 0.001})),
		of("slows-and-works-for-nobody", 5, stubborn,
			part(slower, map[string]float64{"knee": 20, "slope": 0.02, "worst": 6}),
			part(jitter, map[string]float64{"most": 0.001})),
		of("slow-first-calls", 10, work(4, 0.01, logNormalTime), part(coldCount, map[string]float64{"calls": 400, "factor": 8}),
			part(jitter, map[string]float64{"most": 0.001})),
		of("stops-for-good", 10, work(3, 0.02, constantTime), part(stopsForGood, map[string]float64{"length": 150}),
			part(jitter, map[string]float64{"most": 0.001})),
		of("tarpit", 10, part(tokenBucket, map[string]float64{"rate": 100, "burst": 50}), part(tarpit, map[string]float64{"delay": 3}), fast),
		of("refusals-count", 10, part(penalty, map[string]float64{"calls": 1000, "period": 10}), fast,
			part(jitter, map[string]float64{"most": 0.001})),
		of("queue-time-out", 10, work(4, 0.02, exponentialTime), part(shedByAge, map[string]float64{"age": 0.2}),
			part(jitter, map[string]float64{"most": 0.001})),
		of("limit-behind-jitter", 10, Part{Kind: concurrency, Refusal: refuse503, With: map[string]float64{"limit": 16}},
			work(200, 0.1, constantTime), part(jitter, map[string]float64{"most": 0.002})),
		of("crashes-at-the-end", 10, work(8, 0.01, logNormalTime), part(crash, map[string]float64{"length": 300, "down": 10}),
			part(jitter, map[string]float64{"most": 0.001})),
	}
}
