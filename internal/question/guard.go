package question

import (
	"cmp"
	"fmt"
	"time"

	"tare/area"
	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/guard"
	"tare/internal/metric"
	"tare/internal/unit"
)

// DefaultTrespass is the share of trespasses in the calls.
const DefaultTrespass = unit.Percent(0.1)

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
		Form:            Form{Load: LoadForm{Without: []string{"closed", "rate", "workloads", "slo", "turns"}}},
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
	each := ""
	if f.Treatments > 1 {
		each = " for each of " + unit.Count(f.Treatments, "treatment")
	}
	n := float64(max(1, f.Treatments))
	all := func(d time.Duration) string {
		return unit.Duration(time.Duration(n * float64(d)).Round(time.Second)).String()
	}
	within := guard.Within(f.MaxTime, time.Duration(f.Duration), f.Trespass, f.Rates)
	return fmt.Sprintf("about %s to %s: %s%s; more points %swhere too few trespasses are decided and where some are "+
		"permitted; no point begins that would end after %s%s; the preparation comes before", all(least), all(most),
		Listed(parts, "and"), f.each(),
		f.untilOverloaded(), unit.Duration(within), each)
}

// untilOverloaded says that rates are raised, unless the file gives them.
func (f *Forecast) untilOverloaded() string {
	if len(f.Rates) > 0 {
		return ""
	}
	return "until the target is overloaded, "
}

// guardSearch returns how long the points of one treatment take, with the search for the capacity that they are
// multiples of unless the file has their rates.
func guardSearch(f *Forecast) (least, most time.Duration, parts []string) {
	length, n := cmp.Or(time.Duration(f.Duration), guard.UsualPoint), len(guard.Factors())
	if len(f.Rates) > 0 {
		least = guard.Lasting(length, f.Trespass, f.Rates)
		most = least + max(least/4, guard.Lacking(length, f.Trespass, f.Rates))
		most = max(least, min(most, guard.Within(f.MaxTime, length, f.Trespass, f.Rates)))
		return least, most, []string{unit.Count(len(f.Rates), "point")}
	}
	longest := max(length, guard.LongestPoint)
	within := guard.Within(f.MaxTime, 0, f.Trespass, nil)
	least, most = leastSearch+time.Duration(n)*length, min(mostSearch, guard.SearchTime(within))+time.Duration(n)*longest
	return min(least, within), min(most, within), []string{
		"a search for the capacity",
		fmt.Sprintf("%s of %s to %s", unit.Count(n, "point"), unit.Duration(length), unit.Duration(longest)),
	}
}
