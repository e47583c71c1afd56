package report

import (
	"fmt"
	"slices"
	"strings"

	"tare/internal/design"
	"tare/internal/unit"
)

// The service levels of a control plane, for text and Markdown.

// Title names the subject of the objective: "POST pods", "pod-startup".
func (s *SLO) Title() string {
	if s.Subject != "" {
		return s.Subject
	}
	return s.Name
}

// rateSuffix returns the rate of a search at which the objective was judged, to follow a name: " at 61.3/s, held"; ""
// elsewhere.
func (s *SLO) rateSuffix() string {
	if s.Rate == nil {
		return ""
	}
	out := " at " + unit.PerSecond(*s.Rate)
	switch {
	case s.Held == nil:
	case *s.Held:
		out += ", held"
	default:
		out += ", failed"
	}
	return out
}

// treatmentAndRate names a treatment, the operation if only its callers' clock tells it from others, and the rate if
// the objective was judged at one rate.
func (s *SLO) treatmentAndRate(treatment string) string {
	if s.Formula == ClientClock && s.Operation != "" && s.Operation != s.Title() {
		treatment = strings.TrimPrefix(treatment+", "+s.Operation, ", ")
	}
	return strings.TrimSpace(treatment + s.rateSuffix())
}

// sameRate reports whether two rows have the same rate, or both have none.
func sameRate(x, y *SLO) bool {
	if x.Rate == nil || y.Rate == nil {
		return x.Rate == y.Rate
	}
	return *x.Rate == *y.Rate
}

// Word returns the verdict with its value: "✓ pass 18 ms". A value beyond the last bucket has only a lower bound.
func (s *SLO) Word() string { return strings.TrimSpace(s.Verdict.mark() + " " + s.value()) }

// sign returns Word with the verdict's sign alone, for tables with a legend.
func (s *SLO) sign() string {
	sign, _, _ := strings.Cut(s.Verdict.mark(), " ")
	return strings.TrimSpace(sign + " " + s.value())
}

func (s *SLO) value() string {
	switch {
	case s.Value != nil && s.Formula != ClientClock && s.Lo != nil && *s.Lo == 0 && s.Hi != nil:
		return "<" + unit.Seconds(*s.Hi) // it lies in the first bucket, which gives only an upper bound
	case s.Value != nil:
		return unit.Seconds(*s.Value)
	case s.Lo != nil:
		return ">" + unit.Seconds(*s.Lo)
	}
	return ""
}

// serviceLevels returns a row for each objective of each treatment and a column for each formula, with the p99 behind
// the verdict.
func (r *Report) serviceLevels() table {
	labels := r.labels()
	t := table{{head: "service level", left: true}, {head: "treatment", left: true}, {head: "limit"}}
	for _, f := range Formulas() {
		t = append(t, &column{head: string(f), left: true})
	}
	t = append(t, &column{head: "n", drop: 1})
	for _, group := range r.objectives() {
		row := []string{
			group[0].Title(), group[0].treatmentAndRate(r.withTreatment(named(labels, group[0].Treatment))),
			limits(group),
		}
		n := uint64(0)
		for _, f := range Formulas() {
			cell := ""
			for _, s := range group {
				if s.Formula == f && cell == "" {
					cell = s.Word()
				}
				n = max(n, s.N)
			}
			row = append(row, cell)
		}
		t.add(append(row, count(n))...)
	}
	return t.used()
}

// levelTables returns a table for each objective of interest, with a row for each treatment and a column for each
// formula. Kinds of requests that pass by all formulas are only counted, unless the run measures them. The A/A arm is
// omitted.
func (r *Report) levelTables() (tables []table, quiet string) {
	labels := r.labels()
	var titles []string
	per := map[string]table{}
	others, passing := 0, true
	for _, group := range r.objectives() {
		if r.isAA(group[0].Treatment) {
			continue
		}
		pass := !slices.ContainsFunc(group, func(s *SLO) bool { return s.Verdict != Pass })
		if group[0].isRemainder() && pass {
			others++
			continue
		}
		passing = passing && pass
		title := group[0].Title() + ": p99 ≤ " + limits(group)
		if per[title] == nil {
			titles = append(titles, title)
			t := table{{head: shortenName(title), left: true}}
			for _, f := range Formulas() {
				t = append(t, &column{head: string(f)})
			}
			per[title] = t
		}
		row := []string{group[0].treatmentAndRate(named(labels, group[0].Treatment))}
		for _, f := range Formulas() {
			cell := ""
			for _, s := range group {
				if s.Formula == f {
					cell = s.sign()
				}
			}
			row = append(row, cell)
		}
		per[title].add(row...)
	}
	for _, title := range titles {
		tables = append(tables, per[title].used())
	}
	switch {
	case others > 0 && passing:
		quiet = "all other requests pass as well"
	case others > 0:
		quiet = "all other requests pass"
	}
	return tables, quiet
}

