package question

import (
	"fmt"
	"slices"
	"time"

	"tare/area"
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

// aCondition is about how long a condition takes, with the load before and after it.
const aCondition = 15 * time.Second

// guardTakes says how long a guard takes, and of what that is the sum.
func guardTakes(f Forecast) string {
	least, most, parts := guardSearch(&f)
	if f.Conditions > 0 {
		all := time.Duration(f.Conditions) * aCondition
		least, most = least+all, most+all
		parts = append(parts, fmt.Sprintf("%s of about %s", unit.Count(f.Conditions, "condition"), unit.Duration(aCondition)))
	}
	n := float64(max(1, f.Treatments))
	all := func(d time.Duration) string {
		return unit.Duration(time.Duration(n * float64(d)).Round(time.Second)).String()
	}
	return fmt.Sprintf("about %s to %s: %s%s; longer where trespasses begin to be permitted, with up to %d more points, "+
		"and where the target recovers slowly", all(least), all(most), Listed(parts, "and"), f.each(), guard.MostRefined)
}

// guardSearch returns how long the points of one treatment take, with the search for the capacity that they are
// multiples of unless the file has their rates.
func guardSearch(f *Forecast) (least, most time.Duration, parts []string) {
	length, n := time.Duration(f.Duration), len(guard.Factors())
	if length == 0 {
		length = guard.UsualPoint
	}
	if len(f.Rates) > 0 {
		share := guard.Share(f.Trespass, slices.Min(f.Rates))
		for _, r := range f.Rates {
			least += guard.Length(length, r, share)
		}
		return least, least + least/4, []string{unit.Count(len(f.Rates), "point")}
	}
	longest := max(length, guard.LongestPoint)
	return leastSearch + time.Duration(n)*length, mostSearch + time.Duration(n)*longest, []string{
		"a search for the capacity",
		fmt.Sprintf("%s of %s to %s", unit.Count(n, "point"), unit.Duration(length), unit.Duration(longest)),
	}
}
