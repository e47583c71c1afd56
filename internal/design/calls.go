package design

import (
	"math"
	"time"
)

// CallsToDecide is how many calls a block needs for its median response to decide a verdict that no budget asks for.
const CallsToDecide = 1000

// LongEnough is the duration at which so many calls a second are enough for CallsToDecide in every block, with some to
// spare.
func LongEnough(rate float64) time.Duration {
	const spare = 1.05
	return time.Duration(math.Ceil(spare*CallsToDecide/rate)) * time.Second
}
