package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"tare/internal/area"
	"tare/internal/config"
	"tare/internal/design"
	"tare/internal/question"
	"tare/internal/unit"
)

func (a *app) planCommand() *cobra.Command {
	var full bool
	c := &cobra.Command{
		Use: "plan FILE", Short: "Say what a run would do, without doing it", Args: exactly("FILE"),
		RunE: func(c *cobra.Command, args []string) error { return a.plan(c.Context(), args[0], full) },
	}
	fullFlag(c, &full)
	return c
}

// plan prints treatments, duration, the highest rate that could be offered, and what would be created.
func (a *app) plan(ctx context.Context, file string, full bool) error {
	ar, e, _, err := a.ready(file, full)
	if err != nil {
		return err
	}
	if e, _, err = a.trim(ctx, ar, e, true); err != nil {
		return err
	}
	found, err := a.examine(ctx, ar, e, true) // told at the end
	if err != nil {
		return err
	}
	p := func(label, format string, args ...any) {
		a.print("%-11s %s\n", label, fmt.Sprintf(format, args...))
	}
	p("experiment", "%s: %s of %s", e.Name, e.Question, e.Area)
	a.planArms(e, p)
	if treatments := len(e.Treatments()); len(e.Arms()) > treatments {
		made, err := a.foreseen(ctx, ar, e, found)
		if err != nil {
			return err
		}
		a.planBlocks(ctx, e, made, p)
	} else {
		p("takes", "%s", planned(e, treatments))
	}
	p("peak", "%s", peak(e))
	if d, ok := ar.(planner); ok {
		for _, line := range d.Creates(e.Target, e.Arms()) {
			p("creates", "%s", line)
		}
	}
	for _, b := range e.Budget {
		p("budget", "%s", b)
	}
	return a.judge(found, true)
}

// planArms lists what is measured.
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

// foreseen is the program that makes an experiment's calls, for a plan. One that preflight has found not to work is not started again.
func (a *app) foreseen(ctx context.Context, ar area.Area, e *config.Experiment, found []area.Finding) (area.Program, error) {
	if _, ok := ar.(area.Programmed); ok && !sound(found) {
		return area.Program{Counts: "what its processes take to start is not in it: they cannot be started, see below"}, nil
	}
	return a.program(ctx, ar, e, true)
}

// role says what an arm is for, where that is not to be compared.
func role(t design.Treatment) string {
	switch {
	case t.Control == design.AA:
		return "   (" + t.Of + " again: any difference is noise)"
	case t.Baseline:
		return "   (baseline)"
	}
	return ""
}

// planner is what an area may offer beside the contract: what its runs create, in words.
type planner interface {
	Creates(s area.Spec, treatments []design.Treatment) []string
}

// planned is how long the run takes at most, as far as that is known beforehand.
func planned(e *config.Experiment, treatments int) string {
	f := question.Forecast{
		Treatments: treatments, Duration: e.Load.Duration, Points: e.Points(),
		Timeout: time.Duration(e.Load.Timeout), MaxTime: time.Duration(e.Load.MaxTime),
	}
	if c := e.Load.Closed; c != nil {
		f.WorkerRamp = time.Duration(c.Ramp)
	}
	return question.Of(e.Question).Takes(f)
}

// below says what bounds closed workers.
func below(most unit.Rate) string {
	if most == 0 {
		return "; the target is on this machine, and max_rate is not set"
	}
	return fmt.Sprintf(", and never above max_rate, %v", most)
}

func peak(e *config.Experiment) string {
	if _, ok := e.Target.(area.Batcher); ok {
		return "nothing is offered: the workloads run at their own pace"
	}
	if c := e.Load.Closed; c != nil {
		return fmt.Sprintf("as fast as %d workers can, one call each at a time%s", c.Workers, below(e.Load.MaxRate))
	}
	switch r := e.Peak(); {
	case r > 0 && !question.Of(e.Question).Drive.Overloads:
		return unit.Rate(r).String() + ", the rate of every trial"
	case r > 0 && e.Load.Ladder():
		return unit.Rate(r).String() + ", the highest of the rates"
	case r > 0:
		return unit.Rate(r).String() + ", max_rate: never exceeded"
	default:
		return "not bounded: the target is on this machine, and max_rate is not set"
	}
}
