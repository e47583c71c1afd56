package run

import (
	"context"
	"fmt"

	"tare/internal/design"
	"tare/internal/question"
	"tare/internal/record"
)

// A drive measures in one of the ways of package question. Everything else in this package is shared by all of them.
type drive struct {
	// all measures the planned trials.
	all func(ctx context.Context, plan []design.Trial) error
	// one measures an arm that is in force.
	one func(a *arm, ctx context.Context) error
	// interrupted is what an interrupted trial counts as.
	interrupted record.Status
}

// driveOf returns the drive of x's question. It fails if this tare does not know the question.
func (x *runner) driveOf() (drive, error) {
	switch question.Of(x.Question).Drive {
	case question.Blocks:
		return drive{all: x.blocks, one: (*arm).steady, interrupted: record.Dropped}, nil
	case question.Search:
		return drive{all: x.eachOnce, one: (*arm).probedSearch, interrupted: record.Dropped}, nil
	case question.Long:
		return drive{all: x.eachOnce, one: (*arm).soak, interrupted: record.Interrupted}, nil
	}
	return drive{}, fmt.Errorf("this tare cannot measure question %q", x.Question)
}

// eachOnce measures one trial after another.
func (x *runner) eachOnce(ctx context.Context, plan []design.Trial) error {
	for _, trial := range plan {
		if err := x.arm(trial).measure(ctx); err != nil {
			return err
		}
	}
	return nil
}
