package design

import (
	"math"
	"time"
)

// The looks at a growing experiment: after these numbers of blocks it is judged, and may stop. Nothing is judged
// between them, since each look uses a part of the allowed error (package stat has the level of one look).
var looks = []int{10, 20, 40, 80, 160}

// MaxBlocks is the last look.
const MaxBlocks = 160

// Looks returns the numbers of blocks after which an experiment of at most so many blocks is judged, ascending: the
// usual ones below that number, and the number itself. There are at most five.
func Looks(blocks int) []int {
	var out []int
	for _, l := range looks {
		if l < blocks {
			out = append(out, l)
		}
	}
	if len(out) == len(looks) {
		out = out[:len(out)-1] // the end replaces the last look
	}
	if blocks > 0 {
		out = append(out, blocks)
	}
	return out
}

// Spare is how many additional blocks may be measured to replace blocks whose times cannot be used.
func Spare(blocks int) int { return (blocks + 1) / 2 }

// NextLook returns the first usual look at or above so many blocks; 0: there is none. A look beyond the last would use
// more of the error than is allowed, since that of the last ones is spent.
func NextLook(blocks int) int {
	for _, l := range looks {
		if l >= blocks {
			return l
		}
	}
	return 0
}

// CallsToDecide is how many calls a block needs for its median response to decide a verdict that no budget asks for.
const CallsToDecide = 1000

// LongEnough is the duration at which so many calls a second are enough for CallsToDecide in every block, with some to
// spare.
func LongEnough(rate float64) time.Duration {
	const spare = 1.05
	return time.Duration(math.Ceil(spare*CallsToDecide/rate)) * time.Second
}
