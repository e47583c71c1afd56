package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tare/area"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/shell"
	"tare/internal/unit"
)

func (a *app) compareCommand() *cobra.Command {
	var f oneLineFlags
	var server serverFlags
	var treatment string
	var policies bool
	c := &cobra.Command{
		Use:   "compare {-- COMMAND COMMAND… | URL URL… | --policies BUNDLE…}",
		Short: "Compare commands, servers or policies with the first of them",
		Long: "Measures what each further command costs relative to the first, from its start to its end, or how\n" +
			"quickly each further server answers the same calls; or what each further folder or file of policies\n" +
			"costs, and whether it permits what the first one refuses. The command writes the experiment file that it\n" +
			"stands for, prints its plan and runs it: in interleaved blocks, with the first one measured twice.\n\n" +
			"Each COMMAND is one argument: tare compare -- 'gzip -k -f a' 'zstd -k -f a'. If one of them has shell\n" +
			"syntax, all are run by sh -c. A command that ends with a status other than 0 ends the run.\n\n" +
			"Servers must speak the same protocol, and need --max-rate if they are not on this machine.\n" +
			requestHelp +
			"--policies compares folders, files or kustomizations of admission policies, or stores of OpenFGA, as they\n" +
			"are; one alone is compared with no policy.\n\n" +
			"--for says how long the blocks may take at most: none begins that would end later. What is not decided\n" +
			"by then stays undecided. What comes before, such as the start of control planes, is not part of it.\n\n" +
			"Exit codes: as of 'tare run'. 'tare diff' compares records.",
		RunE: func(c *cobra.Command, args []string) error {
			if policies && len(args) > 0 && c.ArgsLenAtDash() < 0 {
				if err := f.checkWithin(); err != nil {
					return err
				}
				return a.comparePolicies(c.Context(), args, &f)
			}
			if len(args) < 2 {
				return usage("tare compare expects at least two commands after --, or two URLs, got %s; see 'tare compare --help'",
					argumentCount(len(args)))
			}
			if err := f.checkWithin(); err != nil {
				return err
			}
			isServers := c.ArgsLenAtDash() != 0 && (strings.Contains(args[0], "://") || kit.LoopbackPort(args[0]))
			if given := server.given(); !isServers && len(given) > 0 {
				return usage("%s: this is about servers, and no URL is given: tare compare URL URL",
					strings.Join(given, ", "))
			}
			switch {
			case c.ArgsLenAtDash() == 0:
				return a.compareCommands(c.Context(), args, &f)
			case isServers:
				return a.compareServers(c.Context(), args, &server, &f)
			}
			return a.compareRecords(args, treatment, &f)
		},
	}
	f.add(c)
	f.marginFlag(c)
	server.add(c)
	c.Flags().StringVar(&f.within, "for", "",
		"how long its blocks may take at most, such as 10m (load.max_time; default 30m)")
	c.Flags().BoolVar(&policies, "policies", false, "the arguments are folders or files of policies")
	c.Flags().StringVar(&treatment, "treatment", "", "of records: see 'tare diff'")
	_ = c.Flags().MarkHidden("treatment") // the flag exists
	return c
}

// compareCommands asks the area that measures command lines.
func (a *app) compareCommands(ctx context.Context, commands []string, f *oneLineFlags) error {
	for _, ar := range a.Areas {
		if compose := ar.Parts().CompareCommands; compose != nil {
			x, err := compose(commands)
			if err != nil {
				return err
			}
			return a.askComposed(ctx, x, f)
		}
	}
	return usage("this tare has no area that measures commands: it was built with %s", strings.Join(a.Areas.Names(), ", "))
}

// comparePolicies asks the areas that know such policies, refuses what several compare, since one run compares those of
// one, and says why the first that knows them cannot compare them.
func (a *app) comparePolicies(ctx context.Context, bundles []string, f *oneLineFlags) error {
	var (
		takers   []string
		composed area.Composed
		why      error // of those that do not take them
		wrong    error // of the one that does
	)
	for _, ar := range a.Areas {
		compose := ar.Parts().ComparePolicies
		if compose == nil {
			continue
		}
		switch x, ok, err := compose(bundles); {
		case errors.Is(err, fs.ErrNotExist):
			return err
		case ok:
			takers, composed, wrong = append(takers, ar.Name()), x, err
		case why == nil:
			why = err
		}
	}
	switch {
	case len(takers) > 1:
		return usage("%s: these are policies of %s, and one run compares those of one area: name folders that hold no others",
			strings.Join(bundles, ", "), strings.Join(takers, " and "))
	case len(takers) == 1 && wrong != nil:
		return wrong
	case len(takers) == 1:
		return a.askComposed(ctx, composed, f)
	case why != nil:
		return why
	}
	return usage("%s: no policies that this tare can compare: it was built with %s", strings.Join(bundles, ", "),
		strings.Join(a.Areas.Names(), ", "))
}

