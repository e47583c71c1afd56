package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/load"
)

// folder is the run's folder on the peer.
const folder = "/run/tare"

// Serve answers the requests for an area's target until in ends.
func Serve(ctx context.Context, ar area.Area, log *slog.Logger, in io.Reader, out io.Writer) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program, to start child processes with it: %w", err)
	}
	a := &agent{area: ar, env: area.Env{Dir: folder, Self: self, Clock: clock.System{}, Log: log}}
	r := bufio.NewReaderSize(in, maxLine)
	beside, cancel := context.WithCancel(ctx)
	var busy sync.WaitGroup
	var writing sync.Mutex
	reply := func(w answer, id uint64) error {
		w.ID = id
		writing.Lock()
		defer writing.Unlock()
		return writeLine(out, w)
	}
	end := func(cause error) error {
		cancel()
		busy.Wait()
		return a.end(ctx, cause)
	}
	for {
		var q request
		switch err := readLine(r, &q); {
		case errors.Is(err, errNoText): // it only woke this machine
			continue
		case err != nil:
			return end(err)
		}
		if besides(q.Do) {
			busy.Go(func() { _ = reply(a.handle(beside, q), q.ID) }) // the next read fails too
			continue
		}
		if err := reply(a.handle(ctx, q), q.ID); err != nil {
			return errors.Join(err, end(io.EOF))
		}
	}
}

// agent is the side on which the target is.
type agent struct {
	area   area.Area
	env    area.Env
	target area.Target

	mu sync.Mutex // of what requests beside others use
	// operations are those that have been listed, by treatment and name: making them again for each batch would take as
	// long as the batch. calls are those that make calls, by number. conditions are those that have been listed, and lifts
	// end those that last.
	operations map[named]load.Operation
	calls      []load.Operation
	conditions map[named]area.Condition
	lifts      map[named]func(context.Context) error
}

// named is something of a treatment.
type named struct{ treatment, name string }

// end closes the target after the last request.
func (a *agent) end(ctx context.Context, cause error) error {
	if errors.Is(cause, io.EOF) {
		cause = nil
	}
	if a.target == nil {
		return cause
	}
	return errors.Join(cause, a.target.Close(context.WithoutCancel(ctx)))
}

func (a *agent) handle(ctx context.Context, q request) answer {
	var w answer
	if err := a.do(ctx, q, &w); err != nil {
		w.Error, w.Hint = err.Error(), area.HintOf(err)
	}
	return w
}

func (a *agent) do(ctx context.Context, q request, w *answer) (err error) {
	switch q.Do {
	case doPreflight, doOpen:
		return a.open(ctx, q, w)
	}
	if besides(q.Do) {
		return a.beside(ctx, q, w)
	}
	if a.target == nil {
		return fmt.Errorf("%s: nothing is open", q.Do)
	}
	switch q.Do {
	case doNotes:
		if notes := a.target.Can().Notes; notes != nil {
			w.Notes = notes()
		}
		return nil
	case doClose:
		t := a.target
		a.target = nil
		return t.Close(ctx)
	}
	if q.Treatment == nil {
		return fmt.Errorf("%s: no treatment is named", q.Do)
	}
	switch q.Do {
	case doPrepare:
		return a.target.Prepare(ctx, *q.Treatment, forgetful{})
	case doEnter:
		return maybe(ctx, a.target.Can().Enter, *q.Treatment)
	case doVerify:
		return a.target.Verify(ctx, *q.Treatment)
	case doLeave:
		return maybe(ctx, a.target.Can().Leave, *q.Treatment)
	case doList:
		ops, err := a.target.Operations(*q.Treatment)
		a.list(q, ops, w)
		return err
	case doTrespasses:
		return a.trespasses(q, w)
	case doConditions:
		return a.listConditions(q, w)
	case doBatch:
		return a.batch(ctx, q, w)
	}
	return fmt.Errorf("unknown request %.40q", q.Do)
}

func (a *agent) open(ctx context.Context, q request, w *answer) error {
	if q.Setup == nil {
		return fmt.Errorf("%s: the setup is missing", q.Do)
	}
	if err := os.MkdirAll(a.env.Dir, 0o700); err != nil {
		return err
	}
	if err := os.Chdir(q.Setup.Dir); err != nil {
		return err
	}
	spec := a.area.NewSpec()
	if err := json.Unmarshal(q.Setup.Spec, spec); err != nil {
		return fmt.Errorf("decode the target: %w", err)
	}
	env := a.env
	env.Run, env.Treatments = q.Setup.Run, q.Setup.Treatments
	env.Trespasses, env.Operations = q.Setup.Trespasses, q.Setup.Chosen
	if q.Do == doPreflight {
		w.Findings = a.area.Preflight(ctx, spec, env)
		return nil
	}
	var err error
	a.mu.Lock()
	a.operations, a.calls, a.conditions = map[named]load.Operation{}, nil, map[named]area.Condition{}
	a.lifts = map[named]func(context.Context) error{}
	a.mu.Unlock()
	a.target, err = a.area.Open(ctx, spec, env)
	return err
}

// list answers with operations, and keeps them.
func (a *agent) list(q request, ops []load.Operation, w *answer) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, o := range ops {
		a.operations[named{q.Treatment.ID, o.Name}] = o
		a.calls = append(a.calls, o)
		w.Operations = append(w.Operations, operation{
			Name: o.Name, Weight: o.Weight, Expect: o.Expect, Span: o.Span, Rounds: o.Rounds, Most: o.Most, Whole: o.Whole,
			Negative: o.Negative, Twin: o.Twin, Causes: o.Causes, Batches: o.Batch != nil,
			Number: len(a.calls),
		})
	}
}

func (a *agent) batch(ctx context.Context, q request, w *answer) (err error) {
	a.mu.Lock()
	o := a.operations[named{q.Treatment.ID, q.Operation}]
	a.mu.Unlock()
	if o.Batch == nil {
		return fmt.Errorf("operation %.40q has not been listed", q.Operation)
	}
	began := a.env.Clock.Now()
	again := func() bool { return a.env.Clock.Now().Sub(began) < q.RepeatWithin }
	w.Samples, err = leastOf(q.Repeat, again, func() ([]load.BatchSample, error) { return o.Batch(ctx, q.Calls) })
	return err
}

// leastOf makes up to n batches, at least one, and returns the least value of each metric.
func leastOf(n int, again func() bool, batch func() ([]load.BatchSample, error)) (least []load.BatchSample, err error) {
	for i := 0; i == 0 || i < n && again(); i++ {
		samples, err := batch()
		if err != nil {
			return nil, err
		}
		if i == 0 {
			least = samples
			continue
		}
		for _, s := range samples {
			for i := range least {
				if least[i].Metric == s.Metric {
					least[i].Value = min(least[i].Value, s.Value)
				}
			}
		}
	}
	return least, nil
}

// forgetful is the journal of a machine that ends with the run: its end undoes all changes.
type forgetful struct{}

var _ area.Journal = forgetful{}

// Intend implements area.Journal.
func (forgetful) Intend(area.Change) error { return nil }

// Undone implements area.Journal.
func (forgetful) Undone(area.Change) error { return nil }

// maybe does what a target may be able to do.
func maybe(ctx context.Context, do func(context.Context, area.Treatment) error, t area.Treatment) error {
	if do == nil {
		return nil
	}
	return do(ctx, t)
}
