package montecarlo

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"tare/internal/stat"
)

// tailPlans are turns at 200/s and at 1000/s, with the looks at which p99 can be estimated.
func tailPlans() []tailPlan {
	return []tailPlan{
		{"200/s", turnPlan{rounds: 20, calls: 10, skip: 2, turn: 0.05}, []int{80, 160}},
		{"1000/s", turnPlan{rounds: 20, calls: 50, skip: 2, turn: 0.05}, []int{20, 40}},
	}
}

type tailPlan struct {
	rate  string
	plan  turnPlan
	looks []int
}

// tailEffect is by how much the treated arm's slow path is longer.
const tailEffect = 0.2

// compareTails runs comparisons of p99, once by quantiles pooled over blocks and once by one value for each block.
func compareTails(ctx context.Context, s Study, h TurnHost, p tailPlan) (pooled, byBlock *turnTally, err error) {
	c := turnCase{host: h, service: slowPathService(), plan: p.plan, treated: beyond(3e-3, 1+tailEffect)}
	runs, err := repeat(ctx, s, "turn tails "+h.Name+p.rate, func(r *rand.Rand) [2][]turnLook {
		var arms [turnArms][]stat.Sample
		var same, treated []float64
		var out [2][]turnLook
		run := c.start(r)
		for _, look := range p.looks {
			for run.block < look {
				b := run.next()
				for a := range arms {
					arms[a] = append(arms[a], stat.Values(b[a].pooled))
				}
				same = append(same, pooledRatio(&b[baseArm], &b[sameArm], 0.99))
				treated = append(treated, pooledRatio(&b[baseArm], &b[treatedArm], 0.99))
			}
			tail := func(a int) stat.Estimate {
				return interval(stat.QuantileRatio(arms[baseArm], arms[a], 0.99, 1-stat.LookAlpha))
			}
			out[0] = append(out[0], turnLook{tail(sameArm), tail(treatedArm)})
			out[1] = append(out[1], turnLook{lookAt(same), lookAt(treated)})
		}
		return out
	})
	pooled, byBlock = newTally(len(p.looks)), newTally(len(p.looks))
	for _, o := range runs {
		if o[0] != nil {
			pooled.add(o[0], math.Log1p(tailEffect))
			byBlock.add(o[1], math.Log1p(tailEffect))
		}
	}
	return pooled, byBlock, err
}

// TurnsTailTable compares both ways to compare p99.
func TurnsTailTable(ctx context.Context, s Study) (Table, error) {
	t := Table{
		Title: "Turns: p99",
		Note: fmt.Sprintf("A service of 0.8 ms that takes 5 ms for 3 %% of its calls; the treatment makes these %.0f %% "+
			"longer. For each look: false differences between equal arms; median half width; treatments found; and the "+
			"median estimate at the last look.", 100*tailEffect),
		Columns: []string{"host", "rate", "looks", "**pooled over blocks, jackknife**", "by block, Hodges–Lehmann"},
	}
	for _, p := range tailPlans() {
		for _, h := range TurnHosts() {
			pooled, byBlock, err := compareTails(ctx, s, h, p)
			if err != nil {
				return t, err
			}
			t.Rows = append(t.Rows, []string{
				h.Name, p.rate, fmt.Sprintf("%d, %d", p.looks[0], p.looks[1]), pooled.tailCell(), byBlock.tailCell(),
			})
		}
	}
	return t, nil
}

func (t *turnTally) tailCell() string {
	return fmt.Sprintf("%.1f, %.1f %%; ±%.1f, %.1f %%; %.0f, %.0f %%; %s %%",
		100*t.at(t.excluded, 0), 100*t.at(t.excluded, 1), 100*stat.Median(t.half[0]), 100*stat.Median(t.half[1]),
		100*t.at(t.found, 0), 100*t.at(t.found, 1), change100(stat.Median(t.estimates)))
}
