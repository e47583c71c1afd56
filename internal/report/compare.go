package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/internal/metric"
	"tare/internal/unit"
)

// The results of a comparison, for text and Markdown.

// Primary reports whether an effect belongs in the main tables: effects that decide, and always CPU time and the median
// response.
func (x *Effect) Primary() bool {
	median := x.Metric == metric.Response.Name && (x.Quantile == "" || x.Quantile == "p50")
	return x.Gating || (x.Metric == metric.CPU.Name && x.Quantile == "") || median
}

// primary returns the effects of the main tables; if there are none, as in a comparison of other tools' results, all
// effects.
func (r *Report) primary() []*Effect {
	if some := r.effectsThat((*Effect).Primary); len(some) > 0 {
		return some
	}
	return pointers(r.Effects)
}

// gating returns the effects that decide; if there are none, all effects.
func (r *Report) gating() []*Effect {
	if some := r.effectsThat(func(x *Effect) bool { return x.Gating }); len(some) > 0 {
		return some
	}
	return pointers(r.Effects)
}

func (r *Report) effectsThat(keep func(*Effect) bool) []*Effect {
	return slices.DeleteFunc(pointers(r.Effects), func(x *Effect) bool { return !keep(x) })
}

// allDecided reports whether there are budgets and every measurable one is decided: then open effects need no more
// blocks.
func (r *Report) allDecided() bool {
	decided := false
	for _, b := range r.Budgets {
		if b.Verdict == Inconclusive {
			return false
		}
		decided = decided || b.Verdict == Pass || b.Verdict == Fail
	}
	return decided
}

