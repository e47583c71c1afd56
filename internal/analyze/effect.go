package analyze

import (
	"errors"
	"fmt"
	"math"

	"tare/internal/metric"
	"tare/internal/report"
	"tare/internal/stat"
	"tare/internal/unit"
)

// The kinds of effects.
const (
	kindRatio      = "ratio"
	kindDifference = "difference"
)

// power is what the smallest detectable effect and the number of blocks to decide are computed for.
const power = 0.8

// minBlocks is how many blocks the smallest of all intervals needs.
const minBlocks = 2

// A Pair is one metric under two arms.
type Pair struct {
	Metric metric.Metric
	// Base and Treated are one value a block, in the metric's unit. Where they are aligned, equal indices are equal blocks, and NaN
	// stands for what was not measured.
	Base, Treated []float64
	// Unblocked: the values were not taken in interleaved blocks. Equal indices mean nothing, and nothing may be called equivalent.
	Unblocked bool

	difference bool // asked for in the metric's unit, though a ratio has a meaning
}

// Judge estimates the effect of p's treated arm against its base, and judges it alone: with the interval at 1 − alpha, two-sided, and
// equivalence with alpha on each side, within ±margin (a share of the base). Labels (treatment, operation, baseline) are left to the
// caller. It fails when there are too few blocks for any interval.
func Judge(p Pair, margin, alpha float64) (report.Effect, error) {
	c, err := contrastOf(&p)
	if err != nil {
		return report.Effect{}, err
	}
	c.margin = marginOf(c, p.Base, margin)
	if err := c.estimate(alpha); err != nil {
		return report.Effect{}, err
	}
	c.fill(alpha, false)
	return c.effect, nil
}

// A contrast is an effect in the making: two arms and the test between them.
type contrast struct {
	effect report.Effect
	metric metric.Metric
	// test gives estimate and interval at a level, on the log scale for a ratio.
	test      func(level float64) (stat.Test, error)
	margin    float64 // on the effect's own scale; 0: there is none
	exact     bool    // the metric does not vary: its change is a change
	unblocked bool

	got    stat.Test     // at 1 − alpha
	narrow stat.Estimate // at 1 − 2·alpha, for equivalence
	wide   bool          // the level could not be had: the interval is at a lower one
}

// contrastOf chooses the test for values of blocks: of per-block log ratios, or of differences where a ratio has no meaning.
func contrastOf(p *Pair) (*contrast, error) {
	x, y := p.Base, p.Treated
	if p.Unblocked {
		x, y = measuredOnly(x), measuredOnly(y)
	} else {
		x, y = both(x, y)
	}
	if len(x) < minBlocks || len(y) < minBlocks {
		return nil, fmt.Errorf("%s on one side and %d on the other: an effect needs %d", plural(len(x), "block"), len(y), minBlocks)
	}
	c := &contrast{metric: p.Metric, unblocked: p.Unblocked}
	c.effect.Metric, c.effect.Blocks = p.Metric.Name, min(len(x), len(y))
	c.effect.Kind = kindRatio
	if p.difference || p.Metric.Unit == metric.Ratio || !positive(x) || !positive(y) {
		c.effect.Kind = kindDifference
	} else {
		x, y = logs(x), logs(y)
	}
	if p.Metric.Noise == metric.Exact {
		c.exact, c.test = true, exactly(x, y)
		return c, nil
	}
	if p.Unblocked {
		c.test = func(level float64) (stat.Test, error) { return stat.HodgesLehmannShift(x, y, level) }
		return c, nil
	}
	d := make([]float64, len(x))
	for i := range d {
		d[i] = y[i] - x[i]
	}
	c.test = func(level float64) (stat.Test, error) { return stat.HodgesLehmann(d, level) }
	if p.Metric.Unit == metric.Ratio {
		c.test = func(level float64) (stat.Test, error) { return meanTest(d, level) }
	}
	return c, nil
}

// meanTest is Student's test of one sample. Shares of calls are averaged: a median over blocks would hide failures that come in few of them.
func meanTest(d []float64, level float64) (stat.Test, error) {
	e, ok := stat.MeanInterval(d, level)
	if !ok {
		return stat.Test{}, errNoInterval
	}
	t := stat.Test{Estimate: e, P: 1}
	switch se := math.Sqrt(stat.Variance(d) / float64(len(d))); {
	case se > 0:
		t.P = 2 * stat.StudentCDF(-math.Abs(e.Value/se), float64(len(d)-1))
	case e.Value != 0:
		t.P = 0
	}
	return t, nil
}

// exactly is the "test" of a metric that does not vary: the change of the median is the change.
func exactly(x, y []float64) func(float64) (stat.Test, error) {
	d := stat.Quantile(y, 0.5) - stat.Quantile(x, 0.5)
	t := stat.Test{Estimate: stat.Estimate{Value: d, Lo: d, Hi: d, Level: 1, N: len(x)}, P: 1}
	if d != 0 {
		t.P = 0
	}
	return func(float64) (stat.Test, error) { return t, nil }
}

// tailContrast is of pooled quantiles: blocks hold the sorted samples of each block.
func tailContrast(m metric.Metric, base, treated [][]float64, q float64) *contrast {
	c := &contrast{metric: m}
	c.effect.Metric, c.effect.Kind, c.effect.Blocks = m.Name, kindRatio, min(len(base), len(treated))
	c.test = func(level float64) (stat.Test, error) { return stat.QuantileRatio(base, treated, q, level) }
	return c
}

