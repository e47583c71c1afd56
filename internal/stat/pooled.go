package stat

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

const (
	FewestTailBlocks = 20  // the least blocks for a jackknife of a tail
	tailSamples      = 100 // the least samples beyond the quantile: 100/(1−q) pooled ones
)

// NotEstimable says that a quantile cannot be given with an interval, and why.
type NotEstimable struct{ Reason string }

// Error is the reason.
func (e *NotEstimable) Error() string { return "not estimable: " + e.Reason }

// PooledQuantile is the q-quantile of the samples of all blocks together, smoothed: the order statistics around rank
// q·n, weighted by a normal density whose standard deviation is that of the rank, √(nq(1−q)) (Sheather & Marron, J.
// Amer. Stat. Assoc. 85 (1990) 410; nearly the estimator of Harrell & Davis, Biometrika 69 (1982) 635, who pair it with
// the jackknife). A single order statistic would not do: deleting a block moves its rank by a few places only, and so
// few spacings do not tell its variance.
//
// The interval is that of the jackknife that deletes one block at a time, on the scale of logarithms, with Student's t
// of B−1 degrees of freedom (Efron & Tibshirani, An Introduction to the Bootstrap, section 11.5): the block is the
// unit, so samples may depend on each other within one in any way. Blocks need not be of one size.
//
// The error is a *NotEstimable for fewer than 20 blocks, fewer than 100/(1−q) samples in all (100/q below the median)
// or quantiles that are not positive; ErrNotFinite and ErrLevel as elsewhere.
func PooledQuantile(blocks []Sample, q, level float64) (Estimate, error) {
	if err := checkTail(q, level); err != nil {
		return Estimate{}, err
	}
	full, deleted, err := poolLogs(blocks, q)
	if err != nil {
		return Estimate{}, err
	}
	e, _ := jackknife(full, deleted, level)
	e.Value, e.Lo, e.Hi = math.Exp(e.Value), math.Exp(e.Lo), math.Exp(e.Hi)
	return e, nil
}

// QuantileRatio is the logarithm of the ratio of treated's pooled q-quantile to base's, with the interval of
// PooledQuantile's jackknife: block b of both is deleted together, so what a block does to both cancels. P is that of a
// ratio of 1. The errors are those of PooledQuantile, and one for different numbers of blocks.
func QuantileRatio(base, treated []Sample, q, level float64) (Test, error) {
	if err := checkTail(q, level); err != nil {
		return Test{}, err
	}
	if len(base) != len(treated) {
		return Test{}, fmt.Errorf("%d blocks against %d", len(treated), len(base))
	}
	fullBase, deletedBase, err := poolLogs(base, q)
	if err != nil {
		return Test{}, err
	}
	full, deleted, err := poolLogs(treated, q)
	if err != nil {
		return Test{}, err
	}
	for b := range deleted {
		deleted[b] -= deletedBase[b]
	}
	e, se := jackknife(full-fullBase, deleted, level)
	t := Test{Estimate: e, P: 1}
	if se > 0 {
		t.P = 2 * StudentCDF(-math.Abs(e.Value/se), float64(e.N-1))
	} else if e.Value != 0 {
		t.P = 0
	}
	return t, nil
}

func checkTail(q, level float64) error {
	if !(q > 0 && q < 1) {
		return fmt.Errorf("the quantile %v does not lie between 0 and 1", q)
	}
	return checkLevel(level)
}

// jackknife is the estimate full with Student's interval, given the estimates without each of the blocks in turn.
func jackknife(full float64, deleted []float64, level float64) (e Estimate, se float64) {
	b := float64(len(deleted))
	se = math.Sqrt((b - 1) * (b - 1) / b * Variance(deleted))
	half := StudentQuantile((1+level)/2, b-1) * se
	return Estimate{Value: full, Lo: full - half, Hi: full + half, Level: level, N: len(deleted)}, se
}

// poolLogs is the logarithm of the pooled quantile, with all blocks and without each.
func poolLogs(blocks []Sample, q float64) (full float64, deleted []float64, err error) {
	p, err := newPool(blocks, q)
	if err != nil {
		return 0, nil, err
	}
	full, deleted = p.quantiles(q)
	for _, v := range append(deleted, full) {
		if !(v > 0) {
			return 0, nil, &NotEstimable{"the quantile is not positive"}
		}
	}
	for b, v := range deleted {
		deleted[b] = math.Log(v)
	}
	return math.Log(full), deleted, nil
}

