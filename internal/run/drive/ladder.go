package drive

import (
	"context"
	"errors"
	"fmt"

	"tare/area"
	"tare/internal/capacity"
	"tare/internal/record"
	"tare/internal/run"
)

// points returns the points of a ladder, from rates or from workloads. The probes are read around each: the use at a
// point is a difference.
func points(a *run.Arm, s capacity.Stream) []capacity.Planned {
	var points []capacity.Planned
	for _, rate := range a.Load.Rates {
		points = append(points, capacity.Planned{Rate: rate})
	}
	for _, w := range a.Load.Workloads {
		points = append(points, capacity.Planned{Name: w.Name, Rate: w.Rate, Process: w.Process})
	}
	for i := range points {
		var stage area.Stage
		if len(a.Load.Rates) == 0 {
			stage = a.Load.Workloads[i].Stage
		}
		points[i].Before = func(ctx context.Context) error {
			return errors.Join(enterStage(ctx, a, s, stage), a.Sample(ctx, record.Before, i+1))
		}
		points[i].After = func(ctx context.Context) error { return a.Sample(ctx, record.After, i+1) }
	}
	return points
}

// enterStage brings the target into a stage. Connections do not survive it: a restarted target has none.
func enterStage(ctx context.Context, a *run.Arm, s capacity.Stream, stage area.Stage) error {
	if stage == "" {
		return nil
	}
	enter := a.Target.Can().Stage
	if enter == nil {
		return fmt.Errorf("the target of area %s cannot be brought into the stage %q", a.Area.Name(), stage)
	}
	s.Reset()
	a.Tell(run.Event{Phase: run.Preparing, Treatment: a.Treatment.ID})
	if err := enter(ctx, a.Treatment, stage); err != nil {
		return fmt.Errorf("bring the target into the stage %q: %w", stage, err)
	}
	return nil
}
