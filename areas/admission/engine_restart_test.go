package admission

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"tare/area"
	"tare/areas/admission/engine"
	"tare/internal/design"
	"tare/internal/load"
	"tare/rigs/hosttest"
)

// TestEnginesAreRestarted: the condition engine-restart ends the engine's own process. Of Gatekeeper
// TestGatekeeperConstraints tries it.
func TestEnginesAreRestarted(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	besideKyverno.take(t)
	wantRestarted(t, besideKyverno.target, besideKyverno.with, engine.Kyverno, load.Failed)
}

// wantRestarted: while the engine is away, what it denies is permitted where its webhook's failurePolicy is Ignore, and
// fails where it is Fail. Once the condition has ended, it is denied again.
func wantRestarted(t *testing.T, tg *target, with design.Treatment, kind *engine.Kind, away load.Outcome) {
	t.Helper()
	if err := errors.Join(tg.Enter(t.Context(), with), tg.Verify(t.Context(), with)); err != nil {
		t.Fatal(err)
	}
	twins, err := tg.Trespasses(with)
	if err != nil {
		t.Fatal(err)
	}
	p := armOf(t, tg, with)
	twin := twins[slices.IndexFunc(twins, func(o load.Operation) bool { return strings.Contains(o.Name, "no-host-") })]
	outcome := func() load.Outcome {
		a, err := p.asker.send(t.Context(), twin.Wire.Render(nil, 0), true)
		if err != nil {
			t.Fatal(err)
		}
		return twin.Wire.Check(0, a.status, a.body)
	}
	conditions := tg.Conditions(with)
	if !slices.ContainsFunc(conditions, func(x area.Condition) bool {
		return x.Name == area.Restart && x.Title == "restart of kube-apiserver"
	}) {
		t.Errorf("the title of restart does not say what is started again: %+v", conditions)
	}
	i := slices.IndexFunc(conditions, func(x area.Condition) bool { return x.Name == engineRestart })
	if i < 0 || conditions[i].Title != "restart of "+kind.Title {
		t.Fatalf("conditions %+v", conditions)
	}
	before, pid := p.env.Clock.Now(), p.engines[0].PID
	lift, err := conditions[i].Impose(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got := outcome(); got != away {
		t.Errorf("while %s is away, %s ends as %v, want %v", kind.Title, twin.Name, got, away)
	}
	if err := lift(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Logf("it was away for %v", p.env.Clock.Now().Sub(before))
	if got := outcome(); got != load.Denied || p.engines[0].PID == pid {
		t.Errorf("afterwards %s ends as %v; process %d, before %d", twin.Name, got, p.engines[0].PID, pid)
	}
	if err := tg.Verify(t.Context(), with); err != nil {
		t.Error(err)
	}
	if err := tg.Leave(t.Context(), with); err != nil {
		t.Error(err)
	}
}
