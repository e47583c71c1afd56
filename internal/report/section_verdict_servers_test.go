package report

import (
	"strings"
	"testing"

	"tare/internal/metric"
)

// TestServersAreComparedInTheFirstLine: who is slower and by how much; and where nothing was seen, how small a
// difference would have been.
func TestServersAreComparedInTheFirstLine(t *testing.T) {
	effect := func(estimate, lo, hi float64, v EffectVerdict) Effect {
		return Effect{
			Treatment: "url=b", Baseline: "url=a", Metric: "response", Quantile: "p50", Kind: "ratio", Gating: true, Blocks: 10,
			Estimate: estimate, Lo: lo, Hi: hi, Verdict: v, Margin: new(0.02), MDE: new(0.04), Level: 0.95,
		}
	}
	const again = " Two processes of one program can differ by as much for as long as they live: if these are two, " +
		"start them again to see whether it stays."
	for want, c := range map[string]struct {
		effect  Effect
		renewed int
	}{
		"b is 2.5 % slower than a [2.1, 2.9] (p50 345 µs → 354 µs). That is beyond the margin of 2 %." + again: {
			effect(.025, .021, .029, Regressed), 0,
		},
		"b is 2.5 % slower than a [2.1, 2.9] (p50 345 µs → 354 µs). That is beyond the margin of 2 %.": {
			effect(.025, .021, .029, Regressed), 9,
		},
		"b is 25.0 % slower than a [21.0, 29.0] (p50 345 µs → 431 µs). That is beyond the margin of 2 %.": {
			effect(.25, .21, .29, Regressed), 0,
		},
		"b is 3.0 % faster than a [2.0, 4.0] (p50 345 µs → 335 µs). That may be within the margin of 2 %." + again: {
			effect(-.03, -.04, -.02, Faster), 0,
		},
		"b is neither slower nor faster than a by more than the margin of 2 %: +0.1 % [-0.5, 0.7] (p50 345 µs → 345 µs).": {
			effect(.001, -.005, .007, Equivalent), 0,
		},
		"No difference between b and a is shown: +1.0 % [-3.0, 5.0] (p50 345 µs → 348 µs). One of 4 % would have been " +
			"seen, and one of about 2 % in 2m more.": {
			effect(.01, -.03, .05, EffectInconclusive), 0,
		},
	} {
		r := &Report{
			Design: &Design{Blocks: 10, Turn: .05, Renewed: c.renewed}, Effects: []Effect{c.effect}, Seconds: 40,
			Treatments: []Treatment{
				{ID: "url=a", Baseline: true, Levels: map[string]string{"url": "a"}, Metrics: []Metric{
					{Name: "response", Quantile: "p50", Unit: string(metric.Seconds), Value: 345e-6},
				}},
				{ID: "url=b", Levels: map[string]string{"url": "b"}},
			},
		}
		if got := strings.ReplaceAll(r.serversConclusion(), "\u00a0", " "); got != want {
			t.Errorf("%s\nwant\n%s", got, want)
		}
	}
	open := effect(-.2, -.3, .6, EffectInconclusive)
	open.MDE, open.Reason = nil, "30% of the calls failed under b"
	fails := Effect{
		Treatment: "url=b", Baseline: "url=a", Metric: "error", Kind: "difference", Estimate: .3, Lo: .28, Hi: .32,
		Measurable: true, Verdict: Regressed,
	}
	other := effect(.01, 0, .02, EffectInconclusive)
	other.Metric, other.Quantile, other.Gating = "goodput", "", false
	r := &Report{Design: &Design{Blocks: 10, Turn: .05}, Effects: []Effect{other, open, fails}}
	if got, want := strings.ReplaceAll(conclusion(r), "\u00a0", " "), "More calls fail under url=b than under url=a: "+
		"error +30.00 points [28.00, 32.00]. No difference between url=b and url=a is shown: -20 % [-30, 60]. "+
		"30% of the calls failed under b."; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
	if rows := r.single("url=b")[0].cells; len(rows) != 3 || rows[1] != "error" {
		t.Errorf("the share that fails does not follow what decides: %q", rows)
	}
	trials := &Report{Design: &Design{Blocks: 10}, Effects: []Effect{effect(.1, .05, .2, Regressed)}}
	if got := trials.serversConclusion(); got != "" {
		t.Errorf("servers that had trials are compared in the first line: %s", got)
	}
}
