package admission

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/areas/admission/engine"
	"tare/areas/admission/own"
	"tare/areas/plane"
	"tare/internal/load"
	"tare/internal/probe"
	"tare/rigs/hosttest"
)

// TestGenerations: a real Kyverno generates what policies say, which proves them; what it generates during a trial is
// gone when the next begins.
func TestGenerations(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	requireBinary(t, plane.V136)
	requireEngine(t, engine.Kyverno)
	requireEngine(t, engine.Kyverno.Background)
	env, tr := testEnv(t, "create-pod"), treatment("bundle", "testdata/generating")
	env.Treatments = []area.Treatment{tr}
	tg, j := opened(t, &Spec{Network: true}, env)
	if err := errors.Join(tg.Prepare(t.Context(), tr, j), tg.Enter(t.Context(), tr),
		tg.Verify(t.Context(), tr)); err != nil {
		t.Fatal(err)
	}
	p := armOf(t, tg, tr)
	for name, want := range map[string]string{
		"isolate-namespaces": "NetworkPolicy deny-by-default", "describe-pods": "ConfigMap about-",
		"describe-accounts": "ConfigMap account-", "generates-a-vpa": "VerticalPodAutoscaler ", "quota-for-teams": "",
	} {
		if got := p.policies.shown[name]; got == "" != (want == "") || !strings.HasPrefix(got, want) {
			t.Errorf("%s is shown by %q, want %q", name, got, want)
		}
	}
	notes := strings.Join(tg.Notes(), "\n")
	wantNotes(t, notes,
		"Kyverno's background controller runs beside it",
		"4 of them have objected to a request that tare made for it, or have generated an object",
		"1 policy without a proof: nothing that tare tries meets an objection or an object of theirs",
		"they act is not shown: quota-for-teams", "tare has defined the kind VerticalPodAutoscaler, whose",
		"stand for the whole run",
	)
	wantLeftAlone(t, tg, tr)
	if !slices.ContainsFunc(tg.Probes(tr), func(p probe.Probe) bool { return p.Subject() == "kyverno-background" }) {
		t.Error("nothing reads what Kyverno's background controller uses")
	}
	standing := len(p.policies.standing)
	if left, err := p.generated(t.Context()); err != nil || len(left) != standing || standing > 0 {
		t.Errorf("what was generated for the proof is left: %v, %v", left, err)
	}
	ops, err := tg.Operations(tr)
	if err != nil {
		t.Fatal(err)
	}
	if a, err := p.asker.send(t.Context(), ops[0].Wire.Render(nil, 0), false); err != nil ||
		ops[0].Wire.Check(0, a.status, a.body) != load.OK {
		t.Errorf("%d %s, %v", a.status, a.message(), err)
	}
	if err := p.awaitWithin(t.Context(), generatedWithin, "nothing is generated", func() error {
		all, err := p.generated(t.Context())
		if err == nil && len(all) == standing {
			err = errUnfinished
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	if err := tg.Leave(t.Context(), tr); err != nil {
		t.Error(err)
	}
	all, err := p.generated(t.Context())
	if err != nil || len(all) != standing {
		t.Errorf("%d objects are left that were generated, %v; before there were %d", len(all), err, standing)
	}
}

// TestTriggers: what is created for policies that generate is some of what they are about, and nothing that might ask
// another server by itself.
func TestTriggers(t *testing.T) {
	set, err := own.Read("testdata/generating", false)
	if err != nil {
		t.Fatal(err)
	}
	var policies []*own.Policy
	for i := range set.Policies {
		policies = append(policies, &set.Policies[i])
	}
	p := &arm{plan: plan{spec: &Spec{}}, namespace: "n"}
	pod := own.Request{Name: "pod", Version: "v1", Resource: "pods", Kind: "Pod"}
	asks := own.Request{Name: "policy", Group: "kyverno.io", Version: "v1", Resource: "pods", Kind: "Policy"}
	f := finding{requests: []own.Request{asks, pod, pod}, refused: map[int]bool{1: true}}
	for range 2 * mostTriggers {
		f.requests = append(f.requests, own.Request{Name: "d", Group: "apps", Version: "v1", Resource: "deployments"})
	}
	p.policies.finding = f
	n := map[string]int{}
	for _, trigger := range p.triggers(policies) {
		n[trigger.Name]++
	}
	if d := cmp.Diff(map[string]int{"pod": 1, "d": mostTriggers, "a namespace": 1}, n); d != "" {
		t.Error(d)
	}
}
