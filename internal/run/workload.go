package run

import (
	"context"
	"errors"
	"fmt"

	"tare/internal/area"
	"tare/internal/capacity"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/record"
)

// A Workload is one shape of load, offered after the target has reached a stage.
type Workload struct {
	Name    string
	Rate    float64 // 1/s during the load
	Process load.Process
	Stage   area.Stage // empty: unchanged
}

// points returns the points of a ladder, from rates or from workloads. The probes are read around each: the use at a
// point is a difference.
func (x *runner) points(t design.Trial, treatment design.Treatment, s capacity.Stream) []capacity.Planned {
	var points []capacity.Planned
	for _, rate := range x.Load.Rates {
		points = append(points, capacity.Planned{Rate: rate})
	}
	for _, w := range x.Load.Workloads {
		points = append(points, capacity.Planned{Name: w.Name, Rate: w.Rate, Process: w.Process})
	}
	for i := range points {
		var stage area.Stage
		if len(x.Load.Rates) == 0 {
			stage = x.Load.Workloads[i].Stage
		}
		points[i].Before = func(ctx context.Context) error {
			return errors.Join(x.stage(ctx, treatment, s, stage), x.samples(ctx, t, treatment, record.Before, i+1))
		}
		points[i].After = func(ctx context.Context) error { return x.samples(ctx, t, treatment, record.After, i+1) }
	}
	return points
}

// stage brings the target into a stage. Connections do not survive it: a restarted target has none.
func (x *runner) stage(ctx context.Context, t design.Treatment, s capacity.Stream, stage area.Stage) error {
	if stage == "" {
		return nil
	}
	stager, ok := x.target.(area.Stager)
	if !ok {
		return fmt.Errorf("the target of area %s cannot be brought into the stage %q", x.Area.Name(), stage)
	}
	s.Reset()
	x.event(Event{Phase: Preparing, Treatment: t.ID, Note: "bring the target into the stage " + string(stage)})
	if err := stager.Stage(ctx, t, stage); err != nil {
		return fmt.Errorf("bring the target into the stage %q: %w", stage, err)
	}
	return nil
}
