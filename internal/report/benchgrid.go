package report

import (
	"fmt"
	"slices"
	"strings"

	"tare/internal/design"
)

// A benchGrid says which series stands where in benchstat's tables, whatever the unit.
type benchGrid struct {
	columns []string // the baseline's first
	rows    []*benchPlace
}

type benchPlace struct {
	key, label string
	series     []*series // by column; nil: there is none
}

// The names of columns where treatments do not differ from their baselines in any level: those of two runs.
const (
	baseColumn    = "base"
	treatedColumn = "treated"
)

// gridOf puts each treatment into the column of the levels in which treatments differ from their baselines, and beside its baseline.
func (r *Report) gridOf(all []series) *benchGrid {
	g := &benchGrid{}
	bases := r.bases()
	across, twins := r.across(bases)
	column := func(t *Treatment) string {
		if twins {
			return treatedColumn
		}
		return clean(orElse(columnLabel(t, across), t.ID))
	}
	g.columns = []string{r.firstColumn(column, twins, len(bases)+len(across) > 0)}
	for i := range all {
		s := &all[i]
		t := s.treatment
		if t.Control == design.AA || t.ID == design.AAArm {
			continue
		}
		at := g.row(r, s, across)
		base, ok := bases[t.ID]
		to := 0
		if ok {
			to = g.column(column(t))
		}
		for i, label := 0, clean(t.ID); !at.put(to, s); i++ { // its levels do not tell it from another one
			to = g.column(label)
			label = fmt.Sprintf("%s#%02d", clean(t.ID), i+1)
		}
		if !ok {
			continue
		}
		if k := slices.IndexFunc(all, func(x series) bool { return x.treatment.ID == base && x.operation == s.operation }); k >= 0 {
			at.put(0, &all[k])
		}
	}
	g.sort(all)
	return g
}

// firstColumn is what the baselines have in common; where nothing is held against them, there is one column.
func (r *Report) firstColumn(column func(*Treatment) string, twins, compared bool) string {
	if !compared {
		return "measured"
	}
	for i := range r.Treatments {
		if t := &r.Treatments[i]; t.Baseline && !twins {
			return column(t)
		}
	}
	return baseColumn
}

// bases are the treatments that others are held against, by those: as the effects say it, and where there are none, as the levels do.
func (r *Report) bases() map[string]string {
	out := map[string]string{}
	for i := range r.Effects {
		x := &r.Effects[i]
		if _, ok := out[x.Treatment]; !ok && x.Baseline != "" && x.Baseline != x.Treatment {
			out[x.Treatment] = x.Baseline
		}
	}
	baselines := slices.DeleteFunc(pointers(r.Treatments), func(t *Treatment) bool { return !t.Baseline })
	levels := make([]map[string]string, len(baselines))
	for i, b := range baselines {
		levels[i] = b.Levels
	}
	for i := range r.Treatments {
		t := &r.Treatments[i]
		if _, ok := out[t.ID]; ok || t.Baseline || t.Control != design.None {
			continue
		}
		if k := slices.IndexFunc(baselines, func(b *Treatment) bool { return design.Beside(b.Levels, t.Levels, levels) }); k >= 0 {
			out[t.ID] = baselines[k].ID
		}
	}
	return out
}

// across are the factors in which treatments differ from their baselines, in the order of the experiment. twins: one differs in none from its own.
func (r *Report) across(bases map[string]string) (factors []string, twins bool) {
	for i := range r.Treatments {
		t := &r.Treatments[i]
		id, ok := bases[t.ID]
		if !ok {
			continue
		}
		b, differs := r.treatment(id), false
		for _, f := range r.levelsOf(t, b) {
			if t.Levels[f] != b.Levels[f] {
				differs = true
				if !slices.Contains(factors, f) {
					factors = append(factors, f)
				}
			}
		}
		twins = twins || !differs
	}
	return factors, twins
}

// levelsOf are the factors that one of two treatments has, in the order of the experiment.
func (r *Report) levelsOf(treatments ...*Treatment) []string {
	var out []string
	for _, t := range treatments {
		for _, f := range r.factors(t) {
			if _, ok := t.Levels[f[0]]; ok && !slices.Contains(out, f[0]) {
				out = append(out, f[0])
			}
		}
	}
	return out
}

// columnLabel is a treatment's levels of the factors that make columns: one alone stands without its factor.
func columnLabel(t *Treatment, across []string) string {
	var parts []string
	for _, f := range across {
		level, ok := t.Levels[f]
		switch {
		case !ok:
		case len(across) == 1 || speaks(level):
			parts = append(parts, level)
		default:
			parts = append(parts, f+"="+level)
		}
	}
	return strings.Join(parts, " ")
}

// column is the number of a column, which is made if there is none.
func (g *benchGrid) column(label string) int {
	i := slices.Index(g.columns[1:], label)
	if i < 0 {
		g.columns = append(g.columns, label)
		return len(g.columns) - 1
	}
	return i + 1
}

// row is the place of a series: of its operation, and its levels that are no column's. Of twins that are all levels.
func (g *benchGrid) row(r *Report, s *series, across []string) *benchPlace {
	label := title(word(orElse(s.operation, "all")))
	for _, f := range r.factors(s.treatment) {
		if _, ok := s.treatment.Levels[f[0]]; ok && !slices.Contains(across, f[0]) {
			label += "/" + word(f[0]) + "=" + word(f[1])
		}
	}
	key := s.operation + "\x00" + label
	if i := slices.IndexFunc(g.rows, func(p *benchPlace) bool { return p.key == key }); i >= 0 {
		return g.rows[i]
	}
	for i, base := 1, label; slices.ContainsFunc(g.rows, func(p *benchPlace) bool { return p.label == label }); i++ {
		label = fmt.Sprintf("%s#%02d", base, i)
	}
	g.rows = append(g.rows, &benchPlace{key: key, label: label})
	return g.rows[len(g.rows)-1]
}

// put takes a series in; of two at one place the first stays, and the second is refused.
func (p *benchPlace) put(column int, s *series) bool {
	for len(p.series) <= column {
		p.series = append(p.series, nil)
	}
	if p.series[column] == nil {
		p.series[column] = s
	}
	return p.series[column] == s
}

// sort brings the rows of one operation together, in the order in which operations came.
func (g *benchGrid) sort(all []series) {
	operations := distinct(pointers(all), func(s *series) string { return s.operation })
	place := func(p *benchPlace) int {
		operation, _, _ := strings.Cut(p.key, "\x00")
		return slices.Index(operations, operation)
	}
	slices.SortStableFunc(g.rows, func(a, b *benchPlace) int { return place(a) - place(b) })
}
