package admission

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/own"
	"tare/areas/plane"
	"tare/internal/design"
	"tare/internal/load"
	"tare/rigs/hosttest"
)

// TestOwnPolicies: policies that tare did not write are put in force as they are, in the run's namespace only; each is
// proved by a request that it objects to, or named as one without a proof.
func TestOwnPolicies(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	requireBinary(t, plane.V136)
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprint("shared ", shared), func(t *testing.T) {
			env := testEnv(t, "create-pod-dry-run")
			env.Trespasses = true
			with := treatment("bundle", "testdata/bundle")
			spec := &Spec{Embedded: &Embedded{Shared: shared}, Requests: "testdata/requests"}
			env.Treatments = []area.Treatment{with}
			if shared {
				env.Treatments = []area.Treatment{treatment("bundle", "none"), with}
			}
			tg, j := opened(t, spec, env)
			prepare(t, tg, j, env.Treatments)
			wantConfirmed(t, armOf(t, tg, with), "pod privileged")
			wantTried(t, tg, with)
			wantTwoTrials(t, tg, env.Treatments...)
			twins, err := tg.Trespasses(with)
			if err != nil || len(twins) != 2 {
				t.Errorf("trespasses %+v, %v", twins, err)
			}
			for i, name := range []string{"no-privileged", "few-containers"} {
				if twins[i].Name != "create-forbidden-pod-dry-run/"+name ||
					twins[i].Expect != "a denial by policy "+name+" of testdata/bundle" {
					t.Errorf("a trespass %+v, want one of %s", twins[i], name)
				}
			}
			p := armOf(t, tg, with)
			shown := map[string]string{
				"no-privileged": "pod privileged", "few-containers": "pod with a bare second container",
				"warns-of-latest": "pod of the tag latest", "no-nodeport": "service of type NodePort",
				"known-by-name": "your Pod known of testdata/requests/pod.yaml:1", "sets-a-label": "pod as the measured one",
				"marks-latest": "pod of the tag latest",
			}
			for name, request := range shown {
				if p.policies.shown[name] != request {
					t.Errorf("%s is shown by %q, want %q", name, p.policies.shown[name], request)
				}
			}
			notes := strings.Join(tg.Notes(), "\n")
			wantNotes(t, notes,
				"about the policies that these try, and no others: few-containers (pod with a bare second container), "+
					"no-privileged (pod privileged)",
				"9 policies in force, in the run's namespace only; 7 of them have objected to a request that tare made for "+
					"it, or have changed one",
				"2 policies without a proof", "is not shown: changes-nothing, nothing-like-it",
				"not in these numbers: no-nodeport", "testdata/bundle: applied to requests that others change as well, which "+
					"came back the same without each of these, or were not tried without: changes-nothing",
				`the measured pod comes back changed: metadata.labels.team = "NAMESPACE"`,
				"not in force, since no binding names it: unbound", "tare has defined the kind Limit",
				"left aside, and not in these numbers: ValidatingWebhookConfiguration a-webhook",
			)
			if shared {
				proveAA(t, tg, j, with)
				return
			}
			t.Run("elsewhere", func(t *testing.T) { wantElsewhereAdmitted(t, p) })
			t.Run("lost", func(t *testing.T) {
				wantLostSeen(t, tg, with, p, "validatingadmissionpolicybindings/"+p.namespace+".warns-of-latest",
					"1 policy no longer objects to what it objected to: warns-of-latest")
			})
			t.Run("unchanged", func(t *testing.T) {
				wantLostSeen(t, tg, with, p, "mutatingadmissionpolicybindings/"+p.namespace+".sets-a-label",
					`sets-a-label no longer changed a pod as the measured one as before: metadata.labels.team = "NAMESPACE"`)
			})
		})
	}
}

