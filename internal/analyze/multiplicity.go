package analyze

import "tare/internal/stat"

// holm judges the gating effects of one treatment together: each with the interval at which Holm's procedure tested it.
func (c *comparison) holm(treatment string, family []*contrast) {
	p := pValues(family)
	adjusted, alphas := stat.Holm(p), stat.HolmLevels(p, stat.LookAlpha)
	c.alphas[treatment] = map[gate]float64{}
	for i, x := range family {
		// The test was estimated once, at a wider α: at this one it cannot fail.
		if err := x.estimate(alphas[i]); err != nil {
			continue
		}
		e := &x.effect
		c.alphas[treatment][gate{e.Operation, e.Metric, e.Quantile}] = alphas[i]
		e.Gating, e.Adjusted = true, &adjusted[i]
		x.fill(alphas[i], false)
	}
}

// explore judges effects that nobody asked for: those that the false discovery rate does not let pass are not told from 0.
func explore(family []*contrast) {
	adjusted := stat.BenjaminiHochberg(pValues(family))
	for i, x := range family {
		x.effect.Adjusted = &adjusted[i]
		x.fill(stat.LookAlpha, adjusted[i] > stat.LookAlpha)
	}
}

func pValues(family []*contrast) []float64 {
	p := make([]float64, len(family))
	for i, x := range family {
		p[i] = x.got.P
	}
	return p
}
