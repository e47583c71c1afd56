package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/load"
)

// farGuard is a target with trespasses and conditions.
type farGuard struct {
	area.Target

	met   sync.WaitGroup // of calls that wait for each other
	state atomic.Int32   // 1: the condition is imposed, 2: it has been ended
}

func (g *farGuard) Operations(design.Treatment) ([]load.Operation, error) {
	return []load.Operation{
		{Name: "open", Weight: 1, Causes: []string{"it rained"}, Call: func(context.Context, uint64) load.Result {
			g.met.Done()
			g.met.Wait()
			return load.Result{Outcome: load.OK}
		}},
		{Name: "hang", Weight: 1, Call: func(ctx context.Context, _ uint64) load.Result {
			<-ctx.Done()
			return load.Result{Outcome: load.ConnFailed, Cause: load.OwnCauses}
		}},
	}, nil
}

func (g *farGuard) Can() area.Can { return area.Can{Trespass: g.Trespasses, Conditions: g.Conditions} }

func (*farGuard) Trespasses(design.Treatment) ([]load.Operation, error) {
	return []load.Operation{{
		Name: "refused-open", Twin: "open", Weight: 1,
		Call: func(_ context.Context, i uint64) load.Result {
			if i%10 == 3 {
				return load.Result{Outcome: load.Permitted}
			}
			return load.Result{Outcome: load.Denied, Errno: 13, Cause: 7}
		},
		Describe: func(i uint64, _ int, _ []byte) (request, answer string) { return fmt.Sprint("open ", i), "success" },
	}}, nil
}

func (g *farGuard) Conditions(design.Treatment) []area.Condition {
	return []area.Condition{
		{Name: "reload", Title: "reload of it", Does: "it is replaced", Hold: time.Second, Impose: func(ctx context.Context) (
			func(context.Context) error, error,
		) {
			if _, ok := ctx.Deadline(); !ok {
				return nil, errors.New("it has no bound")
			}
			g.state.Store(1)
			return func(context.Context) error { g.state.Store(2); return nil }, nil
		}},
		{Name: "restart", Impose: func(context.Context) (func(context.Context) error, error) {
			return nil, errors.New("it does not start")
		}},
		{Name: "half", Impose: func(context.Context) (func(context.Context) error, error) {
			return func(context.Context) error { g.state.Store(3); return nil }, errors.New("it broke off")
		}},
	}
}

func (*farGuard) Close(context.Context) error { return nil }

// guardedFar returns the target of an agent that serves g.
func guardedFar(t *testing.T, g *farGuard) (*Target, design.Treatment) {
	t.Helper()
	tg := connect(t, far{target: g}, 0)
	setup := Setup{Spec: json.RawMessage(`{}`), Dir: t.TempDir(), Trespasses: true}
	if err := tg.Open(t.Context(), setup); err != nil {
		t.Fatal(err)
	}
	return tg, design.Treatment{ID: "a"}
}

// TestCallsAreMadeTogether: calls are under way at the same time, and one that is not answered stops no other.
func TestCallsAreMadeTogether(t *testing.T) {
	g := &farGuard{}
	tg, tr := guardedFar(t, g)
	ops, err := tg.Operations(tr)
	if err != nil || len(ops) != 2 || ops[0].Batch != nil || ops[0].Causes[0] != "it rained" {
		t.Fatalf("%+v, %v", ops, err)
	}
	const together = mostCalls - 1
	g.met.Add(together)
	short, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	var all sync.WaitGroup
	all.Go(func() {
		if r := ops[1].Call(short, 0); r.Cause != load.CauseAbandoned && r.Cause != load.OwnCauses {
			t.Errorf("a call that hangs: %+v", r)
		}
	})
	for i := range together {
		all.Go(func() {
			if r := ops[0].Call(t.Context(), uint64(i)); r.Outcome != load.OK {
				t.Errorf("call %d: %+v", i, r)
			}
		})
	}
	all.Wait()
}

// TestTrespassesAreCarried: outcome, errno, cause and description are those of the peer.
func TestTrespassesAreCarried(t *testing.T) {
	tg, tr := guardedFar(t, &farGuard{})
	twins, err := tg.Trespasses(tr)
	if err != nil || len(twins) != 1 || twins[0].Twin != "open" {
		t.Fatalf("%+v, %v", twins, err)
	}
	r := twins[0].Call(t.Context(), 4)
	if r.Outcome != load.Denied || r.Errno != 13 || r.Cause != 7 || !r.Sent.IsZero() {
		t.Errorf("refused: %+v", r)
	}
	if r := twins[0].Call(t.Context(), 13); r.Outcome != load.Permitted {
		t.Errorf("permitted: %+v", r)
	}
	if request, answer := twins[0].Describe(13, 0, nil); request != "open 13" || answer != "success" {
		t.Errorf("%q: %q", request, answer)
	}
}

// TestConditionsAreCarried: a condition that lasts is ended once, and one that fails says why.
func TestConditionsAreCarried(t *testing.T) {
	g := &farGuard{}
	tg, tr := guardedFar(t, g)
	all := tg.Conditions(tr)
	if len(all) != 3 || all[0].Name != "reload" || all[0].Does != "it is replaced" || all[0].Hold != time.Second {
		t.Fatalf("%+v", all)
	}
	if all[0].Title != "reload of it" {
		t.Errorf("the title %q was carried", all[0].Title)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	lift, err := all[0].Impose(ctx)
	if err != nil || lift == nil || g.state.Load() != 1 {
		t.Fatalf("imposed: %d, %v", g.state.Load(), err)
	}
	if _, err := all[0].Impose(ctx); err == nil {
		t.Error("it is imposed twice")
	}
	if err := lift(t.Context()); err != nil || g.state.Load() != 2 {
		t.Errorf("ended: %d, %v", g.state.Load(), err)
	}
	if err := lift(t.Context()); err == nil {
		t.Error("it is ended twice")
	}
	if lift, err := all[1].Impose(ctx); err == nil || err.Error() != "it does not start" || lift != nil {
		t.Errorf("one that fails: %v", err)
	}
	for range 2 { // what it had done was ended, so that it can be tried again
		_, err := all[2].Impose(ctx)
		if err == nil || err.Error() != "it broke off" || g.state.Swap(0) != 3 {
			t.Errorf("one that fails halfway: %v", err)
		}
	}
}

// TestCallsOfLostPeersFail: they decide nothing, and do not wait.
func TestCallsOfLostPeersFail(t *testing.T) {
	tg, tr := guardedFar(t, &farGuard{})
	twins, err := tg.Trespasses(tr)
	if err != nil {
		t.Fatal(err)
	}
	_ = tg.lose(errors.New("it has ended"))
	if r := twins[0].Call(t.Context(), 3); r.Outcome != load.ConnFailed {
		t.Errorf("a call of a lost peer: %+v", r)
	}
	if _, answer := twins[0].Describe(3, 0, nil); answer != "not known: the far side: it has ended" {
		t.Error(answer)
	}
	if c := tg.Conditions(tr); len(c) != 0 {
		t.Error(c)
	}
}
