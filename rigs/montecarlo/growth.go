package montecarlo

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tare/internal/stat"
)

// Ladder is the sizes of a scale experiment.
type Ladder struct {
	Name  string
	Sizes []float64
}

// Ladders are one that just suffices to name a law, and a longer one.
func Ladders() []Ladder {
	long := []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000}
	return []Ladder{{"10 sizes, 1–1000", long[:10]}, {"13 sizes, 1–10 000", long}}
}

const (
	growthBlocks = 10
	growthFactor = 5.0 // the cost of the largest size over that of none
)

// truthOf is the cost at size n under a law: 100 at none, growing to growthFactor times that at the largest.
func truthOf(l stat.Law, last float64) (at func(n float64) float64, c1 float64) {
	if l != stat.Constant {
		c1 = 100 * (growthFactor - 1) / l.F(last)
	}
	return func(n float64) float64 { return 100 + c1*l.F(n) }, c1
}

// observe makes the costs of all sizes in every block. noise is that of one size's cost over all blocks together;
// besides, a block as a whole is 2 % faster or slower.
func observe(r *rand.Rand, sizes []float64, at func(n float64) float64, noise float64) [][]float64 {
	out := make([][]float64, len(sizes))
	for range growthBlocks {
		shared := r.NormFloat64()
		for i, n := range sizes {
			own := noise * math.Sqrt(growthBlocks) * r.NormFloat64()
			out[i] = append(out[i], at(n)*math.Exp(own+0.02*shared))
		}
	}
	return out
}

// Growth is what became of the fits of one law.
type Growth struct {
	Law    stat.Law
	Ladder string
	Noise  float64
	// Named rightly, named wrongly; not named with the truth among the best and tied, without it.
	Right, Wrong, Tied, Missed float64
	FalseKnee, FalseStep       float64
	Unfit                      float64 // said that no form fits
	// Coverage of the 95 % intervals of c1 and of the sizes at which budgets within and beyond the measured range
	// break, over the runs whose best law was the true one; NaN for fewer than 100 of them.
	C1, Inside, Beyond float64
}

type fitted struct {
	best           stat.Law
	named, listed  bool
	knee, step     bool
	unfit          bool
	c1, in, beyond bool
}

// GrowthOf fits one law's data.
func GrowthOf(ctx context.Context, s Study, l stat.Law, ladder Ladder, noise float64) (Growth, error) {
	last := ladder.Sizes[len(ladder.Sizes)-1]
	at, c1 := truthOf(l, last)
	runs, err := repeat(ctx, s, fmt.Sprintf("growth %s %s %v", l, ladder.Name, noise), func(r *rand.Rand) fitted {
		costs := observe(r, ladder.Sizes, at, noise)
		g, err := stat.FitGrowth(ladder.Sizes, costs, stat.GrowthOptions{Level: level, Budget: at(last / 2)})
		far, errFar := stat.FitGrowth(ladder.Sizes, costs, stat.GrowthOptions{Level: level, Budget: at(2 * last)})
		if err != nil || errFar != nil {
			return fitted{}
		}
		return fitted{
			best: g.Best.Law, named: g.Named, knee: g.Knee != nil, step: g.Step != nil, unfit: g.Unfit != nil,
			listed: g.Best.Law == l || slices.Contains(g.Tied, l),
			c1:     holds(&g.C1, c1), in: holds(g.Breaks, last/2), beyond: holds(far.Breaks, 2*last),
		}
	})
	g := Growth{
		Law: l, Ladder: ladder.Name, Noise: noise,
		Right:     share(runs, func(f fitted) bool { return f.named && f.best == l }),
		Wrong:     share(runs, func(f fitted) bool { return f.named && f.best != l }),
		Tied:      share(runs, func(f fitted) bool { return !f.named && f.listed }),
		Missed:    share(runs, func(f fitted) bool { return !f.named && !f.listed }),
		FalseKnee: share(runs, func(f fitted) bool { return f.knee }),
		FalseStep: share(runs, func(f fitted) bool { return f.step }),
		Unfit:     share(runs, func(f fitted) bool { return f.unfit }),
		C1:        math.NaN(), Inside: math.NaN(), Beyond: math.NaN(),
	}
	same := slices.DeleteFunc(runs, func(f fitted) bool { return f.best != l })
	if l != stat.Constant && len(same) >= 100 {
		g.C1 = share(same, func(f fitted) bool { return f.c1 })
		g.Inside = share(same, func(f fitted) bool { return f.in })
		g.Beyond = share(same, func(f fitted) bool { return f.beyond })
	}
	return g, err
}

