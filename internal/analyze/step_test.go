package analyze

import (
	"strings"
	"testing"
)

// TestTimesAsLongAsAStep: equal times show no step of a clock, only that there may be one.
func TestTimesAsLongAsAStep(t *testing.T) {
	t.Parallel()
	x := &measure{value: []float64{1e-6, 1e-6}, step: 1e-6}
	c := &contrast{}
	c.effect.Kind = kindRatio
	err := c.inSteps(x, x, "")
	if err == nil || !strings.HasPrefix(err.Error(), "all times are multiples of 1 µs: if the clock has such steps") {
		t.Errorf("%v", err)
	}
}
