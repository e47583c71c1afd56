package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tare/area"
	"tare/internal/config"
	"tare/internal/design"
	"tare/internal/question"
	"tare/internal/unit"
)

func (a *app) planCommand() *cobra.Command {
	var change sourceFlags
	var out form
	var try bool
	c := &cobra.Command{
		Use: "plan FILE", Short: "Show what a run would do, without doing it",
		Long: "Shows what a run would do, from the file alone: it starts none of the programs that the file names, and\n" +
			"connects to none of its addresses. With --try it also tries what the run needs, on this host and of its\n" +
			"targets, as a run does before it begins.",
		Args: exactly("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			asJSON, err := out.json()
			if err != nil {
				return err
			}
			src, err := a.read(args[0])
			if err == nil {
				src, err = change.change(src)
			}
			if err != nil {
				return err
			}
			if !asJSON {
				return a.plan(c.Context(), src, change.full, try)
			}
			doc, found, err := a.planned(c.Context(), src, change.full, try)
			if err != nil {
				return err
			}
			return errors.Join(a.printJSON(doc), unrunnable(found))
		},
	}
	change.add(c)
	out.add(c)
	c.Flags().BoolVar(&try, "try", false, "start what the file names and ask its targets, to see what is missing")
	return c
}

// plan prints treatments, duration, the highest rate that the run could offer, and what it would create.
func (a *app) plan(ctx context.Context, src source, full, try bool) error {
	doc, found, err := a.planned(ctx, src, full, try)
	if err != nil {
		return err
	}
	for _, l := range doc.Lines {
		a.print("%-11s %s\n", l.Label, l.Text)
	}
	return a.judge(found, true)
}

// planned describes what a run would do. With try it asks the host, the programs and the targets, and returns what is
// missing; without, no code of the area runs but what reads the file.
func (a *app) planned(ctx context.Context, src source, full, try bool) (doc planDocument, found []area.Finding,
	err error,
) {
	ar, e, err := a.ready(src, full)
	if err == nil {
		err = enoughBlocks(e, src.set)
	}
	if err != nil {
		return doc, nil, err
	}
	if try {
		if e, _, err = a.trim(ctx, ar, e, true); err == nil {
			found, err = a.examine(ctx, ar, e, true)
		}
		if err != nil {
			return doc, nil, err
		}
	}
	doc = planDocumentOf(e, found, try)
	p := func(label, format string, args ...any) {
		doc.Lines = append(doc.Lines, planLine{label, fmt.Sprintf(format, args...)})
	}
	p("experiment", "%s: %s of %s", e.Name, e.Question, e.Area)
	a.planArms(e, p)
	if treatments := len(e.Treatments()); len(e.Arms()) > treatments {
		made, err := a.programForPlan(ctx, ar, e, doc)
		if err != nil {
			return doc, nil, err
		}
		doc.Takes = a.planBlocks(ctx, e, made, p).Seconds()
	} else {
		p("takes", "%s", maxDuration(e, treatments))
	}
	p("peak", "%s", peakRateText(e))
	planTrespasses(e, p)
	if creates := e.Target.Says().Creates; creates != nil {
		for _, line := range creates(e.Arms()) {
			p("creates", "%s", line)
		}
	}
	for _, b := range e.Budget {
		p("budget", "%s", b)
	}
	if !try {
		p("untried", "nothing was started, and no target asked: --try shows what is missing")
	}
	return doc, found, nil
}

// planArms prints the arms.
func (a *app) planArms(e *config.Experiment, p func(label, format string, args ...any)) {
	blocked := len(e.Arms()) > len(e.Treatments())
	for i, t := range e.Arms() {
		label := ""
		if i == 0 {
			label = "treatments"
		}
		if blocked {
			t.ID += role(t)
		}
		p(label, "%s", t.ID)
	}
}

// programForPlan returns the program that makes an experiment's calls. It does not start one that was not tried, or
// that failed preflight.
func (a *app) programForPlan(ctx context.Context, ar area.Area, e *config.Experiment, doc planDocument) (area.Program,
	error,
) {
	if ar.Parts().Program != nil && doc.Tried && !*doc.Runnable {
		return area.Program{Counts: "without the start of its processes, which cannot be started: see below"}, nil
	}
	return a.program(ctx, ar, e, area.Env{Look: true, Inert: !doc.Tried})
}

// role describes a baseline or an A/A arm; it is empty for other arms.
func role(t design.Treatment) string {
	switch {
	case t.Control == design.AA:
		return "   (" + t.Of + " again: any difference is noise)"
	case t.Baseline:
		return "   (baseline)"
	}
	return ""
}

// maxDuration returns how long the run takes at most, as far as that is known in advance.
func maxDuration(e *config.Experiment, treatments int) string {
	names, own := e.Conditions()
	f := question.Forecast{
		Treatments: treatments, Duration: e.Load.Duration, Points: e.Points(),
		Timeout: time.Duration(e.Load.Timeout), MaxTime: time.Duration(e.Load.MaxTime),
		Trespass: float64(e.Load.Trespass), Conditions: len(names) + len(own),
	}
	for _, r := range e.Load.Rates {
		f.Rates = append(f.Rates, float64(r))
	}
	if c := e.Load.Closed; c != nil {
		f.WorkerRamp = time.Duration(c.Ramp)
	}
	return question.Of(e.Question).Takes(f)
}

// rateLimitText describes what bounds closed workers.
func rateLimitText(most unit.Rate) string {
	if most == 0 {
		return "; its address is on this machine, and max_rate is not set"
	}
	return fmt.Sprintf(", and never above max_rate, %v", most)
}

func peakRateText(e *config.Experiment) string {
	if e.OwnPace() {
		return "no load is generated: the workloads run at their own pace"
	}
	if c := e.Load.Closed; c != nil {
		return fmt.Sprintf("as fast as %s can, one call each at a time%s", unit.Count(c.Workers, "worker"),
			rateLimitText(e.Load.MaxRate))
	}
	switch r := e.Peak(); {
	case r > 0 && !question.Of(e.Question).Drive.Overloads:
		if turns, _ := e.LayTurns(); turns != nil {
			return unit.Rate(r).String() + ", the rate within a turn"
		}
		return unit.Rate(r).String() + ", the rate of every trial"
	case r > 0 && e.Load.Ladder():
		return unit.Rate(r).String() + ", the highest of the rates"
	case r > 0:
		return unit.Rate(r).String() + ", max_rate: never exceeded"
	default:
		return "unbounded: its address is on this machine, and max_rate is not set"
	}
}