func holds(e *stat.Estimate, truth float64) bool { return e != nil && e.Lo <= truth && truth <= e.Hi }

// GrowthTable is GrowthOf for all laws.
func GrowthTable(ctx context.Context, s Study) (Table, error) {
	t := Table{
		Title: "Growth laws",
		Note: "Cost grows fivefold over the range, 10 blocks; noise is that of one size's cost over all blocks. Coverage " +
			"of 95 % intervals where the best law is the true " +
			"one: of c1, and of the sizes at which a budget breaks (half and twice the largest size).",
		Columns: []string{
			"law", "sizes", "noise", "named rightly", "named wrongly", "not named, truth among the best",
			"not named, truth missing", "false knee", "false step", "c1", "breaks inside", "breaks beyond",
		},
	}
	for _, l := range stat.Laws() {
		for _, ladder := range Ladders() {
			for _, noise := range []float64{0.02, 0.05, 0.1} {
				g, err := GrowthOf(ctx, s, l, ladder, noise)
				if err != nil {
					return t, err
				}
				row := []string{string(l), ladder.Name, whole(noise)}
				for _, v := range []float64{
					g.Right, g.Wrong, g.Tied, g.Missed, g.FalseKnee, g.FalseStep, g.C1, g.Inside,
					g.Beyond,
				} {
					row = append(row, percentOrDash(v))
				}
				t.Rows = append(t.Rows, row)
			}
		}
	}
	return t, nil
}

func percentOrDash(v float64) string {
	if math.IsNaN(v) {
		return "–"
	}
	return percent(v)
}

// Knee is how often a true knee is found, and how well.
type Knee struct {
	Shape, Ladder string
	Noise         float64
	// Covered: its interval holds the truth; Within: its value is within a factor 1.5. Both of those found.
	Found, Covered, Within float64
}

// shapes are costs that turn at at: flat before, or ten times steeper after it.
func shapes(at, last float64) map[string]func(n float64) float64 {
	return map[string]func(n float64) float64{
		"flat, then linear": func(n float64) float64 { return 100 + 400*max(0, n-at)/(last-at) },
		"linear, then 10 times steeper": func(n float64) float64 {
			slope := 400 / (at + 10*(last-at))
			return 100 + slope*n + 9*slope*max(0, n-at)
		},
	}
}

// KneeOf looks for a knee at a tenth of the largest size.
func KneeOf(ctx context.Context, s Study, shape string, ladder Ladder, noise float64) (Knee, error) {
	last := ladder.Sizes[len(ladder.Sizes)-1]
	at := last / 10 * 1.3 // between two sizes
	cost := shapes(at, last)[shape]
	runs, err := repeat(ctx, s, fmt.Sprintf("knee %s %s %v", shape, ladder.Name, noise),
		func(r *rand.Rand) *stat.Estimate {
			g, err := stat.FitGrowth(ladder.Sizes, observe(r, ladder.Sizes, cost, noise),
				stat.GrowthOptions{Level: level, Budget: math.NaN()})
			if err != nil {
				return nil
			}
			if g.Knee == nil {
				return nil
			}
			return &g.Knee.Estimate
		})
	found := slices.DeleteFunc(slices.Clone(runs), func(e *stat.Estimate) bool { return e == nil })
	return Knee{
		Shape: shape, Ladder: ladder.Name, Noise: noise,
		Found:   float64(len(found)) / float64(max(1, len(runs))),
		Covered: share(found, func(e *stat.Estimate) bool { return holds(e, at) }),
		Within:  share(found, func(e *stat.Estimate) bool { return math.Abs(math.Log(e.Value/at)) < math.Log(1.5) }),
	}, err
}

// KneeTable is KneeOf for all shapes.
func KneeTable(ctx context.Context, s Study) (Table, error) {
	t := Table{
		Title: "Knees found",
		Note: "The cost turns at 0.13 of the largest size. Of the knees found: the share whose 95 % interval holds the " +
			"truth, and whose value is within a factor of 1.5.",
		Columns: []string{"shape", "sizes", "noise", "found", "covered", "within a factor of 1.5"},
	}
	for _, shape := range []string{"flat, then linear", "linear, then 10 times steeper"} {
		for _, ladder := range Ladders() {
			for _, noise := range []float64{0.02, 0.05, 0.1} {
				k, err := KneeOf(ctx, s, shape, ladder, noise)
				if err != nil {
					return t, err
				}
				t.Rows = append(t.Rows, []string{
					shape, ladder.Name, whole(noise), percent(k.Found), percent(k.Covered),
					percent(k.Within),
				})
			}
		}
	}
	return t, nil
}
