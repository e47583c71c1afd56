package analyze

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/stat"
	"tare/internal/unit"
)

// An estimator is how a quantile of a metric is estimated over blocks: of one arm alone, and of a treated arm against
// its base. The summary of an arm, effects and budgets all ask it, so that they cannot disagree.
//
//	              alone                           against the base
//	pooled        pooled quantile, jackknife      ratio of pooled quantiles, jackknife
//	mean          mean, Student's t               ratio of means, Fieller; of shares the difference, Student's t
//	exact         median                          difference of medians, which needs no interval
//	else          median, order statistics        Hodges-Lehmann of log ratios within blocks; of differences, where a
//	                                              value is not above 0
//	turns, p50                                    Hodges-Lehmann of the log ratios of medians, relative to rounds
//
// Means are also shares and goodput, whose median over blocks would hide what comes in few of them; pooled is every
// percentile but the main one. The least and the greatest value of an arm are facts, and compare with nothing.
//
// Values that were not taken in interleaved blocks are compared by Hodges-Lehmann's shift between two samples, means as
// those of two samples, and pooled quantiles not at all.
type estimator struct {
	metric    metric.Metric
	quantile  string
	pooled    bool    // the quantile is one of the calls of all blocks together
	q         float64 // of what is pooled
	mean      bool    // the arithmetic mean over blocks
	unblocked bool
	blocks    int // that there are
}

// estimatorFor chooses how a quantile of m is estimated.
func (d *dataset) estimatorFor(m *measure, quantile string) estimator {
	e := estimator{metric: m.metric, quantile: quantile, unblocked: d.unblocked, blocks: len(d.blocks)}
	e.q, e.pooled = m.pooled(quantile)
	e.mean = !e.pooled && (quantile == "mean" || meansOnly(m.metric))
	return e
}

// alone estimates a metric of one arm, with an interval at a level. Where there is none, why says so and the value may
// still be known.
func (e estimator) alone(m *measure, level float64) (got stat.Estimate, why string) {
	got, why = e.ofValues(m, level)
	return byStep(m, got), why
}

// ofValues is alone, of values as they are.
func (e estimator) ofValues(m *measure, level float64) (got stat.Estimate, why string) {
	none := stat.Estimate{Value: math.NaN(), Lo: math.NaN(), Hi: math.NaN(), Level: level, N: e.blocks}
	if e.pooled {
		return pooledOf(m, e.q, level, none)
	}
	values := measuredOnly(m.values(e.quantile))
	if len(values) == 0 {
		return none, "no block has enough of it"
	}
	if e.mean {
		return blockMean(values, level), ""
	}
	got, err := stat.MedianInterval(values, level)
	if err != nil {
		return none, err.Error()
	}
	return got, ""
}

// blockMean is the mean over blocks, of values that are not negative.
func blockMean(values []float64, level float64) stat.Estimate {
	if e, ok := stat.MeanInterval(values, level); ok {
		e.Lo = max(0, e.Lo)
		return e
	}
	return stat.Estimate{Value: stat.Mean(values), Lo: math.Inf(-1), Hi: math.Inf(1), Level: level, N: len(values)}
}

func pooledOf(m *measure, q, level float64, none stat.Estimate) (stat.Estimate, string) {
	blocks, n := measuredSamples(m.samples)
	e, err := stat.PooledQuantile(blocks, q, level)
	if err == nil {
		return e, ""
	}
	if enough(n, q) {
		none.Value, none.N = stat.SampleQuantile(q, blocks...), len(blocks)
	}
	return none, err.Error()
}

// between sets up the test of y against its base x. inUnit asks for a difference in the metric's unit, though a ratio
// has a meaning; a pooled quantile has none. It fails where there are too few blocks for any interval.
func (e estimator) between(x, y *measure, inUnit bool) (*contrast, error) {
	if e.pooled {
		if e.unblocked {
			return nil, errors.New("of percentiles only the median can be compared without blocks")
		}
		return e.ofPooled(bothSamples(x.samples, y.samples)), nil
	}
	if e.quantile == x.main && !e.unblocked {
		if c := e.ofRounds(x, y); c != nil {
			return c, nil
		}
	}
	base, treated := x.values(e.quantile), y.values(e.quantile)
	if base == nil || treated == nil {
		return nil, fmt.Errorf("the record has no %s of %s", e.quantile, e.metric.Name)
	}
	c, err := e.ofBlocks(base, treated, inUnit)
	if err == nil && !c.exact {
		err = c.inSteps(x, y, e.quantile)
	}
	return c, err
}

// bothSamples keeps the blocks in which both arms have samples.
func bothSamples(x, y []blockSample) (a, b []stat.Sample) {
	for i := range min(len(x), len(y)) {
		if x[i] != nil && y[i] != nil && x[i].Len() > 0 && y[i].Len() > 0 {
			a, b = append(a, x[i]), append(b, y[i])
		}
	}
	return a, b
}

// ownUnit is the unit of a quantity that only an area measures, which is in no list; empty for others.
func ownUnit(m metric.Metric) metric.Unit {
	if _, known := probe.Known(m.Name); known {
		return ""
	}
	return m.Unit
}

