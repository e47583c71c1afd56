package run

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/metric"
	"tare/internal/probe"
	"tare/internal/record"
)

// An Arm is a treatment in one trial.
type Arm struct {
	*Stage
	Trial     design.Trial
	Treatment design.Treatment
	Ops       []load.Operation // nil before it is in force

	breaches breaches
}

// Measure puts the treatments of trials in force together and verifies them, lets do measure the arms, and takes the
// treatments back.
func (x *Stage) Measure(ctx context.Context, do func(context.Context, []*Arm) error, trials ...design.Trial,
) (err error) {
	arms := make([]*Arm, 0, len(trials))
	defer func() {
		for _, a := range arms {
			err = errors.Join(err, a.leave(ctx))
		}
	}()
	for _, t := range trials {
		a := &Arm{Stage: x, Trial: t, Treatment: x.treatment(t.Treatment)}
		if err := a.enter(ctx); err != nil {
			return err
		}
		arms = append(arms, a)
		if err := a.verify(ctx); err != nil {
			return err
		}
	}
	for _, a := range arms {
		if a.Ops, err = a.Operations(a.Treatment); err != nil {
			return err
		}
		a.Ops = a.breaches.watch(a.Ops)
	}
	if err := sameBatches(arms); err != nil {
		return err
	}
	for _, a := range arms {
		if err := a.begin(); err != nil {
			return err
		}
	}
	started := x.Env.Clock.Now()
	failed := do(ctx, arms)
	err = failed
	for _, a := range arms {
		err = errors.Join(err, a.end(ctx, started, failed))
	}
	if err == nil && x.drive.ProveAgain && x.Load.Trespass == 0 { // else the calls of the load have shown it
		for _, a := range arms {
			err = errors.Join(err, a.verifyAgain(ctx))
		}
	}
	return err
}

// sameBatches returns an error if arms that make batches in turns do not have the same operations.
func sameBatches(arms []*Arm) error {
	if !slices.ContainsFunc(arms[0].Ops, func(op load.Operation) bool { return op.Batch != nil }) {
		return nil
	}
	for _, a := range arms {
		if !slices.EqualFunc(a.Ops, arms[0].Ops, alike) {
			return fmt.Errorf("%s and %s do not have the same operations", arms[0].Treatment.ID, a.Treatment.ID)
		}
	}
	return nil
}

// alike reports whether a and b have one name, and both or neither a clock of its own.
func alike(a, b load.Operation) bool { return a.Name == b.Name && (a.Batch == nil) == (b.Batch == nil) }

// Renew has the target start afresh what it started for the treatments of trials, if it can. All start at one time.
func (x *Stage) Renew(ctx context.Context, trials []design.Trial) error {
	renew := x.Target.Can().Renew
	if renew == nil {
		return nil
	}
	did, errs := make([]bool, len(trials)), make([]error, len(trials))
	var wg sync.WaitGroup
	for i, t := range trials {
		wg.Go(func() {
			var err error
			if did[i], err = renew(ctx, x.treatment(t.Treatment)); err != nil {
				errs[i] = fmt.Errorf("start %s afresh: %w", t.Treatment, err)
			}
		})
	}
	wg.Wait()
	for i, t := range trials {
		x.renewed[t] = did[i]
	}
	return errors.Join(errs...)
}

func (a *Arm) enter(ctx context.Context) error {
	enter := a.Target.Can().Enter
	if enter == nil {
		return nil
	}
	if err := enter(ctx, a.Treatment); err != nil {
		return fmt.Errorf("enter %s: %w", a.Treatment.ID, err)
	}
	return nil
}

// leave undoes enter, even after an interrupt.
func (a *Arm) leave(ctx context.Context) error {
	leave := a.Target.Can().Leave
	if leave == nil {
		return nil
	}
	if err := leave(context.WithoutCancel(ctx), a.Treatment); err != nil {
		return fmt.Errorf("leave %s: %w", a.Treatment.ID, err)
	}
	return nil
}

