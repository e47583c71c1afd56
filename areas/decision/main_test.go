package decision

import (
	"errors"
	"os"
	"strings"
	"testing"
	"time"

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

// requireEngine finds an engine that must be built, for the environment that it returns. It skips the test where this
// host cannot have it.
func requireEngine(t *testing.T, k engine.Kind) (area.Env, engine.Launch) {
	t.Helper()
	hosttest.SkipIfShort(t)
	env := testEnv(t)
	env.Getenv = os.LookupEnv
	l, err := engine.Find(t.Context(), k, host(env))
	if missing := new(engine.Missing); errors.As(err, &missing) {
		hosttest.Missing(t, missing.Reason, missing.Next)
	}
	if err != nil {
		t.Fatal(err)
	}
	return env, l
}

// opened opens spec, and at the end of the test closes it, which must undo all changes.
func opened(t testing.TB, spec *Spec, env area.Env) (*target, *areatest.Journal) {
	t.Helper()
	return areatest.Open[*target](t, Area{}, spec, env)
}

// preparedIn opens spec in an environment and prepares the standard treatment.
func preparedIn(t testing.TB, spec *Spec, env area.Env) (*target, *areatest.Journal) {
	t.Helper()
	tg, j := opened(t, spec, env)
	if err := tg.Prepare(t.Context(), standard, j); err != nil {
		t.Fatal(err)
	}
	return tg, j
}

func prepared(t testing.TB, spec *Spec) (*target, *areatest.Journal) {
	t.Helper()
	return preparedIn(t, spec, testEnv(t))
}

// verifiedIn also verifies it.
func verifiedIn(t testing.TB, spec *Spec, env area.Env) (*target, *areatest.Journal) {
	t.Helper()
	tg, j := preparedIn(t, spec, env)
	if err := tg.Verify(t.Context(), standard); err != nil {
		t.Fatal(err)
	}
	return tg, j
}

// tried returns why spec cannot be prepared, or not be verified.
func tried(t testing.TB, spec *Spec, env area.Env) (*target, error) {
	t.Helper()
	tg, j := opened(t, spec, env)
	tg.warmth = rehearsal{workers: 2, calls: 200, within: 20 * time.Second}
	if err := tg.Prepare(t.Context(), standard, j); err != nil {
		return tg, err
	}
	return tg, tg.Verify(t.Context(), standard)
}

// said reports whether an error says what is wanted; where nothing is wanted, whether there is no error.
func said(err error, want string) bool {
	return (err == nil) == (want == "") && (err == nil || strings.Contains(err.Error(), want))
}

// sampled reads a treatment's probes, by metric.
func sampled(t testing.TB, tg *target, tr design.Treatment) map[string]float64 {
	t.Helper()
	out := map[string]float64{}
	for _, p := range tg.Probes(tr) {
		samples, err := p.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range samples {
			if p.Subject() == subject && s.Subject != subject {
				t.Errorf("%s is about %s", s.Metric, s.Subject)
			}
			out[s.Metric] = s.Value
		}
	}
	return out
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
