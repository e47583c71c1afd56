package admission

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"tare/areas/admission/engine"
	"tare/areas/admission/own"
	"tare/areas/plane"
	"tare/internal/design"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// TestForeignEngines measures policies of an engine's in a cluster that others use, with that cluster's own engine:
// they are proved, nobody else is denied anything, and nothing is left.
func TestForeignEngines(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	for kind, c := range map[*engine.Kind]struct {
		bundle string
		notes  []string
	}{
		engine.Kyverno: {"testdata/kyverno", []string{
			"9 policies in force, in the run's namespace only; 6 of them have objected",
			"the cluster's own Kyverno 1.2.3, asked by webhooks with ",
			"is not shown: no-suspended-release, nothing-like-it, watches-latest",
			"not in force, since it is about *: if Kyverno did not answer, nobody could mend the cluster: restless",
		}},
		engine.Gatekeeper: {"testdata/gatekeeper", []string{
			"6 policies in force, in the run's namespace only; 4 of them have objected",
			"the cluster's own Gatekeeper 1.2.3, asked by webhooks with Ignore within 3 s, which",
			"is not shown: changes-nothing, only-watches",
		}},
	} {
		t.Run(kind.Name, func(t *testing.T) {
			t.Parallel()
			requireBinary(t, plane.V136)
			requireEngine(t, kind)
			p, err := startPlane(t.Context(), t.TempDir(), true)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := p.Close(context.Background()); err != nil {
					t.Error(err)
				}
			})
			install(t, p, kind)
			config := configOf(p)
			asked, end := watchElsewhere(t, config)
			before := awaitSettled(t, config)
			env := testEnv(t, "create-pod-dry-run")
			with, without := treatment("bundle", besideHostile(t, c.bundle)), treatment("bundle", "none")
			env.Treatments = []design.Treatment{without, with}
			tg, j := opened(t, &Spec{Kubeconfig: p.Kubeconfig()}, env)
			prepare(t, tg, j, env.Treatments)
			notes := strings.Join(tg.Notes(), "\n")
			wantNotes(t, notes, c.notes...)
			for range 2 {
				for _, tr := range env.Treatments {
					runTrial(t, tg, tr, 20)
				}
			}
			end()
			if n := asked.Load(); n < 100 {
				t.Errorf("only %d requests were made elsewhere", n)
			}
			if kind == engine.Gatekeeper {
				wantConfinementProved(t, tg, with, config)
			} else {
				wantRefusalFound(t, tg, with, config)
			}
			if err := tg.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			j.WantAllUndone(t)
			wantUnchanged(t, config, before)
		})
	}
}

