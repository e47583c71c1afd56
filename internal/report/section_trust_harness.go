package report

import (
	"strings"
)

// harnessBlocks say what the harness itself costs, by operations that do nothing.
func harnessBlocks(r *Report) []block {
	line := r.HarnessLine()
	if line == "" {
		return nil
	}
	t := &grid{
		Caption: "What a call that does nothing costs",
		Head:    append(wordHeads("operation", "treatment", "metric"), numberHeads("cost of a call", "interval", "blocks")...),
	}
	for i := range r.Harness {
		h := &r.Harness[i]
		show := Amount(h.Metric, h.Unit)
		t.add(h.Operation, r.withTreatment(h.Treatment), measure(h.Metric, ""), show(h.Value), strings.TrimSpace(interval(h.Lo, h.Hi, show)), whole(uint64(max(0, h.N))))
	}
	return append([]block{{Heading: "What the harness itself costs"}, {Text: sentence(line)}},
		block{Figure: &figure{Summary: "The harness, by treatment", Table: t.used()}})
}
