package admission

import (
	"net/http"
	"strings"
	"testing"

	"tare/area"
	"tare/areas/admission/mechanism"
	"tare/areas/plane"
	"tare/internal/design"
	"tare/internal/load"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// TestForbiddenUpdates: updates and patches, also of Deployments, have twins by the same caller, as dry runs, of the
// same size, with what the last policy denies and without the number that the others write.
func TestForbiddenUpdates(t *testing.T) {
	_, p := guardingArm(t, mechanism.VAP)
	for _, o := range operations() {
		if !o.guarded() || o.startup() {
			continue
		}
		p.operations = []operation{o}
		good := wires(t, p)[0]
		twins, err := p.trespasses()
		if err != nil || len(twins) != 1 || twins[0].Twin != o.name || twins[0].Name != o.forbidden() {
			t.Fatalf("%s: %+v, %v", o.name, twins, err)
		}
		r, body := requestOf(t, twins[0].Wire)
		allowed, legitimate := requestOf(t, good.Wire)
		if r.Method != allowed.Method || r.URL.Query().Get("dryRun") != "All" ||
			r.Header.Get("Content-Type") != allowed.Header.Get("Content-Type") ||
			r.Header.Get("Authorization") != "Bearer hunter2" || o.verb != verbCreate && r.URL.Path != allowed.URL.Path {
			t.Errorf("%s: %s %s %v, of %s %s", o.name, r.Method, r.URL, r.Header, allowed.Method, allowed.URL)
		}
		if !strings.Contains(string(body), `"tare.dev/deny":"c-relevant-00002"`) || strings.Contains(string(body), callAnnotation) {
			t.Errorf("%s: %s", o.name, body)
		}
		if o.resource.kind == "Pod" && len(body) != len(legitimate) {
			t.Errorf("%s: %d bytes, want %d:\n%s\n%s", o.name, len(body), len(legitimate), body, legitimate)
		}
	}
	for _, name := range []string{"get-pod", "list-pod", "delete-pod", "create-configmap", "patch-configmap-dry-run"} {
		p.operations, _ = chosen([]string{name})
		if twins, err := p.trespasses(); err != nil || len(twins) > 0 {
			t.Errorf("%s: %d trespasses, %v; want none", name, len(twins), err)
		}
	}
}

// TestNothingToDeny: an operation no form of which a mechanism denies is an error, and no breach.
func TestNothingToDeny(t *testing.T) {
	for _, k := range []mechanism.Kind{mechanism.PSA, mechanism.PSP} {
		for name, says := range map[string]string{
			"create-deployment": "denies pods, and not the Deployments", "update-deployment-dry-run": "denies pods, and not",
			"update-pod": "rejects as invalid", "patch-pod-dry-run": "rejects as invalid",
		} {
			tg, p := guardingArm(t, k)
			p.operations, _ = chosen([]string{name})
			if _, err := tg.Trespasses(treatment()); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %s: %v, want %q", k, name, err, says)
			}
			if err := p.checkOperations(p.operations, true); err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %s: %v, want %q", k, name, err, says)
			}
			if err := p.checkOperations(p.operations, false); err != nil {
				t.Errorf("%s: %s without trespasses: %v", k, name, err)
			}
		}
	}
}

