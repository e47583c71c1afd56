package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"tare/area"
	"tare/areas/admission/engine"
	"tare/areas/admission/own"
	"tare/internal/clock"
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

// templates are what an engine keeps of one template that the API server refuses until it has found a kind: only then
// does the engine define it, and only when the template changes.
type templates struct {
	dynamic.ResourceInterface

	clock *clock.Fake
	found time.Time
	is    map[string]any
	asked []time.Time // for a change
}

func (x *templates) Get(context.Context, string, v1.GetOptions, ...string) (*unstructured.Unstructured, error) {
	return &unstructured.Unstructured{Object: x.is}, nil
}

func (x *templates) Patch(_ context.Context, name string, as types.PatchType, body []byte, _ v1.PatchOptions,
	_ ...string,
) (*unstructured.Unstructured, error) {
	now := x.clock.Now()
	x.asked = append(x.asked, now)
	var change struct {
		Metadata struct{ Annotations map[string]string }
	}
	if err := json.Unmarshal(body, &change); err != nil || as != types.MergePatchType || name != "ban" ||
		len(change.Metadata.Annotations) != 1 {
		return nil, fmt.Errorf("%s of %s is no change of annotations alone: %s (%w)", as, name, body, err)
	}
	if now.After(x.found) {
		x.is["status"] = map[string]any{"created": true}
	}
	return nil, nil
}

// TestEnginesAreReminded: an engine waits twice as long after each refusal of the API server's; it is reminded of a
// template that was refused for want of a parameter's kind, but not on a cluster of the user's, where it takes longer.
func TestEnginesAreReminded(t *testing.T) {
	const refusal = "Could not update CRD: denied request: failed to configure policy: failed to find resource " +
		"referenced by paramKind: 'constraints.gatekeeper.sh/v1beta1, Kind=Ban'"
	try := func(says string, foreign bool) (took time.Duration, reminders int, err error) {
		now := clock.NewFake(time.Unix(0, 0))
		at := &templates{clock: now, found: now.Now().Add(30 * time.Second), is: map[string]any{
			"apiVersion": "templates.gatekeeper.sh/v1", "kind": "ConstraintTemplate", "metadata": map[string]any{"name": "ban"},
			"status": map[string]any{"byPod": []any{map[string]any{"errors": []any{map[string]any{"message": says}}}}},
		}}
		p := &arm{plan: plan{foreign: foreign}, env: area.Env{Clock: now}, policies: policies{own: &own.InForce{}}}
		err = p.awaitReadyIn(t.Context(), at, "ban", "ConstraintTemplate ban is not in force")
		return now.Now().Sub(time.Unix(0, 0)), len(at.asked), err
	}
	took, reminders, err := try(refusal, false)
	if err != nil || took > 30*time.Second+2*remindEvery || reminders < 10 || reminders > 16 {
		t.Errorf("in force after %v and %d reminders; the kind was found after 30 s: %v", took, reminders, err)
	}
	for what, c := range map[string]struct {
		says    string
		foreign bool
		within  string
	}{
		"on a user's cluster": {refusal, true, "is not in force after 2m0s: its engine says "},
		"for another reason":  {"rego_parse_error", false, "is not in force after 1m0s: its engine says "},
	} {
		_, reminders, err := try(c.says, c.foreign)
		if reminders != 0 || err == nil || !strings.Contains(err.Error(), c.within) {
			t.Errorf("%s: %d reminders, %v; want none, and %q", what, reminders, err, c.within)
		}
	}
}
