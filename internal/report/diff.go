package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/internal/limit"
	"tare/internal/metric"
	"tare/internal/signature"
	"tare/internal/unit"
)

// Diff says what a comparison of two records compares with what, and how the figures of runs without blocks differ. A
// is the base.
type Diff struct {
	A     string `json:"a"` // name of the record
	B     string `json:"b"`
	Pairs []Pair `json:"pairs"`
	// Unpaired are treatments that have no counterpart in the other record, as "run:treatment".
	Unpaired []string `json:"unpaired,omitempty"`
	// Changes are of searches, soaks and guards; comparisons have effects.
	Changes []Change `json:"changes,omitempty"`
}

// Pair is a treatment of either record that are compared with each other.
type Pair struct {
	A string `json:"a"`
	B string `json:"b"`
	// Likely: their levels differ, and nobody said that they correspond: they are what is left on both sides.
	Likely bool `json:"likely,omitempty"`
	// LimitA and LimitB are what sets their rates, FailureA and FailureB how they fail above them; absent where that run
	// did not break.
	LimitA   *limit.Verdict     `json:"limit_a,omitempty"`
	LimitB   *limit.Verdict     `json:"limit_b,omitempty"`
	FailureA *signature.Failure `json:"failure_a,omitempty"`
	FailureB *signature.Failure `json:"failure_b,omitempty"`
}

// Figure is one figure of one run with its interval, at 95 %. An absent bound is not known: a capacity with a lower
// bound only is at least that.
type Figure struct {
	Value *float64 `json:"value,omitempty"`
	Lo    *float64 `json:"lo,omitempty"`
	Hi    *float64 `json:"hi,omitempty"`
	Basis string   `json:"basis,omitempty"` // what it was measured on, or why it is absent
}

// ChangeVerdict says whether the intervals of two figures show that they differ.
type ChangeVerdict string

// The verdicts of changes.
const (
	ShownHigher ChangeVerdict = "higher"     // the intervals are apart
	ShownLower  ChangeVerdict = "lower"      // the intervals are apart
	NotShown    ChangeVerdict = "not-shown"  // the intervals overlap
	NotCompared ChangeVerdict = "not-judged" // one of them is absent, or a run is invalid
)

// Change is one figure in both records.
type Change struct {
	Treatment string      `json:"treatment"` // of B
	Baseline  string      `json:"baseline"`  // of A
	Metric    string      `json:"metric"`
	Quantile  string      `json:"quantile,omitempty"`
	Operation string      `json:"operation,omitempty"`
	Drift     bool        `json:"drift,omitempty"` // the trend an hour, not the level
	Unit      metric.Unit `json:"unit,omitempty"`
	A         Figure      `json:"figure_a"`
	B         Figure      `json:"figure_b"`
	// Ratio is B ÷ A − 1, with the widest interval that both intervals allow; absent without values above 0, and for
	// trends.
	Ratio   *float64      `json:"ratio,omitempty"`
	Lo      *float64      `json:"lo,omitempty"`
	Hi      *float64      `json:"hi,omitempty"`
	Verdict ChangeVerdict `json:"verdict"`
	Reason  string        `json:"reason,omitempty"`
}

// measured names the figure as budgets do.
func (c *Change) measured() string {
	s := Measured(c.Operation, c.Metric, c.Quantile)
	if c.Drift {
		s += " drift"
	}
	return s
}

// word returns the verdict as reports for people say it.
func (c *Change) word() string {
	switch c.Verdict {
	case ShownHigher:
		return EffectVerdict(higher).mark() + " higher, shown"
	case ShownLower:
		return EffectVerdict(lower).mark() + " lower, shown"
	case NotShown:
		return "? not shown" + because(c.Reason)
	case NotCompared:
	}
	return "– not judged" + because(c.Reason)
}

// ratio returns the change as a share: "-9.2 % [-17, -4.4]"; "" if it is not known.
func (c *Change) ratio() string {
	if c.Ratio == nil {
		return ""
	}
	e := Effect{Kind: asRatio, Estimate: *c.Ratio, Lo: math.Inf(-1), Hi: math.Inf(1), Blocks: 1}
	if c.Lo != nil {
		e.Lo = *c.Lo
	}
	if c.Hi != nil {
		e.Hi = *c.Hi
	}
	if c.Lo == nil && c.Hi == nil {
		return e.size()
	}
	return e.ranged()
}