// marginOf is the margin on the effect's scale. A share of the base is the margin itself for a ratio, and for a metric that is a share
// already; for other differences it is that share of the base's median, and there is none where that is 0.
func marginOf(c *contrast, base []float64, margin float64) float64 {
	if c.effect.Kind == kindRatio || c.metric.Unit == metric.Ratio {
		return margin
	}
	m := math.Abs(stat.Quantile(measuredOnly(base), 0.5)) * margin
	if math.IsNaN(m) || math.IsInf(m, 0) {
		return 0
	}
	return m
}

// levels are what is tried, from the wanted one down, when blocks are too few for it: the interval is then given at what can be had.
var levels = []float64{0.98, 0.95, 0.9, 0.8, 0.5, 0.4}

var errNoInterval = errors.New("too few blocks for any interval")

// estimate computes both intervals.
func (c *contrast) estimate(alpha float64) error {
	got, err := c.test(1 - alpha)
	if err != nil {
		return err
	}
	for _, level := range levels {
		if isFinite(got.Lo) && isFinite(got.Hi) {
			break
		}
		if c.wide = true; level >= 1-alpha {
			continue
		}
		if got, err = c.test(level); err != nil {
			return err
		}
	}
	if !isFinite(got.Value) || !isFinite(got.Lo) || !isFinite(got.Hi) || math.IsNaN(got.P) {
		return errNoInterval
	}
	narrow, err := c.test(1 - 2*alpha)
	if err != nil {
		return err
	}
	c.got, c.narrow = got, narrow.Estimate
	return nil
}

// scale turns a value of the test into one of the effect: e^d − 1 for a ratio.
func (c *contrast) scale(v float64) float64 {
	if c.effect.Kind == kindRatio {
		return math.Expm1(v)
	}
	return v
}

// back is the inverse of scale.
func (c *contrast) back(v float64) float64 {
	if c.effect.Kind == kindRatio {
		return math.Log1p(v)
	}
	return v
}

// fill writes the estimate and its verdict. With quiet, the test found nothing after correction for the other ones, so that the effect
// may not be told from 0.
func (c *contrast) fill(alpha float64, quiet bool) {
	e := &c.effect
	e.Estimate, e.Lo, e.Hi, e.Level = c.scale(c.got.Value), c.scale(c.got.Lo), c.scale(c.got.Hi), c.got.Level
	e.P = finite(c.got.P)
	e.Margin = known(c.margin)
	e.Measurable = !quiet && !c.wide && (e.Lo > 0 || e.Hi < 0)
	e.Verdict = c.verdict(quiet)
	if c.exact {
		return
	}
	se := stat.StandardError(c.got.Estimate)
	if mde := math.Abs(c.scale(stat.DetectableEffect(se, alpha, power))); isFinite(mde) {
		e.MDE = &mde
	}
	decided := e.Verdict == report.Regressed || e.Verdict == report.Improved || e.Verdict == report.Equivalent
	if !decided && c.margin > 0 && !c.unblocked {
		// The nearer side of the margin is the harder one to clear on this scale.
		if n, ok := stat.BlocksToDecide(c.got.Estimate, c.back(c.margin), alpha, power); ok {
			n = max(n, e.Blocks+1, fewestFor(alpha))
			e.BlocksToDecide = &n
		}
	}
	switch {
	case c.wide:
		e.Reason = fmt.Sprintf("%s are too few for an interval at %s: this one is at %s", plural(e.Blocks, "block"), percent(1-alpha), percent(e.Level))
	case c.unblocked:
		e.Reason = "unblocked: the values were not taken in interleaved blocks, so that nothing may be called equivalent"
	}
}

// fewestFor is how many blocks the signed-rank interval at 1 − alpha needs: the most extreme outcome has probability 2/2ⁿ.
func fewestFor(alpha float64) int { return int(math.Ceil(math.Log2(2 / alpha))) }

// verdict is by the table of verdicts: the interval against the margin, then the equivalence test, then the interval against 0.
func (c *contrast) verdict(quiet bool) report.EffectVerdict {
	lo, hi, m := c.effect.Lo, c.effect.Hi, c.margin
	if c.metric.Better == metric.Higher {
		lo, hi = -hi, -lo
	}
	same := m > 0 && !c.wide && !c.unblocked && stat.Equivalent(c.narrow, c.back(-m), c.back(m))
	switch {
	case c.wide:
		return report.EffectInconclusive
	case c.exact && lo == 0:
		return report.Equivalent
	case !quiet && m > 0 && lo > m:
		return report.Regressed
	case !quiet && m > 0 && hi < -m:
		return report.Improved
	case same:
		return report.Equivalent
	case !quiet && lo > 0:
		return report.Slower
	case !quiet && hi < 0:
		return report.Faster
	}
	return report.EffectInconclusive
}

// percent writes a level: 98.42 %.
func percent(v float64) string { return unit.Decimal(v*100, 4) + " %" }

func isFinite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }

func measuredOnly(v []float64) []float64 {
	out := make([]float64, 0, len(v))
	for _, x := range v {
		if isFinite(x) {
			out = append(out, x)
		}
	}
	return out
}

// both keeps the blocks in which both arms were measured.
func both(x, y []float64) (a, b []float64) {
	for i := range min(len(x), len(y)) {
		if isFinite(x[i]) && isFinite(y[i]) {
			a, b = append(a, x[i]), append(b, y[i])
		}
	}
	return a, b
}

func positive(v []float64) bool {
	for _, x := range v {
		if x <= 0 {
			return false
		}
	}
	return true
}

func logs(v []float64) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = math.Log(x)
	}
	return out
}
