package report

import (
	"strings"
)

// harnessBlocks report the cost of the harness itself, from operations that do nothing.
func harnessBlocks(r *Report) []block {
	t := &grid{
		Caption: "Cost of a call that does nothing",
		table: append(wordHeads("operation", "treatment", "metric"), numberHeads("cost of a call", "interval",
			"blocks")...),
	}
	for i := range r.Harness {
		h := &r.Harness[i]
		show := Amount(h.Metric, h.Unit)
		t.add(h.Operation, r.withTreatment(h.Treatment), measure(h.Metric, ""), show(h.Value),
			strings.TrimSpace(interval(h.Lo, h.Hi, show)), whole(uint64(max(0, h.N))))
	}
	return whenAsked("Cost of the harness itself, by treatment", t)
}