// compareRecords does what the command of this name once did.
func (a *app) compareRecords(args []string, treatment string, f *oneLineFlags) error {
	if len(args) != 2 {
		return usage("commands to compare follow --: tare compare -- 'COMMAND' 'COMMAND'")
	}
	for _, arg := range args {
		if _, _, _, err := a.findArm(arg, f.results); err != nil {
			return usage("%w; commands to compare follow --: tare compare -- %s", err, shell.Line(args))
		}
	}
	if f.write != "" || f.dryRun || f.within != "" || f.given() {
		return usage("records are compared by 'tare diff', which runs no experiment")
	}
	a.tell("comparing records is called 'tare diff' now\n")
	outs, err := parseOutputs(f.outputs)
	if err != nil {
		return err
	}
	o, err := compareOptions(f.budgets, f.margin)
	if err != nil {
		return err
	}
	return a.diff(args, treatment, f.results, o, outs)
}

// usualRate is the average rate of each server if --max-rate allows it, and usualTime how long a comparison by turns
// takes at most without --for. Servers that answer so fast that this occupies them for less than busyShare of a turn
// are called more often, up to mostRate within a turn: more calls show smaller differences. Those that would have more
// than one call in flight are called less often, down to slowRate: they may take no more than their first answers show.
const (
	usualRate = 200
	slowRate  = 100
	usualTime = 2 * time.Minute
	busyShare = 0.3
	mostRate  = 2000
)

// rateInTurns returns the rate of calls within a turn to servers that took so long for an answer; 0: that is not known.
func rateInTurns(arms int, took []time.Duration) float64 {
	rate := float64(usualRate * arms)
	if slices.Min(took) > 0 {
		alone := 1 / slices.Max(took).Seconds() // calls a second, one at a time
		rate = max(rate, min(mostRate, 100*math.Floor(busyShare*alone/100)))
		rate = min(rate, max(slowRate, 10*math.Floor(alone/10)))
	}
	return rate
}

// compareServers writes the experiment that compares servers, and runs it.
func (a *app) compareServers(ctx context.Context, args []string, server *serverFlags, f *oneLineFlags) error {
	limits, err := f.limits()
	if err != nil {
		return err
	}
	var first spoken
	var treatments strings.Builder
	var took []time.Duration // by server
	for i, address := range args {
		s, err := a.spoken(ctx, address, server, &f.sourceFlags)
		if i == 0 {
			first = s
		}
		switch {
		case err != nil:
			return err
		case s.adapter.Name != first.adapter.Name || s.options != first.options:
			return usage("%s speaks %s and %s speaks %s: they cannot be compared; if that is wrong, name the "+
				"protocol: --adapter NAME", first.url, first.adapter.Name, s.url, s.adapter.Name)
		}
		took = append(took, s.took)
		treatments.WriteString(kit.Treatment(i, "url", s.url))
	}
	arms := len(args) + 1 // the first is measured twice
	rate := rateInTurns(arms, took)
	if most, err := unit.ParseRate(f.value("load.max_rate")); err == nil {
		rate = min(rate, math.Max(1, math.Floor(float64(most)/2)), float64(most))
	}
	each := fmt.Sprintf("in turns of a fraction of a second at %v", unit.Rate(rate))
	length := fmt.Sprintf("max_time: %v   # longer finds smaller differences", unit.Duration(usualTime))
	if _, why := design.LayTurns(design.TurnLoad{Rate: rate, Arms: arms}); why != "" {
		rate = min(rate, usualRate)
		each = fmt.Sprintf("one after another, at %v each", unit.Rate(rate))
		length = fmt.Sprintf("duration: %v   # long enough for the median response of a block to count",
			design.LongEnough(rate))
	}
	return a.ask(ctx, area.Composed{
		Label: "compares", Needs: first.needs(),
		What: fmt.Sprintf("the answers of %s with those of %s, %s", strings.Join(args[1:], ", "), args[0], each),
		Text: fmt.Sprintf(`# How quickly do these servers answer the same calls, compared with the first?
name: %s
area: %s
question: compare
target:
  adapter: %s
%s%sload:
  rate: %v
  %s
  timeout: 5s   # a call that takes longer has failed: write what clients use
%s`, kit.NameOf("compare", first.host()), first.area, first.adapter.Name, first.options, treatments.String(), unit.Rate(rate),
			length, limits),
	}, f)
}
