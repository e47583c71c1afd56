package report

import (
	"bytes"
	"fmt"
	"io"
	"math"
	"slices"

	"golang.org/x/perf/benchmath"
	"golang.org/x/perf/benchunit"

	terminal "tare/internal/term"
)

// Benchstat writes the values of blocks as the tables that benchstat (golang.org/x/perf/cmd/benchstat) prints of Benchfmt's lines, by its own
// statistics: a table for each unit, a row for each operation and the levels that baseline and treatments share, a column for each level in which
// they differ. Beside each change stands the report's own effect with its interval and verdict, since benchstat takes blocks for independent
// samples and knows nothing of looks. The A/A arm is left out. ErrNoBlocks where nothing was measured in blocks.
func Benchstat(w io.Writer, r *Report) error {
	if err := r.independent(); err != nil {
		return fmt.Errorf("benchstat: %w", err)
	}
	all, err := r.series()
	if err != nil {
		return fmt.Errorf("benchstat: %w", err)
	}
	var b bytes.Buffer
	r.benchHead(&b)
	legend := benchLegend
	for _, t := range r.benchTables(all) {
		b.WriteString("\n")
		t.write(&b)
		if t.judged() {
			legend = benchLegend + ownLegend
		}
	}
	b.WriteString("\n" + legend)
	_, err = io.WriteString(w, terminal.Inert(b.String()))
	return err
}

// benchHead says where the tables come from.
func (r *Report) benchHead(b *bytes.Buffer) {
	for _, c := range r.config() {
		fmt.Fprintf(b, "%s: %s\n", c.Key, c.Value)
	}
	for _, l := range r.origin() {
		b.WriteString(clean(l) + "\n")
	}
	if s := r.HarnessLine(); s != "" {
		b.WriteString("harness: " + clean(s) + "\n")
	}
}

const benchLegend = "± and p are benchstat's: the interval of a median at 95 % or more, and a U-test, both as of independent samples.\n"

const ownLegend = "tare's effects are of the differences within blocks, at the level of the look and corrected for their number: they decide the verdict.\n"

// confidence is benchstat's default, of the intervals of medians.
const confidence = 0.95

// A benchTable is what was measured in one unit.
type benchTable struct {
	unit string
	// columns begins with the baseline's.
	columns []string
	rows    []*benchRow
}

type benchRow struct {
	label string
	cells []*benchCell // by column; nil where nothing was measured
}

// A benchCell is the values of one operation under one treatment.
type benchCell struct {
	sample  *benchmath.Sample
	summary benchmath.Summary
	change  *benchmath.Comparison // from the first cell of the row; nil in that cell and where there is none
	own     string                // the report's effect
}

// benchTables arranges all series.
func (r *Report) benchTables(all []series) []*benchTable {
	grid := r.gridOf(all)
	var out []*benchTable
	for i := range all {
		for _, b := range all[i].values {
			u := all[i].unit(b)
			if slices.ContainsFunc(out, func(t *benchTable) bool { return t.unit == u }) {
				continue
			}
			if t := r.benchTable(u, grid); len(t.rows) > 0 {
				out = append(out, t)
			}
		}
	}
	return out
}

// benchTable is the table of one unit: rows and columns without a value in it are left out.
func (r *Report) benchTable(unit string, grid *benchGrid) *benchTable {
	t := &benchTable{unit: unit, columns: grid.columns}
	for _, place := range grid.rows {
		row := &benchRow{label: place.label, cells: make([]*benchCell, len(grid.columns))}
		filled := false
		for i, s := range place.series {
			if s != nil {
				row.cells[i] = s.cell(unit)
				filled = filled || row.cells[i] != nil
			}
		}
		if !filled {
			continue
		}
		base := row.cells[0]
		for i, c := range row.cells {
			if i > 0 && c != nil && base != nil {
				x := benchmath.AssumeNothing.Compare(base.sample, c.sample)
				c.change, c.own = &x, r.ownChange(place.series[0], place.series[i], unit)
			}
		}
		t.rows = append(t.rows, row)
	}
	return t.used()
}

// judged reports whether the report has effects of what the table shows.
func (t *benchTable) judged() bool {
	return slices.ContainsFunc(t.rows, func(r *benchRow) bool {
		return slices.ContainsFunc(r.cells, func(c *benchCell) bool { return c != nil && c.own != "" })
	})
}

