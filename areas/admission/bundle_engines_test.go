package admission

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/areas/admission/cluster"
	"tare/areas/admission/engine"
	"tare/areas/admission/own"
	"tare/areas/plane"
	"tare/internal/design"
	"tare/internal/load"
	"tare/internal/probe"
	"tare/rigs/hosttest"
)

// requireEngine skips a test where an engine was not built: tests do not build for minutes.
func requireEngine(t *testing.T, k *engine.Kind) {
	t.Helper()
	_, there, err := k.Seek(t.Context(), k.Default, engineHost(testEnv(t)))
	if !there || err != nil {
		hosttest.Missing(t, k.Title+" "+k.Default+" is not built", hosttest.Plane)
	}
}

// preparedBeside prepares a treatment beside whose control plane an engine runs, or skips the test. Without operations
// pods are created as dry runs.
func preparedBeside(t *testing.T, k *engine.Kind, tr design.Treatment, trespasses bool, operations ...string) *target {
	t.Helper()
	requireBinary(t, plane.V136)
	requireEngine(t, k)
	if operations == nil {
		operations = []string{"create-pod-dry-run"}
	}
	env := testEnv(t, operations...)
	env.Trespasses = trespasses
	env.Treatments = []area.Treatment{tr}
	tg, j := opened(t, &Spec{}, env)
	if err := tg.Prepare(t.Context(), tr, j); err != nil {
		t.Fatal(err)
	}
	return tg
}

// TestKyvernoPolicies: a real Kyverno beside a real control plane has the user's policies in force as they are, beside
// those of the API server's; each is proved, or named as one without a proof.
func TestKyvernoPolicies(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	besideKyverno.take(t)
	tg, with := besideKyverno.target, besideKyverno.with
	p := armOf(t, tg, with)
	defer askElsewhere(t, p)()
	wantTwoTrials(t, tg, with)
	wantUnchangedSeen(t, tg, with, `"team":"a"`)
	for name, request := range map[string]string{
		"no-host-network": "pod in the host's network", "watches-latest": "pod of the tag latest",
		"no-nodeport": "service of type NodePort", "no-privileged": "pod privileged",
		"no-host-pid": "pod with the host's processes", "sets-a-label": "pod as the measured one",
		"marks-latest":         "replicationcontroller of the tag latest", // to which nobody else is applied
		"no-suspended-release": "Release stopped of " + p.spec.Bundle + "/custom/resources.yaml:1",
	} {
		if p.policies.shown[name] != request {
			t.Errorf("%s is shown by %q, want %q", name, p.policies.shown[name], request)
		}
	}
	notes := strings.Join(tg.Notes(), "\n")
	wantNotes(t, notes,
		"12 policies in force, those of engines in the whole control plane; 9 of them have objected",
		"3 policies without a proof",
		"is not shown: asks-names, asks-server, nothing-like-it", "not in these numbers: no-nodeport, no-suspended-release",
		"tare has defined the kind Release, whose",
		"left aside, and not in these numbers: DeletingPolicy deletes",
		"the admission controller of Kyverno "+engine.Kyverno.Default,
	)
	wantAfresh(t, tg, with)
	seen := false
	for _, probe := range tg.Probes(with) {
		seen = seen || probe.Subject() == "kyverno"
	}
	if !seen {
		t.Error("nothing reads what Kyverno uses")
	}
	twins, err := tg.Trespasses(with)
	if err != nil || len(twins) < 2 {
		t.Fatalf("trespasses %+v, %v", twins, err)
	}
	for _, twin := range twins {
		a, err := p.asker.send(t.Context(), twin.Wire.Render(nil, 0), true)
		if err != nil || twin.Wire.Check(0, a.status, a.body) != load.Denied {
			t.Errorf("%s: %d %s, %v", twin.Name, a.status, a.message(), err)
		}
	}
}

