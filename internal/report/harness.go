package report

import (
	"fmt"
	"slices"
	"strings"

	"tare/internal/metric"
	"tare/internal/unit"
)

// Harness is the cost of a call of an operation that does nothing: the median over blocks, with its interval. Every
// other operation's figure contains this cost of the harness's loop and clocks. It is not subtracted from any figure,
// not judged, and not part of any effect.
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

// Amount returns the function that prints values of a metric: like Quantity, and counts with their name: "8 objects".
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

// sizable is the share of the harness in a figure from which it is printed beside the figure.
const sizable = 0.05

// Beside returns the note on a figure of which the harness is a considerable part: " (12 % harness)"; otherwise "".
func (m *Metric) Beside() string {
	if m.Harness == nil || *m.Harness < sizable {
		return ""
	}
	return " (" + unit.Share(*m.Harness) + " harness)"
}

// HarnessLine describes the cost of doing nothing, over all treatments, and its largest share in the other figures; ""
// if it was not measured.
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
	return strings.Join(parts, "; ") + r.mostHarness() + "; no figure has it subtracted"
}

// doingNothing describes one metric of an operation that does nothing, over all treatments: "2.1 ns wall", "2.1 ns to
// 2.4 ns wall".
func (r *Report) doingNothing(operation, name string) string {
	all := slices.DeleteFunc(pointers(r.Harness), func(h *Harness) bool {
		return h.Operation != operation ||
			h.Metric != name
	})
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
	case metric.Allocations.Name: // the amount names the metric
		return s
	case metric.CPU.Name:
		return s + " CPU"
	}
	return s + " " + name
}

// mostHarness returns the figure of which the harness has the largest share.
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