// verify verifies that the treatment is in force; otherwise there is nothing to measure.
func (a *Arm) verify(ctx context.Context) error {
	a.Tell(Event{Phase: Verifying, Treatment: a.Trial.Treatment, Trial: a.Trial.Index + 1})
	return a.verified(ctx, record.Verify{}, a.Target.Verify(ctx, a.Treatment))
}

const (
	// patience is how long at least a target has to answer again after its load: its backlog may be long.
	patience = 30 * time.Second
	// retry is how long a proof that failed waits for the next one.
	retry = time.Second
	// mostAsked bounds the operations of which a fresh call is tried.
	mostAsked = 8
)

// verifyAgain verifies the treatment when its trial has ended, since it may have been in force at its begin only. What
// is still overloaded has a while to recover. Where it then serves no calls, nothing is known of its control.
func (a *Arm) verifyAgain(ctx context.Context) error {
	a.Tell(Event{Phase: Verifying, Treatment: a.Trial.Treatment, Trial: a.Trial.Index + 1})
	err := a.Target.Verify(ctx, a.Treatment)
	for end := a.Env.Clock.Now().Add(max(2*a.Load.Timeout, patience)); err != nil && a.Env.Clock.Now().Before(end); {
		if stopped := a.Env.Clock.Sleep(ctx, retry); stopped != nil {
			return stopped
		}
		err = a.Target.Verify(ctx, a.Treatment)
	}
	if err != nil && ctx.Err() == nil && !a.serves(ctx) {
		return a.Writer.Warning(record.Warning{Treatment: a.Trial.Treatment, Text: fmt.Sprintf("after the load the target "+
			"served no calls, so that it is not known whether the control was still in force: %v", err)})
	}
	return a.verified(ctx, record.Verify{After: true}, err)
}

// serves reports whether the target answers a fresh call of some operation, be it as it should not.
func (a *Arm) serves(ctx context.Context) bool {
	s, err := a.OpenStream(ctx, a.Trial.Seed, false)
	if err != nil {
		return false
	}
	defer func() { _ = s.Close() }()
	for i := range min(len(a.Ops), mostAsked) {
		c := s.Fresh(ctx, i, 0, min(2*time.Second, a.Load.Timeout))
		if o := c.Outcome; c.Done != 0 && (o.Good() || o == load.Wrong || o == load.Permitted) {
			return true
		}
	}
	return false
}

// verified records what a verification showed; an interrupted one shows nothing.
func (a *Arm) verified(ctx context.Context, v record.Verify, err error) error {
	if err != nil && ctx.Err() != nil {
		return err
	}
	v.Treatment, v.Block, v.OK = a.Trial.Treatment, a.Trial.Block, err == nil
	if unproved := a.Target.Can().Unproved; err == nil && unproved != nil {
		v.Unproved = unproved(a.Treatment)
	}
	if err != nil {
		v.Error = err.Error()
		err = fmt.Errorf("%s is not in force%s: %w", a.Trial.Treatment, v.When(), err)
	}
	return errors.Join(err, a.Writer.Verify(v))
}

// end closes a trial that ended with err. What an interrupted trial counts as is up to the drive.
func (a *Arm) end(ctx context.Context, started time.Time, err error) error {
	end := record.TrialEnd{
		Treatment: a.Trial.Treatment, Block: a.Trial.Block, Seconds: a.Env.Clock.Now().Sub(started).Seconds(),
		Status: record.Complete,
	}
	switch {
	case err != nil && ctx.Err() != nil:
		end.Status = a.drive.Interrupted
	case err != nil:
		end.Status, end.Error = record.Errored, err.Error()
	}
	return a.Writer.TrialEnd(end)
}