// shortenName shortens a foreign name for a cell or a head, so that other columns fit beside it.
func shortenName(name string) string { return abridge(sanitize(name), labelLength) }

// isAA reports whether a treatment is the A/A arm, which only the A/A check uses.
func (r *Report) isAA(id string) bool {
	i := slices.IndexFunc(r.Treatments, func(t Treatment) bool { return t.ID == id })
	return i >= 0 && r.Treatments[i].Control == design.AA
}

// limits returns the limits of the formulas, which can differ: "1 s".
func limits(group []*SLO) string {
	return strings.Join(distinct(group, func(s *SLO) string { return unit.Seconds(s.Limit) }), " or ")
}

// objectives groups the rows with the same subject, in their order. Verdicts of several operations on one kind of
// requests are separate.
func (r *Report) objectives() [][]*SLO {
	var out [][]*SLO
	for i := range r.SLO {
		s := &r.SLO[i]
		k := slices.IndexFunc(out, func(g []*SLO) bool {
			return g[0].Treatment == s.Treatment && g[0].Name == s.Name && sameSubject(g[0], s) && sameRate(g[0], s) &&
				!slices.ContainsFunc(g, func(x *SLO) bool { return x.Formula == s.Formula })
		})
		if k < 0 {
			out = append(out, []*SLO{s})
			continue
		}
		out[k] = append(out[k], s)
	}
	return out
}

// isRemainder reports whether a row sums up the kinds that are not listed: "14 other kinds".
func (s *SLO) isRemainder() bool {
	return strings.HasSuffix(s.Subject, " other kinds") || strings.HasSuffix(s.Subject, " other kind")
}

// sameSubject reports whether two rows have the same subject: one kind, or all unlisted kinds.
func sameSubject(x, y *SLO) bool {
	return x.Title() == y.Title() || (x.isRemainder() && y.isRemainder())
}

// levelNotes returns the caveats of the tables' values, each once.
func (r *Report) levelNotes() []string {
	var notes []string
	about := map[string][]string{}
	for i := range r.SLO {
		s := &r.SLO[i]
		if s.Note == "" || s.isRemainder() || r.isAA(s.Treatment) {
			continue
		}
		if about[s.Note] == nil {
			notes = append(notes, s.Note)
		}
		if of := s.Title() + " by " + string(s.Formula); !slices.Contains(about[s.Note], of) {
			about[s.Note] = append(about[s.Note], of)
		}
	}
	return withNotes(notes, about)
}

// withNotes appends each note to its subject.
func withNotes(notes []string, about map[string][]string) []string {
	var out []string
	for _, n := range notes {
		names := about[n]
		const most = 4
		if more := len(names) - most; more > 0 {
			names = append(slices.Clip(names[:most]), fmt.Sprintf("%d more", more))
		}
		out = append(out, strings.Join(names, ", ")+": "+n)
	}
	if n := len(out) - maxLevelNotes; n > 0 {
		out = append(out[:maxLevelNotes:maxLevelNotes], further(n))
	}
	return out
}

// maxLevelNotes limits the notes in text and Markdown; the other formats have all.
const maxLevelNotes = 8

// attributions returns a table for each operation, with a row for each treatment: how the mean time of a call was
// spent.
func (r *Report) attributions() []table {
	labels := r.labels()
	var out []table
	for _, operation := range distinct(pointers(r.Attribution), func(x *Attribution) string { return x.Operation }) {
		t := table{
			{head: shortenName(operation) + ", mean of one", left: true},
			{head: "all"},
			{head: "client"},
			{head: "webhook"},
			{head: "admission"},
			{head: "storage"},
			{head: "other"},
		}
		for i := range r.Attribution {
			if x := &r.Attribution[i]; x.Operation == operation && !r.isAA(x.Treatment) {
				t.add(append([]string{named(labels, x.Treatment)}, x.cells()...)...)
			}
		}
		if t.rows() > 0 {
			out = append(out, t.used())
		}
	}
	return out
}

func (x *Attribution) cells() []string {
	var out []string
	for _, v := range []*float64{x.Total, x.Client, x.Webhook, x.Admission, x.Storage, x.Other} {
		out = append(out, opt(v, unit.Seconds))
	}
	return out
}