// wantUnchangedSeen: an answer that lacks what the policies change is counted as wrong.
func wantUnchangedSeen(t *testing.T, tg *target, tr design.Treatment, mark string) {
	t.Helper()
	ops, err := tg.Operations(tr)
	if err != nil {
		t.Fatal(err)
	}
	a, err := armOf(t, tg, tr).asker.send(t.Context(), ops[0].Wire.Render(nil, 0), true)
	without := bytes.ReplaceAll(a.body, []byte(mark), []byte(`"other":""`))
	if err != nil || bytes.Equal(without, a.body) || ops[0].Wire.Check(0, a.status, without) != load.Wrong {
		t.Errorf("an answer without %s is taken for a good one: %s, %v", mark, a.body, err)
	}
}

// askElsewhere creates objects in another namespace all the while, as dry runs, to which a policy objects: that is not
// about the run, and does not delay it. It returns what ends it.
func askElsewhere(t *testing.T, p *arm) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	ended, asked := make(chan struct{}), 0
	go func() {
		defer close(ended)
		const body = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"elsewhere"}}`
		for ; ctx.Err() == nil; time.Sleep(watchEvery) {
			a, err := p.setter.do(ctx, http.MethodPost, p.prefix+"/api/v1/namespaces/default/configmaps"+dryRunQuery, jsonType,
				[]byte(body))
			if err == nil && a.status == http.StatusCreated {
				asked++
			}
		}
	}()
	return func() {
		cancel()
		<-ended
		if asked == 0 {
			t.Error("nothing was created elsewhere")
		}
	}
}

// TestGatekeeperConstraints: a real Gatekeeper beside a real control plane has the user's constraints in force as they
// are, and looks by them at what exists; what it denies names them all; and one that only watches is not said to be
// proved.
func TestGatekeeperConstraints(t *testing.T) {
	t.Parallel()
	with := treatment("bundle", "testdata/gatekeeper", "audit", "2s")
	tg := preparedBeside(t, engine.Gatekeeper, with, true, "create-pod")
	wantAudited(t, tg, with, "gatekeeper", "it audits what exists every 2s, in the same process")
	wantTwoTrials(t, tg, with)
	notes := strings.Join(tg.Notes(), "\n")
	wantNotes(t, notes,
		"6 policies in force", "4 of them have objected", "is not shown: changes-nothing, only-watches",
		`the measured pod comes back changed: metadata.labels.squad = "a"`,
		"not in force, since no constraint is of its kind: template unused",
		"the admission controller of Gatekeeper "+engine.Gatekeeper.Default,
	)
	if strings.Contains(notes, "Suite") {
		t.Errorf("tests decide about requests:\n%s", notes)
	}
	wantRestarted(t, tg, with, engine.Gatekeeper, load.Permitted)
	p := armOf(t, tg, with)
	const path = "/apis/constraints.gatekeeper.sh/v1beta1/fieldban/no-host-pid"
	if err := p.set(t.Context(), http.MethodDelete, p.prefix+path, jsonType, nil); err != nil {
		t.Fatal(err)
	}
	awaitError(t, "no-host-pid denies a pod with the host's processes",
		func() error { return tg.Verify(t.Context(), with) })
}

// TestGatekeepersCEL: the API server names one of the policies that deny a request. Its counts prove the other ones,
// and each is looked at before a block. After a start it refuses what policies with a parameter are about, for up to
// half a minute. That is waited for.
func TestGatekeepersCEL(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	text, err := os.ReadFile("testdata/gatekeeper-cel/policies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	second := strings.NewReplacer("celban", "othercelban", "CelBan", "OtherCelBan", "no-host-", "never-host-")
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, []byte(string(text)+"\n---\n"+second.Replace(string(text))), 0o600); err != nil {
		t.Fatal(err)
	}
	with := treatment("bundle", file)
	tg := preparedBeside(t, engine.Gatekeeper, with, false)
	p := armOf(t, tg, with)
	if !p.policies.own.MakesPolicies() {
		t.Error("Gatekeeper makes no policies of the API server's")
	}
	names := []string{"no-host-network", "never-host-network"}
	for _, name := range names {
		if shown := p.policies.shown[name]; shown != "pod in the host's network" {
			t.Errorf("%s is shown by %q", name, shown)
		}
		if !slices.Contains(p.policies.proof.Object, own.NameIn(p.scope(), name)) {
			t.Errorf("%s is not looked at before a block: %q", name, p.policies.proof.Object)
		}
	}
	if notes := strings.Join(tg.Notes(), "\n"); strings.Contains(notes, "without a proof") {
		t.Error(notes)
	}
	if err := tg.Verify(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	wantAfresh(t, tg, with)
	wantCall(t, tg, with)
	for i, kind := range []string{"celban", "othercelban"} { // which of the two the API server names is not known
		path := p.prefix + "/apis/constraints.gatekeeper.sh/v1beta1/" + kind + "/" + names[i]
		if err := p.set(t.Context(), http.MethodDelete, path, jsonType, nil); err != nil {
			t.Fatal(err)
		}
		awaitError(t, names[i], func() error { return tg.Verify(t.Context(), with) })
	}
}

// TestGatekeeperQuotes: a constraint is not proved by what another one says of it, not even on a line of its own, and
// is by denying what another one, named before it, denies as well.
func TestGatekeeperQuotes(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	const ban = `apiVersion: templates.gatekeeper.sh/v1
kind: ConstraintTemplate
metadata: {name: banKIND}
spec:
  crd: {spec: {names: {kind: BanKIND}}}
  targets:
  - target: admission.k8s.gatekeeper.sh
    rego: |
      package ban
      violation[{"msg": "SAYS"}] { input.review.object.spec.FIELD == true }
