package config

import (
	"errors"
	"maps"
	"slices"

	"go.yaml.in/yaml/v4"

	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/spelling"
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

// budget checks the limits, and that what they name is there.
func (c *checker) budget() {
	seen := map[string]bool{}
	for i, text := range c.e.Budget {
		path := index("budget", i)
		if !c.fine(path) {
			continue
		}
		b, err := budget.Parse(text)
		if err != nil {
			c.badBudget(path, err)
			continue
		}
		if seen[text] {
			c.warn(path, "this budget is given twice")
		}
		seen[text] = true
		c.meaning(path, b)
	}
}

// badBudget points into the text, where that is possible.
func (c *checker) badBudget(path string, err error) {
	syntax, ok := errors.AsType[*budget.SyntaxError](err)
	if !ok {
		c.fail(path, "%v", err)
		return
	}
	at := *c.value(path)
	if n, ok := peek(&at); ok && n.Style&(yaml.LiteralStyle|yaml.FoldedStyle) == 0 {
		at = *n
		at.Column += syntax.Column - 1
		if n.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
			at.Column++
		}
	}
	c.errorAt(path, &at, "budget: %s", syntax.Message)
}

// meaning checks a budget against the rest of the file.
func (c *checker) meaning(path string, b budget.Budget) {
	if c.fine("load.max_rate") && b.At > float64(c.e.Load.MaxRate) {
		c.fail(path, "budget: the rate %v is above max_rate (%v)", unit.Rate(b.At), c.e.Load.MaxRate)
	}
	if c.known == nil {
		return
	}
	if b.Limit.Against != budget.Absolute && !slices.ContainsFunc(c.known, func(t design.Treatment) bool { return t.Baseline && len(t.Levels) > 0 }) {
		c.fail(path, "budget: a limit with a sign is against the baseline, and there is none")
	}
	if b.Treatment != "" && !slices.ContainsFunc(c.known, func(t design.Treatment) bool { return t.Named(b.Treatment) }) {
		c.fail(path, "budget: no treatment is called %s%s", quote(b.Treatment), spelling.DidYouMean(b.Treatment, levelsOf(c.known)))
	}
}

func levelsOf(treatments []design.Treatment) []string {
	all := map[string]bool{}
	for _, t := range treatments {
		for _, level := range t.Levels {
			all[level] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// rest checks what stands alone.
func (c *checker) rest() {
	if !c.fine("pin.generator") || !c.fine("pin.target") {
		return
	}
	generator, _ := c.e.Pin.Generator.List()
	target, _ := c.e.Pin.Target.List()
	for _, cpu := range generator {
		if slices.Contains(target, cpu) {
			c.warn("pin", "generator and target share CPU %d: they will disturb each other", cpu)
			return
		}
	}
}