// proveAA has the A/A arm of a treatment prove its policies, too: by the same requests, about a namespace of its own.
func proveAA(t *testing.T, tg *target, j area.Journal, of area.Treatment) {
	t.Helper()
	aa := of
	aa.ID, aa.Control, aa.Of = "aa", area.AA, of.ID
	if err := errors.Join(tg.Prepare(t.Context(), aa, j), tg.Enter(t.Context(), aa),
		tg.Verify(t.Context(), aa), tg.Leave(t.Context(), aa)); err != nil {
		t.Fatal(err)
	}
	p, first := armOf(t, tg, aa), armOf(t, tg, of)
	if d := cmp.Diff(first.policies.shown, p.policies.shown); d != "" {
		t.Errorf("the A/A arm proves other policies than the arm that it repeats: %s", d)
	}
	own := 0
	for i, r := range p.policies.finding.requests {
		if r.Name != first.policies.finding.requests[i].Name || bytes.Contains(r.Body, []byte(first.namespace+`"`)) {
			t.Errorf("%s of the A/A arm is about the arm that it repeats: %s", r.Name, r.Body)
		}
		if bytes.Contains(r.Body, []byte(p.namespace+`"`)) {
			own++
		}
	}
	if own == 0 {
		t.Error("no request of the A/A arm names its namespace")
	}
}

