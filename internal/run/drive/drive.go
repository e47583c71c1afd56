// Package drive has the ways to measure, each with its live view. A drive works on a run.Stage.
package drive

import (
	"context"
	"maps"

	"tare/internal/design"
	"tare/internal/question"
	"tare/internal/record"
	"tare/internal/run"
)

// A Drive is a way to measure, with its live view.
type Drive struct {
	run.Drive
	// View returns what shows the events of a run. It knows what its drive says in their Detail.
	View func(*Screen) func(run.Event)
}

// known are the drives. This is the only list.
var known = map[question.Drive]Drive{
	question.Blocks: {run.Drive{Measure: inBlocks, Interrupted: record.Dropped}, viewBlocks},
	question.Search: {
		run.Drive{Measure: eachOnce(probedSearch), Interrupted: record.Dropped, ProveAgain: true}, viewSearch,
	},
	question.Long: {run.Drive{Measure: eachOnce(soak), Interrupted: record.Interrupted, ProveAgain: true}, viewLong},

	question.Guarded: {run.Drive{Measure: eachGuarded, Interrupted: record.Interrupted}, viewGuarded},
}

// AddForTest adds a drive until the test ends. Tests that run beside it see it too.
func AddForTest(t interface{ Cleanup(func()) }, name question.Drive, d Drive) {
	before := known
	known = maps.Clone(known)
	known[name] = d
	t.Cleanup(func() { known = before })
}

// Do carries out r by the drive of its question, as run.Do does. It fails if this tare does not know the question.
func Do(ctx context.Context, r run.Request) (record.Status, error) {
	return run.Do(ctx, r, known[question.Of(r.Question).Drive].Drive)
}

// eachOnce returns a drive that measures one trial after another.
func eachOnce(one func(context.Context, *run.Arm) error) func(context.Context, *run.Stage, []design.Trial) error {
	return func(ctx context.Context, s *run.Stage, plan []design.Trial) error {
		for _, trial := range plan {
			if err := s.Measure(ctx, alone(one), trial); err != nil {
				return err
			}
		}
		return nil
	}
}

// alone returns what measures the only arm that is in force.
func alone(one func(context.Context, *run.Arm) error) func(context.Context, []*run.Arm) error {
	return func(ctx context.Context, arms []*run.Arm) error { return one(ctx, arms[0]) }
}

// during returns the event of an arm that is being measured.
func during(a *run.Arm, p run.Phase, detail any) run.Event {
	return run.Event{Phase: p, Treatment: a.Trial.Treatment, Trial: a.Trial.Index + 1, Detail: detail}
}