// besideHostile is a copy of a bundle whose rules have a scope that those of other policies lack, which ends Kyverno,
// with a policy about everything, and with policies of which Kyverno would have the API server judge what is in other
// namespaces, or in none: the match conditions fail there.
func besideHostile(t *testing.T, bundle string) string {
	t.Helper()
	const hostile = `apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: hostile-conditions}
spec:
  webhookConfiguration: {matchConditions: [{name: c, expression: "CONDITION"}]}
  rules:
    - name: r
      match: {any: [{resources: {kinds: [Pod, kyverno.io/v1/ClusterPolicy], operations: [CREATE, DELETE]}}]}
      validate: {failureAction: Enforce, message: "no", pattern: {metadata: {name: "!x"}}}
---
apiVersion: kyverno.io/v1
kind: ClusterPolicy
metadata: {name: hostile-roles}
spec:
  rules:
    - name: r
      match: {any: [{resources: {kinds: [ConfigMap, ClusterRole]}}]}
      validate:
        failureAction: Enforce
        cel: {generate: true, expressions: [{expression: "object.metadata.name != 'x'", message: "no"}]}
---
apiVersion: policies.kyverno.io/v1
kind: MutatingPolicy
metadata: {name: hostile-changes}
spec:
  matchConditions: [{name: c, expression: "CONDITION"}]
  matchConstraints:
    resourceRules: [{apiGroups: ["*"], apiVersions: [v1], operations: [CREATE], resources: [configmaps, clusterroles]}]
  mutations:
    - {patchType: ApplyConfiguration, applyConfiguration: {expression: "Object{metadata: Object.metadata{}}"}}
`
	const condition = "request.?namespace.orValue('').startsWith('tare-') || object.metadata.labels['x'] == 'x'"
	dir := t.TempDir()
	err := os.CopyFS(dir, os.DirFS(bundle))
	if strings.Contains(bundle, "kyverno") {
		for file, change := range map[string][]string{
			"policies.yaml": {"resources: [pods]}", "resources: [pods], scope: Namespaced}"},
			"restless.yaml": {
				`[""]`, `["*"]`, "[v1]", `["*"]`, "[pods, configmaps, replicationcontrollers]", `["*"]`,
			},
		} {
			text, failed := os.ReadFile(filepath.Join(dir, file))
			changed := strings.NewReplacer(change...).Replace(string(text))
			err = errors.Join(err, failed, os.WriteFile(filepath.Join(dir, file), []byte(changed), 0o600))
		}
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, "hostile.yaml"),
			[]byte(strings.ReplaceAll(hostile, "CONDITION", condition)), 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// entered has a treatment in force, which must be confined, and returns its arm and a client of the cluster.
func entered(t *testing.T, tg *target, with design.Treatment, config *rest.Config) (*arm, dynamic.Interface) {
	t.Helper()
	p := armOf(t, tg, with)
	if err := tg.Enter(t.Context(), with); err != nil {
		t.Fatal(err)
	}
	if err := p.proveConfined(t.Context()); err != nil {
		t.Error(err)
	}
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	return p, client
}

// wantRefusalFound has a policy of somebody else's refuse a pod in all namespaces but the run's, which the proof must
// find, whoever refuses.
func wantRefusalFound(t *testing.T, tg *target, with design.Treatment, config *rest.Config) {
	t.Helper()
	p, client := entered(t, tg, with, config)
	o := engine.KyvernoCanary(false, "refuses", "", "none", "none")
	o.SetKind("ClusterPolicy")
	conditions := []any{map[string]any{
		"name": "c", "expression": "request.namespace == '" + p.namespace + "' || object.metadata.labels['x'] == 'x'",
	}}
	err := unstructured.SetNestedSlice(o.Object, conditions, "spec", "webhookConfiguration", "matchConditions")
	if err != nil {
		t.Fatal(err)
	}
	r := schema.GroupVersionResource{Group: "kyverno.io", Version: "v1", Resource: "clusterpolicies"}
	if _, err := client.Resource(r).Create(t.Context(), o, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	awaitError(t, "with the policies a pod as the measured one is refused in another namespace",
		func() error { return p.proveConfined(t.Context()) })
	err = client.Resource(r).Delete(t.Context(), o.GetName(), metav1.DeleteOptions{})
	if err = errors.Join(err, tg.Leave(t.Context(), with)); err != nil {
		t.Error(err)
	}
}

// wantConfinementProved has a constraint, and then a mutation, act in all namespaces, which the proof must find.
func wantConfinementProved(t *testing.T, tg *target, with design.Treatment, config *rest.Config) {
	t.Helper()
	p, client := entered(t, tg, with, config)
	widen := func(name, want string) {
		for _, o := range p.policies.rendered.Objects {
			if own.Defines(o) || own.NameOf(p.scope(), o.GetName()) != name {
				continue
			}
			r, err := p.resourceOf(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			const wider = `{"spec": {"match": {"namespaces": null}}}`
			_, err = client.Resource(r).Patch(t.Context(), o.GetName(), types.MergePatchType, []byte(wider),
				metav1.PatchOptions{})
			if err != nil {
				t.Fatal(err)
			}
		}
		awaitError(t, want, func() error { return p.proveConfined(t.Context()) })
	}
	widen("no-host-pid", "no-host-pid also denies a pod with the host's processes in another")
	widen("sets-a-label", "sets-a-label also changes a pod as the measured one in another")
	wantStatusesStay(t, client)
	if err := tg.Leave(t.Context(), with); err != nil {
		t.Error(err)
	}
}

// wantStatusesStay: a controller-manager leaves what Gatekeeper writes about its policies. If it deleted that,
// Gatekeeper would write it again, a hundred times a second, and that would pass for what policies cost.
func wantStatusesStay(t *testing.T, client dynamic.Interface) {
	t.Helper()
	list := func() map[string]types.UID {
		out := map[string]types.UID{}
		for _, resource := range []string{"constrainttemplatepodstatuses", "mutatorpodstatuses"} {
			r := schema.GroupVersionResource{Group: "status.gatekeeper.sh", Version: "v1beta1", Resource: resource}
			all, err := client.Resource(r).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, o := range all.Items {
				out[resource+" "+o.GetName()] = o.GetUID()
			}
		}
		return out
	}
	before := list()
	if len(before) == 0 {
		t.Error("Gatekeeper has written no status of a template or a mutation")
	}
	time.Sleep(3 * time.Second)
	if d := cmp.Diff(before, list()); d != "" {
		t.Errorf("statuses were written anew, though no policy has changed: %s", d)
	}
}

// wantClosedToOthers: other users get no answer from engines, neither their counts nor a judgement.
func wantClosedToOthers(t *testing.T, engines []*runningEngine) {
	t.Helper()
	for _, e := range engines {
		for _, p := range append(e.beside, &e.engineProcess) {
			for _, at := range []string{p.ready.Metrics, "https://" + p.ready.Webhooks + "/validate/fail"} {
				u, err := url.Parse(at)
				if err != nil || u.Host == "" {
					continue // what runs beside an engine has no webhooks, and Gatekeeper no metrics
				}
				var said []byte
				err = hosttest.AsStranger(t, func() error {
					c, err := net.Dial("tcp", u.Host)
					if err != nil {
						t.Error(err)
						return err
					}
					defer c.Close() //nolint:errcheck // nothing to lose
					if u.Scheme == "https" {
						c = tls.Client(c, &tls.Config{InsecureSkipVerify: true}) //nolint:gosec // whoever it is
					}
					if _, err := fmt.Fprintf(c, "GET %s HTTP/1.0\r\n\r\n", u.Path); err != nil {
						return err
					}
					said, err = io.ReadAll(c)
					return err
				})
				if len(said) > 0 || u.Scheme == "https" && err == nil {
					t.Errorf("%s answers another user at %s: %.200q, %v", p.kind.Name, at, said, err)
				}
			}
		}
	}
}

// install runs an engine in a cluster as somebody else would have: the run does not know it.
func install(t *testing.T, p *plane.Plane, kind *engine.Kind) {
	t.Helper()
	a := &arm{
		plan: plan{spec: &Spec{}}, env: testEnv(t), journal: &areatest.Journal{}, index: 99, control: &control{Plane: p},
	}
	if err := a.connect(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.stopEngines(t.Context()); err != nil {
			t.Error(err)
		}
	})
	if err := a.startEngine(t.Context(), kind); err != nil {
		t.Fatal(err)
	}
	if os.Geteuid() == 0 {
		wantClosedToOthers(t, a.engines)
	}
	client, err := dynamic.NewForConfig(configOf(p))
	if err != nil {
		t.Fatal(err)
	}
	key, value, _ := strings.Cut(strings.Split(kind.Deployments, ",")[0], "=")
	labels := map[string]any{key: value, "control-plane": "controller-manager"}
	d := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": kind.Name, "labels": labels},
		"spec": map[string]any{
			"paused": true, "selector": map[string]any{"matchLabels": labels},
			"template": map[string]any{
				"metadata": map[string]any{"labels": labels},
				"spec": map[string]any{"containers": []any{map[string]any{
					"name": "x", "image": fmt.Sprintf("registry.example:5000/%s/%s:v1.2.3@sha256:%064d", kind.Name, kind.Image, 0),
				}}},
			},
		},
	}}
	deployments := client.Resource(schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"}).
		Namespace("default")
	if _, err := deployments.Create(t.Context(), d, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
}
