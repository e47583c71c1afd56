package config

import (
	"errors"
	"time"

	"go.yaml.in/yaml/v4"

	"tare/area"
	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/guard"
	"tare/internal/metric"
	"tare/internal/question"
	"tare/internal/stat"
	"tare/internal/unit"
)

// Budgets parses the limits. After Parse without errors it does not fail.
func (e *Experiment) Budgets() ([]budget.Budget, error) {
	out := make([]budget.Budget, 0, len(e.Budget))
	for _, text := range e.Budget {
		b, err := budget.Parse(text)
		if err != nil {
			return nil, err
		}
		out = append(out, b)
	}
	return out, nil
}

// Scope is what the experiment measures, as far as its file says.
func (e *Experiment) Scope() *budget.Scope {
	full := e.WithDefaults()
	s := &budget.Scope{
		Rules: question.Of(e.Question).Budgets, Treatments: e.Treatments(), OwnPace: e.OwnPace(), Planned: true,
		Own: e.quantities, Rate: float64(full.Load.Rate), MaxRate: float64(full.Load.MaxRate),
		Objective: full.Load.SLO != nil,
		Blocks:    full.Blocks, Length: time.Duration(full.Load.Duration),
	}
	for _, r := range full.Load.Rates {
		s.Ladder = append(s.Ladder, float64(r))
	}
	for _, w := range full.Load.Workloads {
		s.Ladder = append(s.Ladder, w.PerSecond())
	}
	s.Of = func(t *design.Treatment) budget.Arm { return full.arm(t) }
	return s
}

// OwnPace reports whether the area's workloads run at their own pace. A question that offers rates has calls of them.
func (e *Experiment) OwnPace() bool {
	return e.batches() && e.blocked()
}

// batches reports whether the operations time themselves.
func (e *Experiment) batches() bool { return e.Target != nil && e.Target.Says().Batches != nil }

// arm is what is measured under a treatment.
func (e *Experiment) arm(t *design.Treatment) budget.Arm {
	f := area.Forecast{Open: true}
	if e.Target != nil {
		if forecast := e.Target.Says().Forecast; forecast != nil {
			f = forecast(question.Of(e.Question).Asked(), *t)
		}
	}
	out := budget.Arm{
		Operations: f.Operations, Idle: f.Idle, Metrics: f.Metrics, Open: f.Open, Unread: f.Unread,
		Instead: f.Instead,
	}
	if len(e.Load.Operations) > 0 {
		out.Operations = nil
		for _, o := range e.Load.Operations {
			out.Operations = append(out.Operations, o.Name)
		}
	}
	out.Samples = func(operation string) float64 {
		if f.Rounds > 0 {
			return float64(f.Rounds)
		}
		return e.calls() * e.share(operation, out.Operations)
	}
	return out
}

// calls returns how many calls an open loop makes in one trial; 0: unknown.
func (e *Experiment) calls() float64 {
	if e.Load.Closed != nil || e.searches() {
		return 0
	}
	return float64(e.Load.Rate) * time.Duration(e.Load.Duration).Seconds()
}

// share returns the share of calls of an operation; 0: unknown.
func (e *Experiment) share(operation string, all []string) float64 {
	if operation == "" || len(all) == 1 {
		return 1
	}
	own, sum := 0, 0
	for _, o := range e.Load.Operations {
		sum += o.Weight
		if o.Name == operation {
			own = o.Weight
		}
	}
	if sum == 0 {
		return 0
	}
	return float64(own) / float64(sum)
}

// budget checks that the limits are valid and can be judged.
func (c *checker) budget() {
	seen := map[string]bool{}
	for i, text := range c.e.Budget {
		path := index("budget", i)
		if !c.isValid(path) {
			continue
		}
		b, err := budget.Parse(text)
		if err != nil {
			c.badBudget(path, err)
			continue
		}
		if seen[text] {
			c.warn(path, "this budget is given twice")
			continue
		}
		seen[text] = true
		c.judgeable(path, b)
	}
}

// badBudget reports an error of a budget, at its place in the text if possible.
func (c *checker) badBudget(path string, err error) {
	if syntax, ok := errors.AsType[*budget.SyntaxError](err); ok {
		c.failWithin(path, syntax.Column, syntax.Message)
		return
	}
	c.fail(path, "%v", err)
}

// failWithin reports an error at a column of a budget's text, counted from 1.
func (c *checker) failWithin(path string, column int, message string) {
	at := *c.value(path)
	if n, ok := peek(&at); ok && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		at = *n
		at.Column += column - 1
		if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
			at.Column++
		}
	}
	c.errorAt(path, &at, "budget: %s", message)
}

// judgeable rejects a budget that no run of this file could judge.
func (c *checker) judgeable(path string, b budget.Budget) {
	if c.isValid("load.max_rate") && b.At > float64(c.e.Load.MaxRate) {
		c.failWithin(path, budget.Column(b.Text, budget.PartRate),
			"the rate "+unit.Rate(b.At).String()+" is above max_rate ("+c.e.Load.MaxRate.String()+")")
		return
	}
	if c.known == nil || !c.isValid("question") || c.broken("load") || c.e.Target == nil || c.broken("target") {
		return
	}
	scope := c.e.Scope()
	if r := scope.Refuse(b); r != nil {
		c.failWithin(path, budget.Column(b.Text, r.Part), r.Error())
		return
	}
	if why := scope.Unprovable(b); why != "" {
		c.warn(path, "%s: %s", b.Text, why)
	}
}

// trespasses warns of limits that a guard at the given rates cannot show to be kept, for want of trespasses.
func (c *checker) trespasses() {
	known := !c.broken("load") && c.isValid("load.rates") && c.isValid("question")
	if !known || !question.Of(c.e.Question).Answer.BreachesFirst {
		return
	}
	e := c.e.WithDefaults()
	rates := make([]float64, len(e.Load.Rates))
	for i, r := range e.Load.Rates {
		rates[i] = float64(r)
	}
	for _, text := range e.Budget {
		b, err := budget.Parse(text)
		if err != nil || b.Metric != metric.Permitted.Name {
			continue
		}
		need := guard.Enough()
		if b.Limit.Value > 0 {
			need = stat.TrialsToBound(b.Limit.Value, guard.Level)
		}
		length, share := time.Duration(e.Load.Duration), float64(e.Load.Trespass)
		if why := guard.TooFew(time.Duration(e.Load.MaxTime), length, share, rates, need); why != "" {
			c.warn("load.rates", "%s: %s", text, why)
		}
	}
}

// BudgetLines returns the line of each budget of an experiment file by its text. A file that cannot be parsed has none.
func BudgetLines(data []byte) map[string]int {
	lines := map[string]int{}
	root, _ := readSource(data)
	if root == nil || root.Kind != yaml.MappingNode {
		return lines
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value != "budget" {
			continue
		}
		for _, n := range root.Content[i+1].Content {
			if n.Kind == yaml.ScalarNode && lines[n.Value] == 0 {
				lines[n.Value] = n.Line
			}
		}
	}
	return lines
}
