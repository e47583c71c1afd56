package cli

import (
	"fmt"
	"math"
	"slices"

	"tare/internal/analyze"
	"tare/internal/budget"
	"tare/internal/config"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/unit"
)

// planGates says which metrics can decide the verdict of a comparison, and what to change for those that cannot.
func planGates(e *config.Experiment, p func(label, format string, args ...any)) {
	label := "decides"
	for _, line := range foretold(e) {
		p(label, "%s", line)
		label = ""
	}
}

// foretold are the lines of planGates.
func foretold(e *config.Experiment) []string {
	scope := e.Scope()
	budgets, err := e.Budgets()
	if err != nil {
		return nil
	}
	var out []string
	if len(budgets) > 0 {
		out = budgeted(e, scope, budgets)
	} else {
		out = unbudgeted(e, scope)
	}
	if n := analyze.FewestBlocks(); e.Blocks < n {
		out = append(out, fmt.Sprintf("no effect in at most %d blocks, whatever its size: an interval needs %d; set blocks: %d", e.Blocks, n, n))
	}
	return out
}

// budgeted is what the budgets' own metrics need.
func budgeted(e *config.Experiment, scope *budget.Scope, budgets []budget.Budget) []string {
	out := []string{"the budgets alone: what they name, and nothing else"}
	for i := range budgets {
		b := &budgets[i]
		q, tail := budget.Fraction(b.Quantile)
		if !tail || q < budget.TailFrom {
			continue
		}
		line := fmt.Sprintf("%s: from %d blocks and %.0f values in all on", b.Text, budget.TailBlocks, budget.TailValues(q))
		if n := samples(scope, b); n > 0 {
			line += fmt.Sprintf(", that is %.0f of the %d blocks", math.Max(budget.TailBlocks, math.Ceil(budget.TailValues(q)/n)), e.Blocks)
		}
		out = append(out, line)
	}
	return out
}

// samples is the least number of values that a block has of what b speaks of; 0: not known.
func samples(scope *budget.Scope, b *budget.Budget) float64 {
	least := math.Inf(1)
	for _, t := range scope.Judged(b) {
		if arm := scope.Of(&t); arm.Samples != nil {
			least = min(least, arm.Samples(b.Operation))
		}
	}
	if math.IsInf(least, 1) {
		return 0
	}
	return least
}

// unbudgeted is what decides where no budget says so: CPU time, and the median response where blocks have calls enough.
func unbudgeted(e *config.Experiment, scope *budget.Scope) []string {
	if scope.OwnPace {
		return []string{"cpu of each operation, or wall where its CPU time is not known"}
	}
	var out []string
	if lacks := without(scope, metric.CPU.Name); len(lacks) == 0 {
		out = append(out, "cpu")
	} else {
		out = append(out, fmt.Sprintf("not cpu: it cannot be read under %s, since %s", lacks[0].ID, scope.Of(&lacks[0]).Unread))
	}
	return append(out, responses(e, len(without(scope, metric.CPU.Name)) > 0))
}

// without are the treatments under which a metric cannot be read.
func without(scope *budget.Scope, name string) []design.Treatment {
	return slices.DeleteFunc(slices.Clone(scope.Treatments), func(t design.Treatment) bool {
		arm := scope.Of(&t)
		return arm.Open || slices.Contains(arm.Metrics, name)
	})
}

// responses says whether the median response can decide. alone says that nothing else can.
func responses(e *config.Experiment, alone bool) string {
	l := &e.Load
	if l.Closed != nil {
		return fmt.Sprintf("response.p50, if the workers make %d calls in every block (%v)", analyze.MinCalls, l.Duration)
	}
	calls := float64(l.Rate) * l.Duration.Std().Seconds()
	if calls >= analyze.MinCalls {
		return fmt.Sprintf("response.p50, of %s calls a block", unit.Decimal(calls, 6))
	}
	line := fmt.Sprintf("not response.p50: it decides from %d calls a block on, and this file makes %s; set load: {duration: %v}, or name it in a budget",
		analyze.MinCalls, unit.Decimal(math.Floor(calls), 6), analyze.LongEnough(float64(l.Rate)))
	if alone {
		line += "; as it is, this run cannot reach a verdict"
	}
	return line
}
