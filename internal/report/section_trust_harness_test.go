package report

import (
	"strings"
	"testing"

	"tare/internal/metric"
)

// TestHarnessOnThePage: what doing nothing costs has a table of its own, and stands at the figures of which it is a
// good part.
func TestHarnessOnThePage(t *testing.T) {
	r := pageEnforcers(12)
	base := &r.Treatments[0]
	var figures []*Metric
	for i := range base.Metrics {
		if m := &base.Metrics[i]; m.Quantile == "" && m.Unit == string(metric.CPUSeconds) {
			figures = append(figures, m)
		}
	}
	if len(figures) < 2 {
		t.Fatalf("the sample has %d figures of CPU time, want two", len(figures))
	}
	figures[0].Harness, figures[1].Harness = new(.125), new(.004)
	r.Harness = []Harness{
		{
			Treatment: base.ID, Operation: "empty", Metric: "cpu", Unit: metric.CPUSeconds, Value: 5e-9, Lo: new(4.9e-9),
			Hi: new(5.2e-9), Level: new(.95), N: 12,
		},
		{Treatment: base.ID, Operation: "empty", Metric: "allocations", Unit: metric.Count, N: 12},
	}
	page := render(t, r)
	for _, want := range []string{
		"Cost of the harness itself", "does nothing, takes 5 ns CPU, 0 objects", "at most 12.5% of any figure",
		"no figure has it subtracted", "[4.9 ns, 5.2 ns]", "(12.5% harness)",
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if strings.Contains(page, "0.4% harness") {
		t.Error("a share of 0.4 % stands at its figure, where it says nothing")
	}
	if plain := render(t, pageEnforcers(12)); strings.Contains(plain, "harness itself") {
		t.Error("a report without such operations speaks of the harness")
	}
}
