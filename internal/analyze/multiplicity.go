package analyze

import (
	"fmt"
	"slices"

	"tare/internal/stat"
	"tare/internal/unit"
)

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
		x.fill(alphas[i])
	}
}

// explore judges effects that nobody asked for, by Student's test and Benjamini and Hochberg's procedure: all with
// intervals at the level at which that procedure ends, which exclude 0 exactly where it rejects.
func explore(family []*contrast) {
	for _, x := range family {
		before := *x
		if x.byMean(); x.estimate(stat.LookAlpha) != nil {
			*x = before
		}
	}
	p := pValues(family)
	adjusted, alpha := stat.BenjaminiHochberg(p), stat.FalseCoverageLevel(p, stat.LookAlpha)
	for i, x := range family {
		x.effect.Adjusted = &adjusted[i]
		if x.least < 1 {
			// At a wider α it could be estimated: at this one it cannot fail.
			_ = x.estimate(alpha)
		}
		x.fill(alpha)
	}
}

// pValues are those of a family; an effect with too few blocks for its test has no evidence at all.
func pValues(family []*contrast) []float64 {
	p := make([]float64, len(family))
	for i, x := range family {
		p[i] = x.got.P
		if x.least == 1 {
			p[i] = 1
		}
	}
	return p
}

// undecidable says why none of a family could be decided, whatever the blocks had held; "" if some could. adjust is the
// correction of the family's p-values.
func undecidable(family []*contrast, what string, adjust func([]float64) []float64) string {
	if len(family) == 0 {
		return ""
	}
	least := make([]float64, len(family))
	for i, x := range family {
		least[i] = x.least
	}
	best := slices.Min(adjust(least))
	if best <= stat.LookAlpha {
		return ""
	}
	blocks, unblocked := 0, false
	for _, x := range family {
		blocks, unblocked = max(blocks, x.effect.Blocks), unblocked || x.unblocked
	}
	have := unit.Count(blocks, "block")
	if unblocked {
		have = unit.Count(blocks, "value") + " of each"
	}
	text := fmt.Sprintf("%s cannot decide the one %s effect", have, what)
	if len(family) > 1 {
		text = fmt.Sprintf("%s cannot decide any of %d %s effects", have, len(family), what)
	}
	if p := slices.Min(least); p < 1 {
		return text + fmt.Sprintf(
			": the smallest p-value of the rank test is %.2g, corrected %.2g, and at most %.2g is needed%s", p, min(1, best),
			stat.LookAlpha, needed(unblocked, len(family)),
		)
	}
	return text + fmt.Sprintf(": %d are needed", fewestFor(stat.LookAlpha))
}

// needed says how many blocks would do for a family of so many.
func needed(unblocked bool, family int) string {
	if unblocked {
		return ""
	}
	return fmt.Sprintf("; it takes %d blocks to decide even the largest effect", fewestFor(stat.LookAlpha/float64(family)))
}

// Undecidable says what a comparison of at most so many blocks cannot decide by its design. timed: it has response
// times of calls.
func Undecidable(blocks int, timed bool) []string {
	const manyGates = 50 // of one treatment; more than anybody names
	var out []string
	gates := int(stat.LookAlpha / stat.LeastRankP(blocks))
	switch {
	case gates < 1:
		return []string{
			fmt.Sprintf("%s cannot decide any effect, whatever its size: %d are needed", unit.Count(blocks, "block"),
				fewestFor(stat.LookAlpha)),
		}
	case gates < manyGates:
		out = append(out, fmt.Sprintf(
			"of one treatment, %s can decide %s at once, and not more", unit.Count(blocks, "block"),
			unit.Count(gates, "gating effect"),
		))
	}
	if timed && blocks < stat.FewestTailBlocks {
		out = append(out, fmt.Sprintf(
			"%s cannot tell how percentiles other than the median change: %d are needed", unit.Count(blocks, "block"),
			stat.FewestTailBlocks,
		))
	}
	return out
}

// notePowerless notes what this many blocks cannot decide by design, so that no report takes its silence for a finding.
func (a *analysis) notePowerless(text string) {
	if text == "" || a.rep.Design == nil {
		return
	}
	addOnce(&a.rep.Design.Undecidable, text)
}
