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

// trial measures one treatment once: enter, verify, measure, leave.
func (x *runner) trial(ctx context.Context, t design.Trial) (err error) {
	treatment := x.treatment(t.Treatment)
	if err := x.target.Enter(ctx, treatment); err != nil {
		return fmt.Errorf("enter %s: %w", t.Treatment, err)
	}
	defer func() {
		if e := x.target.Leave(context.WithoutCancel(ctx), treatment); e != nil {
			err = errors.Join(err, fmt.Errorf("leave %s: %w", t.Treatment, e))
		}
	}()
	if err := x.verify(ctx, t, treatment); err != nil {
		return err
	}
	return x.measure(ctx, t, treatment)
}

// verify verifies that the treatment is in force; otherwise there is nothing to measure.
func (x *runner) verify(ctx context.Context, t design.Trial, treatment design.Treatment) error {
	x.event(Event{Phase: Verifying, Treatment: t.Treatment, Trial: t.Index + 1})
	err := x.target.Verify(ctx, treatment)
	if err != nil && ctx.Err() != nil {
		return err
	}
	v := record.Verify{Treatment: t.Treatment, Block: t.Block, OK: err == nil}
	if err != nil {
		v.Error = err.Error()
		err = fmt.Errorf("%s is not in force: %w", t.Treatment, err)
	}
	return errors.Join(err, x.Writer.Verify(v))
}

func (x *runner) measure(ctx context.Context, t design.Trial, treatment design.Treatment) error {
	ops, err := x.operations(treatment)
	if err != nil {
		return err
	}
	if err := x.begin(t, ops); err != nil {
		return err
	}
	started := x.Env.Clock.Now()
	return x.endTrial(ctx, t, started, x.drive.one(ctx, t, treatment, ops))
}

// probedSearch runs a capacity search between two readings of the probes.
func (x *runner) probedSearch(ctx context.Context, t design.Trial, treatment design.Treatment,
	ops []load.Operation,
) error {
	seen := x.witness(ctx, t, treatment)
	if err := x.samples(ctx, t, treatment, record.Before, 0); err != nil {
		return err
	}
	err := x.load(ctx, t, treatment, ops)
	return errors.Join(err, x.samples(context.WithoutCancel(ctx), t, treatment, record.After, 0), seen.close(ctx))
}

// endTrial closes a trial. What an interrupted trial counts as is up to the drive.
func (x *runner) endTrial(ctx context.Context, t design.Trial, started time.Time, err error) error {
	end := record.TrialEnd{
		Treatment: t.Treatment, Block: t.Block, Seconds: x.Env.Clock.Now().Sub(started).Seconds(),
		Status: record.Complete,
	}
	switch {
	case err != nil && ctx.Err() != nil:
		end.Status = x.drive.interrupted
	case err != nil:
		end.Status, end.Error = record.Errored, err.Error()
	}
	return errors.Join(err, x.Writer.TrialEnd(end))
}

// begin opens a trial in the record.
func (x *runner) begin(t design.Trial, ops []load.Operation) error {
	begin := record.TrialBegin{Trial: t}
	for _, op := range ops {
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
	if slices.ContainsFunc(ops, func(op load.Operation) bool { return len(op.Causes) > 0 }) {
		for _, op := range ops {
			begin.Causes = append(begin.Causes, op.Causes)
		}
	}
	if slices.ContainsFunc(ops, func(op load.Operation) bool { return op.Answer != "" || len(op.CauseAnswers) > 0 }) {
		for _, op := range ops {
			begin.Answers = append(begin.Answers, op.Answer)
			begin.CauseAnswers = append(begin.CauseAnswers, op.CauseAnswers)
		}
	}
	return x.Writer.TrialBegin(begin)
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
func (x *runner) samples(ctx context.Context, t design.Trial, treatment design.Treatment, when record.When,
	point int,
) error {
	var all []metric.Sample
	at := x.Env.Clock.Now().Sub(x.start)
	probes := slices.Clone(x.target.Probes(treatment))
	if when == record.After {
		slices.Reverse(probes) // so that the cost of reading one probe to the others lies outside both readings
	}
	for _, p := range probes {
		s, err := ask(ctx, p)
		if err != nil {
			w := record.Warning{Treatment: t.Treatment, Text: fmt.Sprintf("probe of %s, %s the trial: %v",
				p.Subject(), when, err)}
			if err := x.Writer.Warning(w); err != nil {
				return err
			}
		}
		all = append(all, stamp(s, at)...)
	}
	return x.Writer.Samples(record.Samples{Treatment: t.Treatment, Block: t.Block, When: when, Point: point, Samples: all})
}

// readWithin bounds the reading of a probe around a trial: a hanging probe must not keep the run from ending.
const readWithin = 10 * time.Second

func ask(ctx context.Context, p probe.Probe) ([]metric.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	return p.Read(ctx)
}
