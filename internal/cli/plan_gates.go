package cli

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"tare/area"
	"tare/internal/analyze"
	"tare/internal/budget"
	"tare/internal/config"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/question"
	"tare/internal/unit"
)

// planGates prints which metrics can decide the verdict of a comparison, and what to change for those that cannot.
func planGates(e *config.Experiment, made area.Program, p func(label, format string, args ...any)) {
	label := "decides"
	for _, line := range gateLines(e, made) {
		p(label, "%s", line)
		label = ""
	}
}

// gateLines returns the lines of planGates.
func gateLines(e *config.Experiment, made area.Program) []string {
	scope := e.Scope()
	budgets, err := e.Budgets()
	if err != nil {
		return nil
	}
	var out []string
	if len(budgets) > 0 {
		out = budgetNeeds(e, scope, budgets)
	} else {
		out = defaultGates(e, made, scope)
	}
	return out
}

// enoughBlocks refuses a comparison whose blocks are too few to decide anything, unless the command line set their
// number.
func enoughBlocks(e *config.Experiment, set []string) error {
	n := analyze.FewestBlocks(1)
	insisted := slices.ContainsFunc(set, func(path string) bool { return path == "blocks" || path == "full.blocks" })
	q := question.Of(e.Question)
	needsSizes := q.Answer.GrowthFirst // more than blocks
	if e.Blocks >= n || insisted || !q.Drive.InBlocks || needsSizes {
		return nil
	}
	return usage("blocks: %d can never decide an effect, whatever its size: a verdict needs %d; set blocks: %d or leave "+
		"it out, or see the estimates without a verdict: --set blocks=%d", e.Blocks, n, n, e.Blocks)
}

// budgetNeeds returns what the budgets' metrics need.
func budgetNeeds(e *config.Experiment, scope *budget.Scope, budgets []budget.Budget) []string {
	out := []string{"only the metrics that the budgets name"}
	for i := range budgets {
		b := &budgets[i]
		q, pooled := budget.Pooled(b.Quantile)
		if !pooled {
			continue
		}
		values := budget.PooledValues(q)
		line := fmt.Sprintf("%s: from %d blocks and %.0f values in all on", b.Text, budget.PooledBlocks, values)
		if n := minSamples(scope, b); n > 0 {
			line += fmt.Sprintf(", that is %.0f of the %d blocks",
				math.Max(budget.PooledBlocks, math.Ceil(values/n)), e.Blocks)
		}
		out = append(out, line)
	}
	return out
}

// minSamples returns the smallest number of values per block of the metric of b; 0 if it is unknown.
func minSamples(scope *budget.Scope, b *budget.Budget) float64 {
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

// defaultGates returns what decides without a budget: CPU time, and the median response if blocks have enough calls.
func defaultGates(e *config.Experiment, made area.Program, scope *budget.Scope) []string {
	if countsInstructions(scope) {
		return []string{"instructions of each operation"}
	}
	if onlyWall(made) {
		return []string{"wall of each operation; CPU time is not compared"}
	}
	if scope.OwnPace {
		return []string{"cpu of each operation, or wall where its CPU time is not known"}
	}
	var out []string
	if lacks := without(scope, metric.CPU.Name); len(lacks) == 0 {
		out = append(out, "cpu")
	} else {
		out = append(out, fmt.Sprintf("not cpu: it cannot be read under %s, because %s",
			lacks[0].ID, cmp.Or(scope.Of(&lacks[0]).Unread, "its area reads no process")))
	}
	return append(out, responseGate(e, len(without(scope, metric.CPU.Name)) > 0))
}

// leastGates is how many effects of a treatment are judged together at least. How many calls a block will have, and so
// whether the median response of trials decides, is not known before; of budgets, some may be about one value alone.
func leastGates(e *config.Experiment, scope *budget.Scope) int {
	if len(e.Budget) > 0 {
		return 1
	}
	metrics, operations := 0, 1
	if turns, _ := e.LayTurns(); turns != nil {
		metrics++
	}
	if scope.OwnPace || len(without(scope, metric.CPU.Name)) == 0 {
		metrics++
	}
	for i, t := range scope.Treatments {
		arm := scope.Of(&t)
		if n := max(1, len(arm.Operations)-len(arm.Idle)); i == 0 || n < operations {
			operations = n
		}
	}
	return max(1, metrics*operations)
}

// onlyWall reports whether the program says that the CPU time of none of its operations is compared.
func onlyWall(made area.Program) bool {
	return len(made.Batches) > 0 && !slices.ContainsFunc(made.Batches, func(b area.Batches) bool { return !b.NoCPU })
}

// countsInstructions reports whether the target measures no time but instructions.
func countsInstructions(scope *budget.Scope) bool {
	return scope.OwnPace && len(without(scope, metric.Instructions.Name)) == 0 &&
		len(without(scope, metric.CPU.Name)) > 0 && len(without(scope, metric.Wall.Name)) > 0
}

// without returns the treatments under which a metric cannot be read.
func without(scope *budget.Scope, name string) []design.Treatment {
	return slices.DeleteFunc(slices.Clone(scope.Treatments), func(t design.Treatment) bool {
		arm := scope.Of(&t)
		return arm.Open || slices.Contains(arm.Metrics, name)
	})
}

// responseGate says whether the median response can decide. alone: no other metric can.
func responseGate(e *config.Experiment, alone bool) string {
	l := &e.Load
	if turns, _ := e.LayTurns(); turns != nil {
		return fmt.Sprintf("response.p50, from %d turns per block", turns.Rounds)
	}
	if l.Closed != nil {
		return fmt.Sprintf("response.p50, if the workers make %d calls in every block (%v)", design.CallsToDecide, l.Duration)
	}
	calls := float64(l.Rate) * l.Duration.Std().Seconds()
	if calls >= design.CallsToDecide {
		return fmt.Sprintf("response.p50, from %s calls per block", unit.Decimal(calls, 6))
	}
	line := fmt.Sprintf("not response.p50: it needs %d calls per block, and this file makes %s; set load: {duration: "+
		"%v}, or name it in a budget",
		design.CallsToDecide, unit.Decimal(math.Floor(calls), 6), design.LongEnough(float64(l.Rate)))
	if alone {
		line += "; without that, this run cannot reach a verdict"
	}
	return line
}
