package stat

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// costs is the logarithm of each cost, by size (ascending) and block.
type costs struct {
	n   []float64
	log [][]float64
}

func (d costs) blocks() int { return len(d.log[0]) }

func newCosts(n []float64, blocks [][]float64) (costs, error) {
	if len(n) != len(blocks) {
		return costs{}, fmt.Errorf("%d sizes but costs of %d", len(n), len(blocks))
	}
	if len(n) < fewestSizes {
		return costs{}, fmt.Errorf("%d sizes; a growth law takes at least %d", len(n), fewestSizes)
	}
	order := make([]int, len(n))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(n[a], n[b]) })
	d := costs{}
	for k, i := range order {
		if !(n[i] >= 0) || math.IsInf(n[i], 0) || k > 0 && n[i] == d.n[k-1] {
			return costs{}, fmt.Errorf("size %v is negative, not finite or there twice", n[i])
		}
		if len(blocks[i]) == 0 || len(blocks[i]) != len(blocks[0]) {
			return costs{}, fmt.Errorf("size %v has %d blocks, another %d", n[i], len(blocks[i]), len(blocks[0]))
		}
		logs := make([]float64, len(blocks[i]))
		for b, v := range blocks[i] {
			if !(v > 0) || math.IsInf(v, 0) {
				return costs{}, fmt.Errorf("size %v costs %v in block %d; a cost must be positive and finite", n[i], v, b)
			}
			logs[b] = math.Log(v)
		}
		d.n, d.log = append(d.n, n[i]), append(d.log, logs)
	}
	return d, nil
}

// centre is the Hodges–Lehmann estimate of each size's logarithms, without one block (−1: with all).
func (d costs) centre(without int) []float64 {
	y := make([]float64, len(d.n))
	for i, x := range d.log {
		s := slices.Clone(x)
		if without >= 0 {
			s = slices.Delete(s, without, without+1)
		}
		slices.Sort(s)
		y[i] = middle(len(s)*(len(s)+1)/2, func(v float64) int { return walshAtMost(s, v) })
	}
	return y
}

// fitLaws fits every law to the logarithms y of the costs.
func fitLaws(n, y []float64) []Fit {
	var fits []Fit
	for _, l := range Laws() {
		fits = append(fits, fitLaw(l, n, y))
	}
	return fits
}

func fitLaw(l Law, n, y []float64) Fit {
	columns := [][]float64{ones(len(n))}
	if l != Constant {
		f := make([]float64, len(n))
		for i := range n {
			f[i] = l.F(n[i])
		}
		columns = append(columns, f)
	}
	c, rss := fitColumns(columns, y)
	fit := Fit{Law: l, C0: c[0], RSS: rss, BIC: bic(rss, len(n), len(columns)+1)}
	if l != Constant {
		fit.C1 = c[1]
	}
	return fit
}

// bic is Schwarz's criterion for k parameters, the variance among them. The floor keeps a perfect fit comparable:
// differences of less than 1e-9 are rounding.
func bic(rss float64, n, k int) float64 {
	f := float64(n)
	return f*math.Log(max(rss/f, 1e-18)) + float64(k)*math.Log(f)
}

func ones(n int) []float64 {
	one := make([]float64, n)
	for i := range one {
		one[i] = 1
	}
	return one
}

// fitColumns finds the coefficients c ≥ 0 of the columns that minimise the squared differences between y and the
// logarithm of the sum, by Gauss–Newton: each step is a least-squares problem in relative units, in which every choice
// of columns that may stay above 0 is tried (there are at most three columns, so at most seven).
func fitColumns(columns [][]float64, y []float64) (best []float64, rss float64) {
	scaled, unit := scale(columns)
	target := make([]float64, len(y))
	weight := make([]float64, len(y))
	fitted := slices.Clone(y)
	rss = math.Inf(1)
	best = make([]float64, len(columns))
	for range 30 {
		for i := range y {
			// log y − log c·x ≈ (target − c·x)/fitted around the last fit.
			weight[i] = math.Exp(-fitted[i])
			target[i] = 1 + min(max(y[i]-fitted[i], -1), 1)
		}
		c := nonNegative(scaled, weight, target)
		fitted = evaluate(scaled, c)
		now := squares(y, fitted)
		if !(now < rss) {
			break
		}
		done := rss-now < 1e-12*rss
		rss = now
		copy(best, c)
		if done {
			break
		}
	}
	for j := range best {
		best[j] /= unit[j]
	}
	return best, rss
}

