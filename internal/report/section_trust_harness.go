package report

import (
	"strings"
)

// harnessBlocks say what the harness itself costs, by operations that do nothing.
func harnessBlocks(r *Report) []block {
	t := &grid{
		Caption: "What a call that does nothing costs",
		table:   append(wordHeads("operation", "treatment", "metric"), numberHeads("cost of a call", "interval", "blocks")...),
	}
	for i := range r.Harness {
		h := &r.Harness[i]
		show := Amount(h.Metric, h.Unit)
		t.add(h.Operation, r.withTreatment(h.Treatment), measure(h.Metric, ""), show(h.Value), strings.TrimSpace(interval(h.Lo, h.Hi, show)), whole(uint64(max(0, h.N))))
	}
	return whenAsked("What the harness itself costs, by treatment", t)
}