// figure prints one figure: "163/s [158, 175]", "at least 160/s".
func (c *Change) figure(f *Figure) string {
	show := Amount(c.Metric, c.Unit)
	if c.Drift {
		show = func(v float64) string { return Amount(c.Metric, c.Unit)(v) + "/h" }
	}
	lo, hi := "-∞", "∞"
	switch {
	case f.Value == nil:
		return ""
	case f.Lo != nil && f.Hi != nil && *f.Lo == *f.Hi:
		return show(*f.Value)
	case c.bounds(f) && f.Hi == nil:
		return "at least " + show(*f.Lo)
	case c.bounds(f) && *f.Lo == 0:
		return "at most " + show(*f.Hi)
	case c.bounds(f):
		return show(*f.Lo) + " to " + show(*f.Hi)
	case f.Lo == nil && f.Hi == nil:
		return show(*f.Value)
	}
	if f.Lo != nil {
		lo = show(*f.Lo)
	}
	if f.Hi != nil {
		hi = show(*f.Hi)
	}
	lo, hi = sameUnit(show(*f.Value), lo, hi)
	if c.Unit == metric.PerSecond {
		lo, hi = strings.TrimSuffix(lo, "/s"), strings.TrimSuffix(hi, "/s")
	}
	return show(*f.Value) + " [" + lo + ", " + hi + "]"
}

// bounds reports whether a figure is no estimate: its value is a rate that was seen to hold or to break.
func (c *Change) bounds(f *Figure) bool {
	is := func(bound *float64) bool { return bound != nil && *bound == *f.Value }
	rate := c.Metric == metric.Capacity.Name || c.Metric == metric.SLOCapacity.Name
	return rate && f.Lo != nil && is(f.Lo) != is(f.Hi)
}

// sentence describes a change: "capacity 163/s [158, 175] → 148/s [145, 151], -9 % [-17, -4]".
func (c *Change) sentence(r *Report) string {
	s := strings.TrimSpace(r.pairName(c.Treatment)+" "+c.measured()) + ": " + c.figure(&c.A) + " → " + c.figure(&c.B)
	if text := c.ratio(); text != "" {
		s += ", " + text
	}
	return s
}

// pairName returns what a pair is called in tables: the treatment, and that of A if it has another name; "" if there is
// only one pair.
func (r *Report) pairName(treatment string) string {
	d := r.Diff
	i := slices.IndexFunc(d.Pairs, func(p Pair) bool { return p.B == treatment })
	if i < 0 {
		return r.short(treatment)
	}
	switch p := &d.Pairs[i]; {
	case len(d.Pairs) == 1:
		return "" // it is named above the table
	case p.A != p.B:
		return r.short(p.B) + " against " + r.short(d.A+":"+p.A)
	}
	return r.short(treatment)
}

// inA returns a treatment's own name if it is of the base of a comparison of two records.
func (r *Report) inA(id string) (own string, ok bool) {
	if r.Diff == nil {
		return "", false
	}
	return strings.CutPrefix(id, r.Diff.A+":")
}

// diffRemarks say which runs and treatments are compared, and which are not.
func (r *Report) diffRemarks() []remark {
	d := r.Diff
	if d == nil {
		return nil
	}
	named := 0
	var likely []string
	for i := range d.Pairs {
		if p := &d.Pairs[i]; p.Likely {
			likely = append(likely, "B:"+p.B+" with A:"+p.A)
		} else {
			named++
		}
	}
	text := "A is " + d.A + ", B is " + d.B
	switch p := d.Pairs; {
	case named == 1 && len(p) == 1 && p[0].A == p[0].B:
		text += ": " + p[0].B + " of both"
	case named == 1 && len(p) == 1:
		text += ": " + p[0].B + " of B against " + p[0].A + " of A"
	case named > 0:
		text += ": " + unit.Count(named, "treatment") + " with " + plural(named, "its namesake", "their namesakes")
	}
	out := []remark{{Word: "compared", Text: text}}
	if len(likely) > 0 {
		out = append(out, remark{"guessed", strings.Join(likely, ", ") + ": their levels differ, and neither side has " +
			"another candidate; name two others if they do not correspond", unsure})
	}
	if len(d.Unpaired) > 0 {
		out = append(out, remark{
			"unpaired", "without a counterpart, so not compared: " + strings.Join(d.Unpaired, ", "),
			unsure,
		})
	}
	for i := range d.Pairs {
		out = append(out, r.pairAnswers(&d.Pairs[i])...)
	}
	return out
}

// pairAnswers says whether the limit and the failure of a pair are the same in both.
func (r *Report) pairAnswers(p *Pair) (out []remark) {
	add := func(word, a, b string) {
		text := orElse(a, "none was found") + " → " + orElse(b, "none was found")
		switch {
		case a+b == "":
			return
		case a == b:
			text = a + " in both"
		}
		if name := r.pairName(p.B); name != "" {
			text = name + ": " + text
		}
		out = append(out, remark{Word: word, Text: text})
	}
	add("limit", statementOf(withoutRate(p.LimitA)), statementOf(withoutRate(p.LimitB)))
	add("fails as", statementOf(p.FailureA), statementOf(p.FailureB))
	return out
}

