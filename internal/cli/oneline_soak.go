package cli

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tare/area"
	"tare/internal/question"
	"tare/internal/unit"
)

// usualSoakRate is the rate of a soak that is given none: enough for its calls of a minute to decide p99 and a share of
// errors of 0.1 %, and little load for a server.
const usualSoakRate = unit.Rate(100)

// soakLoad is the load of a soak, as flags say it.
type soakLoad struct{ length, rate string }

func (a *app) soakCommand() *cobra.Command {
	var f oneLineFlags
	var l soakLoad
	c := a.serverCommand(&cobra.Command{
		Use: "soak URL", Short: "Find out whether a server holds a rate over time",
		Long: "Offers the server at URL one steady rate for some time, and says whether it held, how its times and\n" +
			"errors developed, and which budgets it kept. The command writes the experiment file that it stands\n" +
			"for, prints its plan and runs it.\n\n" +
			"--for says how long is measured, after a tenth of that as warm-up. Without --rate it offers\n" +
			usualSoakRate.String() + ", or --max-rate if that is less.\n\n" +
			"--budget 'p99 <= 20ms' and 'error <= 0.1%' set limits. Other budgets are those of an experiment file.\n" +
			"A budget that the planned calls cannot show to be kept is named before the run begins.\n\n" +
			"Without --adapter, up to " + a.mostRequests() + " without credentials tell which protocol the server\nspeaks.\n" +
			requestHelp +
			"A server that is not on this machine needs --max-rate.\n\n" +
			"Exit codes: as of 'tare run'.",
	}, &f, func(ctx context.Context, address string, server *serverFlags, f *oneLineFlags) (area.Composed, error) {
		return a.composeSoak(ctx, address, server, f, l)
	})
	c.Flags().StringVar(&l.length, "for", "", "how long to measure, such as 60s or 2h")
	c.Flags().StringVar(&l.rate, "rate", "", "offered rate, such as 50/s (default "+usualSoakRate.String()+")")
	return c
}

// composeSoak writes the experiment that offers the server at an address a steady rate.
func (a *app) composeSoak(ctx context.Context, address string, server *serverFlags, f *oneLineFlags, l soakLoad,
) (area.Composed, error) {
	length, rate, err := l.parse(f)
	if err != nil {
		return area.Composed{}, err
	}
	f.budgets = namedTimes(f.budgets)
	limits, err := f.limits()
	if err != nil {
		return area.Composed{}, err
	}
	at, err := a.spoken(ctx, address, server, &f.sourceFlags)
	if err != nil {
		return area.Composed{}, err
	}
	x := area.Composed{Label: "soaks", Needs: at.needs()}
	x.What = fmt.Sprintf("%s with %v for %v: does it hold, and does it drift?", at.url, rate, length)
	x.Text = at.asked("soak", "Does this server hold this rate over time?", "",
		fmt.Sprintf("  rate: %v\n  duration: %v\n", rate, length)+limits)
	return x, nil
}

// parse returns how long to measure and the rate to offer.
func (l soakLoad) parse(f *oneLineFlags) (length unit.Duration, rate unit.Rate, err error) {
	if l.length == "" {
		return 0, 0, usage("say how long to measure: --for 60s")
	}
	if length, err = unit.ParseDuration(l.length); err != nil {
		return 0, 0, usage("--for: %w", err)
	}
	if time.Duration(length) < question.LeastSoak {
		return 0, 0, usage("--for %s: a soak of less than %v tells too little; measure longer", l.length, question.LeastSoak)
	}
	most, bounded := unit.Rate(0), false
	if text := f.value("load.max_rate"); text != "" {
		most, err = unit.ParseRate(text)
		bounded = err == nil // what is wrong with it is said when the server is asked
	}
	switch rate, err = unit.ParseRate(cmp.Or(l.rate, usualSoakRate.String())); {
	case err != nil:
		return 0, 0, usage("--rate: %w", err)
	case bounded && rate > most && l.rate != "":
		return 0, 0, usage("--rate %s is above --max-rate %v; lower the one or raise the other", l.rate, most)
	case bounded:
		rate = min(rate, most)
	}
	return length, rate, nil
}

// namedTimes adds the metric's name to budgets that begin with a quantile.
func namedTimes(budgets []string) []string {
	out := make([]string, len(budgets))
	for i, b := range budgets {
		out[i] = named(b)
	}
	return out
}

func named(budget string) string {
	if strings.HasPrefix(budget, "p") && len(budget) > 1 && budget[1] >= '0' && budget[1] <= '9' {
		return "response." + budget
	}
	return budget
}
