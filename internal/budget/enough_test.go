package budget_test

import (
	"strings"
	"testing"
	"time"

	"tare/internal/budget"
	"tare/internal/design"
	"tare/internal/metric"
)

// TestUnprovable: a soak that is too short to show that a budget is kept is told so before it begins, with what would
// do.
func TestUnprovable(t *testing.T) {
	soak := budget.Rules{
		Question: "soak", Drift: true,
		Calls: append(budget.Times(budget.Kind{Quantiles: []string{"min", "mean", "max"}, Samples: true}),
			budget.Means(metric.Error, metric.Goodput)...),
		Probed: []string{"rss"},
	}
	for _, c := range []struct {
		text    string
		calls   float64
		maxRate float64
		want    string // empty: it can be shown
	}{
		{"error <= 0.1%", 3000, 0, "even if none fails: it takes 3838, as in 1m17s, or at 64/s"},
		{"error <= 0.1%", 3000, 50, "it takes 3838, as in 1m17s"},
		{"error <= 0.1%", 3838, 0, ""},
		{"error <= 0.1%", 3837, 0, "it takes 3838"},
		{"error <= 1%", 3000, 0, ""},
		{"error <= 0%", 1e9, 0, "no number of calls shows that none will ever fail"},
		{"error >= 1%", 10, 0, ""},
		{"response.p99 <= 20ms", 380, 0, "it takes 381"},
		{"response.p99 <= 20ms", 381, 0, ""},
		{"response.p99.9 <= 20ms", 3000, 0, "it takes 3838"},
		{"response.p5 >= 1ms", 50, 0, "it takes 73"},
		{"response.p5 <= 1ms", 20, 0, ""},
		{"response <= 20ms", 20, 0, ""},
		{"response.mean <= 20ms", 20, 0, ""},
		{"response.max <= 20ms", 20, 0, ""},
		{"goodput >= 40/s", 20, 0, ""},
		{"rss <= 1GiB", 20, 0, ""},
		{"error <= 0.1%", 0, 0, ""}, // closed workers: nobody knows
		{"wall <= 1s", 20, 0, ""},   // is refused for another reason
	} {
		s := &budget.Scope{
			Rules: soak, Treatments: []design.Treatment{{ID: "default"}}, Length: time.Minute, Rate: 50, MaxRate: c.maxRate,
			Of: func(*design.Treatment) budget.Arm {
				return budget.Arm{Open: true, Samples: func(string) float64 { return c.calls }}
			},
		}
		b, err := budget.Parse(c.text)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Unprovable(b); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s with %.0f calls: %q, want %q", c.text, c.calls, got, c.want)
		}
		if got := s.Unprovable(b); c.want != "" && c.maxRate > 0 && strings.Contains(got, "or at") {
			t.Errorf("a rate above max_rate is offered: %q", got)
		}
	}
}