// distinct keeps the first of each, in order.
func distinct[T any](all []T, of func(T) string) []string {
	var out []string
	for _, x := range all {
		if s := of(x); !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}

// effects returns the table of what each treatment costs: a row per treatment and a column per measurement, or for a
// single treatment, a row per measurement. long: it is the latter, which spells out all verdicts.
func (r *Report) effects() (t table, long bool) {
	if r.Diff != nil && len(r.Effects) > 0 {
		return r.diffTable(), true
	}
	treatments := distinct(pointers(r.Effects), func(x *Effect) string { return x.Treatment })
	switch len(treatments) {
	case 0:
		return nil, false
	case 1:
		return r.single(treatments[0]), true
	}
	t = r.matrix(r.primary(), (*Effect).Change)
	for i, c := range r.matrix(r.primary(), (*Effect).ranged) {
		t[i].short = c.cells
	}
	return t, false
}

// matrix returns a row for each treatment and a column for each gating metric of each operation, with changes as change
// prints them.
func (r *Report) matrix(gating []*Effect, change func(*Effect) string) table {
	labels := r.labels()
	baselines := distinct(gating, func(x *Effect) string { return x.Baseline })
	names := distinct(gating, (*Effect).measured)
	t := table{{head: "treatment", left: true}, {head: "against", left: true}}
	for _, n := range names {
		t = append(t, &column{head: n})
	}
	if len(baselines) == 1 {
		t.add(r.baselineRow(baselines[0], names)...)
	}
	for _, id := range r.ordered(gating) {
		for _, b := range baselines {
			row := []string{named(labels, id), named(labels, b)}
			if len(baselines) == 1 {
				row[1] = ""
			}
			found := false
			for _, n := range names {
				cell := ""
				for _, x := range gating {
					if x.Treatment == id && x.Baseline == b && x.measured() == n {
						cell, found = strings.TrimSpace(change(x)+" "+x.shown().mark()), true
						break
					}
				}
				row = append(row, cell)
			}
			if found {
				t.add(row...)
			}
		}
	}
	return t.used()
}

// ordered returns the treatments of effects in the order of the file, then those that the report does not list.
func (r *Report) ordered(effects []*Effect) []string {
	have := distinct(effects, func(x *Effect) string { return x.Treatment })
	var out []string
	for i := range r.Treatments {
		if id := r.Treatments[i].ID; slices.Contains(have, id) && !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	for _, id := range have {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

func (r *Report) baselineRow(id string, names []string) []string {
	row := []string{named(r.labels(), id), ""}
	for _, n := range names {
		row = append(row, r.value(id, n))
	}
	return row
}

// value returns the measured value of a treatment itself.
func (r *Report) value(id, name string) string {
	for i := range r.Treatments {
		if r.Treatments[i].ID != id {
			continue
		}
		for k := range r.Treatments[i].Metrics {
			if m := &r.Treatments[i].Metrics[k]; m.measured() == name {
				return Amount(m.Name, metric.Unit(m.Unit))(m.Value) + m.Beside()
			}
		}
	}
	return ""
}

// changeNote stands below values and changes of them.
const changeNote = "the change is an estimate of its own: it need not be the quotient of the values beside it"

// single returns the table of one treatment and its baseline, in the order of place.
func (r *Report) single(id string) table {
	labels := r.labels()
	t := table{
		{head: "measured", left: true},
		{head: "baseline", drop: 2},
		{head: named(labels, id), drop: 3, note: changeNote},
		{head: "change"},
		{head: "verdict", left: true},
		{head: "visible from", drop: 4},
		{head: "decided at about", drop: 5},
		{head: "role", left: true, drop: 1},
	}
	all := r.effectsThat(func(x *Effect) bool { return x.Treatment == id })
	slices.SortStableFunc(all, func(x, y *Effect) int { return cmp.Compare(x.place(), y.place()) })
	for _, x := range all {
		role := "exploratory"
		if x.Gating {
			role = ""
		}
		t.add(x.measured(), r.value(x.Baseline, x.measured()), r.value(id, x.measured()), x.Change(), x.word(),
			x.extent(x.MDE), x.blocksNeeded(), role)
	}
	return t.used()
}

// place orders the effects of a table: those that decide, then that the treatments differ in how many calls fail.
func (x *Effect) place() int {
	switch {
	case x.Gating:
		return 0
	case x.failsOtherwise():
		return 1
	}
	return 2
}

// failsOtherwise reports whether an effect shows that more, or fewer, calls fail under its treatment.
func (x *Effect) failsOtherwise() bool {
	return x.Metric == metric.Error.Name && x.Measurable && x.Verdict != Equivalent
}

// legend explains and counts the marks that occur in a matrix.
func (r *Report) legend() []string {
	var parts []string
	seen := map[EffectVerdict]int{}
	for _, x := range r.primary() {
		seen[x.shown()]++
	}
	for _, v := range shownVerdicts() {
		if n := seen[v]; n > 0 {
			parts = append(parts, v.mark()+" "+v.explained(n, r.margin()))
		}
	}
	return parts
}

// margin returns the margin that all gating effects share, or "".
func (r *Report) margin() string {
	all := distinct(r.gating(), func(x *Effect) string { return opt(x.Margin, share) })
	if len(all) == 1 && all[0] != "" {
		return all[0]
	}
	if len(all) <= 1 && r.Design != nil && r.Design.Margin > 0 {
		return share(r.Design.Margin)
	}
	return ""
}

// tally lists the gating effects beyond the margin, by measurement, because controls are many and measurements few.
func (r *Report) tally() []remark {
	gating, labels := r.primary(), r.labels()
	var out []remark
	for _, v := range []EffectVerdict{Regressed, Improved, costs, saves} {
		var parts []string
		for _, name := range distinct(gating, (*Effect).measured) {
			of := slices.DeleteFunc(slices.Clone(gating), func(x *Effect) bool { return x.measured() != name })
			hit := slices.DeleteFunc(slices.Clone(of), func(x *Effect) bool { return x.shown() != v })
			var names []string
			for _, id := range r.ordered(hit) {
				names = append(names, named(labels, id))
			}
			switch {
			case len(hit) == 0:
			case len(hit) == len(of) && len(of) > 1:
				parts = append(parts, fmt.Sprintf("%s: all %d treatments", name, len(of)))
			default:
				parts = append(parts, name+": "+strings.Join(names, ", "))
			}
		}
		if len(parts) > 0 {
			out = append(out, remark{string(v), strings.Join(parts, "; "), v.class()})
		}
	}
	return out
}

// undecided reports whether more blocks would tell more about an effect.
func (v EffectVerdict) undecided() bool {
	return v == EffectInconclusive || v == NotJudged || v == Slower || v == Faster
}

// maxOpen limits the list of undecided effects in text and Markdown.
const maxOpen = 12

// undecidedTable returns the table of undecided gating effects, with the smallest detectable effect and the blocks that
// would decide them, and below it what limits them.
func (r *Report) undecidedTable() (t table, remarks []string) {
	labels := r.labels()
	t = table{
		{head: "undecided", left: true},
		{head: "measured", left: true},
		{head: "change"},
		{head: "verdict", left: true, drop: 3},
		{head: "visible from", drop: 2},
		{head: "decided at about", drop: 1},
	}
	all := slices.DeleteFunc(r.gating(), func(x *Effect) bool {
		return !x.Verdict.undecided() || r.allDecided()
	})
	for _, x := range all[:min(maxOpen, len(all))] {
		t.add(named(labels, x.Treatment), x.measured(), x.Change(), x.Shown(), x.extent(x.MDE), x.blocksNeeded())
		t[2].short = append(t[2].short, x.ranged())
	}
	if n := len(all) - maxOpen; n > 0 {
		remarks = append(remarks, fmt.Sprintf("and %d more that are undecided", n))
	}
	for _, reason := range distinct(all, func(x *Effect) string { return x.Reason }) {
		if reason != "" && r.unblocked() == "" {
			remarks = append(remarks, reason)
		}
	}
	return t.used(), remarks[:min(maxOpen, len(remarks))]
}

// blocksNeeded returns the total number of blocks that would decide an effect.
func (x *Effect) blocksNeeded() string {
	if x.BlocksToDecide == nil {
		return ""
	}
	return unit.Count(*x.BlocksToDecide, "block")
}

// maxExploratory limits how many exploratory effects are named.
const maxExploratory = 3

// exploratory summarizes the effects that decide nothing: the largest of those that differ from 0. It counts effects
// without a verdict separately, because the lack of a verdict is not evidence of no effect.
func (r *Report) exploratory() string {
	var all, seen []*Effect
	unjudged := map[string]int{}
	open := 0
	for i := range r.Effects {
		x := &r.Effects[i]
		if x.Primary() {
			continue
		}
		all = append(all, x)
		switch {
		case x.Verdict == NotJudged:
			unjudged[x.Reason]++
			open++
		case x.excludesZero():
			seen = append(seen, x)
		}
	}
	if len(all) == 0 || len(all) == len(r.Effects) {
		return ""
	}
	s := unit.Count(len(all), "further effect")
	for _, reason := range slices.Sorted(maps.Keys(unjudged)) {
		n := "none"
		if unjudged[reason] < len(all) {
			n = strconv.Itoa(unjudged[reason]) + " not"
		}
		s += ", " + n + " judged" + because(reason)
	}
	switch {
	case open == len(all):
		return s
	case len(seen) == 0:
		return s + fmt.Sprintf("; %s from 0", plural(len(all)-open, "the one judged is not known to differ",
			"none of those judged is known to differ"))
	}
	s += fmt.Sprintf("; %d %s from 0", len(seen), plural(len(seen), "differs", "differ"))
	slices.SortStableFunc(seen, func(a, b *Effect) int {
		if a.Kind != b.Kind {
			return strings.Compare(b.Kind, a.Kind) // ratios first, because only like values can be ordered
		}
		return -cmpFloat(math.Abs(a.Estimate), math.Abs(b.Estimate))
	})
	var parts []string
	for _, x := range seen[:min(maxExploratory, len(seen))] {
		parts = append(parts, x.measured()+" of "+named(r.labels(), x.Treatment)+" "+x.Change())
	}
	return s + ", most " + strings.Join(parts, ", ")
}

func cmpFloat(a, b float64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}
