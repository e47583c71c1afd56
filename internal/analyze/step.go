package analyze

import (
	"fmt"
	"math"

	"tare/internal/stat"
	"tare/internal/unit"
)

// The clocks of other tools may keep whole milliseconds. What is said to take 39 ms may take 39.9 ms or, by the
// difference of two rounded instants, 38.1 ms, in each repetition: no number of them makes the interval narrower than a
// step to either side.

// byStep widens the interval of a time by the step of its clock.
func byStep(m *measure, e stat.Estimate) stat.Estimate {
	if m.step > 0 {
		e.Lo, e.Hi = min(e.Lo, max(0, e.Lo-m.step)), e.Hi+m.step
	}
	return e
}

// inSteps widens the intervals of a contrast of times by the steps of their clocks. It fails where a step is as long as
// what was timed.
func (c *contrast) inSteps(x, y *measure, quantile string) error {
	if x.step <= 0 && y.step <= 0 {
		return nil
	}
	from, to := medianOf(x, quantile), medianOf(y, quantile)
	below, above := x.step+y.step, x.step+y.step
	if c.effect.Kind == kindRatio {
		if from <= x.step || to <= y.step {
			return fmt.Errorf("all times are multiples of %s: if the clock has such steps, they are as long as what was timed",
				unit.Seconds(max(x.step, y.step)))
		}
		below = math.Log1p(x.step/from) - math.Log1p(-y.step/to)
		above = math.Log1p(y.step/to) - math.Log1p(-x.step/from)
	}
	c.test, c.mean = inSteps(c.test, below, above), inSteps(c.mean, below, above)
	return nil
}

func medianOf(m *measure, quantile string) float64 {
	return stat.Quantile(measuredOnly(m.values(quantile)), 0.5)
}

// inSteps is a test whose interval is wider. What steps can make of no difference is no evidence of one.
func inSteps(test func(float64) (stat.Test, error), below, above float64) func(float64) (stat.Test, error) {
	if test == nil {
		return nil
	}
	return func(level float64) (stat.Test, error) {
		t, err := test(level)
		if t.Lo, t.Hi = t.Lo-below, t.Hi+above; t.Value-below <= 0 && t.Value+above >= 0 {
			t.P = 1
		}
		return t, err
	}
}

// warnOfSteps says where the step of a clock is more than the margin: an effect of that size is not shown.
func (a *analysis) warnOfSteps(c *comparison) {
	for _, m := range c.measures {
		if median := medianOf(m, m.main); m.step > c.margin*median {
			a.warn(m.treatment, "%s: the clock has steps of %s, %s of the median: each interval is wider by one to either "+
				"side", gate{operation: m.operation, metric: m.metric.Name}, unit.Seconds(m.step), percentOf(m.step, median))
		}
	}
}

func percentOf(step, median float64) string {
	if !(median > 0) {
		return "all"
	}
	return unit.Decimal(100*step/median, 2) + " %"
}
