package report

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"tare/internal/unit"
)

// guardSection reports what was permitted that must be refused, by rate and by condition.
func guardSection(r *Report) section {
	s := section{Question: "Does it still guard?", Short: "Guard"}
	for i := range r.Guard {
		g := &r.Guard[i]
		of := ""
		if several(r) {
			of = ": " + r.short(g.Treatment)
		}
		s.Blocks = append(s.Blocks, block{Said: r.guardRemarks(g)})
		s.Blocks = append(s.Blocks, tabular(&grid{table: guardRates(g), Title: "By rate" + of, Caption: "By rate" + of})...)
		s.Blocks = append(s.Blocks,
			tabular(&grid{table: guardConditions(g), Title: "By condition" + of, Caption: "By condition" + of})...)
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
	case n.Decided() == 0:
		class = unsure
	}
	out := []remark{{"guard", r.withColon(g.Treatment) + g.Trespasses.sentence(), class}}
	if g.Foreign > 0 {
		out = append(out, remark{"mixed up", r.withColon(g.Treatment) + fmt.Sprintf(
			"%d calls that the control must allow got what is somebody else's", g.Foreign), bad})
	}
	if g.Onset != nil {
		out = append(out, remark{"onset", r.withColon(g.Treatment) + g.Onset.sentence(), bad})
	}
	if text := g.again(); text != "" {
		out = append(out, remark{"alone", text, plain})
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
	var s string
	switch {
	case n.Share == nil:
		s = "the control decided no trespass"
	case n.Permitted == 0:
		s = fmt.Sprintf("0 of %d trespasses were permitted: the share is below %s, at 95 %%", n.Decided(), fine(n.Share.Hi))
	default:
		s = fmt.Sprintf("%d of %d trespasses were permitted: %s", n.Permitted, n.Decided(), n.Share.ranged())
	}
	if n.Undecided > 0 {
		s += fmt.Sprintf("; %d more ended in an error or a timeout, and decide nothing", n.Undecided)
	}
	return s
}

// ranged is a share with its interval: "1.2 % [0.8, 1.7]".
func (s *Share) ranged() string {
	return fine(s.Value) + " [" + strings.TrimSuffix(fine(s.Lo), " %") + ", " + strings.TrimSuffix(fine(s.Hi), " %") + "]"
}

// fine is a share with two significant digits.
func fine(share float64) string {
	return strconv.FormatFloat(share*100, 'g', 2, 64) + " %"
}

// sentence says where breaches begin.
func (o *Onset) sentence() string {
	switch {
	case o.Above == nil:
		return "trespasses were permitted at every rate from the lowest, " + unit.PerSecond(o.Below)
	case o.Later:
		return "trespasses were permitted first at " + unit.PerSecond(o.Below) + ", and at some higher rates not: they do " +
			"not follow the rate alone"
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
	if permitted+denied+other == 0 {
		return ""
	}
	return fmt.Sprintf("of %d breaches that were asked again without other load, %d were permitted again, %d were "+
		"refused, and %d were not decided", permitted+denied+other, permitted, denied, other)
}

// guardRates is the table of the points without conditions, by rate.
func guardRates(g *Guard) table {
	points := slices.DeleteFunc(pointers(g.Points), func(p *GuardPoint) bool { return p.Condition != nil })
	slices.SortStableFunc(points, func(a, b *GuardPoint) int { return int(1e6 * (a.Rate - b.Rate)) })
	t := table{
		{head: "offered"},
		{head: "× capacity"},
		{head: "trespasses"},
		{head: "permitted"},
		{head: "share"},
		{head: "undecided", counts: true, drop: 3},
		{head: "served"},
		{head: "wrongly refused", counts: true, drop: 2},
		{head: "failed", counts: true, drop: 4},
		{head: "p99", drop: 1},
		{head: "generator", left: true},
	}
	for _, p := range points {
		factor := ""
		if p.Factor != nil {
			factor = strconv.FormatFloat(*p.Factor, 'f', 2, 64)
		}
		t.add(append([]string{unit.PerSecond(p.Rate), factor}, p.cells()...)...)
	}
	return t
}

// cells are those that a point has in every table.
func (p *GuardPoint) cells() []string {
	share, served, generator := "", "", ""
	if s := p.Trespasses.Share; s != nil && p.Trespasses.Permitted == 0 {
		share = "< " + fine(s.Hi)
	} else if s != nil {
		share = s.ranged()
	}
	if p.ServedShare != nil {
		served = Percent(p.ServedShare.Value)
	}
	if p.Generator != nil && !p.Generator.Valid {
		generator = Invalid.mark()
	}
	return []string{
		whole(p.Trespasses.Decided()), whole(p.Trespasses.Permitted), share, whole(p.Trespasses.Undecided), served,
		whole(p.Wrong), whole(p.Failed), opt(p.P99, unit.Seconds), generator,
	}
}

// guardConditions is the table of the conditions.
func guardConditions(g *Guard) table {
	t := table{
		{head: "condition", left: true},
		{head: "offered"},
		{head: "trespasses"},
		{head: "permitted"},
		{head: "share"},
		{head: "undecided", counts: true, drop: 3},
		{head: "served"},
		{head: "wrongly refused", counts: true, drop: 2},
		{head: "failed", counts: true, drop: 4},
		{head: "p99", drop: 5},
		{head: "generator", left: true},
		{head: "first breach", drop: 1},
		{head: "last breach", drop: 1},
		{head: "recovery"},
	}
	for i := range g.Points {
		p := &g.Points[i]
		if p.Condition == nil {
			continue
		}
		row := append([]string{p.Condition.Name, unit.PerSecond(p.Rate)}, p.cells()...)
		recovery := opt(p.Condition.Recovery, unit.Seconds)
		if recovery == "" {
			recovery = "not seen"
		}
		t.add(append(row, opt(p.FirstBreach, unit.Seconds), opt(p.LastBreach, unit.Seconds), recovery)...)
	}
	return t
}

// breachTable is the table of the first breaches.
func breachTable(g *Guard) table {
	t := table{
		{head: "at", left: true},
		{head: "into it"},
		{head: "request", left: true},
		{head: "answer", left: true},
		{head: "in flight"},
		{head: "asked again", left: true},
	}
	for i := range g.Breaches {
		b := &g.Breaches[i]
		request, answer := b.Request, b.Answer
		if request == "" {
			request = b.Operation
		}
		if answer == "" && b.Status > 0 {
			answer = fmt.Sprintf("status %d, %d bytes", b.Status, b.AnswerBytes)
		}
		t.add(b.Point, unit.Seconds(b.At), request, answer, strconv.Itoa(b.InFlight), b.Again)
	}
	return t
}