// pool is the samples of all blocks.
type pool struct {
	blocks []Sample
	n      int
}

func newPool(blocks []Sample, q float64) (pool, error) {
	p := pool{blocks: blocks}
	for _, s := range blocks {
		if s.AtMost(math.Inf(-1)) > 0 || s.AtMost(math.MaxFloat64) < s.Len() { // NaN comes before −Inf
			return p, ErrNotFinite
		}
		p.n += s.Len()
	}
	if len(blocks) < FewestTailBlocks {
		return p, &NotEstimable{fmt.Sprintf("%d blocks, fewer than %d", len(blocks), FewestTailBlocks)}
	}
	if least := tailSamples / min(q, 1-q); float64(p.n) < least*(1-1e-9) {
		return p, &NotEstimable{fmt.Sprintf("%d samples, fewer than %.0f", p.n, math.Ceil(least*(1-1e-9)))}
	}
	for b, s := range p.blocks {
		if s.Len() == p.n {
			return p, &NotEstimable{fmt.Sprintf("all samples are in block %d", b)}
		}
	}
	return p, nil
}

// quantiles is the smoothed q-quantile of all samples and of those outside each block. All of these depend on a narrow
// window of the pooled order only; this window alone is merged, once.
func (p pool) quantiles(q float64) (full float64, deleted []float64) {
	low, high := p.reach(q)
	window, below := p.window(low, high)
	seen := 0
	for _, c := range below {
		seen += c
	}
	deleted = make([]float64, len(p.blocks))
	for b, s := range p.blocks {
		deleted[b] = smoothed(window, b, seen-below[b], p.n-s.Len(), q)
	}
	return smoothed(window, -1, seen, p.n, q), deleted
}

// reach returns the least and the greatest of the values on which any of these quantiles depends.
func (p pool) reach(q float64) (low, high float64) {
	end := func(n int, side float64) int { return int(q*float64(n) + side*kernelReach*rankSpread(n, q)) }
	first := func(n int) int { return max(end(n, -1)-1, 1) }
	last := func(n int) int { return min(end(n, 1)+3, n) }
	low = selectBy(1, func(v float64) int { return p.reached(v, first) })
	high = selectBy(1+len(p.blocks), func(v float64) int { return p.reached(v, last) })
	return low, high
}

// reached counts, of all samples and those outside each block, the sets of which at least rank(n) of n are at most v.
func (p pool) reached(v float64, rank func(n int) int) (count int) {
	sum, of := 0, make([]int, len(p.blocks))
	for b, s := range p.blocks {
		of[b] = s.AtMost(v)
		sum += of[b]
	}
	if sum >= rank(p.n) {
		count++
	}
	for b, s := range p.blocks {
		if sum-of[b] >= rank(p.n-s.Len()) {
			count++
		}
	}
	return count
}

// kernelReach is how far from the quantile's rank samples count, in standard deviations of the rank.
const kernelReach = 4

// rankSpread is the standard deviation of the number of n independent samples below their distribution's q-quantile.
func rankSpread(n int, q float64) float64 { return math.Sqrt(float64(n) * q * (1 - q)) }

// smoothed is the q-quantile of n samples: those of window that are not in block without, of which the first has the
// rank after before. Each counts by a normal density around the quantile's rank.
func smoothed(window []labelled, without, before, n int, q float64) float64 {
	spread, centre := rankSpread(n, q), q*float64(n)
	sum, weights, rank := 0.0, 0.0, float64(before)
	for _, w := range window {
		if w.block == without {
			continue
		}
		rank++
		z := (rank - 0.5 - centre) / spread
		if z > kernelReach {
			break
		}
		if z >= -kernelReach {
			k := math.Exp(-z * z / 2)
			sum, weights = sum+k*w.value, weights+k
		}
	}
	return sum / weights
}

type labelled struct {
	value float64
	block int
}

// window is the samples from lo to hi in ascending order, and for each block how many lie below lo.
func (p pool) window(lo, hi float64) (in []labelled, below []int) {
	below = make([]int, len(p.blocks))
	for b, s := range p.blocks {
		below[b] = s.AtMost(math.Nextafter(lo, math.Inf(-1)))
		s.Within(lo, hi, func(v float64) { in = append(in, labelled{v, b}) })
	}
	slices.SortFunc(in, func(a, b labelled) int { return cmp.Compare(a.value, b.value) })
	return in, below
}
