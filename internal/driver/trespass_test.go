package driver

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/area"
	"tare/internal/load"
	"tare/rigs/hosttest"
)

// guarded is a description with a trespass.
func guarded() *Description {
	d := goodDescription()
	d.Operations = append(d.Operations, Operation{Name: "forged", Trespass: "work"})
	return &d
}

// newGuard returns the stage of a guard with the actor in force.
func newGuard(t *testing.T, a actor) *stage {
	t.Helper()
	if a.Describe == nil {
		a.Describe = guarded()
	}
	s := newStage(t, a, func(c *Config) { c.Env.Trespasses, c.Fresh = true, true })
	s.entered(t)
	return s
}

// operation returns the operation of that name, a trespass or not.
func (s *stage) operation(t *testing.T, name string) load.Operation {
	t.Helper()
	ops, err := s.Operations(baseline())
	if err != nil {
		t.Fatal(err)
	}
	twins, err := s.Trespasses(baseline())
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Concat(ops, twins)
	i := slices.IndexFunc(all, func(o load.Operation) bool { return o.Name == name })
	if len(ops) != 1 || len(twins) != 1 || i < 0 || twins[0].Twin != "work" {
		t.Fatalf("operations %+v, trespasses %+v", ops, twins)
	}
	return all[i]
}

// count makes calls of an operation from several callers at once, and counts their outcomes.
func count(ctx context.Context, o load.Operation, calls int) map[load.Outcome]int {
	const callers = 8
	out, mu := map[load.Outcome]int{}, sync.Mutex{}
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for range calls / callers {
				r := o.Call(ctx, 0)
				mu.Lock()
				out[r.Outcome]++
				mu.Unlock()
			}
		})
	}
	all.Wait()
	return out
}

// TestTrespassesAreCounted: a program that permits one of a hundred is found, and one that permits none is not charged,
// also across a restart.
func TestTrespassesAreCounted(t *testing.T) {
	for name, permits := range map[string]int{"sound": 0, "one in a hundred": 100} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newGuard(t, actor{Permits: permits})
			defer s.close(t)
			work, forged := s.operation(t, "work"), s.operation(t, "forged")
			conditions := s.Conditions(baseline())
			if len(conditions) != 2 || conditions[0].Name != area.Restart || conditions[1].Name != area.Starved {
				t.Fatalf("conditions %+v", conditions)
			}
			for round := range 2 {
				want := map[load.Outcome]int{load.Denied: 400}
				if permits > 0 {
					want = map[load.Outcome]int{load.Denied: 396, load.Permitted: 4}
				}
				got := count(t.Context(), forged, 400)
				if got[load.Denied] != want[load.Denied] || got[load.Permitted] != want[load.Permitted] || len(got) != len(want) {
					t.Errorf("round %d: %v, want %v", round, got, want)
				}
				if got := count(t.Context(), work, 80); got[load.OK] != 80 {
					t.Errorf("round %d: work %v", round, got)
				}
				if _, err := conditions[0].Impose(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// TestRestartUnderLoad: calls that the restart cuts off decide nothing, and all others are refused.
func TestRestartUnderLoad(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	s := newGuard(t, actor{})
	defer s.close(t)
	forged := s.operation(t, "forged")
	done := make(chan map[load.Outcome]int)
	go func() { done <- count(t.Context(), forged, 4000) }()
	for range 3 {
		if _, err := s.Conditions(baseline())[0].Impose(t.Context()); err != nil {
			t.Error(err)
		}
	}
	got := <-done
	if got[load.Permitted] > 0 || got[load.Denied] < 3900 || got[load.Denied]+got[load.ConnFailed] != 4000 {
		t.Errorf("%v", got)
	}
}

// TestHangUnderLoad: calls to a program that hangs end with their context, and so does the run.
func TestHangUnderLoad(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	s := newGuard(t, actor{})
	s.grace = 200 * time.Millisecond
	forged := s.operation(t, "forged")
	child := s.process(s.first()).client.child
	if _, err := child.Freeze(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if got := count(ctx, forged, 16); got[load.ConnFailed] != 16 {
		t.Errorf("%v", got)
	}
	if err := s.Leave(t.Context(), baseline()); err != nil {
		t.Error(err)
	}
	s.close(t)
}

func TestJudgedCalls(t *testing.T) {
	trespass, work := Operation{Name: "forged", Trespass: "work"}, Operation{Name: "work"}
	for _, c := range []struct {
		name string
		o    Operation
		cost Cost
		want load.Outcome
	}{
		{"refused", trespass, Cost{Calls: 1, Refused: 1}, load.Denied},
		{"permitted", trespass, Cost{Calls: 1, Permitted: 1}, load.Permitted},
		{"not said", trespass, Cost{Calls: 1}, load.Failed},
		{"an error is no refusal", trespass, Cost{Calls: 1, Refused: 1, Total: map[string]float64{"error": 1}}, load.Failed},
		{"allowed", work, Cost{Calls: 1}, load.OK},
		{"refused what it must allow", work, Cost{Calls: 1, Refused: 1}, load.Wrong},
		{"an error", work, Cost{Calls: 1, Total: map[string]float64{"error": 1}}, load.Failed},
	} {
		if got := c.o.judge(c.cost); got.Outcome != c.want {
			t.Errorf("%s: %v, want %v", c.name, got.Outcome, c.want)
		}
	}
	for _, c := range []Cost{{Calls: 1, Refused: 1, Permitted: 1}, {Calls: 1, Refused: -1}, {Calls: 1, Permitted: 2}} {
		if err := c.valid(1, time.Second); err == nil {
			t.Errorf("%+v is valid", c)
		}
	}
}

// TestDescribedTrespasses: a trespass is asked for by guard alone, and it is one of an operation that must be allowed.
func TestDescribedTrespasses(t *testing.T) {
	d := guarded()
	if got := d.chosen(nil); slices.Contains(got, "forged") {
		t.Errorf("compare asks for %q", got)
	}
	f := d.Check([]string{"work", "forged"}, nil, nil)
	if len(f) != 1 || !strings.Contains(f[0].Message, "is a trespass") {
		t.Errorf("%+v", f)
	}
	for atOnce, says := range map[int]string{0: "one call at a time", 8: "up to 8 calls at once"} {
		d.AtOnce = atOnce
		if f := d.CheckGuard([]string{"work"}); len(f) != 1 || f[0].Severity != area.Info ||
			!strings.Contains(f[0].Message, says) {
			t.Errorf("%+v", f)
		}
	}
	good := goodDescription()
	if f := good.CheckGuard(nil); len(f) != 1 || f[0].Severity != area.Error {
		t.Errorf("no trespass: %+v", f)
	}
	for _, of := range []string{"nothing", "empty", "forged"} {
		bad := guarded()
		bad.Operations[2].Trespass = of
		if err := bad.valid(); err == nil {
			t.Errorf("a trespass of %q is valid", of)
		}
	}
}
