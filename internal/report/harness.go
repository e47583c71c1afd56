package report

import (
	"fmt"
	"slices"
	"strings"

	"tare/internal/metric"
	"tare/internal/unit"
)

// Harness is what one call cost of an operation that does nothing: the median over blocks, with its interval. So much of every other operation's
// figure is the harness's own, its loop and its clocks. It is subtracted nowhere, judged nowhere, and in no effect.
type Harness struct {
	Treatment string      `json:"treatment"`
	Operation string      `json:"operation"`
	Metric    string      `json:"metric"`
	Unit      metric.Unit `json:"unit"`
	Value     float64     `json:"value"`
	Lo        *float64    `json:"lo,omitempty"`
	Hi        *float64    `json:"hi,omitempty"`
	Level     *float64    `json:"level,omitempty"`
	N         int         `json:"n"` // blocks, never calls
}

// Amount is how values of a metric are printed: like Quantity, and what is counted with its name: "8 objects".
func Amount(name string, u metric.Unit) func(float64) string {
	if name != metric.Allocations.Name {
		return Quantity(u)
	}
	return func(v float64) string {
		if s := unit.Number(v); s != "1" {
			return s + " objects"
		}
		return "1 object"
	}
}

// sizable is the share of the harness in a figure from which on it stands beside the figure.
const sizable = 0.05

// Beside is what stands beside a figure of which the harness is a good part: " (12 % harness)"; "" where it is not.
func (m *Metric) Beside() string {
	if m.Harness == nil || *m.Harness < sizable {
		return ""
	}
	return " (" + unit.Share(*m.Harness) + " harness)"
}

// HarnessLine says what doing nothing costs, over all treatments, and how much of the other figures that is at most; "" where it was not measured.
func (r *Report) HarnessLine() string {
	var parts []string
	for _, op := range distinct(pointers(r.Harness), func(h *Harness) string { return h.Operation }) {
		var costs []string
		for _, name := range distinct(pointers(r.Harness), func(h *Harness) string { return h.Metric }) {
			if s := r.doingNothing(op, name); s != "" {
				costs = append(costs, s)
			}
		}
		parts = append(parts, fmt.Sprintf("a call of %s, which does nothing, takes %s", op, strings.Join(costs, ", ")))
	}
	if len(parts) == 0 {
		return ""
	}
	return strings.Join(parts, "; ") + r.mostHarness() + "; it is subtracted nowhere"
}

// doingNothing is one metric of an operation that does nothing, over all treatments: "2.1 ns wall", "2.1 ns to 2.4 ns wall".
func (r *Report) doingNothing(operation, name string) string {
	all := slices.DeleteFunc(pointers(r.Harness), func(h *Harness) bool { return h.Operation != operation || h.Metric != name })
	if len(all) == 0 {
		return ""
	}
	least, most := all[0], all[0]
	for _, h := range all {
		if h.Value < least.Value {
			least = h
		}
		if h.Value > most.Value {
			most = h
		}
	}
	show := Amount(name, least.Unit)
	s := show(least.Value)
	if high := show(most.Value); high != s {
		s += " to " + high
	}
	switch name {
	case metric.Allocations.Name: // the amount says what it is of
		return s
	case metric.CPU.Name:
		return s + " CPU"
	}
	return s + " " + name
}

// mostHarness is the figure of which the harness has the greatest share.
func (r *Report) mostHarness() string {
	var most *Metric
	under := ""
	for i := range r.Treatments {
		for k := range r.Treatments[i].Metrics {
			if m := &r.Treatments[i].Metrics[k]; m.Harness != nil && (most == nil || *m.Harness > *most.Harness) {
				most, under = m, r.Treatments[i].ID
			}
		}
	}
	if most == nil {
		return ""
	}
	s := fmt.Sprintf(": at most %s of any figure here (%s", unit.Share(*most.Harness), most.measured())
	if name := r.withTreatment(named(r.labels(), under)); name != "" {
		s += " under " + strings.TrimSuffix(name, baselineNote)
	}
	return s + ")"
}
