package cli

import (
	"fmt"
	"strings"
	"time"

	"tare/internal/budget"
	"tare/internal/config"
	"tare/internal/guard"
	"tare/internal/metric"
	"tare/internal/question"
	"tare/internal/shell"
	"tare/internal/stat"
	"tare/internal/unit"
)

// planTrespasses says how many calls the control must refuse, and whether they suffice for the budgets.
func planTrespasses(e *config.Experiment, p func(label, format string, args ...any)) {
	share := float64(e.Load.Trespass)
	if share <= 0 {
		return
	}
	least := leastTrespasses(e)
	text := fmt.Sprintf("%v of the calls", e.Load.Trespass)
	guards := question.Of(e.Question).Answer.BreachesFirst
	if guards {
		text += fmt.Sprintf(", or more where a point would have fewer than %d of them in %s", guard.LeastTrespasses,
			guard.ShareWithin)
	}
	if e.Load.KeepMix {
		text += " besides those of the mix, since the file gives no load.trespass"
	}
	if least > 0 {
		text += fmt.Sprintf("; about %d or more for each treatment", least)
	}
	p("trespasses", "%s", text)
	planConditions(e, p)
	for _, written := range e.Budget {
		b, err := budget.Parse(written)
		if err != nil || b.Metric != metric.Permitted.Name {
			continue
		}
		switch need := stat.TrialsToBound(b.Limit.Value, guard.Level); {
		case b.Limit.Value <= 0 && guards:
			p("", "%s needs %d that the control decides, none of them permitted: that excludes a share of %v, at 95 %%", written,
				guard.Enough(), unit.Percent(guard.Excludes))
		case b.Limit.Value <= 0:
		case least < need:
			p("", "%s needs %d that the control decides: fewer leave it undecided, a longer load.duration or a larger "+
				"load.trespass gives more", written, need)
		default:
			p("", "%s needs %d that the control decides", written, need)
		}
	}
	switch {
	case guards && len(e.Load.Rates) > 0:
		p("", "load.rates says which rates are enough for a pass")
	case guards:
		p("", "a pass needs a rate at which the target is overloaded, and %d trespasses that it answers there; or load.rates",
			guard.LeastTrespasses)
	}
}

// planConditions says what would be done to the target.
func planConditions(e *config.Experiment, p func(label, format string, args ...any)) {
	if !question.Of(e.Question).Answer.BreachesFirst {
		return
	}
	names, own := e.Conditions()
	if len(names) > 0 {
		p("conditions", "%s, where the treatment can have it", strings.Join(names, ", "))
	}
	for _, c := range own {
		p("runs", "%s for the condition %s of each treatment", shell.Line(c.Do), c.Name)
		if len(c.Undo) > 0 {
			p("", "and %s to end it", shell.Line(c.Undo))
		}
	}
}

// leastTrespasses is about how many each treatment gets at least.
func leastTrespasses(e *config.Experiment) uint64 {
	share, length := float64(e.Load.Trespass), time.Duration(e.Load.Duration)
	if !question.Of(e.Question).Answer.BreachesFirst {
		if rate := float64(e.Load.Rate); rate > 0 && !question.Of(e.Question).Drive.Overloads {
			return uint64(share * rate * length.Seconds())
		}
		return 0 // a search chooses its rates, and workers their own
	}
	if len(e.Load.Rates) == 0 {
		return guard.Enough()
	}
	rates := make([]float64, len(e.Load.Rates))
	for i, r := range e.Load.Rates {
		rates[i] = float64(r)
	}
	return uint64(guard.Planned(length, share, rates))
}
