package sandbox

import (
	"fmt"
	"math"

	"tare/internal/unit"
)

// share is a planted cost: for every `whole` reported calls, `part` additional ones are made. It is a positive control:
// the cost of the arm is known, so an instrument that does not find it is wrong.
type share struct{ part, whole int }

const (
	// finestShare is the largest denominator. A batch is a multiple of it.
	finestShare = 1000
	// largestShare is the most that can be planted, as a ratio.
	largestShare = 10
	// mostMultiple bounds the least common multiple of all treatments' shares.
	mostMultiple = 10_000
)

// parseShare parses "2%" as 1 of 50.
func parseShare(text string) (share, error) {
	p, err := unit.ParsePercent(text)
	if err != nil {
		return share{}, err
	}
	const scale = 1_000_000
	exact := p.Ratio() * scale
	part := math.Round(exact)
	if math.Abs(exact-part) > 1e-3 || p.Ratio() > largestShare {
		return share{}, fmt.Errorf("%q cannot be planted: want a share up to %d%%, of no more than four decimals", text,
			largestShare*100)
	}
	d := greatestCommonDivisor(int(part), scale)
	s := share{part: int(part) / d, whole: scale / d}
	if s.whole > finestShare {
		return share{}, fmt.Errorf("%q is too fine to be planted: it would take batches of %d calls, and %d is the most",
			text, s.whole, finestShare)
	}
	return s, nil
}

// of returns the share of n calls; n must be a multiple of whole.
func (s share) of(n int) int { return n / s.whole * s.part }

func greatestCommonDivisor(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

func leastCommonMultiple(a, b int) int { return a / greatestCommonDivisor(a, b) * b }
