package limit

import (
	"math/rand/v2"
	"testing"
)

// TestObserve: calls that end at intervals are even, those that end at random are not, and few say nothing.
func TestObserve(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	var service, even, random []float64
	for i := range 200 {
		service = append(service, 0.02+0.01*float64(i%2))
		even = append(even, float64(i)*0.01+0.001*r.Float64())
		random = append(random, 2*r.Float64())
	}
	var x Experiment
	if x.Observe(service, even); *x.Even < 0.99 || *x.Spread < 0.009 || *x.Spread > 0.011 {
		t.Errorf("at intervals: even %g, spread %g", *x.Even, *x.Spread)
	}
	if x.Observe(service, random); *x.Even > 0.3 {
		t.Errorf("at random: even %g", *x.Even)
	}
	var few Experiment
	if few.Observe(service[:7], even[:7]); few.Even != nil || few.Spread != nil {
		t.Errorf("7 calls say %+v", few)
	}
}
