package montecarlo

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tare/internal/stat"
)

// turnBlocks runs comparisons of n blocks, and returns of each what of takes from every block.
func turnBlocks(ctx context.Context, s Study, name string, c turnCase, n int, of func(*[turnArms]armBlock) float64,
) ([][]float64, error) {
	return repeat(ctx, s, "turn blocks "+name, func(r *rand.Rand) []float64 {
		run, out := c.start(r), make([]float64, n)
		for b := range out {
			out[b] = of(run.next())
		}
		return out
	})
}

func treatedRatio(b *[turnArms]armBlock) float64 {
	return RelativeMedians().of(&b[baseArm], &b[treatedArm])
}

// held is the share of comparisons whose interval holds the truth after n blocks.
func held(runs [][]float64, n int, truth float64) float64 {
	return share(runs, func(d []float64) bool {
		e := lookAt(d[:n])
		return e.Lo <= truth && truth <= e.Hi
	})
}

// processLayout is the standard deviation of what a process adds for as long as it lives.
const processLayout = 0.015

// TurnsLayoutTable shows what a difference does that lives as long as a process.
func TurnsLayoutTable(ctx context.Context, s Study) (Table, error) {
	t := Table{
		Title: "Turns: differences that live as long as a process",
		Note: fmt.Sprintf("Each process is slower by a constant of its own (standard deviation %.1f %%), which the A/A "+
			"arm, the baseline's process, cannot show. The share of 98.7 %% intervals that hold the true effect; the median "+
			"half width after 40 blocks; and both where a value is the mean of all blocks between two restarts.",
			100*processLayout),
		Columns: []string{
			"processes are restarted", "10 blocks", "20", "40", "half width", "by restarts, 40 blocks", "160 blocks",
		},
	}
	for _, every := range []int{0, 10, 5, 4, 2, 1} {
		c := turnCase{
			host: TurnHosts()[0], service: TurnServices()[1], plan: usualTurns(), treated: unchanged, layout: processLayout,
			restart: every,
		}
		runs, err := turnBlocks(ctx, s, fmt.Sprintf("restart %d", every), c, 160, treatedRatio)
		if err != nil {
			return t, err
		}
		name := "never"
		switch {
		case every == 1:
			name = "every block"
		case every > 1:
			name = fmt.Sprintf("every %d blocks", every)
		}
		row := []string{name}
		for _, n := range []int{10, 20, 40} {
			row = append(row, percent(held(runs, n, 0)))
		}
		row = append(row, fmt.Sprintf("±%.1f %%", 100*medianHalf(runs, 40)))
		for _, n := range []int{40, 160} {
			lives := make([][]float64, len(runs))
			for i, d := range runs {
				lives[i] = meansOf(d[:n], every)
			}
			if every == 0 || n/every < 8 {
				row = append(row, "–")
				continue
			}
			row = append(row, fmt.Sprintf("%s (±%.1f %%)", percent(held(lives, n/every, 0)), 100*medianHalf(lives, n/every)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

func medianHalf(runs [][]float64, n int) float64 {
	var half []float64
	for _, d := range runs {
		e := lookAt(d[:n])
		half = append(half, (e.Hi-e.Lo)/2)
	}
	return stat.Median(half)
}

// meansOf are the means of every so many values.
func meansOf(d []float64, every int) (out []float64) {
	if every == 0 {
		return nil
	}
	for part := range slices.Chunk(d, every) {
		out = append(out, stat.Mean(part))
	}
	return out
}

// TurnsLateTable shows whether a rule for a late generator is worth it.
func TurnsLateTable(ctx context.Context, s Study) (Table, error) {
	t := Table{
		Title: "Turns: a late generator",
		Note: fmt.Sprintf("Stalls stop generator and server. Median half widths after 10, 20 and 40 blocks; the share of "+
			"comparisons that find +%.0f %% after as many; and of false differences, on average over these looks.",
			100*turnEffect),
		Columns: []string{"host", "service"},
	}
	rules := lateRules()
	for _, v := range rules {
		t.Columns = append(t.Columns, v.Name)
	}
	for _, h := range TurnHosts() {
		if h.Name == "quiet" || h.draw(rand.New(rand.NewPCG(1, 1))).stolen == 0 {
			continue
		}
		for _, service := range TurnServices()[:2] {
			c := turnCase{host: h, service: service, plan: usualTurns(), treated: times(1 + turnEffect)}
			tallies, err := tallyTurns(ctx, s, c, rules, Looks()[:3], math.Log1p(turnEffect))
			if err != nil {
				return t, err
			}
			row := []string{h.Name, service.Name}
			for _, v := range tallies {
				row = append(row, fmt.Sprintf("%s; %.1f %%", v.cell(), 100*v.firstLooks()))
			}
			t.Rows = append(t.Rows, row)
		}
	}
	return t, nil
}

// carried is the estimate of how much the treated arm slows the turn that follows.
func carried(b *[turnArms]armBlock) float64 {
	x, y := &b[baseArm], &b[sameArm]
	after := make([]int, len(x.before))
	for r := range after {
		if x.before[r] == treatedArm {
			after[r]++
		}
		if y.before[r] == treatedArm {
			after[r]--
		}
	}
	v, _ := stat.Carryover(x.medians, y.medians, after)
	return v
}

// TurnsCarryTable shows what an arm does to the estimates that slows the turn after its own.
func TurnsCarryTable(ctx context.Context, s Study) (Table, error) {
	t := Table{
		Title: "Turns: an arm that slows its successor",
		Note: "The treated arm has no effect of its own, but slows the turn after its own. Its median estimate after 40 " +
			"blocks, p50; the median estimate and half width of the effect on the successor after 10 blocks; and the share " +
			"of its 98.7 % intervals that hold the truth after 10, 20 and 40 blocks.",
		Columns: []string{
			"host", "truth", "estimate of the treated arm", "of the effect on the successor", "intervals that hold it",
		},
	}
	for _, h := range TurnHosts()[:4] {
		for _, truth := range []float64{0, 0.03, 0.1, 0.3} {
			c := turnCase{
				host: h, service: TurnServices()[1], plan: usualTurns(), treated: unchanged, after: math.Log1p(truth),
			}
			effect, err := turnBlocks(ctx, s, fmt.Sprintf("carry %s %v", h.Name, truth), c, 40, treatedRatio)
			if err != nil {
				return t, err
			}
			carry, err := turnBlocks(ctx, s, fmt.Sprintf("carry %s %v", h.Name, truth), c, 40, carried)
			if err != nil {
				return t, err
			}
			row := []string{h.Name, fmt.Sprintf("%+.0f %%", 100*truth), change100(medianEstimate(effect, 40)) + " %"}
			row = append(row, fmt.Sprintf("%s ± %.1f %%", change100(medianEstimate(carry, 10)), 100*medianHalf(carry, 10)))
			row = append(row, fmt.Sprintf("%s, %s, %s", percent(held(carry, 10, c.after)), percent(held(carry, 20, c.after)),
				percent(held(carry, 40, c.after))))
			t.Rows = append(t.Rows, row)
		}
	}
	return t, nil
}

func medianEstimate(runs [][]float64, n int) float64 {
	var estimates []float64
	for _, d := range runs {
		estimates = append(estimates, lookAt(d[:n]).Value)
	}
	return stat.Median(estimates)
}
