package montecarlo

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"tare/internal/stat"
)

// An Exploration is a comparison whose many exploratory effects share a baseline: six treatments with twenty metrics
// each.
type Exploration struct {
	Name string
	// noise is one value of an arm, with variance 1 where it has one.
	noise func(r *rand.Rand) float64
	// shared is the part of a metric's variance that all metrics of an arm have in common in a block, half of them with
	// the other sign.
	shared float64
	spread bool    // the metrics' standard deviations lie between 0.5 % and 50 %; else 2 %
	wild   float64 // the share of blocks that are ten times as noisy for all
	uneven bool    // treated arms are three times as noisy as the baseline
	step   float64 // values are rounded to so many standard deviations
	first  float64 // what the first arm of a block costs more, in standard deviations
}

// Explorations are the kinds of noise under which exploratory effects are tested.
func Explorations() []Exploration {
	normal := func(r *rand.Rand) float64 { return r.NormFloat64() }
	return []Exploration{
		{Name: "normal", noise: normal},
		{Name: "heavy tails: Student t, 3 degrees of freedom", noise: student},
		{Name: "heavier: Cauchy", noise: func(r *rand.Rand) float64 { return r.NormFloat64() / r.NormFloat64() }},
		{Name: "skewed: Pareto 2.1", noise: func(r *rand.Rand) float64 { return math.Pow(1-r.Float64(), -1/2.1) }},
		{Name: "metrics that share 90 % of their variance", noise: normal, shared: 0.9},
		{Name: "standard deviations of 0.5 % to 50 %", noise: normal, spread: true},
		{Name: "one block in ten 10 times as noisy", noise: normal, shared: 0.5, wild: 0.1},
		{Name: "treated arms 3 times as noisy", noise: normal, uneven: true},
		{Name: "values rounded to 2 standard deviations", noise: normal, step: 2},
		{Name: "the first arm of a block 10 standard deviations dearer", noise: normal, first: 10},
	}
}

const (
	exploredArms    = 6
	exploredMetrics = 20
)

// effects draws the log ratios of all effects, treatment by treatment, and says which are genuine: every genuine-th
// metric of a treatment takes size longer, in standard deviations of a block's ratio; 0: none.
func (x Exploration) effects(r *rand.Rand, blocks, genuine int, size float64) (d [][]float64, truth []float64) {
	d, truth = make([][]float64, exploredArms*exploredMetrics), make([]float64, exploredArms*exploredMetrics)
	sd := make([]float64, exploredMetrics)
	for k := range sd {
		sd[k] = 0.02
		if x.spread {
			sd[k] = 0.005 * math.Pow(100, r.Float64())
		}
	}
	for i := range d {
		if k := i % exploredMetrics; genuine > 0 && k%genuine == 0 {
			truth[i] = size * sd[k] * math.Sqrt2
		}
		d[i] = make([]float64, blocks)
	}
	for b := range blocks {
		loud := 1.0
		if r.Float64() < x.wild {
			loud = 10
		}
		order := r.Perm(exploredArms + 1)
		base := x.arm(r, sd, 1, loud, order[0] == 0)
		for t := range exploredArms {
			own := 1.0
			if x.uneven {
				own = 3
			}
			arm := x.arm(r, sd, own, loud, order[t+1] == 0)
			for k := range sd {
				i := t*exploredMetrics + k
				d[i][b] = x.round(arm[k]+truth[i], sd[k]) - x.round(base[k], sd[k])
			}
		}
	}
	return d, truth
}

// arm draws the metrics of one arm in one block.
func (x Exploration) arm(r *rand.Rand, sd []float64, own, loud float64, first bool) []float64 {
	out, common := make([]float64, len(sd)), x.noise(r)
	for k := range out {
		sign := float64(1 - 2*(k%2))
		out[k] = math.Sqrt(x.shared)*sign*common + math.Sqrt(1-x.shared)*x.noise(r)
		out[k] *= own * loud
		if first {
			out[k] += x.first
		}
		out[k] *= sd[k]
	}
	return out
}

func (x Exploration) round(v, sd float64) float64 {
	if x.step == 0 {
		return v
	}
	return math.Round(v/(x.step*sd)) * x.step * sd
}

// Explored is how a procedure did.
type Explored struct {
	False  float64 // the mean share of false ones among those told from 0
	Any    float64 // some false one
	Missed float64 // the mean share of intervals of those told from 0 that miss the truth
	Found  float64 // share of the genuine ones
}

