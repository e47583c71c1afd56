package report

import (
	"math"
	"strings"

	"tare/internal/metric"
	"tare/internal/unit"
)

// space keeps a number and its unit in one line.
const space = "\u00a0"

// isRatio reports whether an effect is a share of the baseline, not a difference in the metric's unit.
func isRatio(e *Effect) bool { return e.Kind != "difference" }

// hasInterval reports whether an effect has an interval.
func hasInterval(e *Effect) bool { return e.Level > 0 || e.Lo != 0 || e.Hi != 0 }

// withSign puts a sign before a magnitude, unless it was rounded to zero.
func withSign(v float64, magnitude string) string {
	switch {
	case !strings.ContainsAny(magnitude, "123456789"):
		return magnitude
	case v < 0:
		return "−" + magnitude
	}
	return "+" + magnitude
}

// axisShare writes a share of the baseline for an axis or a margin: "2 %", "+5 %".
func axisShare(v float64) string { return strings.Replace(unit.Share(v), "%", space+"%", 1) }

// tickShare is a change on an axis: "−5 %", "0", "+10 %".
func tickShare(v float64) string {
	if math.Abs(v) < 1e-12 {
		return "0"
	}
	return withSign(v, axisShare(math.Abs(v)))
}

// unitOf returns a metric's unit: from the run, or from the list of known metrics.
func unitOf(r *Report, name string) metric.Unit {
	for i := range r.Treatments {
		for k := range r.Treatments[i].Metrics {
			if m := &r.Treatments[i].Metrics[k]; m.Name == name && m.Unit != "" {
				return metric.Unit(m.Unit)
			}
		}
	}
	for i := range r.Blocks {
		if b := &r.Blocks[i]; b.Metric == name && b.Unit != "" {
			return b.Unit
		}
	}
	m, _ := metric.Find(name)
	return m.Unit
}

// measure describes a metric.
func measure(name, quantile string) string {
	known := map[string]string{
		"cpu": "CPU time", "wall": "wall time", "response": "response time",
		"service": "service time", "error": "error share", "upstream_calls": "upstream calls",
	}
	s := known[name]
	if s == "" {
		s = strings.ReplaceAll(name, "_", " ")
	}
	if quantile != "" && quantile != "mean" {
		return quantile + " of " + s
	}
	if quantile != "" {
		return quantile + " " + s
	}
	return s
}

// short returns a treatment's abbreviated name, as in every format, without the note that it is the baseline.
func (r *Report) short(id string) string {
	return strings.TrimSuffix(named(r.labels(), id), baselineNote)
}

// measured returns a metric's value with its unit.
func measured(m *Metric) string {
	return Amount(m.Name, metric.Unit(m.Unit))(m.Value) + m.Beside()
}

// measuredIn prints a value with its interval: "12 ms [11.9 ms, 12.3 ms]".
func measuredIn(m *Metric) string {
	if m.Lo == nil || m.Hi == nil {
		return measured(m)
	}
	amount := Amount(m.Name, metric.Unit(m.Unit))
	return amount(m.Value) + " [" + amount(*m.Lo) + ", " + amount(*m.Hi) + "]" + m.Beside()
}