// inForce has a target that asks for trespasses opened, and puts a treatment in force.
func inForce(t *testing.T, open func(*testing.T, *Spec, area.Env) (*target, *areatest.Journal), s *Spec,
	tr design.Treatment, operations ...string,
) *target {
	t.Helper()
	env := testEnv(t, operations...)
	env.Trespasses = true
	tg, j := open(t, s, env)
	if err := tg.Prepare(t.Context(), tr, j); err != nil {
		t.Fatal(err)
	}
	if err := tg.Enter(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	return tg
}

// TestTrespassesAreDenied offers the trespasses of all operations beside the operations to real policies: all are
// denied, and nothing forbidden is stored.
func TestTrespassesAreDenied(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	requireBinary(t, plane.V136)
	all := []string{
		"create-pod", "update-pod", "patch-pod", "create-deployment-dry-run", "update-deployment", "patch-deployment",
		startupName,
	}
	var shared map[string]*control // of the first
	open := func(_ *testing.T, s *Spec, env area.Env) (*target, *areatest.Journal) {
		tg, j := opened(t, s, env)
		if shared == nil {
			shared = tg.controls.shared
		}
		tg.controls.shared = shared
		return tg, j
	}
	for _, c := range []struct {
		operations []string
		levels     []string
	}{
		{all, []string{"mechanism", "vap", "policies", "2"}},
		{all, []string{"mechanism", "webhook", "policies", "2"}},
		{all, []string{"mechanism", "mutating-webhook"}},
		{[]string{"create-pod", startupName}, []string{"mechanism", "psa"}},
	} {
		tr := treatment(c.levels...)
		t.Run(tr.ID, func(t *testing.T) {
			tg := inForce(t, open, &Spec{Embedded: &Embedded{Nodes: 1, Shared: true}, Objects: 10}, tr, c.operations...)
			if err := tg.Verify(t.Context(), tr); err != nil {
				t.Fatal(err)
			}
			ops, err := tg.Operations(tr)
			if err != nil {
				t.Fatal(err)
			}
			twins, err := tg.Trespasses(tr)
			if err != nil || len(twins) != len(c.operations) {
				t.Fatalf("%d trespasses, %v", len(twins), err)
			}
			seen := map[string]uint64{}
			causes := offered(t, tg, tr, append(ops, twins...), 40, 5, func(op load.Operation, o load.Outcome, n uint64) {
				seen[op.Name+" "+o.String()] += n
				want := load.OK
				if op.Twin != "" {
					want = load.Denied
				}
				if o != want && o != load.Timeout { // a busy host may not answer within 20 s
					t.Errorf("%d of %s ended as %v", n, op.Name, o)
				}
			})
			for _, op := range ops {
				if seen[op.Name+" ok"] == 0 {
					t.Errorf("no %s ended well: %v %v", op.Name, seen, causes)
				}
			}
			for _, op := range twins {
				if seen[op.Name+" denied"] == 0 {
					t.Errorf("no %s was denied: %v %v", op.Name, seen, causes)
				}
			}
			p := armOf(t, tg, tr)
			for _, what := range []string{"pods", "deployments"} {
				path := p.prefix + resources()[0].path(p.namespace)
				if what == "deployments" {
					path = p.prefix + resources()[1].path(p.namespace)
				}
				a, err := p.setter.do(t.Context(), http.MethodGet, path, "", nil)
				if err != nil || a.status != http.StatusOK || strings.Contains(string(a.body), `"privileged":true`) ||
					strings.Contains(string(a.body), mechanism.DenyLabel+`":`) {
					t.Errorf("%s: %d, %v: something forbidden is stored", what, a.status, err)
				}
			}
		})
	}
}

// TestUpdatesThatNobodyDenies: of manifests that look at created pods only, the rehearsal says that the forbidden
// update is admitted, before it could be called a breach. What Pod Security would deny in an update is invalid before.
func TestUpdatesThatNobodyDenies(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	t.Run("manifests", wantForbiddenUpdateAdmitted)
	t.Run("psa", wantForbiddenUpdateInvalid)
}

func wantForbiddenUpdateAdmitted(t *testing.T) {
	s := &Spec{
		Objects:   5,
		Manifests: &Manifests{Before: "testdata/manifests/before", Bad: "testdata/manifests/bad.yaml"},
	}
	tr := treatment("mechanism", "manifests")
	tg := inForce(t, openedShared, s, tr, "create-pod-dry-run", "patch-deployment-dry-run")
	err := tg.Verify(t.Context(), tr)
	if err == nil || !strings.Contains(err.Error(), "patch-forbidden-deployment-dry-run") ||
		!strings.Contains(err.Error(), "leave patch-deployment-dry-run out") {
		t.Errorf("verify: %v", err)
	}
	if err := tg.Leave(t.Context(), tr); err != nil {
		t.Error(err)
	}
}

func wantForbiddenUpdateInvalid(t *testing.T) {
	tr := treatment("mechanism", "psa")
	tg := inForce(t, openedShared, &Spec{Objects: 5}, tr, "create-pod-dry-run")
	p := armOf(t, tg, tr)
	body, err := p.create(t.Context(), p.maker, resources()[0], "stored")
	if err != nil {
		t.Fatal(err)
	}
	changed := strings.Replace(string(body), `"allowPrivilegeEscalation":false`, `"privileged":true`, 1)
	if changed == string(body) {
		t.Fatalf("nothing to change in %s", body)
	}
	a, err := p.setter.do(t.Context(), http.MethodPut, p.prefix+resources()[0].path(p.namespace)+"/stored"+dryRunQuery,
		jsonType, []byte(changed))
	if err != nil || a.status != http.StatusUnprocessableEntity ||
		mechanism.RulingOf(a.status, a.body) != mechanism.NoRuling {
		t.Errorf("a pod that is made privileged: %d %s, %v; want 422 without a ruling", a.status, a.message(), err)
	}
}
