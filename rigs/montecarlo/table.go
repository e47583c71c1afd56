package montecarlo

import (
	"context"
	"fmt"
	"io"
	"strings"
)

// Table is one published table.
type Table struct {
	Title, Note string
	Columns     []string
	Rows        [][]string
}

// Write prints the table as Markdown.
func (t Table) Write(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### %s\n\n%s\n\n", t.Title, t.Note)
	line := func(cells []string) { fmt.Fprintf(&b, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.Columns)
	rule := make([]string, len(t.Columns))
	for i := range rule {
		rule[i] = "---"
	}
	line(rule)
	for _, r := range t.Rows {
		line(r)
	}
	_, err := fmt.Fprintln(w, b.String())
	return err
}

func percent(v float64) string { return fmt.Sprintf("%.1f %%", 100*v) }

func whole(v float64) string { return fmt.Sprintf("%.0f %%", 100*v) }

// Tables are all published tables, in order.
func Tables() []func(context.Context, Study) (Table, error) {
	return []func(context.Context, Study) (Table, error){
		FalseTable, EquivalenceTable, FamilyTable, ExploreTable, PowerTable, MDETable, PromiseTable, GrowthTable, KneeTable,
		TurnTable, CoverageTable, TrendTable, LevelTable, LeakTable,
	}
}
