package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
)

// An arm is a treatment in one trial. Drives measure arms.
type arm struct {
	*runner
	trial     design.Trial
	treatment design.Treatment
	ops       []load.Operation // nil before it is in force
}

// arm returns the arm of a planned trial.
func (x *runner) arm(t design.Trial) *arm {
	return &arm{runner: x, trial: t, treatment: x.treatment(t.Treatment)}
}

// measure measures one arm: enter, verify, measure, leave.
func (a *arm) measure(ctx context.Context) (err error) {
	if err := a.enter(ctx); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.leave(ctx)) }()
	if err := a.verify(ctx); err != nil {
		return err
	}
	if a.ops, err = a.operations(a.treatment); err != nil {
		return err
	}
	if err := a.begin(); err != nil {
		return err
	}
	started := a.Env.Clock.Now()
	return a.end(ctx, started, a.drive.one(a, ctx))
}

func (a *arm) enter(ctx context.Context) error {
	if err := a.target.Enter(ctx, a.treatment); err != nil {
		return fmt.Errorf("enter %s: %w", a.treatment.ID, err)
	}
	return nil
}

// leave undoes enter, even after an interrupt.
func (a *arm) leave(ctx context.Context) error {
	if err := a.target.Leave(context.WithoutCancel(ctx), a.treatment); err != nil {
		return fmt.Errorf("leave %s: %w", a.treatment.ID, err)
	}
	return nil
}

// verify verifies that the treatment is in force; otherwise there is nothing to measure.
func (a *arm) verify(ctx context.Context) error {
	a.event(Event{Phase: Verifying, Treatment: a.trial.Treatment, Trial: a.trial.Index + 1})
	err := a.target.Verify(ctx, a.treatment)
	if err != nil && ctx.Err() != nil {
		return err
	}
	v := record.Verify{Treatment: a.trial.Treatment, Block: a.trial.Block, OK: err == nil}
	if err != nil {
		v.Error = err.Error()
		err = fmt.Errorf("%s is not in force: %w", a.trial.Treatment, err)
	}
	return errors.Join(err, a.Writer.Verify(v))
}

// end closes a trial. What an interrupted trial counts as is up to the drive.
func (a *arm) end(ctx context.Context, started time.Time, err error) error {
	end := record.TrialEnd{
		Treatment: a.trial.Treatment, Block: a.trial.Block, Seconds: a.Env.Clock.Now().Sub(started).Seconds(),
		Status: record.Complete,
	}
	switch {
	case err != nil && ctx.Err() != nil:
		end.Status = a.drive.interrupted
	case err != nil:
		end.Status, end.Error = record.Errored, err.Error()
	}
	return errors.Join(err, a.Writer.TrialEnd(end))
}

// begin opens a trial in the record.
func (a *arm) begin() error {
	begin := record.TrialBegin{Trial: a.trial}
	for _, op := range a.ops {
		begin.Operations = append(begin.Operations, op.Name)
		if op.Negative {
			begin.Negative = append(begin.Negative, op.Name)
		}
		if op.Harness {
			begin.Harness = append(begin.Harness, op.Name)
		}
		if op.Overhead != "" {
			if begin.Overhead == nil {
				begin.Overhead = map[string]string{}
			}
			begin.Overhead[op.Name] = op.Overhead
		}
	}
	if slices.ContainsFunc(a.ops, func(op load.Operation) bool { return len(op.Causes) > 0 }) {
		for _, op := range a.ops {
			begin.Causes = append(begin.Causes, op.Causes)
		}
	}
	if slices.ContainsFunc(a.ops, func(op load.Operation) bool { return op.Answer != "" || len(op.CauseAnswers) > 0 }) {
		for _, op := range a.ops {
			begin.Answers = append(begin.Answers, op.Answer)
			begin.CauseAnswers = append(begin.CauseAnswers, op.CauseAnswers)
		}
	}
	return a.Writer.TrialBegin(begin)
}

// operations returns the target's mix with the file's weights.
func (x *runner) operations(t design.Treatment) ([]load.Operation, error) {
	ops, err := x.target.Operations(t)
	if err != nil {
		return nil, fmt.Errorf("operations of %s: %w", t.ID, err)
	}
	if x.Load.Weights == nil {
		return ops, nil
	}
	var mix []load.Operation
	var names []string
	seen := 0
	for _, op := range ops {
		names = append(names, op.Name)
		if w, ok := x.Load.Weights[op.Name]; ok {
			op.Weight = w
			mix = append(mix, op)
			seen++
		}
	}
	if seen < len(x.Load.Weights) {
		return nil, fmt.Errorf("load.operations names an operation that the target does not have; it has: %v", names)
	}
	return mix, nil
}

// samples reads every probe once. A probe that cannot be read is a warning only.
func (a *arm) samples(ctx context.Context, when record.When, point int) error {
	var all []metric.Sample
	at := a.Env.Clock.Now().Sub(a.start)
	probes := slices.Clone(a.target.Probes(a.treatment))
	if when == record.After {
		slices.Reverse(probes) // so that the cost of reading one probe to the others lies outside both readings
	}
	for _, p := range probes {
		s, err := ask(ctx, p)
		if err != nil {
			w := record.Warning{Treatment: a.trial.Treatment, Text: fmt.Sprintf("probe of %s, %s the trial: %v",
				p.Subject(), when, err)}
			if err := a.Writer.Warning(w); err != nil {
				return err
			}
		}
		all = append(all, stamp(s, at)...)
	}
	return a.Writer.Samples(record.Samples{
		Treatment: a.trial.Treatment, Block: a.trial.Block, When: when, Point: point, Samples: all,
	})
}

// readWithin bounds the reading of a probe around a trial: a hanging probe must not keep the run from ending.
const readWithin = 10 * time.Second

func ask(ctx context.Context, p probe.Probe) ([]metric.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	return p.Read(ctx)
}