// attributionTable returns the table of all operations.
func (r *Report) attributionTable() table {
	labels := r.labels()
	t := table{
		{head: "operation", left: true},
		{head: "treatment", left: true},
		{head: "all"},
		{head: "client"},
		{head: "webhook"},
		{head: "admission"},
		{head: "storage"},
		{head: "other"},
		{head: "remark", left: true},
	}
	for i := range r.Attribution {
		x := &r.Attribution[i]
		t.add(append(append([]string{x.Operation, r.withTreatment(named(labels, x.Treatment))}, x.cells()...), x.Note)...)
	}
	return t.used()
}

// attributionNotes returns the caveats of the parts.
func (r *Report) attributionNotes() []string {
	var notes []string
	about := map[string][]string{}
	for i := range r.Attribution {
		x := &r.Attribution[i]
		if x.Note == "" || r.isAA(x.Treatment) {
			continue
		}
		if about[x.Note] == nil {
			notes = append(notes, x.Note)
		}
		about[x.Note] = append(about[x.Note], strings.TrimSpace(r.withTreatment(named(r.labels(), x.Treatment))+" "+
			x.Operation))
	}
	return withNotes(notes, about)
}

// phases returns a table for each operation, with a row for each treatment and a column for each phase.
func (r *Report) phases() []table {
	labels := r.labels()
	var out []table
	for _, operation := range distinct(pointers(r.Phases), func(p *Phase) string { return p.Operation }) {
		all := slices.DeleteFunc(pointers(r.Phases), func(p *Phase) bool {
			return p.Operation != operation ||
				r.isAA(p.Treatment)
		})
		names := distinct(all, func(p *Phase) string { return p.Phase })
		t := table{{head: shortenName(operation) + ", p99", left: true}}
		for i, name := range names {
			const own = 4 // the other phases are the formulas' clocks, which are shown above
			t = append(t, &column{head: abridge(sanitize(name), 20), drop: max(0, i-own+1)})
		}
		for _, id := range distinct(all, func(p *Phase) string { return p.Treatment }) {
			row := []string{named(labels, id)}
			for _, name := range names {
				cell := ""
				for _, p := range all {
					if p.Treatment == id && p.Phase == name {
						cell = unit.Seconds(p.P99)
					}
				}
				row = append(row, cell)
			}
			t.add(row...)
		}
		if t.rows() > 0 {
			out = append(out, t.used())
		}
	}
	return out
}

// phaseTable returns a row for each phase, with all its values.
func (r *Report) phaseTable() table {
	labels := r.labels()
	t := table{
		{head: "operation", left: true},
		{head: "treatment", left: true},
		{head: "phase", left: true},
		{head: "n"},
		{head: "mean"},
		{head: "p50"},
		{head: "p90"},
		{head: "p99"},
		{head: "max"},
	}
	for i := range r.Phases {
		p := &r.Phases[i]
		t.add(p.Operation, r.withTreatment(named(labels, p.Treatment)), p.Phase, count(p.N), unit.Seconds(p.Mean),
			unit.Seconds(p.P50), unit.Seconds(p.P90),
			unit.Seconds(p.P99), unit.Seconds(p.Max))
	}
	return t.used()
}

// disagreeing lists the objectives on which formulas reach different verdicts.
func (r *Report) disagreeing() []string {
	var out []string
	for _, group := range r.objectives() {
		words := distinct(group, func(s *SLO) string { return string(s.Verdict) })
		if slices.Contains(words, string(Pass)) && slices.Contains(words, string(Fail)) {
			out = append(out, strings.TrimSpace(group[0].Title()+" "+
				group[0].treatmentAndRate(r.withTreatment(named(r.labels(), group[0].Treatment)))))
		}
	}
	return out
}

// disagreement describes in one sentence where the formulas reach different verdicts; "" if they agree.
func (r *Report) disagreement() string {
	all := r.disagreeing()
	if len(all) == 0 {
		return ""
	}
	return fmt.Sprintf("the formulas DISAGREE on %s", strings.Join(all, ", "))
}

// levelProperties returns the verdicts, by formula, on what the run measures.
func (r *Report) levelProperties() []junitProperty {
	var out []junitProperty
	for i := range r.SLO {
		s := &r.SLO[i]
		if s.isRemainder() {
			continue
		}
		name := "service level of " + strings.TrimSpace(r.withTreatment(s.Treatment)+" "+s.Title()) + s.rateSuffix() +
			" by " + string(s.Formula)
		out = append(out, junitProperty{sanitize(name), s.Word() + " of " + unit.Seconds(s.Limit)})
	}
	return out
}
