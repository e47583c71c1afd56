package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"tare/area"
	"tare/internal/analyze"
	"tare/internal/config"
	"tare/internal/design"
	"tare/internal/files"
	"tare/internal/kit"
	"tare/internal/unit"
)

// oneLineFlags are the flags of commands that compose an experiment.
type oneLineFlags struct {
	sourceFlags

	outputs, budgets       []string
	results, write, margin string
	within                 string // how long a comparison may take at most; empty: the default
	dryRun, prove          bool
}

func (f *oneLineFlags) add(c *cobra.Command) {
	outputFlag(c, &f.outputs)
	budgetFlag(c, &f.budgets)
	c.Flags().StringVar(&f.results, "results", resultsDir, "folder for records")
	c.Flags().StringVar(&f.write, "write", "", "keep the experiment in this file, which must not exist yet")
	c.Flags().BoolVar(&f.dryRun, "dry-run", false, "show what would be done, as 'tare plan --try' does")
	f.addValues(c)
}

// marginFlag is a flag of the commands that compare.
func (f *oneLineFlags) marginFlag(c *cobra.Command) {
	c.Flags().StringVar(&f.margin, "margin", "", "largest effect that counts as no effect, such as 2% (default 2%)")
}

// ask changes a composed experiment as the flags say, keeps it if that is wanted, prints its plan, and runs it.
func (a *app) ask(ctx context.Context, x area.Composed, f *oneLineFlags) error {
	a.isOneLine = true
	ctx, stop := a.interruptible(ctx)
	defer stop()
	outs, err := parseOutputs(f.outputs)
	if err != nil {
		return err
	}
	src := source{name: "the experiment of this command line", text: []byte(x.Text)}
	if f.within != "" {
		if src.text, err = config.Set(src.text, "load.max_time", f.within); err != nil {
			return usage("--for: %w", err)
		}
	}
	if src, err = f.change(src); err != nil {
		return err
	}
	e, diagnostics := config.Parse(src.name, src.text, a.Areas)
	if config.HasErrors(diagnostics) {
		return a.incomplete(src, x, f, diagnostics)
	}
	if err := f.enoughTime(e.WithDefaults()); err != nil {
		return err
	}
	if f.write != "" {
		if src, err = keep(src, f.write); err != nil {
			return err
		}
		again := "tare run " + f.write
		if enoughBlocks(e.WithDefaults(), nil) != nil {
			again += fmt.Sprintf(" --set blocks=%d", e.Blocks)
		}
		a.tell("%-9s %s: '%s' asks the same again\n", "wrote", f.write, again)
	}
	if f.dryRun {
		return a.plan(ctx, src, false, true)
	}
	if err := a.outline(ctx, e.WithDefaults(), x); err != nil {
		return err
	}
	return a.run(ctx, src, startFlags{results: f.results, prove: f.prove}, outs)
}

// incomplete reports what is wrong with an experiment, and what its target needs. It keeps only the text that the
// command composed itself: a wrong value of --set may be a secret.
func (a *app) incomplete(src source, x area.Composed, f *oneLineFlags, wrong []config.Diagnostic) error {
	_, err := a.experiment(src)
	isGiven := func(d config.Diagnostic) bool {
		return d.Path == "target.url" || isOfRequest(d.Path) || d.Path != "" && f.value(d.Path) != ""
	}
	// What is given is wrong, or what is wrong is no field of the target, which Needs is about.
	isOfTarget := func(d config.Diagnostic) bool {
		return d.Severity == area.Error && (d.Path == "target" || strings.HasPrefix(d.Path, "target."))
	}
	if x.Needs == "" || err == nil || slices.ContainsFunc(wrong, isGiven) || !slices.ContainsFunc(wrong, isOfTarget) {
		return err
	}
	a.tell("%s\n", x.Needs)
	if f.write == "" || f.given() {
		a.tell("or write the file with --write FILE and without --set, and complete it there\n")
		return err
	}
	if _, kept := keep(src, f.write); kept != nil {
		return errors.Join(kept, err)
	}
	a.tell("wrote %s; next: complete its target, then: tare run %[1]s\n", f.write)
	return err
}

// keep writes an experiment to a new file.
func keep(src source, file string) (source, error) {
	err := files.SaveNew(file, whole(src.text))
	if errors.Is(err, fs.ErrExist) {
		return src, usage("--write: %s exists already; name another file", file)
	}
	if err != nil {
		return src, usage("--write: %w", err)
	}
	return source{name: file, file: file, text: src.text, set: src.set}, nil
}

