package admission

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/area"
	"tare/areas/admission/mechanism"
	"tare/areas/plane"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/unit"
	"tare/rigs/hosttest"
)

// TestRestartedServer: a kube-apiserver that has been killed answers before its readyz says that it is ready, and then
// access control refuses callers who have the right. tare calls that by its name, nothing forbidden is admitted
// meanwhile, also not to an administrator, whom access control lets pass, and from readiness on all is as before.
func TestRestartedServer(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	requireBinary(t, plane.V136)
	for _, levels := range [][]string{{"mechanism", "vap"}, {"mechanism", "webhook"}} {
		tr := treatment(levels...)
		t.Run(tr.ID, func(t *testing.T) {
			tg := inForce(t, opened, &Spec{}, tr)
			p := armOf(t, tg, tr)
			ops, err := tg.Operations(tr)
			if err != nil {
				t.Fatal(err)
			}
			twins, err := tg.Trespasses(tr)
			if err != nil {
				t.Fatal(err)
			}
			path := p.prefix + resources()[0].path(p.namespace) + dryRunQuery
			var all sync.WaitGroup
			ready := make(chan struct{})
			all.Go(func() {
				admin := map[mechanism.Ruling]int{}
				for {
					select {
					case <-ready:
						t.Logf("of an administrator: %v", admin)
						return
					case <-time.After(10 * time.Millisecond):
					}
					a, err := p.setter.do(t.Context(), http.MethodPost, path, jsonType, p.forbiddenOf(p.operations[0])[0].Pod)
					if err == nil {
						admin[mechanism.RulingOf(a.status, a.body)]++
					}
					if err == nil && a.status == http.StatusCreated {
						t.Errorf("an administrator's forbidden pod is admitted")
					}
				}
			})
			all.Go(func() {
				defer close(ready)
				if err := p.control.RestartServer(t.Context()); err != nil {
					t.Error(err)
				}
			})
			seen := map[load.Outcome]uint64{}
			causes := offered(t, tg, tr, append(ops, twins...), 100, 6, func(_ load.Operation, o load.Outcome, n uint64) {
				seen[o] += n
			})
			all.Wait()
			t.Logf("%v: %q", seen, causes)
			if seen[load.Permitted] > 0 {
				t.Errorf("%d trespasses were permitted", seen[load.Permitted])
			}
			for _, why := range causes {
				if strings.Contains(why, "status 403") && !strings.Contains(why, p.rightless()) ||
					strings.Contains(why, "status 2") || strings.Contains(why, "status 422") {
					t.Errorf("not expected: %s", why)
				}
			}
			for _, c := range tg.Conditions(tr) {
				if c.Name != area.ColdStart {
					continue
				}
				if lift, err := c.Impose(t.Context()); err != nil || lift != nil || !c.Idle {
					t.Fatalf("cold: %v", err)
				}
				causes := offered(t, tg, tr, append(ops, twins...), 50, 3, func(op load.Operation, o load.Outcome, n uint64) {
					if want := map[bool]load.Outcome{true: load.OK, false: load.Denied}[op.Twin == ""]; o != want {
						t.Errorf("cold: %d of %s ended as %v", n, op.Name, o)
					}
				})
				if len(causes) > 0 {
					t.Errorf("cold: %q", causes)
				}
			}
			if p.webhook != nil {
				wantAfresh(t, tg, tr)
			}
		})
	}
}

// wantAfresh: Renew leaves no process of a treatment's, and policies in force.
func wantAfresh(t *testing.T, tg *target, tr design.Treatment) {
	t.Helper()
	p := armOf(t, tg, tr)
	processes := func() map[string]int {
		out := map[string]int{}
		for _, c := range p.control.Processes() {
			out[c.Name] = c.PID
		}
		if p.webhook != nil {
			out["webhook"] = p.webhook.PID
		}
		for _, e := range p.engines {
			out[e.kind.Name] = e.PID
		}
		return out
	}
	before := processes()
	if did, err := tg.Can().Renew(t.Context(), tr); !did || err != nil {
		t.Fatalf("start afresh: %v, %v", did, err)
	}
	after := processes()
	for name, pid := range before {
		if after[name] == pid || after[name] == 0 {
			t.Errorf("%s is process %d, and was process %d", name, after[name], pid)
		}
	}
	if err := tg.Verify(t.Context(), tr); err != nil {
		t.Error(err)
	}
}

