package stat

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"
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
// unit, so samples may depend on each other within one in any way. Blocks need not be of one size. The blocks are not
// changed.
//
// The error is a *NotEstimable for fewer than 20 blocks, fewer than 100/(1−q) samples in all (100/q below the median)
// or quantiles that are not positive; ErrNotFinite and ErrLevel as elsewhere.
func PooledQuantile(blocks [][]float64, q, level float64) (Estimate, error) {
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
func QuantileRatio(base, treated [][]float64, q, level float64) (Test, error) {
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
func poolLogs(blocks [][]float64, q float64) (full float64, deleted []float64, err error) {
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

// pool is the samples of all blocks, each block in ascending order.
type pool struct {
	blocks [][]float64
	n      int
}

func newPool(blocks [][]float64, q float64) (pool, error) {
	p := pool{blocks: make([][]float64, len(blocks))}
	for b, x := range blocks {
		s, err := sample(x, 0)
		if err != nil {
			return p, err
		}
		p.blocks[b], p.n = s, p.n+len(s)
	}
	if len(blocks) < FewestTailBlocks {
		return p, &NotEstimable{fmt.Sprintf("%d blocks, fewer than %d", len(blocks), FewestTailBlocks)}
	}
	if least := tailSamples / min(q, 1-q); float64(p.n) < least*(1-1e-9) {
		return p, &NotEstimable{fmt.Sprintf("%d samples, fewer than %.0f", p.n, math.Ceil(least*(1-1e-9)))}
	}
	for b, s := range p.blocks {
		if len(s) == p.n {
			return p, &NotEstimable{fmt.Sprintf("all samples are in block %d", b)}
		}
	}
	return p, nil
}

// quantiles is the smoothed q-quantile of all samples and of those outside each block. All of these depend on a narrow
// window of the pooled order only, little wider than one block's samples; this window alone is merged, once.
func (p pool) quantiles(q float64) (full float64, deleted []float64) {
	reach := int(math.Ceil(kernelReach*rankSpread(p.n, q))) + 1
	first, last := p.n, 0
	for _, s := range p.blocks {
		rank := nearestRank(p.n-len(s), q)
		first, last = min(first, rank), max(last, rank+len(s))
	}
	low, high := selectBy(max(first-reach, 1), p.atMost), selectBy(min(last+reach, p.n), p.atMost)
	window, below := p.window(low, high)
	seen := 0
	for _, c := range below {
		seen += c
	}
	deleted = make([]float64, len(p.blocks))
	for b, s := range p.blocks {
		deleted[b] = smoothed(window, b, seen-below[b], p.n-len(s), q)
	}
	return smoothed(window, -1, seen, p.n, q), deleted
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
		below[b] = sort.SearchFloat64s(s, lo)
		for _, v := range s[below[b]:sortedAtMost(s, hi)] {
			in = append(in, labelled{v, b})
		}
	}
	slices.SortFunc(in, func(a, b labelled) int { return cmp.Compare(a.value, b.value) })
	return in, below
}

func (p pool) atMost(v float64) int {
	n := 0
	for _, s := range p.blocks {
		n += sortedAtMost(s, v)
	}
	return n
}

// sortedAtMost counts the values of the ascending s that are at most v.
func sortedAtMost(s []float64, v float64) int {
	return sort.Search(len(s), func(i int) bool { return s[i] > v })
}
