package stat

import (
	"math"
	"testing"
)

// 12 sizes × 160 blocks: the most that a look at a run has.
func BenchmarkFitGrowth(b *testing.B) {
	sizes := ladder[1:]
	for name, at := range map[string]func(n float64) float64{
		"linear": func(n float64) float64 { return 110 + 0.88*n },
		"knee":   func(n float64) float64 { return 100 + 0.5*max(0, n-700) },
		"step": func(n float64) float64 {
			if n > 300 {
				return 25
			}
			return 4
		},
	} {
		blocks := costsOf(sizes, at, 160, 0.03)
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := FitGrowth(sizes, blocks, GrowthOptions{Level: 0.95, Budget: math.NaN(), Margin: 0.02}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