// exploredBlocks is how many blocks the published table is of.
const exploredBlocks = 8

// ExploreTable is how exploratory effects are judged in few blocks.
func ExploreTable(ctx context.Context, s Study) (Table, error) {
	t := Table{
		Title: "Exploratory effects in 8 blocks",
		Note: fmt.Sprintf("Six treatments with twenty metrics each, against one baseline: 120 effects. Student's test "+
			"under Benjamini and Hochberg's "+
			"procedure at %.2f %%, with its intervals; the true effects are 5 or 20 standard deviations of a block's ratio. "+
			"Last column: the same with the rank test.", 100*stat.LookAlpha),
		Columns: []string{
			"noise", "no effect: some false one", "30 of 5 SD: false share", "intervals that miss", "found",
			"30 of 20 SD: false share", "intervals that miss", "found", "6 of 20 SD: false share", "found", "found by ranks",
		},
	}
	for _, x := range Explorations() {
		row := []string{x.Name}
		for _, c := range []struct {
			genuine int
			size    float64
			test    procedure
			show    func(e Explored) []float64
		}{
			{0, 0, mean(), func(e Explored) []float64 { return []float64{e.Any} }},
			{4, 5, mean(), func(e Explored) []float64 { return []float64{e.False, e.Missed, e.Found} }},
			{4, 20, mean(), func(e Explored) []float64 { return []float64{e.False, e.Missed, e.Found} }},
			{20, 20, mean(), func(e Explored) []float64 { return []float64{e.False, e.Found} }},
			{20, 20, rank(), func(e Explored) []float64 { return []float64{e.Found} }},
		} {
			e, err := Explore(ctx, s, x, exploredBlocks, c.genuine, c.size, c.test)
			if err != nil {
				return t, err
			}
			for _, v := range c.show(e) {
				row = append(row, percent(v))
			}
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

// A procedure tests one effect: its p-value, and its interval at a level.
type procedure struct {
	p        func(d []float64) float64
	interval func(d []float64, level float64) stat.Estimate
}

// rank is the signed-rank test with the interval of Hodges and Lehmann; mean is Student's test.
func rank() procedure {
	return procedure{
		p:        func(d []float64) float64 { return pValueOrOne(stat.HodgesLehmann(d, 0.5)) },
		interval: func(d []float64, level float64) stat.Estimate { return interval(stat.HodgesLehmann(d, level)) },
	}
}

func mean() procedure {
	return procedure{
		p:        stat.MeanP,
		interval: func(d []float64, level float64) stat.Estimate { return interval(stat.MeanTest(d, level)) },
	}
}

// Explore measures a test under Benjamini and Hochberg's procedure, with the intervals that go with it.
func Explore(ctx context.Context, s Study, x Exploration, blocks, genuine int, size float64, test procedure) (Explored,
	error,
) {
	name := fmt.Sprintf("explore %s %d %d %g", x.Name, blocks, genuine, size)
	runs, err := repeat(ctx, s, name, func(r *rand.Rand) Explored { return explored(r, x, blocks, genuine, size, test) })
	var out Explored
	for _, o := range runs {
		n := float64(len(runs))
		out.False, out.Any, out.Missed, out.Found = out.False+o.False/n, out.Any+o.Any/n, out.Missed+o.Missed/n,
			out.Found+o.Found/n
	}
	return out, err
}

func explored(r *rand.Rand, x Exploration, blocks, genuine int, size float64, test procedure) Explored {
	d, truth := x.effects(r, blocks, genuine, size)
	p := make([]float64, len(d))
	for i := range d {
		p[i] = test.p(d[i])
	}
	alpha := stat.FalseCoverageLevel(p, stat.LookAlpha)
	var o Explored
	told, genuineOnes := 0.0, 0.0
	for i := range d {
		if truth[i] != 0 {
			genuineOnes++
		}
		if p[i] > alpha {
			continue
		}
		told++
		if e := test.interval(d[i], 1-alpha); truth[i] < e.Lo || truth[i] > e.Hi {
			o.Missed++
		}
		if truth[i] == 0 {
			o.False, o.Any = o.False+1, 1
		} else {
			o.Found++
		}
	}
	o.False, o.Missed, o.Found = o.False/max(1, told), o.Missed/max(1, told), o.Found/max(1, genuineOnes)
	return o
}