// used leaves out the columns that have no value; the first stays, since the others are held against it.
func (t *benchTable) used() *benchTable {
	for i := len(t.columns) - 1; i > 0; i-- {
		if slices.ContainsFunc(t.rows, func(r *benchRow) bool { return r.cells[i] != nil }) {
			continue
		}
		t.columns = slices.Delete(slices.Clone(t.columns), i, i+1)
		for _, r := range t.rows {
			r.cells = slices.Delete(r.cells, i, i+1)
		}
	}
	return t
}

// in is what of s has a unit, nil if nothing has.
func (s *series) in(unit string) *BlockValues {
	return s.find(func(b *BlockValues) bool { return s.unit(b) == unit })
}

// cell sums up the values of one unit as benchstat does; nil if there are none.
func (s *series) cell(unit string) *benchCell {
	b := s.in(unit)
	if b == nil {
		return nil
	}
	values := b.measuredValues() // a copy, which NewSample sorts
	if len(values) == 0 {
		return nil
	}
	c := &benchCell{sample: benchmath.NewSample(values, &benchmath.DefaultThresholds)}
	c.summary = benchmath.AssumeNothing.Summary(c.sample, confidence)
	return c
}

// ownChange is the report's effect of one series against another in a unit: "-58.8 % [-59.3, -58.4] ✓ improved".
func (r *Report) ownChange(base, treated *series, unit string) string {
	b := treated.in(unit)
	if b == nil {
		return ""
	}
	is := func(x *Effect) bool {
		return x.Treatment == treated.treatment.ID && x.Baseline == base.treatment.ID && x.measured() == b.measured()
	}
	if i := slices.IndexFunc(r.Effects, func(x Effect) bool { return is(&x) }); i >= 0 {
		x := &r.Effects[i]
		s := x.Change() + " " + x.word()
		if !x.Gating {
			s += ", exploratory"
		}
		return clean(s)
	}
	if r.AA == nil {
		return ""
	}
	if i := slices.IndexFunc(r.AA.NegativeControls, func(x Effect) bool { return is(&x) }); i >= 0 {
		return clean(r.AA.NegativeControls[i].Change() + " negative control")
	}
	return ""
}

// geomean is the geometric mean, NaN of nothing and of values that are not above 0 (as go-moremath's, which benchstat uses).
func geomean(v []float64) float64 {
	if len(v) == 0 {
		return math.NaN()
	}
	mean := 0.0
	for i, x := range v {
		if x <= 0 {
			return math.NaN()
		}
		mean += (math.Log(x) - mean) / float64(i+1)
	}
	return math.Exp(mean)
}

// A benchSummary is the last row's cell: the mean of medians, and that of their ratios to the first column's, which differ from the ratio of the
// means where a row lacks a cell. NaN: there is none.
type benchSummary struct {
	center, ratio float64
	warnings      []string
}

func (t *benchTable) summary(column int) benchSummary {
	var centers, ratios []float64
	bases, undefined := 0, false
	for _, row := range t.rows {
		base, c := row.cells[0], row.cells[column]
		if base != nil {
			bases++
		}
		if c == nil {
			continue
		}
		centers = append(centers, c.summary.Center)
		if base == nil {
			continue
		}
		switch x, y := c.summary.Center, base.summary.Center; {
		case x == y: // 0 ÷ 0 as well
			ratios = append(ratios, 1)
		case y == 0:
			ratios, undefined = append(ratios, 0), true
		default:
			ratios = append(ratios, x/y)
		}
	}
	s := benchSummary{center: geomean(centers), ratio: math.NaN()}
	if column > 0 && bases != len(ratios) {
		s.warnings = append(s.warnings, "benchmark set differs from baseline; geomeans may not be comparable")
	}
	if math.IsNaN(s.center) {
		s.warnings = append(s.warnings, "summaries must be >0 to compute geomean")
	}
	if column > 0 && !undefined {
		if s.ratio = geomean(ratios); math.IsNaN(s.ratio) {
			s.warnings = append(s.warnings, "ratios must be >0 to compute geomean")
		}
	}
	return s
}

// scaler is the common scale of a row, by which its medians are printed.
func (row *benchRow) scaler(unit string) benchunit.Scaler {
	var v []float64
	for _, c := range row.cells {
		if c != nil {
			v = append(v, c.summary.Center)
		}
	}
	return benchunit.CommonScale(v, benchunit.ClassOf(unit))
}
