package analyze

import (
	"slices"

	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/metric"
)

// A gate names what is judged: a quantile of a metric of an operation.
type gate struct{ operation, metric, quantile string }

// String is the gate as a budget would name it.
func (g gate) String() string {
	s := g.metric
	if g.operation != "" {
		s = g.operation + "." + s
	}
	if g.quantile != "" {
		s += "." + g.quantile
	}
	return s
}

// of is what the gate is a quantile of.
func (g gate) of() subject { return subject{g.operation, g.metric} }

// A subject is a metric of an operation.
type subject struct{ operation, metric string }

// gates are the effects that decide verdicts, each once, in the order in which they were added.
type gates struct {
	all []gate
	has map[gate]bool
	of  map[subject][]gate
}

func (s *gates) add(g gate) {
	if s.has[g] {
		return
	}
	if s.has == nil {
		s.has, s.of = map[gate]bool{}, map[subject][]gate{}
	}
	s.has[g] = true
	s.all, s.of[g.of()] = append(s.all, g), append(s.of[g.of()], g)
}

// gating chooses the effects that decide verdicts and when to stop: what the budgets name; without budgets CPU time,
// and the median response where blocks have calls enough. Everything else is exploratory.
func (c *comparison) gating(budgets []budget.Budget) (out gates) {
	for i := range budgets {
		for _, g := range c.named(&budgets[i]) {
			if budget.Extreme(g.quantile) { // it compares with nothing
				g.quantile = c.ofSubject[g.of()][0].main
			}
			out.add(g)
		}
	}
	if len(out.all) > 0 {
		return out
	}
	for _, m := range c.measures {
		switch {
		case m.metric.Name == metric.CPU.Name:
			out.add(gate{m.operation, m.metric.Name, m.main})
		case m.metric.Name == metric.Wall.Name && !c.has(m.operation, metric.CPU.Name):
			out.add(gate{m.operation, m.metric.Name, m.main})
		case m.metric.Name == metric.Instructions.Name && !c.has(m.operation, metric.CPU.Name) &&
			!c.has(m.operation, metric.Wall.Name): // of a machine whose time means nothing
			out.add(gate{m.operation, m.metric.Name, m.main})
		case m.metric.Name == metric.Service.Name && m.of == "batches" && !c.has(m.operation, metric.CPU.Name):
			// It is of another tool's calls.
			out.add(gate{m.operation, m.metric.Name, m.main})
		case m.metric.Name == metric.Response.Name && c.wholeMix(m.operation) &&
			(len(m.rounds) > 0 || c.fewest(m) >= design.CallsToDecide):
			out.add(gate{m.operation, m.metric.Name, m.main})
		}
	}
	return out
}

// named are the gates of a budget. Without an operation it speaks of all calls together, or of every operation that has
// its own clock.
func (c *comparison) named(b *budget.Budget) []gate {
	if b.Drift {
		return nil
	}
	measures := c.ofMetric[b.Metric]
	if b.Operation != "" {
		measures = c.ofSubject[subject{b.Operation, b.Metric}]
	}
	var out gates
	for _, m := range measures {
		if b.Operation == "" && !c.batched && !c.wholeMix(m.operation) {
			continue
		}
		out.add(gate{m.operation, m.metric.Name, m.canonical(b.Quantile)})
	}
	return out.all
}

func (c *comparison) has(operation, name string) bool {
	return len(c.ofSubject[subject{operation, name}]) > 0
}

// gatesOf are the gates of one treatment: those that it can act on.
func (c *comparison) gatesOf(treatment string) []gate {
	return slices.DeleteFunc(slices.Clone(c.gates.all), func(g gate) bool { return !c.acts(treatment, g.operation) })
}

// exploratory is everything else that was measured.
func (c *comparison) exploratory(treatment string) []gate {
	var out []gate
	for _, m := range c.measures {
		if m.treatment != treatment || !c.acts(treatment, m.operation) {
			continue
		}
		quantiles := []string{m.main}
		if m.metric.Name == metric.Response.Name && m.of != "" {
			quantiles = []string{"p50", "mean", "p90", "p99", "p999"}
		}
		for _, q := range quantiles {
			if g := (gate{m.operation, m.metric.Name, q}); !c.gates.has[g] {
				out = append(out, g)
			}
		}
	}
	return out
}

// checkable are the gates of operations on which a treatment cannot act, and the same metrics of those that gate for no
// treatment, since none can act on them.
func (c *comparison) checkable(treatment string) []gate {
	quantiles, seen := map[string][]string{}, map[gate]bool{}
	for _, g := range c.gates.all {
		if q := (gate{"", g.metric, g.quantile}); !seen[q] {
			seen[q] = true
			quantiles[g.metric] = append(quantiles[g.metric], g.quantile)
		}
	}
	var out gates
	for _, m := range c.measures {
		if c.acts(treatment, m.operation) {
			continue
		}
		for _, q := range quantiles[m.metric.Name] {
			out.add(gate{m.operation, m.metric.Name, q})
		}
	}
	return out.all
}

// skips are the gates of which no effect could be estimated, by the reason.
type skips map[string]*skip

type skip struct {
	on   []string
	seen map[gate]bool
}

func (s skips) add(why string, g gate) {
	x := s[why]
	if x == nil {
		x = &skip{seen: map[gate]bool{}}
		s[why] = x
	}
	if !x.seen[g] {
		x.seen[g], x.on = true, append(x.on, g.String())
	}
}
