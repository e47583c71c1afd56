// Package exec is the area of users' own programs: a program in any language reads JSON lines on its standard input,
// performs the calls, times them, and answers on its standard output; tare does the rest. README.md describes the
// protocol.
package exec

import (
	"context"
	"embed"
	"fmt"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/driver"
)

// Area is the area of users' own programs.
type Area struct{}

var _ area.Area = Area{}

const areaName = "exec"

// Name implements area.Area.
func (Area) Name() string { return areaName }

// Offers implements area.Area.
func (Area) Offers() area.Offers {
	return area.Offers{
		AnyRate: area.No("the program makes its calls itself, one batch after another, so none arrives before " +
			"the last one has ended and no queue can " +
			"overflow; a server of yours is asked at a rate by identity, decision or admission"),
		SteadyLoad: area.No("the program is asked for batches of milliseconds and waits in between, so nothing loads it " +
			"steadily for hours; a server of yours is " +
			"by identity, decision or admission"),
		Trespasses: area.Yes,
	}
}

// NewSpec implements area.Area.
func (Area) NewSpec() area.Spec { return &Spec{} }

// Open implements area.Area. It finds the program and starts nothing.
func (Area) Open(_ context.Context, s area.Spec, env area.Env) (area.Target, error) {
	spec, err := area.SpecOf[*Spec](s)
	if err != nil {
		return nil, fmt.Errorf("open exec: %w", err)
	}
	program, err := spec.program(env)
	if err != nil {
		return nil, fmt.Errorf("open exec: %w", err)
	}
	return driver.New(driver.Config{
		Area: areaName,
		Env:  env,
		Arm: func(t design.Treatment) (driver.Arm, error) {
			return driver.Arm{Program: program, Levels: spec.levels(t)}, nil
		},
		Operations:     spec.Operations,
		DescribeWithin: time.Duration(spec.DescribeWithin),
		Fresh:          spec.Fresh != freshRun,
		Patience:       time.Duration(spec.Patience),
		PrepareWithin:  time.Duration(spec.PrepareWithin),
		Rounds:         spec.Rounds,
		Span:           time.Duration(spec.Span),
		CPUs:           env.CPUs,
		Notes:          []string{"the program: " + spec.commandLine()},
		Conditions:     offered(),
	}), nil
}

// offered are the conditions that a program may offer by itself.
func offered() []string {
	return []string{area.Reload, area.Revoke, area.Slow, area.Partition, area.ColdStart}
}

// Conditions is area.Says.Conditions. Which of those that a program may offer it does is known once it prepares.
func (*Spec) Conditions() []string { return append([]string{area.Restart, area.Starved}, offered()...) }

// Parts implements area.Area.
func (Area) Parts() area.Parts {
	return area.Parts{
		Program: identify, Commands: commands, Builds: builds, Files: embeddedFiles,
	}
}

// Undo implements area.Area: in the order given, it ends journaled processes, makes the program undo what it prepared,
// and removes folders.
func (Area) Undo(ctx context.Context, changes []area.Change, env area.Env) error {
	return driver.Undo(ctx, changes, env)
}

// embeddedFiles are area.Parts.Files.
//
//go:embed templates words.md
var embeddedFiles embed.FS
