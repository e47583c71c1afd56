package decision

import (
	"errors"
	"testing"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/internal/design"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// TestMain lets this test binary be its own child, as tare's binary is.
func TestMain(m *testing.M) {
	if name := areatest.ServerOfArgs(areaName); name != "" {
		areatest.Serve(Area{}, name)
	}
	hosttest.Main(m)
}

var standard = design.Treatment{ID: "default"}

func testEnv(t testing.TB, secrets ...string) area.Env {
	t.Helper()
	env := areatest.Env(t)
	env.Getenv = func(name string) (string, bool) {
		for i := 0; i+1 < len(secrets); i += 2 {
			if secrets[i] == name {
				return secrets[i+1], true
			}
		}
		return "", false
	}
	return env
}

// requireEngine finds an engine, and skips the test where this host cannot have it.
func requireEngine(t *testing.T, k engine.Kind, env area.Env) engine.Launch {
	t.Helper()
	l, err := engine.Find(t.Context(), k, host(env))
	if missing := new(engine.Missing); errors.As(err, &missing) {
		hosttest.Missing(t, missing.Reason, missing.Next)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// opened opens spec, and at the end of the test closes it, which must undo all changes.
func opened(t testing.TB, spec *Spec, env area.Env) (*target, *areatest.Journal) {
	t.Helper()
	return areatest.Open[*target](t, Area{}, spec, env)
}

// prepared opens spec and prepares the standard treatment.
func prepared(t testing.TB, spec *Spec) (*target, *areatest.Journal) {
	t.Helper()
	tg, j := opened(t, spec, testEnv(t))
	if err := tg.Prepare(t.Context(), standard, j); err != nil {
		t.Fatal(err)
	}
	return tg, j
}

func embedded(k engine.Kind, planted Planted) *Spec {
	s := &Spec{Embedded: &Embedded{Engine: k}}
	if planted != (Planted{}) {
		s.Embedded.Planted = &planted
	}
	return s
}

// arm is what Prepare made for a treatment.
func (t *target) arm(id string) *arm {
	a, _ := t.arms.Of(design.Treatment{ID: id})
	return a
}
