package analyze

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"tare/internal/guard"
	"tare/internal/record"
	"tare/internal/report"
	"tare/internal/unit"
)

// guardEnd reads how the points of a trial ended. A trial that was cut short, or an early record, does not say
// it.
func guardEnd(t *record.Trial) (end guard.End, err error) {
	for _, s := range t.Steps {
		if s.Name == guard.StepEnd {
			if err := json.Unmarshal(s.Payload, &end); err != nil {
				return end, fmt.Errorf("read how the points ended: %w", err)
			}
			if !(end.Rate >= 0 && end.Rate < 1e12) {
				return end, fmt.Errorf("the points ended at %v/s", end.Rate)
			}
		}
	}
	return end, nil
}

// earn says under which load the control was seen, and why a pass is not earned by it: it was not overloaded, or too
// few trespasses were answered meanwhile, and nobody said that the rates are enough, or not all of those were offered.
func (a *analysis) earn(g *report.Guard, seen []guard.Seen, end guard.End) {
	g.RatesGiven = end.Given || len(a.rec.Plan.Load.Rates) > 0
	rate, calls, ok := guard.Reached(seen)
	if ok {
		g.Reached = &rate
	}
	over, overloaded := guard.OverloadOf(seen)
	if overloaded {
		g.Overload = overloadOf(&over)
	}
	if t, ok := guard.TurnedAwayFrom(seen); ok && !overloaded {
		g.TurnedAway = &report.GuardTurnedAway{Rate: t.Rate, AtMost: t.Most}
	}
	withstood := guard.Withstood(seen)
	if ok && !overloaded && !withstood {
		g.OverloadUnknown = servedUpTo(rate, &calls, withstood) + crowdWords(seen)
	}
	missed := guard.Missed(seen, a.rec.Plan.Load.Rates)
	switch {
	case overloaded && over.Enough(), g.RatesGiven && len(missed) == 0:
	case g.RatesGiven && ok:
		g.Unearned = notOffered(missed, seen, rate, end)
	case overloaded:
		g.Unearned = fmt.Sprintf("the control was overloaded at %s, but only %d trespasses were answered at and near that "+
			"rate, of %d that a pass needs: %d timed out or were not sent", unit.PerSecond(over.Rate), over.Answered,
			guard.LeastTrespasses, over.Failed)
	case !ok:
		g.Unearned = "it is not known whether the control was overloaded: the generator kept up with none of the rates; " +
			"--rates 100/s, or load.rates, gives others"
	case g.TurnedAway != nil:
		enough := highestBelow(seen, g.TurnedAway.Rate)
		g.Unearned = fmt.Sprintf("the control was not overloaded, as far as is known: %s; raise that limit, or say which "+
			"rates are enough: --rates %s, or load.rates", g.TurnedAway.Sentence(), unit.PerSecond(enough))
	default:
		g.Unearned = servedUpTo(rate, &calls, withstood) + notHigher(end, seen) + fmt.Sprintf(
			" which rates are enough: --rates %s, or load.rates", unit.PerSecond(rate))
	}
}

// highestBelow is the highest rate below another at which a point was offered without a condition. Where no point was,
// it is that other rate.
func highestBelow(seen []guard.Seen, rate float64) float64 {
	highest := 0.0
	for i := range seen {
		if p := &seen[i]; p.Condition == nil && !p.Late && p.Rate < rate {
			highest = max(highest, p.Rate)
		}
	}
	return cmp.Or(highest, rate)
}

// neverDecided names the trespasses of a trial of which the control decided no call, while it did of others; "": none.
func neverDecided(t *record.Trial, g *report.Guard) string {
	var none []string
	for _, name := range t.Operations {
		if n := g.Operations[name]; t.Twins[name] != "" && n.Decided() == 0 {
			none = append(none, name)
		}
	}
	if len(none) == 0 || g.Trespasses.Decided() == 0 {
		return ""
	}
	return fmt.Sprintf("the control decided no call of %s: a longer load.duration or a larger load.trespass gives more",
		strings.Join(none, ", "))
}

// notOffered says why the first of the given rates that were missed was not offered, and what to do.
func notOffered(missed []float64, seen []guard.Seen, highest float64, end guard.End) string {
	at := unit.PerSecond(missed[0])
	why := "the run ended before " + at + "; run it again"
	switch {
	case slices.ContainsFunc(seen, func(p guard.Seen) bool { return p.Rate == missed[0] && p.Late }):
		why = "the generator could not keep up at " + at + "; end other work on this host"
	case end.Stop == guard.StopMaxTime:
		why = "the time was over before " + at + "; raise load.max_time"
	}
	return fmt.Sprintf("not all rates that the experiment asks for were offered: %s, or ask for others: --rates %s, or "+
		"load.rates", why, unit.PerSecond(highest))
}

// servedUpTo says up to which rate a control was not overloaded, or that this is not known, and how many of the calls
// at that rate it served.
func servedUpTo(rate float64, calls *guard.Legitimate, withstood bool) string {
	lead, to := "the control was not overloaded", "up to"
	if !withstood {
		lead, to = "it is not known whether the control was overloaded", "at"
	}
	served, _ := calls.Share()
	wrong := ""
	if calls.Wrong > 0 {
		wrong = fmt.Sprintf(", and gave %s a wrong answer,", unit.Count(calls.Wrong, "call"))
	}
	return fmt.Sprintf("%s: it served %s%s %s %s, the highest rate that was offered", lead, report.Percent(served.Value),
		wrong, to, unit.PerSecond(rate))
}

// notHigher says why no higher rate was offered, and what to do.
func notHigher(end guard.End, seen []guard.Seen) string {
	why, do := "", "say"
	switch end.Stop {
	case guard.StopMaxRate:
		why, do = " (max_rate)", "raise max_rate, or say"
	case guard.StopMaxTime:
		why, do = ", before the time was over", "raise load.max_time, or say"
	case guard.StopGenerator:
		why = fmt.Sprintf("; the generator could not keep up at %s", unit.PerSecond(end.Rate))
	case guard.StopRates, guard.StopOverload:
	}
	crowd := crowdWords(seen)
	if crowd != "" {
		do = "end that work, or say"
	}
	return why + crowd + "; " + do
}

// crowdWords says at which rate a control did worse beside other work; "": it did not.
func crowdWords(seen []guard.Seen) string {
	c, ok := guard.CrowdOf(seen)
	if !ok {
		return ""
	}
	return fmt.Sprintf("; it did worse at %s, which shows nothing: the processors were %s busy there, as far as is known "+
		"mostly with other work, and calls wait then whatever it does", unit.PerSecond(c.Rate), report.Percent(c.Busy))
}

// overloadOf is an overload for the report.
func overloadOf(o *guard.Overload) *report.GuardOverload {
	return &report.GuardOverload{
		Rate: o.Rate, ServedShare: shareOf(o.Served), ServedBelow: shareOf(o.Below), Median: known(o.Median.Seconds()),
		MedianBelow: known(o.MedianBelow.Seconds()), FewerServed: o.FewerServed, Slower: o.Slower, LeftOut: o.LeftOut,
		Answered: o.Answered, Decided: o.Decided,
	}
}
