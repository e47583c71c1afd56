package analyze

import (
	"fmt"
	"math"
	"strings"

	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/stat"
)

// FewestBlocks is how many blocks a verdict on the largest of so many gating effects of a treatment needs.
func FewestBlocks(gates int) int { return fewestFor(stat.LookAlpha / float64(gates)) }

// unchecked says why the A/A arm has no effect to check the run by, and what to change. skipped are the effects that
// could not be estimated, by reason.
func (a *analysis) unchecked(c *comparison, skipped skips) (why, change string) {
	if len(c.gates.all) == 0 {
		return c.ungated(a.rec.Plan.Load.Rate)
	}
	var reasons []string
	for _, reason := range sortedKeys(skipped) {
		reasons = append(reasons, strings.Join(skipped[reason].on, ", ")+": "+reason)
	}
	if len(reasons) == 0 {
		return "the run has no A/A arm to check it by", ""
	}
	return "the A/A arm cannot be judged: " + strings.Join(reasons, "; "), ""
}

// ungated says why no metric decides a verdict, though values were measured, and what to change. rate is what was
// offered; 0: no fixed rate.
func (c *comparison) ungated(rate float64) (why, change string) {
	var reasons []string
	least := math.MaxInt
	for _, m := range c.measures {
		if m.metric.Name == metric.Response.Name && c.wholeMix(m.operation) {
			least = min(least, c.fewest(m))
		}
	}
	if !c.batched {
		reasons = append(reasons, "there is no CPU time of the target")
	}
	switch {
	case len(c.measures) == 0:
		return "nothing was measured that could decide a verdict", ""
	case least == math.MaxInt:
		return "no metric decides a verdict: " + strings.Join(append(reasons, "no response times are given"), ", and "), ""
	}
	reasons = append(reasons, fmt.Sprintf(
		"response.p50 decides from %d calls a block on, of which there were %d", design.CallsToDecide, least,
	))
	why = "no metric decides a verdict: " + strings.Join(reasons, ", and ")
	change = "name a metric that is to decide, as in budget: [response.p50 <= +10%]"
	if rate > 0 {
		change += fmt.Sprintf(", or make %d calls a block: load: {duration: %v}", design.CallsToDecide,
			design.LongEnough(rate))
	}
	return why, change
}
