package analyze

import (
	"cmp"
	"fmt"
	"slices"

	"tare/internal/budget"
	"tare/internal/guard"
	"tare/internal/report"
	"tare/internal/stat"
	"tare/internal/unit"
)

// placed are the trespasses at a rate or under a condition.
type placed struct {
	where string
	guard.Trespasses
}

// places are the rates without conditions, and the conditions: the whole of their points, and while they lasted.
func places(g *report.Guard) (out []placed) {
	add := func(where string, n *report.Trespasses) {
		if n == nil || n.Decided()+n.Open() == 0 {
			return
		}
		i := slices.IndexFunc(out, func(p placed) bool { return p.where == where })
		if i < 0 {
			i, out = len(out), append(out, placed{where: where})
		}
		out[i].Add(guard.Trespasses{
			Refused: n.Refused, Permitted: n.Permitted, Unclear: n.Unclear, Unanswered: n.Unanswered,
		})
	}
	for i := range g.Points {
		p := &g.Points[i]
		if c := p.Condition; c != nil {
			add("under "+c.Name, &p.Trespasses)
			add("while "+c.Name+" lasted", c.During)
		} else {
			add("at "+unit.PerSecond(p.Rate), &p.Trespasses)
		}
	}
	return out
}

// worstPlace is the share of permitted trespasses where it exceeds a limit most clearly, or may exceed it most, since a
// share of all depends on how many calls tare made where. Its interval is corrected for the number of places
// (Bonferroni) and takes unclear answers, and missing ones that may be permits, for permits at its upper end. ok is
// false if nothing may have been permitted anywhere.
func worstPlace(g *report.Guard, limit float64) (worst budget.Interval, how string, ok bool) {
	all := places(g)
	at := 1 - (1-guard.Level)/float64(max(1, len(all)))
	for _, p := range all {
		open := p.Unclear + p.Unanswered
		if p.Permitted+open == 0 {
			continue
		}
		seen, _ := stat.BinomialInterval(p.Permitted, p.Decided(), at)
		most, _ := stat.BinomialInterval(p.Permitted+open, p.Decided()+open, at)
		x := budget.Interval{Value: seen.Value, Lo: seen.Lo, Hi: most.Hi}
		if ok && cmp.Or(cmp.Compare(max(x.Lo, limit), max(worst.Lo, limit)), cmp.Compare(x.Hi, worst.Hi)) <= 0 {
			continue
		}
		worst, ok, how = x, true, ""
		if len(all) == 1 {
			continue
		}
		neither := ""
		if p.Unclear > 0 {
			neither = fmt.Sprintf(", with %d answered neither way", p.Unclear)
		}
		if p.Unanswered > 0 {
			neither += fmt.Sprintf(", with %d not answered", p.Unanswered)
		}
		how = fmt.Sprintf("; judged %s: %d of %d%s, interval at %s for one of %d rates and conditions", p.where, p.Permitted,
			p.Decided(), neither, percent(at), len(all))
	}
	return worst, how, ok
}