// begin opens a trial in the record.
func (a *Arm) begin() error {
	begin := record.TrialBegin{Trial: a.Trial, Renewed: a.renewed[a.Trial]}
	for _, op := range a.Ops {
		begin.Operations = append(begin.Operations, op.Name)
		if op.Negative {
			begin.Negative = append(begin.Negative, op.Name)
		}
		if op.Harness {
			begin.Harness = append(begin.Harness, op.Name)
		}
		if len(op.Breaches) > 0 {
			if begin.Breaches == nil {
				begin.Breaches = map[string][]int{}
			}
			begin.Breaches[op.Name] = op.Breaches
		}
		if op.Twin != "" {
			if begin.Twins == nil {
				begin.Twins = map[string]string{}
			}
			begin.Twins[op.Name] = op.Twin
		}
		if op.Overhead != "" {
			if begin.Overhead == nil {
				begin.Overhead = map[string]string{}
			}
			begin.Overhead[op.Name] = op.Overhead
		}
	}
	if slices.ContainsFunc(a.Ops, func(op load.Operation) bool { return len(op.Causes) > 0 }) {
		for _, op := range a.Ops {
			begin.Causes = append(begin.Causes, op.Causes)
		}
	}
	if slices.ContainsFunc(a.Ops, func(op load.Operation) bool { return op.Answer != "" || len(op.CauseAnswers) > 0 }) {
		for _, op := range a.Ops {
			begin.Answers = append(begin.Answers, op.Answer)
			begin.CauseAnswers = append(begin.CauseAnswers, op.CauseAnswers)
		}
	}
	return a.Writer.TrialBegin(begin)
}

// Operations returns the target's mix with the file's weights.
func (x *Stage) Operations(t design.Treatment) ([]load.Operation, error) {
	ops, err := x.Target.Operations(t)
	if err != nil {
		return nil, fmt.Errorf("operations of %s: %w", t.ID, err)
	}
	if x.Load.Weights == nil {
		return x.withTrespasses(t, ops)
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
		return nil, fmt.Errorf("load.operations names an operation that the target does not have; it has %s",
			strings.Join(names, ", "))
	}
	return x.withTrespasses(t, mix)
}

// Probes returns what reads the target under a treatment.
func (x *Stage) Probes(t design.Treatment) []probe.Probe {
	if probes := x.Target.Can().Probes; probes != nil {
		return slices.Clone(probes(t))
	}
	return nil
}

// Sample reads every probe once. A probe that cannot be read is a warning only.
func (a *Arm) Sample(ctx context.Context, when record.When, point int) error {
	all, err := a.read(ctx, when)
	if err != nil {
		return err
	}
	return a.writeSamples(when, point, all)
}

func (a *Arm) writeSamples(when record.When, point int, all []metric.Sample) error {
	return a.Writer.Samples(record.Samples{
		Treatment: a.Trial.Treatment, Block: a.Trial.Block, When: when, Point: point, Samples: all,
	})
}

// read reads every probe once.
func (a *Arm) read(ctx context.Context, when record.When) (all []metric.Sample, err error) {
	at := a.Env.Clock.Now().Sub(a.start)
	probes := a.Probes(a.Treatment)
	if when == record.After {
		slices.Reverse(probes) // so that the cost of reading one probe to the others lies outside both readings
	}
	for _, p := range probes {
		s, err := ask(ctx, p)
		if err != nil {
			w := record.Warning{Treatment: a.Trial.Treatment, Text: fmt.Sprintf("probe of %s, %s the trial: %v",
				p.Subject(), when, err)}
			if err := a.Writer.Warning(w); err != nil {
				return nil, err
			}
		}
		all = append(all, probe.Stamp(s, at)...)
	}
	return all, nil
}

// readWithin bounds the reading of a probe around a trial: a hanging probe must not keep the run from ending.
const readWithin = 10 * time.Second

func ask(ctx context.Context, p probe.Probe) ([]metric.Sample, error) {
	ctx, cancel := context.WithTimeout(ctx, readWithin)
	defer cancel()
	return p.Read(ctx)
}
