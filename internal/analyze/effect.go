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

// A contrast is an effect in the making: two arms and the test between them.
type contrast struct {
	effect report.Effect
	metric metric.Metric
	// test gives estimate and interval at a level, on the log scale for a ratio.
	test func(level float64) (stat.Test, error)
	// mean is Student's test of the same blocks, of means that of their ratio; nil: there is none.
	mean func(level float64) (stat.Test, error)
	// ratio estimates the ratio of means; nil: it is no contrast of means.
	ratio func(level float64) (stat.Estimate, bool)
	// least is the smallest p-value that so many blocks can give, whatever their values.
	least     float64
	base      float64 // the baseline's value over its blocks; 0: not known
	margin    float64 // on the effect's own scale; 0: there is none
	exact     bool    // the metric does not vary: its change is a change
	same      bool    // both arms have the same value in every block
	uncounted bool    // it is of shares, or goodput, of nobody knows how many calls
	unblocked bool

	// Of times where calls failed: asEnded is the test of the times as the calls ended, failed says how many did, and
	// unknown that most of the baseline's did.
	asEnded func(level float64) (stat.Test, error)
	failed  string
	unknown bool

	// unsettled says why turns do not show an effect that is worse or better; nil: they do.
	unsettled func(worse, better bool) string

	got  stat.Test // at 1 − alpha
	wide bool      // the level could not be had: the interval is at a lower one
}

// byMean has Student's test judge c where there is one. It can find an effect in few blocks among many effects, which
// the rank test cannot. So that it never finds one in fewer blocks than the rank test needs for one effect alone, it
// takes as many.
func (c *contrast) byMean() {
	if c.mean == nil {
		return
	}
	c.test, c.least = c.mean, 0
	if c.effect.Blocks < fewestFor(stat.LookAlpha) {
		c.least = 1
	}
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

// setMargin sets the margin on the effect's scale. For ratios, and for metrics that are shares, it is the margin
// itself; for other differences it is that share of the base's median. Where the median is 0 there is no margin.
func (c *contrast) setMargin(base []float64, margin float64) {
	c.margin = margin
	if c.effect.Kind == kindRatio || c.metric.Unit == metric.Ratio {
		return
	}
	if c.margin = math.Abs(stat.Quantile(measuredOnly(base), 0.5)) * margin; !isFinite(c.margin) {
		c.margin = 0
	}
}

// levels are what is tried, from the wanted one down, when blocks are too few for it: the interval is then given at
// what can be had.
var levels = []float64{0.98, 0.95, 0.9, 0.8, 0.5, 0.4}

var errNoInterval = errors.New("too few blocks for any interval")

// estimate computes the interval at 1 − alpha.
func (c *contrast) estimate(alpha float64) error {
	got, err := c.test(1 - alpha)
	if err != nil {
		return err
	}
	c.wide = c.least == 1
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
	c.got = got
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

// fill writes the estimate and its verdict, which follows from the interval that is written.
func (c *contrast) fill(alpha float64) {
	e := &c.effect
	e.Estimate, e.Lo, e.Hi, e.Level = c.scale(c.got.Value), c.scale(c.got.Lo), c.scale(c.got.Hi), c.got.Level
	e.P = finite(c.got.P)
	if e.Kind == kindRatio && c.base > 0 {
		e.Difference = finite(e.Estimate * c.base)
	}
	e.Margin = known(c.margin)
	e.Measurable = !c.wide && (e.Lo > 0 || e.Hi < 0)
	e.Verdict = c.verdict()
	if why := c.open(e.Verdict); why != "" {
		e.Verdict, e.Reason = report.EffectInconclusive, why
		return
	}
	if c.exact {
		return
	}
	if c.hinges() {
		e.Reason = c.failed
		return
	}
	se := stat.StandardError(c.got.Estimate)
	if mde := math.Abs(c.scale(stat.DetectableEffect(se, alpha, power))); isFinite(mde) {
		e.MDE = &mde
	}
	differs := e.Verdict == report.Slower || e.Verdict == report.Faster
	if !decided(e.Verdict) && !(differs && c.within(e.Lo, e.Hi)) && c.margin > 0 && !c.unblocked {
		// The nearer side of the margin is the harder one to clear on this scale.
		if n, ok := stat.BlocksToDecide(c.got.Estimate, c.back(c.margin), alpha, power); ok {
			n = max(n, e.Blocks+1, c.fewest(alpha))
			e.BlocksToDecide = &n
		}
	}
	switch {
	case c.least == 1:
		e.Reason = fmt.Sprintf("%s are too few for a verdict: %d are needed", unit.Count(e.Blocks, "block"), c.fewest(alpha))
	case c.wide && c.unblocked:
		e.Reason = fmt.Sprintf(
			"so few values cannot have an interval at %s: this one is at %s", percent(1-alpha), percent(e.Level),
		)
	case c.wide:
		e.Reason = fmt.Sprintf(
			"%s are too few for an interval at %s: this one is at %s", unit.Count(e.Blocks, "block"), percent(1-alpha),
			percent(e.Level),
		)
	case c.same:
		e.Reason = "the same in every block"
	case c.unblocked:
		e.Reason = "unblocked: the values were not taken in interleaved blocks, so that nothing may be called equivalent"
	}
}

// open says why an effect is not judged, though its interval would decide it: the target did not keep up in turns.
func (c *contrast) open(v report.EffectVerdict) string {
	if c.unsettled == nil || c.wide {
		return ""
	}
	return c.unsettled(v == report.Regressed || v == report.Slower, v == report.Improved || v == report.Faster)
}

// fewestFor is how many blocks the signed-rank interval at 1 − alpha needs: the most extreme outcome has probability
// 2/2ⁿ.
func fewestFor(alpha float64) int { return int(math.Ceil(math.Log2(2 / alpha))) }

// fewest is how many blocks the effect needs to be judged at 1 − alpha.
func (c *contrast) fewest(alpha float64) int {
	if c.least == 0 || c.least == 1 {
		return fewestFor(stat.LookAlpha)
	}
	return fewestFor(alpha)
}

// verdict is by the table of verdicts, from the interval that the report shows and nothing else: against the margin,
// then against 0.
func (c *contrast) verdict() report.EffectVerdict {
	lo, hi, m := c.effect.Lo, c.effect.Hi, c.margin
	if c.metric.Better == metric.Higher {
		lo, hi = -hi, -lo
	}
	switch {
	case c.wide:
		return report.NotJudged
	case (c.exact || c.same) && lo == 0 && hi == 0:
		return report.Equivalent
	case m > 0 && lo > m:
		return report.Regressed
	case m > 0 && hi < -m:
		return report.Improved
	case c.within(lo, hi) && !c.unblocked && (c.metric.Name != metric.Error.Name || lo <= 0 && hi >= 0):
		return report.Equivalent // as many calls fail only if 0 is in the interval: a margin in points hides many failures
	case lo > 0:
		return report.Slower
	case hi < 0:
		return report.Faster
	}
	return report.EffectInconclusive
}

// within reports whether an interval lies within the margin.
func (c *contrast) within(lo, hi float64) bool {
	return c.margin > 0 && lo > -c.margin && hi < c.margin
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
