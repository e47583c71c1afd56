package driver

import (
	"fmt"
	"math"
	"slices"
	"time"

	"tare/internal/metric"
	"tare/internal/unit"
)

// A clocked names what a program times by its own clock: a metric of an operation, in batches of so many calls.
type clocked struct {
	operation, metric string
	calls             int
}

// ticks is what the totals of such batches say of the clock.
type ticks struct {
	n, zeros int
	sum      float64
	between  [len(steps)]bool // a total was no multiple of the step
}

// steps are those of coarse clocks in seconds, the longest first: ticks of 100 and of 250 Hz, and milliseconds.
var steps = [...]float64{10e-3, 4e-3, 1e-3}

const (
	// fewestTotals is the number of batches that show a clock. That a fine one ends fewestSteps or fewer steps long, and
	// within stepError of one, by chance happens in 4 of 10⁴ batches.
	fewestTotals = 8
	stepError    = 1e-6
	// fewestSteps in a batch keep the error of a step below a quarter of the usual margin.
	fewestSteps = 200
	// mostZeros is the share of batches that may take no time at all.
	mostZeros = 0.25
)

// add takes in a total, and returns an error once the clock is too coarse for such batches.
func (t *ticks) add(total float64) error {
	t.n++
	t.sum += total
	if total == 0 {
		t.zeros++
	}
	for i, step := range steps {
		t.between[i] = t.between[i] || math.Abs(total-step*math.Round(total/step)) > stepError*total
	}
	i := slices.Index(t.between[:], false)
	switch {
	case t.n < fewestTotals:
	case i >= 0 && t.sum > 0 && t.sum < fewestSteps*steps[i]*float64(t.n):
		return fmt.Errorf("all totals are multiples of %s, of which a batch has %s", unit.Seconds(steps[i]),
			unit.Number(t.sum/steps[i]/float64(t.n)))
	case float64(t.zeros) >= mostZeros*float64(t.n):
		return fmt.Errorf("%d of %d totals are 0", t.zeros, t.n)
	}
	return nil
}

// checkClock returns an error if the clock by which a program times an operation is too coarse for its batches: medians
// of a few steps would be equal without an interval, whatever the calls cost.
func (a *arm) checkClock(o Operation, c Cost) error {
	if o.Harness {
		return nil
	}
	for _, m := range []metric.Metric{metric.Wall, metric.CPU} {
		total, counted := c.Total[m.Name]
		if !counted {
			continue
		}
		k := clocked{o.Name, m.Name, c.Calls}
		if a.ticks[k] == nil {
			a.ticks[k] = &ticks{}
		}
		if err := a.ticks[k].add(total); err != nil {
			const finer = "a finer clock (time.process_time_ns and time.perf_counter_ns in Python), or leave " +
				"it out and tare measures it"
			return fmt.Errorf("its clock for %s of %s is too coarse for batches of %d calls: %w; let it use %s, or have longer "+
				"batches, as in target.span: %s", m.Name, o.Name, c.Calls, err, finer,
				time.Duration(fewestSteps*steps[0]*float64(time.Second)))
		}
	}
	return nil
}
