package analyze

import (
	"slices"

	"tare/internal/budget"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/report"
)

// soakMetrics gives a treatment the values that its soak came to, with their intervals: two soaks are compared by them.
func (a *analysis) soakMetrics(s *soak) {
	i := slices.IndexFunc(a.rep.Treatments, func(t report.Treatment) bool { return t.ID == s.trial.Treatment })
	if i < 0 || len(s.measured()) == 0 {
		return
	}
	operations := []string{""}
	if len(s.total.names) > 1 {
		operations = append(operations, s.total.names...)
	}
	for _, operation := range operations {
		for _, b := range soakValues(operation) {
			if m, ok := a.soakMetric(s, &b); ok {
				a.rep.Treatments[i].Metrics = append(a.rep.Treatments[i].Metrics, m)
			}
		}
	}
}

// soakValues are what is told of an operation, or of all and of the target.
func soakValues(operation string) []budget.Budget {
	response := metric.Response.Name
	out := []budget.Budget{
		{Metric: response, Quantile: "mean"},
		{Metric: response, Quantile: "p50"},
		{Metric: response, Quantile: "p90"},
		{Metric: response, Quantile: "p99"},
		{Metric: metric.Error.Name},
		{Metric: metric.Goodput.Name},
	}
	if operation == "" {
		out = append(out, budget.Budget{Metric: metric.CPU.Name}, budget.Budget{Metric: probe.RSS.Name})
	}
	for i := range out {
		out[i].Operation, out[i].Op = operation, budget.AtMost
	}
	out[0].Op = "" // of calls as they ended: a mean in which one took for ever has no upper end
	return out
}

// soakMetric is one value with its interval; ok is false for what was not measured.
func (a *analysis) soakMetric(s *soak, b *budget.Budget) (m report.Metric, ok bool) {
	f := a.soakFinding(b, s)
	known, found := probe.Known(b.Metric)
	if f.why != "" || !found || !isFinite(f.Value) {
		return m, false
	}
	m = report.Metric{
		Name: b.Metric, Quantile: b.Quantile, Operation: b.Operation, Unit: string(known.Unit), Value: f.Value,
		N: len(s.measured()),
	}
	if isFinite(f.Lo) && isFinite(f.Hi) && !memory(b.Metric) { // the highest level is a fact
		m.Lo, m.Hi, m.Level = finite(f.Lo), finite(f.Hi), new(level)
	}
	return m, true
}
