package admission

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/areas/admission/mechanism"
	"tare/areas/plane"
	"tare/internal/design"
	"tare/internal/load"
	"tare/rigs/hosttest"
)

// TestFailurePolicyOfVAP reproduces what is known: a policy whose parameter is missing, or whose expression ends in an
// error, lets everything pass with failurePolicy Ignore, and with Fail rejects everything without having decided it.
func TestFailurePolicyOfVAP(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	requireBinary(t, plane.V136)
	env := testEnv(t, "create-pod-dry-run")
	env.Trespasses = true
	tg, j := opened(t, &Spec{Mechanism: "vap", VAP: &VAP{Param: true}}, env)
	for policy, want := range map[string][2]load.Outcome{ // of a legitimate call, and of a trespass
		mechanism.Ignore: {load.OK, load.Permitted}, mechanism.Fail: {load.Failed, load.Failed},
	} {
		tr := treatment("vap_failure_policy", policy)
		if err := tg.Prepare(t.Context(), tr, j); err != nil {
			t.Fatal(err)
		}
		for _, step := range []func() error{
			func() error { return tg.Enter(t.Context(), tr) }, func() error { return tg.Verify(t.Context(), tr) },
		} {
			if err := step(); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range tg.Conditions(tr) {
			if c.Name != area.Partition {
				continue
			}
			lift, err := c.Impose(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			wantOutcomes(t, tg, tr, policy+", no parameter", want)
			if err := lift(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		wantOutcomes(t, tg, tr, policy+", the parameter is back", [2]load.Outcome{load.OK, load.Denied})
		p := armOf(t, tg, tr)
		path := p.prefix + "/api/v1/namespaces/" + p.namespace + "/configmaps/" + mechanism.Param(p.scope()).GetName()
		if err := p.set(t.Context(), http.MethodPatch, path, patchType, []byte(`{"data":{"enforce":null,"x":"y"}}`)); err != nil {
			t.Fatal(err)
		}
		wantOutcomes(t, tg, tr, policy+", a missing field", want)
		if err := tg.Leave(t.Context(), tr); err != nil {
			t.Fatal(err)
		}
	}
}

// wantOutcomes waits until calls and trespasses end like this, and then offers load that must all do so.
func wantOutcomes(t *testing.T, tg *target, tr design.Treatment, when string, want [2]load.Outcome) {
	t.Helper()
	ops, err := tg.Operations(tr)
	if err != nil {
		t.Fatal(err)
	}
	twins, err := tg.Trespasses(tr)
	if err != nil {
		t.Fatal(err)
	}
	p := armOf(t, tg, tr)
	for begin := time.Now(); ; time.Sleep(50 * time.Millisecond) { // the API server notices a little later
		good, err := p.asker.send(t.Context(), ops[0].Wire.Render(nil, 0), true)
		if err != nil {
			t.Fatal(err)
		}
		bad, err := p.asker.send(t.Context(), twins[0].Wire.Render(nil, 0), true)
		if err != nil {
			t.Fatal(err)
		}
		if ops[0].Wire.Check(0, good.status, good.body) == want[0] &&
			twins[0].Wire.Check(0, bad.status, bad.body) == want[1] {
			break
		}
		if time.Since(begin) > settleWithin {
			t.Fatalf("%s: %d %s; %d %s", when, good.status, good.message(), bad.status, bad.message())
		}
	}
	seen := map[string]uint64{}
	causes := offered(t, tg, tr, append(ops, twins...), 40, 2, func(op load.Operation, o load.Outcome, n uint64) {
		seen[op.Name+" "+o.String()] += n
		if op.Twin == "" && o != want[0] || op.Twin != "" && o != want[1] {
			t.Errorf("%s: %d of %s ended as %v", when, n, op.Name, o)
		}
	})
	t.Logf("%s: %v %q", when, seen, causes)
	if want[0] == load.Failed && !strings.Contains(strings.Join(causes, " "), "an admission policy or webhook failed") {
		t.Errorf("%s: %q", when, causes)
	}
}