// scale divides each column by its largest value, for the sake of the normal equations.
func scale(columns [][]float64) (scaled [][]float64, unit []float64) {
	scaled, unit = make([][]float64, len(columns)), make([]float64, len(columns))
	for j, x := range columns {
		unit[j] = slices.Max(x)
		if unit[j] == 0 {
			unit[j] = 1
		}
		scaled[j] = make([]float64, len(x))
		for i, v := range x {
			scaled[j][i] = v / unit[j]
		}
	}
	return scaled, unit
}

func evaluate(columns [][]float64, c []float64) []float64 {
	out := make([]float64, len(columns[0]))
	for j, x := range columns {
		for i, v := range x {
			out[i] += c[j] * v
		}
	}
	for i, v := range out {
		out[i] = math.Log(v)
	}
	return out
}

func squares(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += (a[i] - b[i]) * (a[i] - b[i])
	}
	return sum
}

// mostColumns is how many columns a sum of a law may have.
const mostColumns = 3

// nonNegative minimises Σ (target − weight·Σ c·column)² over c ≥ 0.
func nonNegative(columns [][]float64, weight, target []float64) []float64 {
	best, least := make([]float64, len(columns)), math.Inf(1)
	room := make([]float64, len(columns)*len(target))
	for set := 1; set < 1<<len(columns); set++ {
		c, ok := leastSquares(columns, weight, target, set, room)
		if !ok {
			continue
		}
		sum := 0.0
		for i := range target {
			r := target[i]
			for j, x := range columns {
				r -= weight[i] * c[j] * x[i]
			}
			sum += r * r
		}
		if sum < least {
			copy(best, c[:])
			least = sum
		}
	}
	return best
}

// leastSquares solves for the columns in set, by the Gram–Schmidt method, which is gentler to nearly parallel columns
// than the normal equations. ok is false if a coefficient would be negative or is not determined. room is for all
// columns.
func leastSquares(columns [][]float64, weight, target []float64, set int, room []float64) (
	c [mostColumns]float64, ok bool,
) {
	var all [mostColumns][]float64
	var in [mostColumns]int
	q, index := all[:0], in[:0]
	r := [mostColumns][mostColumns]float64{}
	for j, x := range columns {
		if set>>j&1 == 0 {
			continue
		}
		v := room[j*len(x) : (j+1)*len(x)]
		for i := range x {
			v[i] = x[i] * weight[i]
		}
		size := math.Sqrt(dot(v, v))
		for k, u := range q {
			p := dot(u, v)
			r[k][len(q)] = p
			for i := range v {
				v[i] -= p * u[i]
			}
		}
		norm := math.Sqrt(dot(v, v))
		if !(norm > 1e-9*size) {
			return c, false
		}
		r[len(q)][len(q)] = norm
		for i := range v {
			v[i] /= norm
		}
		q, index = append(q, v), append(index, j)
	}
	return backward(&r, q, index, target)
}

func backward(r *[mostColumns][mostColumns]float64, q [][]float64, index []int, target []float64) (
	c [mostColumns]float64, ok bool,
) {
	for k, u := range slices.Backward(q) {
		v := dot(u, target)
		for l := k + 1; l < len(q); l++ {
			v -= r[k][l] * c[index[l]]
		}
		if v /= r[k][k]; !(v >= 0) || math.IsInf(v, 0) {
			return c, false
		}
		c[index[k]] = v
	}
	return c, true
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i := range a {
		sum += a[i] * b[i]
	}
	return sum
}
