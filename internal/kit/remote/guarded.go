package remote

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/load"
)

// Trespasses is area.Can.Trespass.
func (t *Target) Trespasses(tr design.Treatment) ([]load.Operation, error) {
	return t.listed(doTrespasses, tr)
}

// called makes the calls of an operation on the peer, several at a time.
func (t *Target) called(op *load.Operation, number int) {
	op.Call = func(ctx context.Context, i uint64) load.Result {
		within := millisecondsOf(ctx)
		return t.calls.Call(ctx, func(ctx context.Context, _ struct{}) load.Result {
			a, err := t.ask(ctx, request{Do: doCall, Number: number, I: i, Milliseconds: within})
			if err != nil || a.Result == nil {
				return load.Result{Outcome: load.ConnFailed, Errno: uint16(syscall.EPIPE)}
			}
			r := a.Result
			return load.Result{Outcome: r.Outcome, Status: r.Status, Errno: r.Errno, Cause: r.Cause}
		})
	}
	if op.Twin == "" {
		return
	}
	name := op.Name
	op.Describe = func(i uint64, _ int, _ []byte) (asked, got string) {
		a, err := t.ask(context.Background(), request{Do: doDescribe, Number: number, I: i})
		if err != nil || len(a.Texts) != 2 {
			return name, fmt.Sprintf("not known: %v", err)
		}
		return a.Texts[0], a.Texts[1]
	}
}

// millisecondsOf returns how much time a context has left, at least 1; 0: it has no end.
func millisecondsOf(ctx context.Context) int64 {
	end, ok := ctx.Deadline()
	if !ok {
		return 0
	}
	return max(1, time.Until(end).Milliseconds())
}

// Conditions is area.Can.Conditions: those of the peer, without the figures that it measures.
func (t *Target) Conditions(tr design.Treatment) (out []area.Condition) {
	a, err := t.ask(context.Background(), request{Do: doConditions, Treatment: &tr})
	if err != nil {
		return nil // the next call says why
	}
	for _, c := range a.Conditions {
		out = append(out, area.Condition{
			Name: c.Name, Title: c.Title, Does: c.Does, Hold: c.Hold,
			Impose: func(ctx context.Context) (func(context.Context) error, error) {
				a, err := t.ask(ctx, request{
					Do: doImpose, Of: tr.ID, Operation: c.Name, Milliseconds: millisecondsOf(ctx),
				})
				if err != nil || !a.Lasts {
					return nil, err
				}
				return func(ctx context.Context) error {
					_, err := t.ask(ctx, request{Do: doLift, Of: tr.ID, Operation: c.Name})
					return err
				}, nil
			},
		})
	}
	return out
}

func (a *agent) trespasses(q request, w *answer) error {
	trespass := a.target.Can().Trespass
	if trespass == nil {
		return errNotGuarded
	}
	ops, err := trespass(*q.Treatment)
	a.list(q, ops, w)
	return err
}

var errNotGuarded = errors.New("the target has nothing that must be refused")

func (a *agent) listConditions(q request, w *answer) error {
	conditions := a.target.Can().Conditions
	if conditions == nil {
		return errNotGuarded
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range conditions(*q.Treatment) {
		a.conditions[named{q.Treatment.ID, c.Name}] = c
		w.Conditions = append(w.Conditions, condition{c.Name, c.Title, c.Does, c.Hold})
	}
	return nil
}

// beside answers a request that is answered beside others.
func (a *agent) beside(ctx context.Context, q request, w *answer) error {
	if q.Milliseconds > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(q.Milliseconds)*time.Millisecond)
		defer cancel()
	}
	switch q.Do {
	case doImpose:
		return a.impose(ctx, q, w)
	case doLift:
		return a.lift(ctx, q)
	}
	a.mu.Lock()
	var o load.Operation
	if q.Number > 0 && q.Number <= len(a.calls) {
		o = a.calls[q.Number-1]
	}
	a.mu.Unlock()
	switch {
	case q.Do == doCall && o.Call != nil:
		r := o.Call(ctx, q.I)
		w.Result = &result{r.Outcome, r.Status, r.Errno, r.Cause}
	case q.Do == doDescribe && o.Describe != nil:
		asked, got := o.Describe(q.I, 0, nil)
		w.Texts = []string{asked, got}
	default:
		return fmt.Errorf("%s: there is no operation %d", q.Do, q.Number)
	}
	return nil
}

func (a *agent) impose(ctx context.Context, q request, w *answer) error {
	key := named{q.Of, q.Operation}
	a.mu.Lock()
	c, ok := a.conditions[key]
	lasts := a.lifts[key] != nil
	a.mu.Unlock()
	switch {
	case !ok:
		return fmt.Errorf("condition %.40q has not been listed", q.Operation)
	case lasts:
		return fmt.Errorf("condition %s has not been ended", q.Operation)
	}
	lift, err := c.Impose(ctx)
	switch {
	case err != nil && lift != nil: // an error answers without Lasts, so nobody would end what was done until then
		return errors.Join(err, lift(context.WithoutCancel(ctx)))
	case err != nil:
		return err
	case lift != nil:
		a.mu.Lock()
		a.lifts[key] = lift
		a.mu.Unlock()
	}
	w.Lasts = lift != nil
	return nil
}

func (a *agent) lift(ctx context.Context, q request) error {
	key := named{q.Of, q.Operation}
	a.mu.Lock()
	lift := a.lifts[key]
	delete(a.lifts, key)
	a.mu.Unlock()
	if lift == nil {
		return fmt.Errorf("condition %.40q does not last", q.Operation)
	}
	return lift(ctx)
}
