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

// searchConnections is the default of load.max_connections of a search, which overloads its target.
const searchConnections = 4096

// UsualSearch is how long a search takes at most that the file does not bound.
const UsualSearch = 3 * time.Minute

// How long a search takes that is not stopped.
const leastSearch, mostSearch = 10 * time.Second, time.Minute

// capacity asks at what rate a treatment breaks.
func capacity() *Question {
	return &Question{
		Name:            design.Capacity,
		Asks:            "where does it break?",
		Drive:           Search,
		Answer:          Rate,
		LeastTreatments: 1,
		Needs:           func(o area.Offers) area.Offer { return o.AnyRate },
		CheckTreatments: anyTreatments,
		CheckLoad:       checkSearched,
		Form: Form{Load: LoadForm{
			Without: []string{"closed", "conditions", "turns"}, Needs: map[string][]string{"rates": {"duration"}},
			NotBoth: []string{"rate", "rates"},
		}},
		MaxConnections: searchConnections,
		AbortAfter:     usualAbort,
		Budgets:        searchBudgets(),
		Takes:          searchTakes,
	}
}

// anyTreatments accepts whatever the file varies: each treatment has an answer of its own.
func anyTreatments(File) {}

// checkSearched checks that a ladder has rates and a duration, and a search neither.
func checkSearched(f File) {
	refuseElsewhere(f, design.Capacity, "conditions", "guard")
	refuseElsewhere(f, design.Capacity, "turns", "compare and scale")
	if f.Given("load.closed") {
		f.Refuse("load.closed", "capacity needs an open loop: closed workers slow down with the target")
	}
	if f.Load().Ramp {
		f.Fail("load.arrivals", "a capacity experiment sets its own rates; use constant or poisson")
	}
	if f.Given("load.workloads") {
		f.CheckWorkloads()
		return
	}
	if !f.Given("load.rates") {
		if f.Given("load.duration") {
			f.Warn("load.duration", "has no effect: a search ends when it has an answer (max_time bounds it)")
		}
		return
	}
	f.Missing("load.duration", "load.rates", "a ladder needs load.duration, the time at each rate")
	if f.Given("load.rate") {
		f.Refuse("load.rate", "rates make a ladder; rate is where a search starts: keep one")
	}
	RefuseMaxTime(f)
}

// RefuseMaxTime warns of max_time on a ladder: each of its points has its own length.
func RefuseMaxTime(f File) {
	if f.Given("load.max_time") {
		f.Warn("load.max_time", "has no effect on a ladder, only on a search")
	}
}

// searchBudgets judge what a search finds, and calls at one of its rates.
func searchBudgets() budget.Rules {
	calls := []budget.Kind{
		{Metric: metric.Capacity, Whole: true, Found: true},
		{Metric: metric.SLOCapacity, Whole: true, Found: true},
	}
	calls = append(calls, budget.Times(budget.Kind{Quantiles: []string{"min", "mean", "max"}, AtRate: true})...)
	return budget.Rules{
		Question: design.Capacity, Rates: true,
		Calls: append(calls, budget.Kind{Metric: metric.Error, Quantiles: []string{"mean"}, AtRate: true},
			budget.Kind{Metric: metric.Permitted, Whole: true}),
		Probed: []string{"rss"},
		Refused: map[string]budget.Refusal{metric.CPU.Name: {
			Part: budget.PartMetric, Reason: "a search is one block, which gives no interval for cpu",
			Write: "ask question: compare or soak, or leave the budget out",
		}},
	}
}

// searchTakes says how long a search or a ladder takes.
func searchTakes(f Forecast) string {
	if len(f.Points) > 0 {
		load := time.Duration(0)
		for _, p := range f.Points {
			load += time.Duration(f.Treatments) * p
		}
		return fmt.Sprintf("%s, %s of load, and up to %s after each until its last call has ended and the target "+
			"answers again", unit.Count(f.Treatments*len(f.Points), "point"), load, 3*f.Timeout)
	}
	search := f.MaxTime
	if search == 0 {
		search = UsualSearch
	}
	return fmt.Sprintf("a search of usually 15 to 110 s (at most %s), a recovery probe of up to %s and experiments of up "+
		"to 25 s%s", search, 2*f.Timeout, f.each())
}
