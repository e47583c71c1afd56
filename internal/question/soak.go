package question

import (
	"fmt"
	"time"

	"tare/area"
	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/unit"
)

// LeastSoak is the shortest soak: a shorter one has fewer windows than an interval needs.
const LeastSoak = 20 * time.Second

// soakAbort is long enough for a target to restart.
const soakAbort = 5 * time.Minute

// The warm-up of a soak precedes the measured part: a tenth of it, within bounds, and at least the time over which
// workers start.
const (
	warmUpShare = 10
	leastWarmUp = time.Second
	mostWarmUp  = 5 * time.Minute
)

// soak asks whether a treatment holds over a long steady load, and what it uses.
func soak() *Question {
	return &Question{
		Name:            design.Soak,
		Asks:            "does it hold?",
		Drive:           Long,
		Answer:          Course,
		LeastTreatments: 1,
		Needs:           func(o area.Offers) area.Offer { return o.SteadyLoad },
		CheckTreatments: anyTreatments,
		CheckLoad:       checkSoaked,
		Form: Form{Required: []string{"load"}, Load: LoadForm{
			Without: []string{"rates", "slo", "max_time", "conditions", "turns"}, Either: []string{"rate", "closed"},
			Required: []string{"duration"},
		}},
		MaxConnections: usualConnections,
		AbortAfter:     soakAbort,
		Budgets:        soakBudgets(),
		Takes:          soakTakes,
	}
}

// checkSoaked checks that a soak has a duration and is not repeated.
func checkSoaked(f File) {
	refuseElsewhere(f, design.Soak, "conditions", "guard")
	refuseElsewhere(f, design.Soak, "turns", "compare and scale")
	if !steadyTrials(f, design.Soak, "10m", "load.max_time") { // its duration bounds the trial
		return
	}
	l := f.Load()
	f.Missing("load.duration", "load", "soak needs load.duration, the time that it lasts")
	if f.Valid("load.duration") && time.Duration(l.Duration) < LeastSoak {
		f.Fail("load.duration", "a soak of less than %v shows no trend; want more", LeastSoak)
	}
	if f.Valid("load.closed.ramp") && f.Valid("load.duration") && l.WorkerRamp > l.Duration {
		f.Fail("load.closed.ramp", "the workers start over a longer time than the soak lasts (%v)", l.Duration)
	}
	if f.Given("blocks") {
		f.Warn("blocks", "has no effect: a soak is one long trial")
	}
}

// soakBudgets judge the calls of the whole soak, levels, and trends.
func soakBudgets() budget.Rules {
	return budget.Rules{
		Question: design.Soak, Drift: true,
		Calls: append(append(budget.Times(budget.Kind{Quantiles: []string{"min", "mean", "max"}, Samples: true}),
			budget.Means(metric.Error, metric.Goodput)...), budget.Kind{Metric: metric.Permitted, Whole: true}),
		Probed: []string{"cpu", "rss", "heap_used", "threads", "fds", "goroutines", "metaspace"},
	}
}

// WarmUp returns the warm-up of a soak that measures for d; ramp is the time over which its workers start.
func WarmUp(d, ramp time.Duration) time.Duration {
	return max(ramp, min(d/warmUpShare, mostWarmUp), leastWarmUp)
}

func soakTakes(f Forecast) string {
	warm := WarmUp(time.Duration(f.Duration), f.WorkerRamp)
	return fmt.Sprintf("%s of load that is measured, after %s of warm-up%s",
		f.Duration, unit.Duration(warm), f.each())
}
