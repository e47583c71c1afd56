package question

import (
	"fmt"
	"time"

	"tare/internal/area"
	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/guard"
	"tare/internal/metric"
	"tare/internal/unit"
)

// DefaultTrespass is the share of trespasses in the calls.
const DefaultTrespass = unit.Percent(0.02)

// guarding asks whether a treatment refuses what it must, also while it is overloaded or disturbed.
func guarding() *Question {
	return &Question{
		Name:            design.Guard,
		Asks:            "does it still refuse what it must?",
		Drive:           Guarded,
		Answer:          Breaches,
		LeastTreatments: 1,
		Needs:           func(o area.Offers) area.Offer { return o.Trespasses },
		CheckTreatments: anyTreatments,
		CheckLoad:       checkGuarded,
		Form:            Form{Load: LoadForm{Without: []string{"closed", "rate", "workloads", "slo"}}},
		MaxConnections:  searchConnections,
		AbortAfter:      soakAbort,
		Budgets:         guardBudgets(),
		Trespass:        DefaultTrespass,
		Takes:           guardTakes,
	}
}

// checkGuarded checks that a guard has rates, or none and a search.
func checkGuarded(f File) {
	for _, path := range []string{"load.closed", "load.workloads", "load.slo", "load.rate"} {
		if f.Given(path) {
			f.Refuse(path, "guard offers multiples of the capacity that it finds, or the rates of load.rates, in an open loop")
		}
	}
	if f.Load().Ramp {
		f.Fail("load.arrivals", "guard sets its own rates; use constant or poisson")
	}
	if f.Given("blocks") {
		f.Warn("blocks", "has no effect: guard measures each treatment once")
	}
}

// guardBudgets judge the share of trespasses that were permitted, and what the area measures of it.
func guardBudgets() budget.Rules {
	return budget.Rules{
		Question: design.Guard,
		Calls: []budget.Kind{
			{Metric: metric.Permitted, Whole: true},
			{Metric: metric.Revoke, Whole: true, Percentiles: true, Quantiles: []string{"mean", "max"}},
		},
	}
}

// guardTakes says how long a guard takes.
func guardTakes(f Forecast) string {
	points := fmt.Sprintf("%d points", len(guard.Factors()))
	search := "a search for the capacity, "
	if len(f.Points) > 0 {
		points, search = fmt.Sprintf("%d points", len(f.Points)), ""
	}
	length := time.Duration(f.Duration)
	if length == 0 {
		length = guard.UsualPoint
	}
	return fmt.Sprintf("%s%s of %s to %s, up to %d more where trespasses begin to be permitted, and about %s for each "+
		"condition, for each of %d treatment(s)", search, points, unit.Duration(length),
		unit.Duration(max(length, guard.LongestPoint)), guard.MostRefined, unit.Duration(15*time.Second), f.Treatments)
}
