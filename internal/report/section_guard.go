package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"tare/internal/unit"
)

// guardSection reports what was permitted that must be refused, by rate and by condition.
func guardSection(r *Report) section {
	s := section{Question: "Does it still guard?", Short: "Guard"}
	if f := guardFigure(r); f != nil {
		s.Blocks = append(s.Blocks, block{Figure: f})
	}
	for i := range r.Guard {
		g := &r.Guard[i]
		of := ""
		if several(r) {
			of = ": " + r.short(g.Treatment)
		}
		s.Blocks = append(s.Blocks, block{Said: r.guardRemarks(g)})
		s.Blocks = append(s.Blocks, tabular(&grid{table: r.guardRates(g), Title: "By rate" + of, Caption: "By rate" + of})...)
		s.Blocks = append(s.Blocks,
			tabular(&grid{table: guardConditions(g), Title: "By condition" + of, Caption: "By condition" + of})...)
		s.Blocks = append(s.Blocks, tabular(&grid{
			table: guardCauses(g), Title: "Not served or not decided" + of,
			Caption: "Calls that were not served, and trespasses that were not decided" + of, Most: maxCauses,
		})...)
		s.Blocks = append(s.Blocks, tabular(&grid{
			table: breachTable(g), Title: "First breaches" + of,
			Caption: "First breaches" + of, Most: mostBreaches,
		})...)
	}
	return s
}

// mostBreaches bounds the breaches in text.
const mostBreaches = 10

// guardRemarks are the answer for one treatment, in sentences.
func (r *Report) guardRemarks(g *Guard) []remark {
	class := good
	switch n := &g.Trespasses; {
	case n.Permitted > 0 || g.Foreign > 0:
		class = bad
	case n.Decided() == 0 || n.Open() > 0 || g.Unearned != "":
		class = unsure
	}
	var out []remark
	add := func(word, text, class string) {
		if text != "" {
			out = append(out, remark{word, r.withColon(g.Treatment) + text, class})
		}
	}
	add("guard", g.Trespasses.sentence(), class)
	for _, x := range someRemarks("permitted", bad, g.permitted(), maxNamed) {
		add(x.Word, x.Text, x.Class)
	}
	add("mixed up", g.mixedUp(), bad)
	if g.Onset != nil {
		add("onset", g.Onset.sentence(), bad)
	}
	add("overload", g.overload(), g.overloadClass())
	add("conditions", g.byCondition(), g.conditionClass())
	add("unknown", g.Silent(), unsure)
	add("unknown", g.littleKnown(), unsure)
	add("breaches", g.again(), plain)
	switch {
	case g.InBursts:
		add("bursts", inBursts, plain)
	case g.Stretches > 0:
		add("bursts", "breaches came in "+g.InStretches()+" of time: the interval of their share is that of so many events",
			plain)
	}
	for i := range g.Figures {
		if f := &g.Figures[i]; f.Values != nil { // else it is of a report that somebody else wrote
			add(f.Metric, f.sentence(), plain)
		}
	}
	return out
}

const inBursts = "breaches came together in time: the intervals of shares are too narrow, since they assume that " +
	"each came by itself"

// InStretches counts the stretches of windows in which a soak had breaches: "5 stretches".
func (g *Guard) InStretches() string { return unit.Count(g.Stretches, "stretch") }

// mixedUp says how many calls got what is somebody else's; "": none.
func (g *Guard) mixedUp() string {
	if g.Foreign == 0 {
		return ""
	}
	return fmt.Sprintf("%d calls that the control must allow got what is somebody else's", g.Foreign)
}

func (g *Guard) conditionClass() string {
	if slices.ContainsFunc(g.conditions(), func(p *GuardPoint) bool { return p.Trespasses.Permitted > 0 }) {
		return bad
	}
	return good
}

// conditions returns the points under conditions.
func (g *Guard) conditions() []*GuardPoint {
	return slices.DeleteFunc(pointers(g.Points), func(p *GuardPoint) bool { return p.Condition == nil })
}

// wellKnown is how many trespasses a point must decide for its share to be below 1.5 % if none is permitted.
const wellKnown = 200

// sentence is what an area measured, with as many quantiles as the values give. Those that rest on values that had not
// ended are bounds.
func (f *GuardFigure) sentence() string {
	d := f.Values
	ended := float64(d.N) - float64(f.Unended)
	var parts []string
	for _, q := range []struct {
		name  string
		share float64
		value *float64
	}{{"p50", .5, d.P50}, {"p99", .99, d.P99}, {"longest", 1, &d.Max}} {
		if q.value == nil {
			continue
		}
		longer := ""
		if math.Ceil(q.share*float64(d.N)) > ended {
			longer = "more than "
		}
		parts = append(parts, q.name+" "+longer+unit.Seconds(*q.value))
	}
	out := strings.Join(parts, ", ") + ", of " + strconv.FormatUint(d.N, 10) + " times"
	if f.Unended > 0 {
		out += fmt.Sprintf("; still granted when asked for last: %d", f.Unended)
	}
	return out
}

