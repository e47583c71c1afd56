package montecarlo

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"tare/internal/stat"
)

// turnShape is a treatment that changes the distribution of a service's times, and by how much that changes median and
// mean.
type turnShape struct {
	name         string
	service      TurnService
	treated      change
	median, mean float64
}

// turnShapes are treatments that slow all calls alike, many a little, and few a lot.
func turnShapes() []turnShape {
	var out []turnShape
	for _, s := range TurnServices()[1:] {
		for _, c := range []turnShape{
			{name: "all calls 3 % longer", treated: times(1 + turnEffect)},
			{name: "30 % of calls 1.5 times as long", treated: sometimes(0.3, 1.5)},
			{name: "2 % of calls 10 times as long", treated: sometimes(0.02, 10)},
		} {
			c.service = s
			c.median, c.mean = c.truth()
			out = append(out, c)
		}
	}
	return out
}

// truth draws so many calls of either arm that the logarithms of both ratios are exact to about 0.2 %.
func (t turnShape) truth() (median, mean float64) {
	const calls = 400_000
	r := rand.New(rand.NewPCG(1, 1))
	x, y := make([]float64, calls), make([]float64, calls)
	for i := range x {
		x[i] = t.service.draw(r)
		y[i] = t.treated(r, x[i])
	}
	mean = math.Log(stat.Mean(y) / stat.Mean(x))
	slices.Sort(x)
	slices.Sort(y)
	return math.Log(stat.SortedMedian(y) / stat.SortedMedian(x)), mean
}

// TurnsShapeTable shows what each value estimates where a treatment changes the shape of the distribution.
func TurnsShapeTable(ctx context.Context, s Study) (Table, error) {
	t := Table{
		Title: "Turns: what is estimated where the shape changes",
		Note: "The true change, and the mean estimate from 40 blocks on a quiet host, in percent. First median, then mean " +
			"values.",
		Columns: []string{"service", "treatment", "true p50"},
	}
	medians, means := MedianValues(), MeanValues()
	for _, v := range medians {
		t.Columns = append(t.Columns, v.Name)
	}
	t.Columns = append(t.Columns, "true mean")
	for _, v := range means {
		t.Columns = append(t.Columns, v.Name)
	}
	values := slices.Concat(medians, means)
	s.N = max(1, s.N/10) // means of estimates need few
	for _, shape := range turnShapes() {
		c := turnCase{host: TurnHosts()[0], service: shape.service, plan: usualTurns(), treated: shape.treated}
		tallies, err := tallyTurns(ctx, s, c, values, []int{40}, 0)
		if err != nil {
			return t, err
		}
		row := []string{shape.service.Name, shape.name, change100(shape.median)}
		for i, tally := range tallies {
			if i == len(medians) {
				row = append(row, change100(shape.mean))
			}
			row = append(row, change100(stat.Mean(tally.estimates)))
		}
		t.Rows = append(t.Rows, row)
	}
	return t, nil
}

func change100(log float64) string { return fmt.Sprintf("%+.1f", 100*math.Expm1(log)) }