// outline prints the plan in three lines.
func (a *app) outline(ctx context.Context, e *config.Experiment, x area.Composed) error {
	ar, err := a.area(e.Area)
	if err != nil {
		return err
	}
	var made area.Program
	if ar.Parts().Program != nil {
		made, _ = a.program(ctx, ar, e, area.Env{Look: true}) // the run says why a program does not start, and what to do
	}
	a.tell("%-9s %s\n%-9s %s\n", x.Label, x.What, "takes", longest(e, made))
	creates := ""
	says := e.Target.Says()
	if says.Creates != nil {
		creates = strings.Join(says.Creates(e.Arms()), "; ")
	}
	if says.Batches != nil {
		a.tell("%-9s %s\n", "creates", creates)
		return nil
	}
	a.tell("%-9s %s; creates %s\n", "peak", peakRateText(e), cmp.Or(creates, "nothing on this host"))
	return nil
}

// longest says how long a run takes, and what bounds it.
func longest(e *config.Experiment, made area.Program) string {
	treatments := len(e.Treatments())
	if len(e.Arms()) == treatments {
		return maxDuration(e, treatments)
	}
	block, unless := blockTime(e, made), ""
	if batches, ok := batchesOf(e, made); ok {
		span := time.Duration(0)
		for _, op := range batches {
			span = max(span, op.Span)
		}
		unless = fmt.Sprintf(", if no call takes longer than %s", span.Round(time.Millisecond))
	}
	first := design.Looks(e.Blocks)[0]
	return fmt.Sprintf("about %s for %s of %d arms, %s until the run is first judged, after %d%s; no block starts "+
		"that would end after %s; the preparation of the arms comes before, and is not part of this",
		rounded(time.Duration(e.Blocks)*block), unit.Count(e.Blocks, "block"), len(e.Arms()),
		rounded(time.Duration(first)*block), first, unless, time.Duration(e.Load.MaxTime))
}

// section writes the lines of a list with its key, or "" for an empty list.
func section(key string, items []string) string {
	if len(items) == 0 {
		return ""
	}
	var out strings.Builder
	fmt.Fprintf(&out, "%s:\n", key)
	for _, x := range items {
		fmt.Fprintf(&out, "  - %s\n", kit.Quote(x))
	}
	return out.String()
}

// limits writes the margin and the budgets.
func (f *oneLineFlags) limits() (string, error) {
	text := ""
	if f.margin != "" {
		m, err := unit.ParsePercent(f.margin)
		if err != nil {
			return "", usage("--margin: %w", err)
		}
		text = fmt.Sprintf("margin: %v\n", m)
	}
	return text + section("budget", f.budgets), parseBudgets(f.budgets)
}

// checkWithin parses how long a comparison may take.
func (f *oneLineFlags) checkWithin() error {
	if f.within == "" {
		return nil
	}
	d, err := unit.ParseDuration(f.within)
	switch {
	case err != nil:
		return usage("--for: %w", err)
	case d <= 0:
		return usage("--for %s: want more than zero, such as 10m", f.within)
	}
	f.within = d.String()
	return nil
}

// reserve is the part of the predicted time of blocks that they may take longer: a tenth.
const reserve = 10

// enoughTime refuses to begin a comparison that has to end before it could have a verdict, and says what would do.
func (f *oneLineFlags) enoughTime(e *config.Experiment) error {
	if f.within == "" {
		return nil
	}
	least, within := min(e.Blocks, analyze.FewestBlocks(leastGates(e, e.Scope()))), time.Duration(e.Load.MaxTime)
	takes := time.Duration(least) * blockTime(e, area.Program{})
	needs := takes + takes/reserve
	if needs <= within {
		return nil
	}
	enough, or := (needs + time.Second - 1).Truncate(time.Second), ""
	if d := shorterTrials(e, (within-within/(reserve+1))/time.Duration(least)); d > 0 {
		or = fmt.Sprintf(", or shorten the trials: --set load.duration=%s", unit.Duration(d))
	}
	return usage("--for %s is too short: a verdict needs %s, which take about %s; allow --for %s at least%s", f.within,
		unit.Count(least, "block"), unit.Duration(rounded(takes)), unit.Duration(enough), or)
}

// shorterTrials is the longest of some durations of a trial with which a block fits into a time; 0: none of them.
func shorterTrials(e *config.Experiment, within time.Duration) time.Duration {
	shortest := time.Second // a trial of its own has to have some calls; turns have a rate that sees to that
	if turns, _ := e.LayTurns(); turns != nil {
		shortest = time.Second / 4
	}
	shorter := *e
	shorter.Load.DefaultDuration = false
	for d := 16 * shortest; d >= shortest; d /= 2 {
		shorter.Load.Duration = unit.Duration(d)
		if blockTime(&shorter, area.Program{}) <= within {
			return d
		}
	}
	return 0
}