---
{apiVersion: constraints.gatekeeper.sh/v1beta1, kind: BanKIND, metadata: {name: on-KIND},
  spec: {match: {kinds: [{apiGroups: [""], kinds: [Pod]}]}}}
---
`
	var text string
	for _, of := range [][]string{
		{"net", "hostNetwork", `a pod (as [on-typo] says, and\n[on-line] too)`},
		{"typo", "hostNetwrk", "b"},
		{"line", "hostNetwrk", "c"},
		{"also", "hostNetwork", "d"},
	} {
		text += strings.NewReplacer("KIND", of[0], "FIELD", of[1], "SAYS", of[2]).Replace(ban)
	}
	file := filepath.Join(t.TempDir(), "mine.yaml")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	with := treatment("bundle", file)
	tg := preparedBeside(t, engine.Gatekeeper, with, true, "create-pod")
	x := &armOf(t, tg, with).policies
	shown := map[string]string{"on-net": "pod in the host's network", "on-also": "pod in the host's network"}
	if d := cmp.Diff(shown, x.shown); d != "" {
		t.Errorf("shown by (-want +got):\n%s", d)
	}
	if tries := x.finding.tries(1); len(tries) != 1 || !slices.Equal(tries[0].by, []string{"on-also", "on-net"}) {
		t.Errorf("tried by %v", tries)
	}
	wantNotes(t, strings.Join(tg.Notes(), "\n"), "2 policies without a proof", "2 of them have objected")
}

// TestEnginesRefuse: what an engine does not take is named with its place in the user's file.
func TestEnginesRefuse(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	for name, c := range map[string]struct {
		beside         *standing
		bundle         string
		changes, names []string
	}{
		"a wrong expression": {
			&besideKyverno, "testdata/kyverno/policies.yaml",
			[]string{
				"c.?securityContext.?privileged", "c.?securityContext.?privilegd(",
				"{name: ", "{name: second-", "policyName: ", "policyName: second-",
			},
			[]string{":39: ", "second-no-privileged"},
		},
		"Rego that asks another server": {
			&besideGatekeeper, "testdata/gatekeeper/policies.yaml",
			[]string{`== true`, `== http.send({"method": "GET", "url": "http://127.0.0.1:1"}).body`},
			[]string{":2: ", "fieldban", "http.send"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.beside.take(t)
			text, err := os.ReadFile(c.bundle)
			if err != nil {
				t.Fatal(err)
			}
			file := filepath.Join(t.TempDir(), "mine.yaml")
			changed := strings.NewReplacer(c.changes...).Replace(string(text))
			if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
			err = refused(t, armOf(t, c.beside.target, c.beside.with), file)
			for _, want := range append(c.names, file) {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v, want %q", err, want)
				}
			}
		})
	}
}

// TestEnginesAreChecked: where an engine cannot run is said before anything is started.
func TestEnginesAreChecked(t *testing.T) {
	const bundle = "testdata/kyverno"
	config := filepath.Join(t.TempDir(), "config")
	if err := os.WriteFile(config, []byte("apiVersion: v1\nkind: Config\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		spec Spec
		want string
	}{
		"fine":              {Spec{Bundle: bundle, Kyverno: "1.18.2"}, "left aside, and not in these numbers: Deleting"},
		"an old version":    {Spec{Bundle: bundle, Kyverno: "1.12.0"}, `kyverno: "1.12.0" is no version of Kyverno from 1.13.0 on`},
		"a kind too new":    {Spec{Bundle: bundle, Kyverno: "1.13.6"}, "from 1.17 on: 1.13.6 would not know it"},
		"an old Gatekeeper": {Spec{Bundle: "testdata/gatekeeper", Gatekeeper: "3.22.0"}, "is no version of Gatekeeper"},
		"the other engine":  {Spec{Bundle: "testdata/gatekeeper", Kyverno: "1.19.1"}, "no policy of Kyverno's"},
		"constraints":       {Spec{Bundle: "testdata/gatekeeper"}, ""},
		"without policies":  {Spec{Bundle: "testdata/bundle", Kyverno: "1.19.1"}, "the bundle holds no policy of Kyverno's"},
		"without a bundle":  {Spec{Kyverno: "1.19.1"}, "no treatment uses it"},
		"shared":            {Spec{Bundle: bundle, Embedded: &Embedded{Shared: true}}, "leave shared out"},
		"a cluster":         {Spec{Bundle: bundle, Kubeconfig: config, Kyverno: "1.19.1"}, "the Kyverno of the cluster is"},
	} {
		t.Run(name, func(t *testing.T) {
			wantFinding(t, &c.spec, c.want)
		})
	}
}

// TestIdleEngines: a treatment without policies that names an engine has it, and none that does not.
func TestIdleEngines(t *testing.T) {
	for name, c := range map[string]struct {
		spec Spec
		tr   design.Treatment
		want string // engines, or the error
	}{
		"of a baseline": {Spec{}, treatment("bundle", "none", "gatekeeper", "3.23.1"), "gatekeeper"},
		"of both": {
			Spec{}, treatment("mechanism", "vap", "gatekeeper", "3.23.1", "kyverno", "1.13.6"), "kyverno gatekeeper",
		},
		"of the section":    {Spec{Kyverno: "1.18.2"}, treatment("bundle", "none"), ""},
		"that there is not": {Spec{}, treatment("bundle", "none", "kyverno", "1.12.0"), "is no version of Kyverno"},
		"beside a shared one": {
			Spec{Embedded: &Embedded{Shared: true}}, treatment("bundle", "none", "kyverno", "1.19.1"), "leave shared out",
		},
		"for manifests":     {Spec{}, treatment("mechanism", "manifests", "kyverno", "1.19.1"), "not for manifests"},
		"beside an old one": {Spec{}, treatment("version", "1.24", "kyverno", "1.19.1"), "beside Kubernetes 1.36 only"},
		"in a cluster": {
			Spec{Kubeconfig: "k"}, treatment("mechanism", "none", "kyverno", "1.19.1"), "those that it has",
		},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := c.spec.plan(c.tr)
			var names []string
			for _, k := range p.neededEngines() {
				names = append(names, k.Name)
			}
			if got := strings.Join(names, " "); err == nil && got != c.want ||
				err != nil && (c.want == "" || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%q, %v; want %q", got, err, c.want)
			}
		})
	}
}

// TestIdleGatekeeper: a real Gatekeeper without constraints is asked about what is created beside it, and its cost is
// read.
func TestIdleGatekeeper(t *testing.T) {
	t.Parallel()
	besideGatekeeper.take(t)
	tg, idle := besideGatekeeper.target, besideGatekeeper.with
	err := errors.Join(tg.Enter(t.Context(), idle), tg.Verify(t.Context(), idle), tg.Leave(t.Context(), idle))
	if err != nil {
		t.Fatal(err)
	}
	wantCall(t, tg, idle)
	text, err := armOf(t, tg, idle).admin.Metrics(t.Context())
	if err != nil || !strings.Contains(string(text), `name="validation.gatekeeper.sh"`) {
		t.Errorf("%v: the API server has not asked Gatekeeper", err)
	}
	notes := strings.Join(tg.Notes(), "\n")
	if !strings.Contains(notes, "Gatekeeper "+engine.Gatekeeper.Default+" runs beside") {
		t.Errorf("notes lack the engine:\n%s", notes)
	}
	if !slices.ContainsFunc(tg.Probes(idle), func(p probe.Probe) bool { return p.Subject() == "gatekeeper" }) {
		t.Error("nothing reads what Gatekeeper uses")
	}
}

// TestFailingPolicies: a policy that cannot decide refuses. That is no proof that it guards, and the report says so.
// Kyverno looks at what exists meanwhile; that it ends is noticed.
func TestFailingPolicies(t *testing.T) {
	t.Parallel()
	requireBinary(t, plane.V136)
	requireEngine(t, engine.Kyverno.Auditor)
	with := treatment("bundle", "testdata/failing", "audit", "2s")
	tg := preparedBeside(t, engine.Kyverno, with, false, "create-pod")
	err := errors.Join(tg.Enter(t.Context(), with), tg.Verify(t.Context(), with), tg.Leave(t.Context(), with))
	if err != nil {
		t.Fatal(err)
	}
	wantAudited(t, tg, with, "kyverno-reports", "Kyverno's reports controller runs beside it and scans what exists every "+
		"2s, and it writes a report of each request (it has reported about a pod)") // now all proofs are tried
	p := armOf(t, tg, with)
	want := []string{
		"changes-claims", "changes-deployments", "changes-ingresses", "no-config", "no-jobs", "no-services",
	}
	if d := cmp.Diff(want, slices.Sorted(maps.Keys(p.policies.finding.failures))); d != "" {
		t.Errorf("policies that fail (-want +got):\n%s", d)
	}
	if got := p.policies.shown; len(got) != 1 || got["no-host-pid"] != "pod with the host's processes" {
		t.Errorf("shown: %q", got)
	}
	refused := 0
	for _, r := range p.rulings() {
		if strings.HasPrefix(r.Request, "job ") || strings.HasPrefix(r.Request, "deployment ") {
			refused++
			if !r.Refused {
				t.Errorf("%s: not refused", r.Request)
			}
		}
	}
	if refused == 0 {
		t.Error("nothing was asked of jobs and deployments")
	}
	notes := strings.Join(append(tg.Warnings(), tg.Notes()...), "\n")
	wantNotes(t, notes,
		"6 policies cannot decide about requests that tare makes, so that these are refused: changes-claims on ",
		`such as a deployment as the measured one (no such key: annotations)`, "; 3 more", "6 policies without a proof",
	)
	if err := p.engines[0].Signal(syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-p.engines[0].Exited()
	if err := tg.Verify(t.Context(), with); err == nil || !strings.Contains(err.Error(), "kyverno has ended by itself") {
		t.Errorf("%v, want that Kyverno has ended", err)
	}
}

// TestDeniersOfALongAnswer: an answer may name dozens of policies, and the last of them denied as the first did.
func TestDeniersOfALongAnswer(t *testing.T) {
	set, err := own.Read("testdata/gatekeeper", false)
	if err != nil {
		t.Fatal(err)
	}
	p := &arm{engines: []*runningEngine{{engineProcess: engineProcess{kind: engine.Gatekeeper}}}, namespace: "n"}
	nowhere := cluster.Options{Run: "r", Server: "https://127.0.0.1:1"}
	if p.policies.keeper, err = cluster.New(t.Context(), nowhere); err != nil {
		t.Fatal(err)
	}
	if p.policies.own, err = set.Render(own.Where{Scope: p.scope(), Ours: true}); err != nil {
		t.Fatal(err)
	}
	said := `admission webhook "validation.gatekeeper.sh" denied the request: [no-host-network] no` +
		strings.Repeat(`\n[others] a pod may not be so`, 100) + `\n[no-host-pid] nor so`
	a := answer{status: http.StatusForbidden, body: []byte(`{"kind":"Status","apiVersion":"v1","metadata":{},` +
		`"status":"Failure","code":403,"message":"` + strings.ReplaceAll(said, `"`, `\"`) + `"}`)}
	if d := cmp.Diff([]string{"no-host-network", "no-host-pid"}, p.named(p.denier(a))); d != "" {
		t.Errorf("policies that denied (-want +got):\n%s\n%s", d, a.message())
	}
}

// outside is a policy of which no text shows that it asks a name server, since a variable names the function, and one
// that asks the API server for what it has, by a variable.
const outside = `{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: asks-names}, spec: {background: false,
  rules: [{name: a, match: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {ask: names}}}}]},
  context: [{name: f, variable: {value: is_external}}],
  validate: {failureAction: Enforce, message: denied, deny: {conditions: {any: [
  {key: "{{ {{f}}_url('http://tare.invalid') }}", operator: Equals, value: true}]}}}}]}}