// withColon names a treatment before a sentence, where there are several.
func (r *Report) withColon(treatment string) string {
	if !several(r) {
		return ""
	}
	return r.short(treatment) + ": "
}

// sentence says what became of the trespasses.
func (n *Trespasses) sentence() string {
	undecided := n.undecided()
	switch {
	case n.Share == nil && undecided != "":
		return "the control decided no trespass: " + undecided
	case n.Share == nil:
		return "the control decided no trespass"
	case n.Open() > 0:
		undecided = fmt.Sprintf("; %d more were not decided: %s", n.Undecided+n.Unsent, undecided)
	case undecided != "":
		undecided = "; not decided: " + undecided
	}
	if n.Permitted == 0 {
		return fmt.Sprintf("0 of %d trespasses were permitted: the share is below %s, at 95 %%", n.Decided(),
			ShareBelow(n.Share.Hi)) + undecided
	}
	return fmt.Sprintf("%d of %d trespasses were permitted: %s", n.Permitted, n.Decided(), n.Share.ranged()) + undecided
}

// undecided says how those ended that were not decided; "": there were none.
func (n *Trespasses) undecided() string {
	var parts []string
	if n.Unclear > 0 {
		parts = append(parts, fmt.Sprintf("%d got an answer that is neither a permit nor a refusal", n.Unclear))
	}
	if n.Unanswered > 0 {
		parts = append(parts, fmt.Sprintf("%d got no answer and may have been permitted", n.Unanswered))
	}
	if rest := n.Undecided - min(n.Open(), n.Undecided); rest > 0 {
		parts = append(parts, fmt.Sprintf("%d ended in an error or a timeout", rest))
	}
	if n.Unsent > 0 {
		parts = append(parts, fmt.Sprintf("%d could not be sent", n.Unsent))
	}
	return strings.Join(parts, ", ")
}

// ranged is a share with its interval: "1.2 % [0.8, 1.7]".
func (s *Share) ranged() string {
	return fine(s.Value) + " [" + strings.TrimSuffix(fine(s.Lo), " %") + ", " + strings.TrimSuffix(fine(s.Hi), " %") + "]"
}

// fine is a share with two significant digits; only the whole is 100 %.
func fine(share float64) string { return digits(share, math.Round) }

// ShareBelow is an upper bound of a share, rounded up.
func ShareBelow(share float64) string {
	return digits(share, func(x float64) float64 { return max(0, math.Ceil(x-1e-6)) })
}

func digits(share float64, round func(float64) float64) string {
	x, decimals := share*100, 0
	switch {
	case x > 99 && x < 100:
		decimals, round = 2, math.Floor
	case x > 0 && x < 10:
		decimals = 1 - int(math.Floor(math.Log10(x)))
	}
	scale := math.Pow10(decimals)
	return strconv.FormatFloat(round(x*scale)/scale, 'f', -1, 64) + " %"
}

// sentence says where breaches begin.
func (o *Onset) sentence() string {
	switch {
	case o.Above == nil && o.Later:
		return "trespasses were permitted at " + unit.PerSecond(o.Below) + " already, and less at some higher rates: " +
			"they do not follow the rate alone"
	case o.Above == nil:
		return "trespasses were permitted at " + unit.PerSecond(o.Below) + " already, the lowest rate at which any was " +
			"decided"
	case !o.Clear:
		return "trespasses were permitted at " + unit.PerSecond(o.Below) + "; that none was at lower rates may be chance"
	case o.Later:
		return "trespasses were permitted first at " + unit.PerSecond(o.Below) + ", and less at some higher rates: they " +
			"do not follow the rate alone"
	}
	if !o.Sharp {
		return "trespasses were permitted from " + unit.PerSecond(o.Below) + " on, rarely at first: that none was at " +
			unit.PerSecond(*o.Above) + " may be chance"
	}
	return "trespasses were permitted from a rate between " + unit.PerSecond(*o.Above) + " and " + unit.PerSecond(o.Below)
}

// again says what became of breaches that were asked once more, alone.
func (g *Guard) again() string {
	permitted, denied, other := 0, 0, 0
	for _, b := range g.Breaches {
		switch b.Again {
		case "permitted":
			permitted++
		case "denied":
			denied++
		case "":
		default:
			other++
		}
	}
	var parts []string
	for _, x := range []struct {
		n    int
		what string
	}{{permitted, "permitted again"}, {denied, "refused"}, {other, "not decided"}} {
		if x.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", x.n, x.what))
		}
	}
	if len(parts) == 0 {
		return ""
	}
	return "asked again without other load, on fresh connections: " + strings.Join(parts, ", ")
}

