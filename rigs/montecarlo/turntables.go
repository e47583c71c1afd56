package montecarlo

import (
	"context"
	"fmt"
	"math"
	"slices"

	"tare/internal/stat"
)

const turnEffect = 0.03 // by how much longer the treated arm's calls take

// turnGrid is what comparisons on all classes of hosts with all services showed: by class, service and value.
type turnGrid map[string]map[string][]*turnTally

func runGrid(ctx context.Context, s Study, values []BlockValue) (turnGrid, error) {
	g := turnGrid{}
	for _, h := range TurnHosts() {
		g[h.Name] = map[string][]*turnTally{}
		for _, service := range TurnServices() {
			c := turnCase{host: h, service: service, plan: usualTurns(), treated: times(1 + turnEffect)}
			t, err := tallyTurns(ctx, s, c, values, Looks(), math.Log1p(turnEffect))
			if err != nil {
				return nil, err
			}
			g[h.Name][service.Name] = t
		}
	}
	return g, nil
}

// value merges the tallies of value i on the hosts and with the services that are named; an empty name is all.
func (g turnGrid) value(i int, host, service string) *turnTally {
	var of []*turnTally
	for _, h := range TurnHosts() {
		for _, s := range TurnServices() {
			if (host == "" || host == h.Name) && (service == "" || service == s.Name) {
				of = append(of, g[h.Name][s.Name][i])
			}
		}
	}
	return merged(of...)
}

// TurnsValueTables compares the ways to compare medians and means within blocks.
func TurnsValueTables(ctx context.Context, s Study) ([]Table, error) {
	medians, means := MedianValues(), MeanValues()
	g, err := runGrid(ctx, s, slices.Concat(medians, means))
	if err != nil {
		return nil, err
	}
	falsely := Table{
		Title: "Turns: false differences between equal arms",
		Note: "The share of comparisons whose A/A interval excludes 0, over all hosts and services: at each look, and at " +
			"the look at which a comparison stops, since its interval excludes 0 or lies within 2 %. Last column: the " +
			"class of hosts on which the first three looks err most often, on average. *Found* is the share of comparisons " +
			"that name the +3 % of the treatment before they stop. One comparison in four went beyond 40 blocks.",
		Columns: []string{
			"metric", "value of a block", "10 blocks", "20", "40", "80", "160", "stopped", "found", "most often",
		},
	}
	for i, v := range medians {
		falsely.Rows = append(falsely.Rows, append([]string{"p50", v.Name}, g.falsely(i)...))
	}
	for i, v := range means {
		falsely.Rows = append(falsely.Rows, append([]string{"mean", v.Name}, g.falsely(len(medians)+i)...))
	}
	return []Table{falsely, g.powerTable("p50", medians, 0), g.powerTable("mean", means, len(medians))}, nil
}

// falsely is how often equal arms differ by value i, as a row of the table.
func (g turnGrid) falsely(i int) []string {
	worst, most := "", -1.0
	for _, h := range TurnHosts() {
		if part := g.value(i, h.Name, "").firstLooks(); part > most {
			worst, most = h.Name, part
		}
	}
	return append(g.value(i, "", "").errors(), fmt.Sprintf("%.2f %%: %s", 100*most, worst))
}

// firstLooks is how often equal arms differ at one of the first three looks, on average.
func (t *turnTally) firstLooks() float64 {
	return (t.at(t.excluded, 0) + t.at(t.excluded, 1) + t.at(t.excluded, 2)) / shortLooks
}

// powerTable shows half widths and power of some values of the grid: number first and those that follow it.
func (g turnGrid) powerTable(of string, values []BlockValue, first int) Table {
	t := Table{
		Title: "Turns: half widths and power, " + of,
		Note: fmt.Sprintf("The median half width of the A/A interval after 10, 20 and 40 blocks; and the share of "+
			"comparisons that find +%.0f %% after as many.", 100*turnEffect),
		Columns: []string{"host or service"},
	}
	for _, v := range values {
		t.Columns = append(t.Columns, v.Name)
	}
	row := func(name, host, service string) {
		cells := []string{name}
		for i := range values {
			cells = append(cells, g.value(first+i, host, service).cell())
		}
		t.Rows = append(t.Rows, cells)
	}
	for _, h := range TurnHosts() {
		row(h.Name, h.Name, "")
	}
	for _, s := range TurnServices() {
		row(s.Name, "", s.Name)
	}
	for _, h := range TurnHosts()[1:5] {
		for _, s := range TurnServices() {
			row(h.Name+", "+s.Name, h.Name, s.Name)
		}
	}
	row("all", "", "")
	return t
}

// cell is the half widths and the power of the first three looks.
func (t *turnTally) cell() string {
	half := func(i int) float64 { return 100 * stat.Median(t.half[i]) }
	return fmt.Sprintf("±%.1f, %.1f, %.1f %%; %.0f, %.0f, %.0f %%", half(0), half(1), half(2),
		100*t.at(t.found, 0), 100*t.at(t.found, 1), 100*t.at(t.found, 2))
}

// errorRepetitions is how many times as many comparisons the error table has as the others have in each case: a share
// of about 1 % needs many.
const errorRepetitions = 8

// TurnsErrorTable shows how often equal arms differ by the values that tare uses, by class of hosts.
func TurnsErrorTable(ctx context.Context, s Study) (Table, error) {
	s.N *= errorRepetitions
	t := Table{
		Title: "Turns: errors and power by host",
		Note: fmt.Sprintf("The values that tare uses, over all services, with %d times as many comparisons. False "+
			"differences at each look and at the look at which a comparison stops; and the share that names the +%.0f %% of "+
			"the treatment before it stops.", errorRepetitions, 100*turnEffect),
		Columns: []string{"metric", "host", "10 blocks", "20", "40", "80", "160", "stopped", "found"},
	}
	g, err := runGrid(ctx, s, []BlockValue{RelativeMedians(), MeanOfAll()})
	if err != nil {
		return t, err
	}
	for i, metric := range []string{"p50", "mean"} {
		for _, h := range TurnHosts() {
			t.Rows = append(t.Rows, append([]string{metric, h.Name}, g.value(i, h.Name, "").errors()...))
		}
		t.Rows = append(t.Rows, append([]string{metric, "all"}, g.value(i, "", "").errors()...))
	}
	return t, nil
}

// errors are the false differences by look, with the rule that stops a comparison, and the differences found with it.
func (t *turnTally) errors() (row []string) {
	for look := range t.excluded {
		row = append(row, fmt.Sprintf("%.2f %%", 100*t.at(t.excluded, look)))
	}
	return append(row, percent(t.stopped(t.falsely)), percent(t.stopped(t.detected)))
}

// TurnsTables are the tables of comparisons by turns, in order.
func TurnsTables() []func(context.Context, Study) ([]Table, error) {
	one := func(table func(context.Context, Study) (Table, error)) func(context.Context, Study) ([]Table, error) {
		return func(ctx context.Context, s Study) ([]Table, error) {
			t, err := table(ctx, s)
			return []Table{t}, err
		}
	}
	return []func(context.Context, Study) ([]Table, error){
		one(TurnsErrorTable), TurnsValueTables, one(TurnsLateTable), one(TurnsLayoutTable), one(TurnsCarryTable),
		one(TurnsShapeTable), one(TurnsTailTable),
	}
}
