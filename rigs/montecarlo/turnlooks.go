package montecarlo

import (
	"context"
	"math"
	"math/rand/v2"

	"tare/internal/stat"
)

// turnLook is what one look at the A/A arm and at the treatment shows, at the level of a look.
type turnLook struct {
	same, treated stat.Estimate
}

func excludes0(e stat.Estimate) bool { return e.Lo > 0 || e.Hi < 0 }

// named reports whether the comparison names a difference if it stops at the first look that decides: whose interval
// excludes 0, or lies within the margin.
func named(looks []turnLook, of func(turnLook) stat.Estimate) bool {
	m := math.Log1p(margin)
	for _, l := range looks {
		switch e := of(l); {
		case excludes0(e):
			return true
		case stat.Equivalent(e, -m, m):
			return false
		}
	}
	return false
}

func ofSame(l turnLook) stat.Estimate    { return l.same }
func ofTreated(l turnLook) stat.Estimate { return l.treated }

// turnRun is the looks of one comparison, by value.
type turnRun [][]turnLook

// shortLooks are the looks that every comparison has; one in four has all of those asked for, since most of the time
// of a study goes into the last ones.
const shortLooks = 3

// compareByTurns runs comparisons with the given looks, and evaluates each with all values.
func compareByTurns(ctx context.Context, s Study, c turnCase, values []BlockValue, looks []int) ([]turnRun, error) {
	return repeat(ctx, s, "turns "+c.host.Name+" "+c.service.Name, func(r *rand.Rand) turnRun {
		looks := looks
		if len(looks) > shortLooks && r.IntN(4) > 0 {
			looks = looks[:shortLooks]
		}
		run := c.start(r)
		same, treated := make([][]float64, len(values)), make([][]float64, len(values))
		out := make(turnRun, len(values))
		for _, look := range looks {
			for run.block < look {
				b := run.next()
				for i, v := range values {
					same[i] = append(same[i], v.of(&b[baseArm], &b[sameArm]))
					treated[i] = append(treated[i], v.of(&b[baseArm], &b[treatedArm]))
				}
			}
			for i := range values {
				out[i] = append(out[i], turnLook{lookAt(same[i]), lookAt(treated[i])})
			}
		}
		return out
	})
}

// lookAt is the interval of a look at the blocks that have a value.
func lookAt(blocks []float64) stat.Estimate {
	d := make([]float64, 0, len(blocks))
	for _, v := range blocks {
		if !math.IsNaN(v) {
			d = append(d, v)
		}
	}
	return interval(stat.HodgesLehmann(d, 1-stat.LookAlpha))
}

// turnTally counts what comparisons with one value showed.
type turnTally struct {
	runs, whole       int         // comparisons, and those with all looks
	excluded, found   []int       // by look: comparisons whose interval for the A/A arm, for the treatment excludes 0
	missed            []int       // by look: whose interval for the treatment misses the truth
	half              [][]float64 // by look: half widths for the A/A arm
	estimates         []float64   // of the treatment, at the last look
	falsely, detected int         // comparisons with all looks that named a difference, with the rule that stops them
}

func newTally(looks int) *turnTally {
	return &turnTally{
		excluded: make([]int, looks), found: make([]int, looks), missed: make([]int, looks), half: make([][]float64, looks),
	}
}

// add takes in the looks of one comparison, of whose treatment the true effect is known.
func (t *turnTally) add(looks []turnLook, truth float64) {
	t.runs++
	count := func(n *int, is bool) {
		if is {
			*n++
		}
	}
	for i, l := range looks {
		count(&t.excluded[i], excludes0(l.same))
		count(&t.found[i], excludes0(l.treated))
		count(&t.missed[i], l.treated.Lo > truth || l.treated.Hi < truth)
		t.half[i] = append(t.half[i], (l.same.Hi-l.same.Lo)/2)
	}
	if len(looks) == len(t.excluded) {
		t.whole++
		count(&t.falsely, named(looks, ofSame))
		count(&t.detected, named(looks, ofTreated))
	}
	t.estimates = append(t.estimates, looks[len(looks)-1].treated.Value)
}

// at is the share that a count by look is of the comparisons that had that look.
func (t *turnTally) at(counts []int, look int) float64 {
	return float64(counts[look]) / float64(max(1, len(t.half[look])))
}

// stopped is the share of the comparisons with all looks.
func (t *turnTally) stopped(n int) float64 { return float64(n) / float64(max(1, t.whole)) }

// merged adds up tallies.
func merged(tallies ...*turnTally) *turnTally {
	sum := newTally(len(tallies[0].excluded))
	for _, t := range tallies {
		sum.runs, sum.whole = sum.runs+t.runs, sum.whole+t.whole
		for i := range t.excluded {
			sum.excluded[i] += t.excluded[i]
			sum.found[i] += t.found[i]
			sum.missed[i] += t.missed[i]
			sum.half[i] = append(sum.half[i], t.half[i]...)
		}
		sum.falsely += t.falsely
		sum.detected += t.detected
		sum.estimates = append(sum.estimates, t.estimates...)
	}
	return sum
}

// tallyTurns runs one case and counts what it showed, by value.
func tallyTurns(ctx context.Context, s Study, c turnCase, values []BlockValue, looks []int, truth float64,
) ([]*turnTally, error) {
	runs, err := compareByTurns(ctx, s, c, values, looks)
	out := make([]*turnTally, len(values))
	for i := range out {
		out[i] = newTally(len(looks))
		for _, r := range runs {
			if r != nil { // the study was cancelled
				out[i].add(r[i], truth)
			}
		}
	}
	return out, err
}
