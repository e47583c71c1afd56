package admission

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"

	"tare/area"
	"tare/areas/plane"
	"tare/internal/design"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// TestMain lets this test binary be its own child, as tare's binary is, and ends what tests have left standing.
func TestMain(m *testing.M) {
	if name := areatest.ServerOfArgs(areaName); name != "" {
		areatest.Serve(Area{}, name)
	}
	code := hosttest.Sharing(m).Run()
	for _, s := range standings() {
		if err := s.end(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// treatment shortens the tests' many calls.
var treatment = areatest.Treatment

func testEnv(t testing.TB, operations ...string) area.Env {
	t.Helper()
	env := areatest.Env(t)
	env.Getenv, env.Operations = os.LookupEnv, operations
	return env
}

// requireBinary skips the test if no control plane of that release is built: tests do not build for minutes.
func requireBinary(t *testing.T, v plane.Version) {
	t.Helper()
	hosttest.SkipIfShort(t)
	if _, ok := plane.Cached(t.Context(), v, plane.Host{Log: slog.New(slog.DiscardHandler), Getenv: os.LookupEnv}); !ok {
		hosttest.Missing(t, fmt.Sprintf("no control plane of Kubernetes %s is built", v), hosttest.Plane)
	}
	hosttest.Place(t)
}

// opened opens spec, and at the end of the test closes it, which must undo all changes.
func opened(t *testing.T, spec *Spec, env area.Env) (*target, *areatest.Journal) {
	t.Helper()
	return areatest.Open[*target](t, Area{}, spec, env)
}

// armOf returns the arm of a treatment that has been prepared.
func armOf(t testing.TB, tg *target, tr design.Treatment) *arm {
	t.Helper()
	p, err := tg.arms.Of(tr)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// prepare prepares treatments.
func prepare(t *testing.T, tg *target, j area.Journal, treatments []design.Treatment) {
	t.Helper()
	for _, tr := range treatments {
		if err := tg.Prepare(t.Context(), tr, j); err != nil {
			t.Fatal(err)
		}
	}
}

// wantNotes fails the test unless notes hold all of some texts.
func wantNotes(t *testing.T, notes string, texts ...string) {
	t.Helper()
	for _, want := range texts {
		if !strings.Contains(notes, want) {
			t.Errorf("notes lack %q:\n%s", want, notes)
		}
	}
}
