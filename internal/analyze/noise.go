package analyze

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"tare/internal/metric"
	"tare/internal/stat"
)

// A block is called slow when every arm took so much longer in it than it usually does. What disturbs all arms alike
// cancels in the comparison, but says what kind of host this is.
const slowBlock = 0.10

// outlier is by how many standard deviations a block must stand out from the others, where all vary.
const outlier = 4

// spreadOf is the standard deviation of normal values with the same median absolute deviation (Hampel, JASA 69, 1974).
func spreadOf(v []float64) float64 {
	mid := stat.Quantile(v, .5)
	off := make([]float64, len(v))
	for i, x := range v {
		off[i] = math.Abs(x - mid)
	}
	return 1.4826 * stat.Quantile(off, .5)
}

// noise warns of blocks that were slow in every arm, and of metrics that vary and must not.
func (a *analysis) noise(c *comparison) {
	by := make([]float64, len(c.blocks))
	for i := range by {
		by[i] = c.slowness(i)
	}
	limit := max(slowBlock, outlier*spreadOf(by))
	var slow []int
	worst := 0.0
	for i, v := range by {
		if v > limit {
			slow = append(slow, c.blocks[i])
			worst = max(worst, v)
		}
	}
	switch len(slow) {
	case 0:
	case 1:
		a.warn("", "%s slow in every arm (%+.0f %%): host noise", blockList(slow), worst*100)
	default:
		a.warn("", "%s slow in every arm (up to %+.0f %%): host noise", blockList(slow), worst*100)
	}
	var varies []string
	for _, m := range c.measures {
		if v := measuredOnly(m.value); m.metric.Noise == metric.Exact && len(v) > 1 && slices.Min(v) != slices.Max(v) {
			varies = append(varies, fmt.Sprintf("%s under %s", gate{m.operation, m.metric.Name, ""}, m.treatment))
		}
	}
	if len(varies) > 0 {
		a.warn("", "%s varies from block to block, which an exact metric must not", strings.Join(varies, ", "))
	}
}

// slowness is by how much every arm exceeded its own median in block i: the least of the arms' excesses, each the
// median over operations. 0 with too few blocks or arms to tell.
func (c *comparison) slowness(i int) float64 {
	if len(c.blocks) < 5 || len(c.arms) < 2 {
		return 0
	}
	per := map[string][]float64{}
	for _, m := range c.measures {
		if m.metric.Name != metric.Wall.Name && m.metric.Name != metric.Response.Name {
			continue
		}
		usual := stat.Quantile(measuredOnly(m.value), .5)
		if v := m.value[i]; isFinite(v) && usual > 0 {
			per[m.treatment] = append(per[m.treatment], v/usual-1)
		}
	}
	least := math.Inf(1)
	for _, arm := range c.arms {
		v := per[arm.ID]
		if len(v) == 0 {
			return 0
		}
		least = min(least, stat.Median(v))
	}
	return least
}