// withoutRate returns v without the value of a rate limit: that is the capacity, which has its own row and interval.
func withoutRate(v *limit.Verdict) *limit.Verdict {
	if v == nil || v.Kind != limit.RateLimit {
		return v
	}
	of := *v
	of.Value = ""
	return &of
}

// diffConclusion counts the figures that differ, with the largest differences.
func (r *Report) diffConclusion() string {
	var shown []string
	open, unjudged, all := 0, 0, 0
	for _, x := range r.rankedEffects() {
		switch all++; {
		case x.Verdict == NotJudged:
			unjudged++
		case x.excludesZero():
			name := strings.TrimSpace(r.pairName(x.Treatment) + " " + x.measured())
			shown = append(shown, name+" "+x.Change())
		default:
			open++
		}
	}
	for _, c := range r.rankedChanges() {
		switch all++; c.Verdict {
		case ShownHigher, ShownLower:
			shown = append(shown, c.sentence(r))
		case NotShown:
			open++
		case NotCompared:
			unjudged++
		}
	}
	if all == 0 {
		return ""
	}
	text := "No difference between A and B is shown."
	if n := len(shown); n > 0 {
		text = fmt.Sprintf("Of %s, %d %s shown to differ", unit.Count(all, "figure"), n, plural(n, "is", "are"))
		if all == 1 {
			text = "It is shown to differ"
		}
		text += " from A to B: " + strings.Join(shown[:min(maxNamed, n)], "; ")
		if n > maxNamed {
			text += "; and " + strconv.Itoa(n-maxNamed) + " more"
		}
		text += "."
	}
	switch {
	case open > 0 && len(shown) > 0:
		text += " For " + plural(open, "the other one", strconv.Itoa(open)+" others") +
			", neither a difference nor its absence is shown."
	case open > 0:
		text += " Nor is its absence, for " + plural(open, "the one figure.", "any of "+strconv.Itoa(open)+" figures.")
	}
	if unjudged > 0 {
		text += " " + strconv.Itoa(unjudged) + plural(unjudged, " is", " are") + " not judged."
	}
	return text
}

// rankedEffects returns the effects of a comparison of records: those that differ from 0 first, the largest before all.
func (r *Report) rankedEffects() []*Effect {
	out := pointers(r.Effects)
	rank := func(x *Effect) int {
		switch {
		case x.excludesZero() && x.Verdict != NotJudged:
			return 0
		case x.Gating:
			return 1
		}
		return 2
	}
	slices.SortStableFunc(out, func(a, b *Effect) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(kindRank(a), kindRank(b)),
			cmp.Compare(math.Abs(b.Estimate), math.Abs(a.Estimate)))
	})
	return out
}

// rankedChanges returns the changes that are shown first, and the largest of them.
func (r *Report) rankedChanges() []*Change {
	if r.Diff == nil {
		return nil
	}
	out := pointers(r.Diff.Changes)
	rank := map[ChangeVerdict]int{NotShown: 1, NotCompared: 2}
	slices.SortStableFunc(out, func(a, b *Change) int {
		if by := cmp.Compare(rank[a.Verdict], rank[b.Verdict]); by != 0 || rank[a.Verdict] > 0 {
			return by
		}
		return cmp.Compare(math.Abs(orZero(b.Ratio)), math.Abs(orZero(a.Ratio)))
	})
	return out
}

// diffTable returns a row for each figure that two records have, the largest difference first.
func (r *Report) diffTable() table {
	t := table{
		{head: "treatment", left: true},
		{head: "measured", left: true},
		{head: "in A"},
		{head: "in B"},
		{head: "change", note: r.diffNote()},
		{head: "verdict", left: true},
		{head: "role", left: true, drop: 1},
	}
	for _, x := range r.rankedEffects() {
		role := "exploratory"
		if x.Gating {
			role = ""
		}
		t.add(r.pairName(x.Treatment), x.measured(), r.value(x.Baseline, x.measured()), r.value(x.Treatment, x.measured()),
			x.Change(), x.word(), role)
	}
	for _, c := range r.rankedChanges() {
		t.add(r.pairName(c.Treatment), c.measured(), c.figure(&c.A), c.figure(&c.B), c.ratio(), c.word(), "")
	}
	return t.used()
}

// diffNote stands below the table.
func (r *Report) diffNote() string {
	if len(r.Effects) > 0 {
		return changeNote
	}
	return "intervals are of one run each, at 95 %; that of the change is the widest that both allow"
}

// diffSection shows what differs between two records without blocks; effects have a section of their own.
func diffSection(r *Report) section {
	if r.Diff == nil || len(r.Diff.Changes) == 0 {
		return section{}
	}
	return section{
		Question: "What differs between the two runs?", Short: "Difference",
		Blocks: tabular(&grid{
			table: r.diffTable(), Title: "From A to B", Caption: "The largest difference that is shown first",
			Marks: true,
		}),
	}
}