// TestRefusedPolicyIsShown: what the API server alone finds in a policy is said with its place in the user's file.
func TestRefusedPolicyIsShown(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	text, err := os.ReadFile("testdata/bundle/pods.yaml")
	if err != nil {
		t.Fatal(err)
	}
	at := filepath.Join(t.TempDir(), "p.yaml")
	first := strings.Join(strings.SplitAfterN(string(text), "---\n", 3)[:2], "") // the policy and its binding
	bad := strings.Replace(first, "\nspec:", "\nspec:\n  matchConditions: [{name: a b, expression: 'true'}]", 1)
	if err := os.WriteFile(at, []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	env, tr := testEnv(t, "create-pod-dry-run"), treatment("bundle", at)
	env.Treatments = []area.Treatment{tr}
	tg, j := openedShared(t, &Spec{}, env)
	if err := tg.Prepare(t.Context(), tr, j); err == nil || !strings.Contains(err.Error(), at+":3: create "+
		"ValidatingAdmissionPolicy ") {
		t.Errorf("%v, want the policy's place", err)
	}
}

// wantTried: what no trespass tries of the policies that deny is said, with the reason, before the load.
func wantTried(t *testing.T, tg *target, tr design.Treatment) {
	t.Helper()
	rulings, err := tg.Rulings(t.Context())
	want := []string{
		"1 policy not tried (about neither pods nor Deployments): no-nodeport",
		"1 policy not tried (no pod that tare asks for is denied; requests: FILE names more): nothing-like-it",
		"1 policy not tried (no operation of the load has a form that is denied, of 120 pods at most): known-by-name",
	}
	if is := rulings[tr.ID].Unasked; err != nil || !slices.Equal(is, want) {
		t.Errorf("not tried: %q, %v; want %q", is, err, want)
	}
}

// wantConfirmed asks again for a request that the policies refuse, wherever they are in force.
func wantConfirmed(t *testing.T, p *arm, request string) {
	t.Helper()
	if err := p.settle(t.Context(), map[string]bool{request: true}); err != nil {
		t.Fatal(err)
	}
	want := area.Ruling{Request: request, Refused: true}
	if got := p.rulings(); !slices.ContainsFunc(got, func(r area.Ruling) bool { return reflect.DeepEqual(r, want) }) {
		t.Errorf("asked again, %s is no longer refused: %+v", request, got)
	}
}

// TestBundlesWithoutAnyProof: a bundle of which no policy is shown to act is not called proved; one without policies
// has nothing to prove.
func TestBundlesWithoutAnyProof(t *testing.T) {
	all := &own.InForce{Policies: []*own.Policy{{}, {}}}
	for name, c := range map[string]struct {
		policies policies
		want     bool
	}{
		"of the mechanism's own": {policies{}, false},
		"an engine alone":        {policies{own: &own.InForce{}}, false},
		"none is shown":          {policies{own: all, shown: map[string]string{}}, true},
		"one is shown":           {policies{own: all, shown: map[string]string{"a": "pod privileged"}}, false},
	} {
		if got := c.policies.unproved(); got != c.want {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// wantCall makes one call, which must be answered as the operation expects.
func wantCall(t *testing.T, tg *target, tr design.Treatment) {
	t.Helper()
	ops, err := tg.Operations(tr)
	if err != nil {
		t.Fatal(err)
	}
	a, err := armOf(t, tg, tr).asker.send(t.Context(), ops[0].Wire.Render(nil, 0), true)
	if err != nil || ops[0].Wire.Check(0, a.status, a.body) != load.OK {
		t.Errorf("%v: %d %s, %v", tr.Levels, a.status, a.message(), err)
	}
}

// wantElsewhereAdmitted asks in another namespace for what the policies deny in the run's.
func wantElsewhereAdmitted(t *testing.T, p *arm) {
	pod := mechanism.Pod{Name: "x", Namespace: "elsewhere", Privileged: true}.JSON()
	namespace := []byte(`{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"elsewhere","labels":{"environment":"test"}}}`)
	account := []byte(`{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"default"}}`)
	for _, x := range []struct {
		path string
		body []byte
	}{
		{"/api/v1/namespaces", namespace},
		{"/api/v1/namespaces/elsewhere/serviceaccounts", account},
		{"/api/v1/namespaces/elsewhere/pods" + dryRunQuery, pod},
	} {
		a, err := p.setter.do(t.Context(), http.MethodPost, p.prefix+x.path, jsonType, x.body)
		if err != nil || a.status != http.StatusCreated {
			t.Errorf("%s: %d %s, %v", x.path, a.status, a.message(), err)
		}
	}
}

// wantLostSeen takes one policy out of force behind tare's back: the check before the next trial names it.
func wantLostSeen(t *testing.T, tg *target, tr design.Treatment, p *arm, binding, want string) {
	t.Helper()
	const path = "/apis/admissionregistration.k8s.io/v1/"
	if err := p.set(t.Context(), http.MethodDelete, p.prefix+path+binding, jsonType, nil); err != nil {
		t.Fatal(err)
	}
	awaitError(t, want, func() error { return tg.Verify(t.Context(), tr) })
}

// awaitError waits until what is tried fails with these words: a fault takes time to show.
func awaitError(t *testing.T, words string, try func() error) {
	t.Helper()
	for begin := time.Now(); ; time.Sleep(pause) {
		err := try()
		if err != nil && strings.Contains(err.Error(), words) {
			return
		}
		if time.Since(begin) > settleWithin {
			t.Fatalf("%v, want %s", err, words)
		}
	}
}

// wantTwoTrials has treatments in force by turns, twice, and makes a call in each of these trials.
func wantTwoTrials(t *testing.T, tg *target, treatments ...design.Treatment) {
	t.Helper()
	for range 2 {
		for _, tr := range treatments {
			if err := errors.Join(tg.Enter(t.Context(), tr), tg.Verify(t.Context(), tr)); err != nil {
				t.Fatal(err)
			}
			wantCall(t, tg, tr)
			if err := tg.Leave(t.Context(), tr); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// wantFinding validates a spec; an empty text: nothing is found.
func wantFinding(t *testing.T, s *Spec, want string) {
	t.Helper()
	var said []string
	for _, f := range s.Validate(area.Asked{}, []design.Treatment{{}}) {
		said = append(said, f.Message)
	}
	all := strings.Join(said, "\n")
	if (want == "") != (all == "") || !strings.Contains(all, want) {
		t.Errorf("%q, want %q", all, want)
	}
}

// TestBundlesAreChecked: what is wrong with a bundle is said before anything is started.
func TestBundlesAreChecked(t *testing.T) {
	dir := t.TempDir()
	broken := filepath.Join(dir, "broken.yaml")
	text, err := os.ReadFile("testdata/bundle/pods.yaml")
	if err != nil {
		t.Fatal(err)
	}
	bad := strings.Replace(string(text), "c.image.endsWith", "c.image.ends", 1)
	if err := os.WriteFile(broken, []byte(bad), 0o600); err != nil {
		t.Fatal(err)
	}
	const aside = "left aside, and not in these numbers: ValidatingWebhookConfiguration a-webhook"
	fine := filepath.Join(dir, "fine.yaml")
	taken, _, _ := strings.Cut(string(text), "---\napiVersion: v1\nkind: List")
	if err := os.WriteFile(fine, []byte(taken), 0o600); err != nil {
		t.Fatal(err)
	}
	two := 2
	for name, c := range map[string]struct {
		spec Spec
		want string
	}{
		"fine":               {Spec{Bundle: fine}, ""},
		"left aside":         {Spec{Bundle: "testdata/bundle"}, aside},
		"a file":             {Spec{Bundle: "testdata/bundle/pods.yaml", Mechanism: "vap"}, aside},
		"an expression":      {Spec{Bundle: broken}, "broken.yaml:51:74: undeclared reference"},
		"nothing there":      {Spec{Bundle: filepath.Join(dir, "x")}, "no such file"},
		"a number":           {Spec{Bundle: "testdata/bundle", Policies: &two}, "a bundle has as many as it has"},
		"another mechanism":  {Spec{Bundle: "testdata/bundle", Mechanism: "psa"}, "no treatment uses it"},
		"an old Kubernetes":  {Spec{Bundle: "testdata/bundle", Embedded: &Embedded{Version: "1.24"}}, "need version 1.36"},
		"no pod to measure":  {Spec{Bundle: "testdata/bundle", Measured: broken}, "measured"},
		"no requests":        {Spec{Bundle: "testdata/bundle", Requests: dir + "/none"}, "requests: open"},
		"measured alone":     {Spec{Measured: broken}, "no treatment uses it"},
		"bindings of nobody": {Spec{BindAll: true}, "no treatment uses it"},
	} {
		t.Run(name, func(t *testing.T) {
			wantFinding(t, &c.spec, c.want)
		})
	}
	of := func(bundle string) string {
		env := testEnv(t)
		env.Treatments = []area.Treatment{treatment("bundle", bundle)}
		p, err := bundles(t.Context(), &Spec{}, env)
		if err != nil || !p.Files {
			t.Fatal(p, err)
		}
		return p.Identity[bundle]
	}
	if a, b := of("testdata/bundle/pods.yaml"), of(broken); a == "" || a == b {
		t.Errorf("identities %q and %q", a, b)
	}
	if slices.Contains(mechanism.Kinds(), mechanism.Own) {
		t.Error("a file can name what only a bundle means")
	}
}

// TestKeysTwiceAreWarnedOf: a key that stands twice in a policy is named in the user's file, before a run and by it,
// and so is what is left aside.
func TestKeysTwiceAreWarnedOf(t *testing.T) {
	dir := t.TempDir()
	text, err := os.ReadFile(policiesWith(t, "Deny"))
	if err != nil {
		t.Fatal(err)
	}
	twice := strings.Replace(string(text), "  validations:", "  validations: []\n  validations:", 1)
	for name, content := range map[string]string{"a.yaml": twice, "b.yaml": "kind: [a\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	p := &arm{env: testEnv(t)}
	p.env.Dir = t.TempDir()
	p.spec, p.kind = &Spec{Bundle: dir}, mechanism.Own
	wantFinding(t, p.spec, dir+": a key stands twice in a map, and its last value counts, as for kubectl: "+dir)
	set, err := p.readCopy()
	if err == nil {
		p.policies.own, err = p.anywhere(set)
	}
	if err != nil {
		t.Fatal(err)
	}
	want := []string{repeated(dir, p.policies.own)}
	if got := p.repeatedWarnings(); !slices.Equal(got, want) || !strings.Contains(want[0], ": "+dir+"/a.yaml:") {
		t.Errorf("%q, want %q", got, want)
	}
	if len(set.Untaken) != 1 || !strings.HasPrefix(set.Untaken[0], dir+"/b.yaml:") {
		t.Errorf("left aside: %q", set.Untaken)
	}
}

// TestNotesNameTheirArm: what holds for some treatments with a bundle names the levels that tell them from the others,
// and what holds for the A/A arm alone is said of that.
func TestNotesNameTheirArm(t *testing.T) {
	old, recent := treatment("bundle", "p", "kyverno", "1.13.6"), treatment("bundle", "p", "kyverno", "1.18.2")
	other, aa := treatment("bundle", "q", "kyverno", "1.18.2"), old
	aa.ID, aa.Control, aa.Of = "aa", area.AA, old.ID
	tg := &target{}
	for tr, proved := range map[*area.Treatment]string{&old: "3", &recent: "2", &other: "1", &aa: "0"} {
		plan, err := new(Spec).plan(*tr)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tg.arms.Add(*tr, func(int) *arm {
			return &arm{
				plan: plan, treatment: *tr, declared: &Spec{}, ready: true, namespace: proved,
				env: area.Env{Treatments: []area.Treatment{old, recent, other}},
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	got := tg.ofArms(func(p *arm) []string {
		return []string{p.spec.Bundle + ": " + p.namespace + " proved", p.spec.Bundle + ": in force", "a control plane"}
	})
	if d := cmp.Diff([]string{
		"A/A: p: 0 proved", "a control plane", "p kyverno=1.13.6: 3 proved", "p kyverno=1.18.2: 2 proved", "p: in force",
		"q: 1 proved", "q: in force",
	}, got); d != "" {
		t.Error(d)
	}
}