---
{apiVersion: kyverno.io/v1, kind: ClusterPolicy, metadata: {name: asks-server}, spec: {background: false,
  rules: [{name: a, match: {any: [{resources: {kinds: [Pod], selector: {matchLabels: {ask: server}}}}]},
  context: [{name: x, apiCall: {urlPath: "/api/v1/namespaces/{{ request.namespace }}", jmesPath: metadata.name}}],
  validate: {failureAction: Enforce, message: "it is in {{ x }}", deny: {conditions: {any: [
  {key: "{{ x }}", operator: Equals, value: "{{ request.namespace }}"}]}}}}]}}
`

// TestPoliciesAskNoNameServer: a real Kyverno asks no name server for a policy that hides that it wants one; what the
// API server has, policies get.
func TestPoliciesAskNoNameServer(t *testing.T) {
	t.Parallel()
	besideKyverno.take(t)
	p := armOf(t, besideKyverno.target, besideKyverno.with)
	for ask, want := range map[string][]string{
		"names": {"lookup tare.invalid", ": permission denied"}, "server": {"it is in " + p.namespace},
	} {
		pod := fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"ask","labels":{"ask":%q}},
"spec":{"containers":[{"name":"c","image":"x:1"}]}}`, ask)
		path := p.prefix + "/api/v1/namespaces/" + p.namespace + "/pods" + dryRunQuery
		a, err := p.setter.do(t.Context(), http.MethodPost, path, jsonType, []byte(pod))
		for _, word := range want {
			if err != nil || !strings.Contains(string(a.body), word) {
				t.Errorf("%s: %d %s, %v; want %q", ask, a.status, a.body, err, word)
			}
		}
	}
}