// byRate returns the points without conditions, the slowest first.
func (g *Guard) byRate() []*GuardPoint {
	points := slices.DeleteFunc(pointers(g.Points), func(p *GuardPoint) bool { return p.Condition != nil })
	slices.SortStableFunc(points, func(a, b *GuardPoint) int { return cmp.Compare(a.Rate, b.Rate) })
	return points
}

// guardRates is the table of the points without conditions, by rate. It names the treatments if there are several.
func (r *Report) guardRates(guards ...*Guard) table {
	t := append(table{{head: "treatment", left: true}, {head: "offered"}, {head: "× capacity"}}, pointHeads()...)
	for _, g := range guards {
		name := ""
		if len(guards) > 1 {
			name = r.short(g.Treatment)
		}
		for _, p := range g.byRate() {
			factor := ""
			if p.Factor != nil {
				factor = strconv.FormatFloat(*p.Factor, 'f', 2, 64)
			}
			t.add(append([]string{name, unit.PerSecond(p.Rate), factor}, p.cells()...)...)
		}
	}
	return t.used()
}

// pointHeads are the heads of the cells that a point has in every table.
func pointHeads() table {
	return table{
		{head: "trespasses"},
		{head: "permitted"},
		{head: "share"},
		{head: "undecided", counts: true, drop: 3},
		{head: "served"},
		{head: "wrong", counts: true, drop: 2},
		{head: "failed", counts: true, drop: 4},
		{head: "p99", drop: 5},
		{head: "generator", left: true},
	}
}

// cells are those of pointHeads.
func (p *GuardPoint) cells() []string {
	share, served, generator := "", "", ""
	if s := p.Trespasses.Share; s != nil && p.Trespasses.Permitted == 0 {
		share = "< " + ShareBelow(s.Hi)
	} else if s != nil {
		share = s.ranged()
	}
	if p.ServedShare != nil {
		served = Percent(p.ServedShare.Value)
	}
	if p.late() {
		generator = "late"
	}
	return []string{
		whole(p.Trespasses.Decided()), whole(p.Trespasses.Permitted), share,
		whole(p.Trespasses.Undecided + p.Trespasses.Unsent), served, whole(p.Wrong), whole(p.Failed + p.Unsent),
		opt(p.P99, unit.Seconds), generator,
	}
}

// late reports whether the generator could not keep up with the rate.
func (p *GuardPoint) late() bool { return p.Generator != nil && !p.Generator.Valid }

// guardConditions is the table of the conditions.
func guardConditions(g *Guard) table {
	t := slices.Concat(table{{head: "condition", left: true}, {head: "offered", drop: 2}}, pointHeads(), table{
		{head: "during"}, {head: "first breach", drop: 6}, {head: "last breach", drop: 7}, {head: "recovery", drop: 1},
	})
	for _, p := range g.conditions() {
		name, recovery := p.Condition.Name, opt(p.Condition.Recovery, unit.Seconds)
		switch {
		case p.Condition.Error != "":
			name += " (failed)"
		case recovery == "":
			recovery = "not seen"
		}
		during := ""
		if n := p.Condition.During; n != nil {
			during = place{n: n}.count()
		}
		row := append([]string{name, unit.PerSecond(p.Rate)}, p.cells()...)
		t.add(append(row, during, opt(p.FirstBreach, unit.Seconds), opt(p.LastBreach, unit.Seconds), recovery)...)
	}
	return t
}

// guardCauses is the table of what was not served or not decided.
func guardCauses(g *Guard) table {
	t := table{
		{head: "at", left: true},
		{head: "operation", left: true},
		{head: "calls"},
		{head: "ended", left: true, drop: 1},
		{head: "because", left: true},
	}
	for i := range g.Points {
		p := &g.Points[i]
		at := p.Name
		if at == "" {
			at = unit.PerSecond(p.Rate)
		}
		for _, c := range p.Causes {
			t.add(at, c.Operation, whole(c.Calls), strings.ReplaceAll(c.Outcome, "_", " "), c.Cause.Cause)
		}
	}
	return t
}

// breachTable is the table of the first breaches.
func breachTable(g *Guard) table {
	t := table{
		{head: "at", left: true},
		{head: "after"},
		{head: "request", left: true},
		{head: "answer", left: true, drop: 1},
		{head: "in flight", drop: 2},
		{head: "again", left: true},
	}
	for i := range g.Breaches {
		b := &g.Breaches[i]
		request := b.Operation + ": " + b.Request
		if b.Request == "" {
			request = b.Operation
		}
		t.add(b.Point, unit.Seconds(b.At), request, b.answered(), strconv.Itoa(b.InFlight), b.Again)
	}
	return t
}
