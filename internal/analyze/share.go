package analyze

import (
	"math"
	"sync"

	"tare/internal/budget"
	"tare/internal/metric"
	"tare/internal/stat"
)

// Blocks in which no call failed do not vary, so that their spread alone would make a share of failures, and the
// goodput beside it, known for certain. However little blocks vary, an interval of these is at least as wide as so many
// calls can tell.

// uncounted is why a share has no interval.
const uncounted = "nobody knows of how many calls it is a share"

// alone estimates a metric of one arm, with an interval at a level.
func (c *comparison) alone(m *measure, quantile string, level float64) (e stat.Estimate, why string) {
	e, why = c.estimatorFor(m, quantile).alone(m, level)
	failed := c.failedBeside(m)
	switch {
	case why != "" || failed == nil:
		return e, why
	case failed == m:
		return widened(m, e)
	}
	share, why := c.alone(failed, "", level)
	if why == "" {
		x := goodput(budget.Interval{Value: e.Value, Lo: e.Lo, Hi: e.Hi},
			budget.Interval{Value: share.Value, Lo: share.Lo, Hi: share.Hi})
		e.Lo, e.Hi = x.Lo, x.Hi
	}
	return e, why
}

// failedBeside is the share by whose calls a metric is known: a share itself, or the share of failures beside a
// goodput; nil for other metrics.
func (c *comparison) failedBeside(m *measure) *measure {
	switch {
	case m.metric.Unit == metric.Ratio:
		return m
	case m.metric.Name == metric.Goodput.Name:
		return c.find(m.treatment, m.operation, metric.Error.Name)
	}
	return nil
}

// widened gives a share at least the interval that so many calls can tell, and that of so many events where few blocks
// have any. A share of nobody knows how many calls has none.
func widened(m *measure, e stat.Estimate) (wide stat.Estimate, why string) {
	c := m.course()
	if _, n := c.counted(); !(n > 0) {
		return e, uncounted
	}
	x := c.share(budget.Interval{Value: e.Value, Lo: e.Lo, Hi: e.Hi}, e.Level)
	e.Lo, e.Hi = x.Lo, x.Hi
	return e, ""
}

// course is a share by block, with its calls.
func (m *measure) course() *course {
	c := &course{}
	for i, v := range m.value {
		if isFinite(v) && i < len(m.weight) {
			c.value, c.weight = append(c.value, v), append(c.weight, m.weight[i])
		}
	}
	return c
}

// between sets up the test of y against its base x.
func (c *comparison) between(x, y *measure, quantile string, inUnit bool) (*contrast, error) {
	out, err := c.estimatorFor(y, quantile).between(x, y, inUnit)
	if err != nil || c.failedBeside(x) == nil || c.failedBeside(y) == nil {
		return out, err
	}
	if from, to := c.counted(x), c.counted(y); from != nil && to != nil {
		out.counted(from, to)
	} else {
		out.uncounted = true
	}
	return out, nil
}

// counted is what so many calls can tell of a share, or of a goodput; nil where nobody knows how many there were.
func (c *comparison) counted(m *measure) func(level float64) budget.Interval {
	failed := c.failedBeside(m)
	course := failed.course()
	if _, n := course.counted(); !(n > 0) {
		return nil
	}
	exactly := func(m *measure) budget.Interval {
		v := stat.Mean(measuredOnly(m.value))
		return budget.Interval{Value: v, Lo: v, Hi: v}
	}
	share, value := exactly(failed), exactly(m)
	return func(level float64) budget.Interval {
		x := course.share(share, level)
		if failed != m {
			x = goodput(value, x)
		}
		return x
	}
}

// counted widens a contrast to what so many calls can tell of each side, and its p-value with it. The two together are
// by the distances of their limits (Zou & Donner, Statistics in Medicine 27 (2008) 1693), which for shares is
// Newcombe's interval (Statistics in Medicine 17 (1998) 873).
func (c *contrast) counted(from, to func(level float64) budget.Interval) {
	change := func(level float64) (lo, hi float64) {
		x, y := from(level), to(level)
		if c.effect.Kind == kindRatio {
			x, y = logOf(x), logOf(y)
		}
		d := y.Value - x.Value
		return d - math.Hypot(y.Value-y.Lo, x.Hi-x.Value), d + math.Hypot(y.Hi-y.Value, x.Value-x.Lo)
	}
	p := sync.OnceValue(func() float64 { // the largest α at which the interval holds 0
		least, most := 0.0, 1.0
		for range 50 {
			mid := (least + most) / 2
			if lo, hi := change(1 - mid); lo > 0 || hi < 0 {
				most = mid
			} else {
				least = mid
			}
		}
		return most
	})
	widened := func(test func(float64) (stat.Test, error)) func(float64) (stat.Test, error) {
		return func(level float64) (stat.Test, error) {
			t, err := test(level)
			if err == nil {
				lo, hi := change(level)
				t.Lo, t.Hi, t.P = min(t.Lo, lo), max(t.Hi, hi), max(t.P, p())
			}
			return t, err
		}
	}
	c.test, c.mean = widened(c.test), widened(c.mean)
}

// logOf is an interval of a logarithm. An end at 0 is as far away as the largest change.
func logOf(x budget.Interval) budget.Interval {
	return budget.Interval{
		Value: math.Log(x.Value), Lo: math.Log(max(x.Lo, x.Value/mostChange)), Hi: math.Log(x.Hi),
	}
}

// widenedRatio gives the ratio of two shares, less 1, at least the interval that so many calls can tell: the normal one
// of its logarithm, with half a call more that counts and half a call that does not (Walter, Biometrika 62 (1975) 371),
// since none may count.
func widenedRatio(base, treated *measure, e stat.Estimate) (wide stat.Estimate, why string) {
	log, variance := 0.0, 0.0
	for sign, m := range map[float64]*measure{-1: base, 1: treated} {
		k, n := m.course().counted()
		if !(n > 0) {
			return e, uncounted
		}
		log += sign * math.Log((k+0.5)/(n+1))
		variance += max(0, 1/(k+0.5)-1/(n+1))
	}
	half := zOf(e.Level) * math.Sqrt(variance)
	e.Lo, e.Hi = min(e.Lo, math.Expm1(log-half)), max(e.Hi, math.Expm1(log+half))
	return e, ""
}
