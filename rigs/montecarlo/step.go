package montecarlo

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tare/internal/stat"
)

// A Turn is a cost that one law does not describe, or a curve that is none of the laws.
type Turn struct {
	Name string
	// From and To are the sizes between which the cost jumps by Factor, 0 without a step; Bend is the size of a knee, 0
	// without.
	From, To, Factor, Bend float64
	cost                   func(n float64) float64
}

// around is a ladder with sizes close to a cache of 2,000.
func around() []float64 {
	return []float64{10, 50, 100, 200, 500, 1000, 1500, 1999, 2001, 2500, 3500, 5000, 10000}
}

func jump(name string, factor float64, law func(n float64) float64) Turn {
	return Turn{Name: name, From: 1999, To: 2001, Factor: factor, cost: func(n float64) float64 {
		if n > 2000 {
			return factor * law(n)
		}
		return law(n)
	}}
}

// Turns are steps, bends, and smooth curves that the six laws miss.
func Turns() []Turn {
	flat := func(float64) float64 { return 4 }
	return []Turn{
		jump("step ×1.1, else constant", 1.1, flat),
		jump("step ×1.5, else constant", 1.5, flat),
		jump("step ×0.7, else constant", 0.7, flat),
		jump("step ×1.5, else log N", 1.5, func(n float64) float64 { return 4 + math.Log2(1+n) }),
		jump("step ×1.5, else linear", 1.5, func(n float64) float64 { return 100 + 0.04*n }),
		jump("step ×5.6, else constant", 5.6, flat),
		{
			Name: "4 + 19·(1 − 2000/N) from 2000 on",
			Bend: 2000, cost: func(n float64) float64 { return 4 + 19*max(0, 1-2000/n) },
		},
		{
			Name: "constant, from 1400 on linear", Bend: 1400,
			cost: func(n float64) float64 { return 100 + 0.05*max(0, n-1400) },
		},
		{
			Name: "linear, from 700 on 10 times steeper",
			Bend: 700, cost: func(n float64) float64 { return 100 + 0.02*n + 0.18*max(0, n-700) },
		},
		{Name: "4 + 19·N/(N+2000)", cost: func(n float64) float64 { return 4 + 19*n/(n+2000) }},
		{Name: "10 + N^0.7", cost: func(n float64) float64 { return 10 + math.Pow(n, 0.7) }},
		{Name: "20 + 5·log N + 0.05·N", cost: func(n float64) float64 { return 20 + 5*math.Log2(1+n) + 0.05*n }},
		{Name: "10 + 1000/N", cost: func(n float64) float64 { return 10 + 1000/n }},
		{Name: "4 + 19·N²/(N²+2000²)", cost: func(n float64) float64 { return 4 + 19*n*n/(n*n+4e6) }},
	}
}

// Turned is what became of the fits of one turn.
type Turned struct {
	Turn  string
	Noise float64
	// Shares of the runs: a step was named, between the true sizes; a bend; neither although no one law explains the
	// costs; a law was named.
	Step, Placed, Bend, Undecided, Law float64
	// Covered is the share of the steps in the right place whose 95 % interval holds the factor, or of the bends whose
	// interval holds the place.
	Covered float64
	// Bias is the mean of log(estimate/truth) over the same.
	Bias float64
	// Broken is the share of all runs in which the budget in the middle of the jump is said to break between its sizes;
	// NaN without a step upwards.
	Broken float64
}

// TurnOf fits the data of one turn.
func TurnOf(ctx context.Context, s Study, turn Turn, noise float64) (Turned, error) {
	sizes := around()
	o := stat.GrowthOptions{Level: level, Budget: math.NaN(), Margin: 0.02}
	if turn.Factor > 1 {
		o.Budget = turn.cost(turn.From) * math.Sqrt(turn.Factor)
	}
	runs, err := repeat(ctx, s, fmt.Sprintf("turn %s %v", turn.Name, noise), func(r *rand.Rand) stat.GrowthFit {
		g, err := stat.FitGrowth(sizes, observe(r, sizes, turn.cost, noise), o)
		if err != nil {
			return stat.GrowthFit{}
		}
		return g
	})
	placed := func(g stat.GrowthFit) bool { return g.Step != nil && g.Step.From == turn.From && g.Step.To == turn.To }
	out := Turned{
		Turn: turn.Name, Noise: noise,
		Step: share(runs, func(g stat.GrowthFit) bool { return g.Step != nil }), Placed: share(runs, placed),
		Bend:      share(runs, func(g stat.GrowthFit) bool { return g.Knee != nil }),
		Undecided: share(runs, func(g stat.GrowthFit) bool { return g.Step == nil && g.Knee == nil && !g.Named }),
		Law:       share(runs, func(g stat.GrowthFit) bool { return g.Named }),
		Broken:    math.NaN(),
	}
	if turn.Factor > 1 {
		out.Broken = share(runs, func(g stat.GrowthFit) bool {
			return g.BreaksInStep && g.Breaks.Lo <= turn.From && g.Breaks.Hi >= turn.To
		})
	}
	out.Covered, out.Bias = turn.covered(runs, placed)
	return out, err
}

// covered is how well the factor of the steps found, or the place of the bends found, is estimated; NaN for fewer than
// 50.
func (t Turn) covered(runs []stat.GrowthFit, placed func(stat.GrowthFit) bool) (share, bias float64) {
	truth, of := t.Factor, func(g stat.GrowthFit) stat.Estimate { return g.Step.Factor }
	kept := slices.DeleteFunc(slices.Clone(runs), func(g stat.GrowthFit) bool { return !placed(g) })
	if t.Bend > 0 {
		truth, of = t.Bend, func(g stat.GrowthFit) stat.Estimate { return g.Knee.Estimate }
		kept = slices.DeleteFunc(slices.Clone(runs), func(g stat.GrowthFit) bool { return g.Knee == nil })
	}
	if len(kept) < 50 || truth == 0 {
		return math.NaN(), math.NaN()
	}
	for _, g := range kept {
		e := of(g)
		bias += math.Log(e.Value/truth) / float64(len(kept))
		if holds(&e, truth) {
			share += 1 / float64(len(kept))
		}
	}
	return share, bias
}

// TurnTable is TurnOf for all turns.
func TurnTable(ctx context.Context, s Study) (Table, error) {
	t := Table{
		Title: "Steps, bends and other curves",
		Note: "Thirteen sizes from 10 to 10,000, with 1,999 and 2,001 among them; 10 blocks; noise is that of one size's " +
			"cost over all blocks. Covered: of the steps found in " +
			"the right place, the share whose 95 % interval holds the factor; of the bends, whose interval holds the place. " +
			"Last column: a budget in the middle of the jump is " +
			"said to break between its two sizes.",
		Columns: []string{
			"truth", "noise", "step", "in its place", "bend", "neither, no law", "law named", "covered",
			"breaks in the step",
		},
	}
	for _, turn := range Turns() {
		for _, noise := range []float64{0.01, 0.03, 0.1} {
			x, err := TurnOf(ctx, s, turn, noise)
			if err != nil {
				return t, err
			}
			row := []string{turn.Name, whole(noise)}
			for _, v := range []float64{x.Step, x.Placed, x.Bend, x.Undecided, x.Law, x.Covered, x.Broken} {
				row = append(row, percentOrDash(v))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t, nil
}
