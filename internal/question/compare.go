package question

import (
	"time"

	"tare/area"
	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/metric"
)

// usualConnections is the default of load.max_connections, usualAbort that of load.abort.for, of most questions.
const (
	usualConnections = 256
	usualAbort       = 10 * time.Second
)

// compare asks what each treatment adds to the baseline.
func compare() *Question {
	return &Question{
		Name:            design.Compare,
		Asks:            "what does the control add?",
		Drive:           Blocks,
		Answer:          Effects,
		LeastTreatments: 2, // one of them is the baseline
		Needs:           onlyTreatments,
		CheckTreatments: checkCompared,
		CheckLoad:       func(f File) { checkBlockLoad(f, design.Compare) },
		Form:            Form{Required: []string{"baseline"}, Either: []string{"treatments", "factors"}, Load: blockLoad()},
		MaxConnections:  usualConnections,
		AbortAfter:      usualAbort,
		Budgets:         blockBudgets(design.Compare),
	}
}

// onlyTreatments is what a question needs that works with any load.
func onlyTreatments(area.Offers) area.Offer { return area.Yes }

func checkCompared(f File) {
	f.Missing("baseline", "question",
		"compare needs a baseline to hold the treatments against: baseline: {factor: level}")
	if !f.Given("treatments") && !f.Given("factors") {
		f.Missing("treatments", "question", "compare needs treatments: [{factor: level}, …]")
	}
}

// checkBlockLoad checks the load of trials in blocks: one rate, or workers.
func checkBlockLoad(f File, name design.Question) {
	refuseElsewhere(f, name, "trespass", "guard, capacity and soak")
	refuseElsewhere(f, name, "conditions", "guard")
	if steadyTrials(f, name, "10s") && f.Load().Ramp {
		f.Fail("load.arrivals", "every trial of %s has one rate; use constant or poisson", name)
	}
}

func blockLoad() LoadForm {
	return LoadForm{
		Without: []string{"rates", "slo", "trespass", "conditions"},
		Either:  []string{"rate", "closed", "max_time"}, // max_time alone only if workloads run at their own pace
	}
}

// blockBudgets judge values of blocks.
func blockBudgets(name design.Question) budget.Rules {
	return budget.Rules{
		Question: name, Blocks: true,
		Calls: append(budget.Times(budget.Kind{Quantiles: budget.Summaries(), Samples: true}),
			budget.Means(metric.Error, metric.Goodput)...),
		Probed: []string{
			"cpu", "rss", "upstream_calls", "cache_hits", "cache_misses", "cache_renewals", "distinct_tokens",
		},
	}
}