// wantLeftAlone: Renew does nothing.
func wantLeftAlone(t *testing.T, tg *target, tr design.Treatment) {
	t.Helper()
	before := armOf(t, tg, tr).engines[0].PID
	if did, err := tg.Can().Renew(t.Context(), tr); did || err != nil {
		t.Errorf("started afresh: %v, %v", did, err)
	}
	if after := armOf(t, tg, tr).engines[0].PID; after != before {
		t.Errorf("the engine is process %d, and was process %d", after, before)
	}
}

// TestWhatIsStartedAfresh: control planes of the treatments' own and the engines beside them, unless a scheduler or
// what looks at all that exists would have to begin anew, and all of them or none.
func TestWhatIsStartedAfresh(t *testing.T) {
	t.Parallel()
	own, engines := Spec{Bundle: "testdata/bundle"}, Spec{Bundle: "testdata/gatekeeper"}
	vap := treatment("mechanism", "vap")
	for name, c := range map[string]struct {
		spec       Spec
		treatments []design.Treatment
		want       time.Duration
	}{
		"two planes":             {Spec{}, []design.Treatment{treatment(), vap}, 2 * planeAfresh},
		"policies of the user's": {own, []design.Treatment{treatment()}, planeAfresh},
		"a shared plane":         {Spec{Embedded: &Embedded{Shared: true}}, []design.Treatment{treatment()}, 0},
		"nodes":                  {Spec{Embedded: &Embedded{Nodes: 2}}, []design.Treatment{treatment()}, 0},
		"an engine":              {engines, []design.Treatment{treatment()}, planeAfresh + engineAfresh},
		"an engine under one alone": {
			engines, []design.Treatment{treatment("bundle", "none"), treatment()}, 2*planeAfresh + engineAfresh,
		},
		"an engine that audits": {
			Spec{Bundle: "testdata/gatekeeper", Audit: unit.Duration(time.Second)}, []design.Treatment{treatment()}, 0,
		},
		"an engine that generates beside another": {
			engines, []design.Treatment{treatment(), treatment("bundle", "testdata/generating")}, 0,
		},
	} {
		if got := c.spec.Says().Afresh(c.treatments); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestPlanesStartAtOneTime: the first treatment that is prepared has the control planes of all started, and what is
// still being started when the target is closed leaves nothing.
func TestPlanesStartAtOneTime(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	requireBinary(t, plane.V136)
	env := testEnv(t)
	env.Treatments = []design.Treatment{treatment(), treatment("mechanism", "psa")}
	t.Run("closed", func(t *testing.T) {
		tg, j := opened(t, &Spec{}, env)
		if err := tg.Prepare(t.Context(), env.Treatments[0], j); err != nil {
			t.Fatal(err)
		}
		if n := len(j.Folders()); n != len(env.Treatments) {
			t.Errorf("%d control planes were begun, want %d", n, len(env.Treatments))
		}
	})
	t.Run("interrupted", func(t *testing.T) {
		tg, j := opened(t, &Spec{}, env)
		ctx, cancel := context.WithCancel(t.Context())
		j.Deny = func(c area.Change) error {
			if c.Kind != changeFolder { // the first process of a control plane
				cancel()
			}
			return nil
		}
		if err := tg.Prepare(ctx, env.Treatments[0], j); !errors.Is(err, context.Canceled) {
			t.Errorf("prepared: %v", err)
		}
		if err := tg.Close(t.Context()); err != nil {
			t.Error(err)
		}
		j.WantAllUndone(t)
	})
}