// ofPooled compares pooled quantiles of the samples of each block.
func (e estimator) ofPooled(base, treated []stat.Sample) *contrast {
	c := &contrast{metric: e.metric, base: stat.SampleQuantile(e.q, base...)}
	c.effect.Unit = ownUnit(e.metric)
	c.effect.Metric, c.effect.Kind, c.effect.Blocks = e.metric.Name, kindRatio, min(len(base), len(treated))
	c.test = func(level float64) (stat.Test, error) { return stat.QuantileRatio(base, treated, e.q, level) }
	return c
}

// ofBlocks compares values by block, NaN where a block has none: as log ratios, or as differences where a ratio has no
// meaning or inUnit asks for them.
func (e estimator) ofBlocks(x, y []float64, inUnit bool) (*contrast, error) {
	if e.unblocked {
		x, y = measuredOnly(x), measuredOnly(y)
	} else {
		x, y = both(x, y)
	}
	if len(x) < minBlocks || len(y) < minBlocks {
		return nil, fmt.Errorf("%s on one side and %d on the other: an effect needs %d",
			unit.Count(len(x), "block"), len(y), minBlocks)
	}
	c := &contrast{metric: e.metric, unblocked: e.unblocked, base: stat.Quantile(x, 0.5)}
	c.effect.Unit = ownUnit(e.metric)
	c.effect.Metric, c.effect.Blocks = e.metric.Name, min(len(x), len(y))
	c.effect.Kind = kindRatio
	whole := [2][]float64{x, y}
	if e.mean {
		whole = [2][]float64{{stat.Mean(x)}, {stat.Mean(y)}}
	}
	if inUnit || e.metric.Unit == metric.Ratio || !positive(whole[0]) || !positive(whole[1]) {
		c.effect.Kind = kindDifference
	} else if !e.mean {
		x, y = logs(x), logs(y)
	}
	switch {
	case e.mean:
		c.ofMeans(x, y)
	case e.metric.Noise == metric.Exact:
		c.exact, c.test = true, exactly(x, y)
	case e.unblocked:
		c.least = stat.LeastShiftP(len(x), len(y))
		c.test = func(level float64) (stat.Test, error) { return stat.HodgesLehmannShift(x, y, level) }
	default:
		c.differences(differencesOf(x, y))
	}
	return c, nil
}

// ofMeans compares means over blocks: by their ratio, or by their difference.
func (c *contrast) ofMeans(x, y []float64) {
	c.base = stat.Mean(x)
	ratio, difference := stat.MeanRatioApart, func(level float64) (stat.Test, error) { return stat.MeanShift(x, y, level) }
	if !c.unblocked {
		d := differencesOf(x, y)
		c.same = !slices.ContainsFunc(d, func(v float64) bool { return v != 0 })
		ratio, difference = stat.MeanRatio, func(level float64) (stat.Test, error) { return stat.MeanTest(d, level) }
	}
	c.ratio = func(level float64) (stat.Estimate, bool) { return ratio(x, y, level) }
	c.mean = difference
	if c.effect.Kind == kindRatio {
		c.mean = func(level float64) (stat.Test, error) {
			t, err := difference(level)
			if e, ok := c.ratio(level); ok {
				t.Estimate = e
				t.Value, t.Lo, t.Hi = math.Log(e.Value), math.Log(e.Lo), math.Log(e.Hi)
			}
			return t, err
		}
	}
	c.byMean()
}

// ofRounds compares the medians of blocks whose arms took turns. It returns nil if they did not, or if the turns of one
// of the blocks had too few calls.
func (e estimator) ofRounds(x, y *measure) *contrast {
	var d, base []float64
	for b := range min(len(x.value), len(y.value)) {
		if !isFinite(x.value[b]) || !isFinite(y.value[b]) {
			continue
		}
		if b >= len(x.rounds) || b >= len(y.rounds) {
			return nil
		}
		log, ok := stat.RoundRatio(x.rounds[b], y.rounds[b])
		if !ok {
			return nil
		}
		d, base = append(d, log), append(base, x.value[b])
	}
	if len(d) < minBlocks {
		return nil
	}
	c := &contrast{metric: e.metric, base: stat.Quantile(measuredOnly(base), 0.5)}
	c.effect.Unit = ownUnit(e.metric)
	c.effect.Metric, c.effect.Kind, c.effect.Blocks = e.metric.Name, kindRatio, len(d)
	c.differences(d)
	return c
}

// differencesOf are the differences within blocks.
func differencesOf(x, y []float64) []float64 {
	d := make([]float64, len(x))
	for i := range d {
		d[i] = y[i] - x[i]
	}
	return d
}

// differences compares by the differences within blocks.
func (c *contrast) differences(d []float64) {
	c.same = !slices.ContainsFunc(d, func(v float64) bool { return v != 0 })
	c.least = stat.LeastRankP(len(d))
	c.test = func(level float64) (stat.Test, error) { return stat.HodgesLehmann(d, level) }
	c.mean = func(level float64) (stat.Test, error) { return stat.MeanTest(d, level) }
}
