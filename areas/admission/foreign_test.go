package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/google/go-cmp/cmp"

	"tare/area"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/own"
	"tare/areas/plane"
	"tare/internal/design"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// foreignCluster takes a control plane that the run knows by its kubeconfig only.
func foreignCluster(t *testing.T) (kubeconfig string, config *rest.Config) {
	t.Helper()
	clusterOfOthers.take(t)
	return clusterOfOthers.plane.Kubeconfig(), configOf(clusterOfOthers.plane)
}

func configOf(p *plane.Plane) *rest.Config {
	return &rest.Config{
		Host: p.Server(), BearerToken: p.AdminToken,
		TLSClientConfig: rest.TLSClientConfig{CAData: p.CA}, QPS: -1,
	}
}

// listObjects lists every object of a cluster, except those that a cluster makes by itself as time passes.
func listObjects(t *testing.T, config *rest.Config) []string {
	t.Helper()
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	groups, err := disco.ServerPreferredResources()
	if err != nil {
		t.Fatal(err)
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range discovery.FilteredBy(discovery.SupportsAllVerbs{Verbs: []string{"list", "get"}}, groups) {
		gvrs, err := discovery.GroupVersionResources([]*metav1.APIResourceList{r})
		if err != nil {
			t.Fatal(err)
		}
		for gvr := range gvrs {
			if gvr.Resource == "events" || gvr.Resource == "leases" || gvr.Resource == "componentstatuses" {
				continue
			}
			list, err := client.Resource(gvr).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatalf("list %v: %v", gvr, err)
			}
			for i := range list.Items {
				o := &list.Items[i]
				out = append(out, fmt.Sprintf("%s %s/%s %s", gvr.GroupResource(), o.Namespace, o.Name, o.UID))
			}
		}
	}
	slices.Sort(out)
	return out
}

// awaitSettled lists objects until two lists are equal: a new control plane makes objects of its own for some seconds.
func awaitSettled(t *testing.T, config *rest.Config) []string {
	t.Helper()
	last := listObjects(t, config)
	for range 30 {
		if err := testEnv(t).Clock.Sleep(t.Context(), 5*pause); err != nil {
			t.Fatal(err)
		}
		now := listObjects(t, config)
		if slices.Equal(now, last) {
			return now
		}
		last = now
	}
	t.Fatal("the cluster does not come to rest")
	return nil
}

// wantUnchanged fails the test unless the cluster holds the objects that it held before.
func wantUnchanged(t *testing.T, config *rest.Config, before []string) {
	t.Helper()
	if diff := cmp.Diff(before, awaitSettled(t, config)); diff != "" {
		t.Errorf("the cluster's objects have changed (-before +after):\n%s", diff)
	}
}

// TestForeignCluster measures on a user's cluster, with every mechanism that it supports, and leaves nothing behind.
func TestForeignCluster(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	kubeconfig, config := foreignCluster(t)
	before := awaitSettled(t, config)
	tg, j := opened(t, &Spec{Kubeconfig: kubeconfig, Objects: 10}, testEnv(t, "create-pod-dry-run", "create-pod",
		"update-pod", "delete-configmap"))
	arms := []design.Treatment{
		treatment("mechanism", "none"), treatment("mechanism", "psa"), treatment("mechanism", "vap", "policies", "4",
			"useable", "2"),
		treatment("mechanism", "map", "policies", "2"), treatment("mechanism", "webhook", "policies", "2"),
	}
	prepare(t, tg, j, arms)
	for _, k := range []int{2, 0, 1, 3, 4, 2} {
		runTrial(t, tg, arms[k], 20)
	}
	if err := tg.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	j.WantAllUndone(t)
	wantUnchanged(t, config, before)
}

// TestUndoForeign undoes what a run left that was killed within a trial, twice, from the journal's data alone.
func TestUndoForeign(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	kubeconfig, config := foreignCluster(t)
	before := awaitSettled(t, config)
	env := testEnv(t, "create-pod", "update-configmap")
	o, err := Area{}.Open(t.Context(), &Spec{Kubeconfig: kubeconfig, Objects: 10}, env)
	if err != nil {
		t.Fatal(err)
	}
	tg, _ := o.(*target)
	j := &areatest.Journal{}
	arms := []design.Treatment{
		treatment("mechanism", "vap", "policies", "5"),
		treatment("mechanism", "webhook", "policies", "2"),
	}
	prepare(t, tg, j, arms)
	if err := tg.Enter(t.Context(), arms[0]); err != nil {
		t.Fatal(err)
	}
	if _, err := tg.Operations(arms[0]); err != nil {
		t.Fatal(err)
	}
	offer(t, tg, arms[0], 10)
	text, err := json.Marshal(j.Changes())
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(text), "Bearer") || strings.Contains(string(text), config.BearerToken) {
		t.Errorf("the journal holds a credential: %s", text)
	}
	areatest.UndoTwice(t, Area{}, j.Pending(), area.Env{Clock: env.Clock, Log: env.Log})
	wantUnchanged(t, config, before)
	armOf(t, tg, arms[0]).stopRenewal()
}

// TestForeignBundleActsInItsNamespaceOnly: in a cluster that tare did not start nobody else is denied anything, from
// before the user's policies come until after they have gone.
func TestForeignBundleActsInItsNamespaceOnly(t *testing.T) {
	hosttest.SkipIfShort(t)
	t.Parallel()
	kubeconfig, config := foreignCluster(t)
	asked, end := watchElsewhere(t, config)
	env := testEnv(t, "create-pod-dry-run")
	with, without := treatment("bundle", bundleWithItsKinds(t)), treatment("bundle", "none")
	env.Treatments = []design.Treatment{without, with}
	tg, j := opened(t, &Spec{Kubeconfig: kubeconfig, Requests: "testdata/requests"}, env)
	prepare(t, tg, j, env.Treatments)
	for _, r := range armOf(t, tg, with).rulings() { // of a text that is in no file, as if it had been fetched
		if changes := strings.Join(r.Changes, "\n"); r.Request == own.MeasuredPod &&
			(!strings.Contains(changes, "metadata.labels.fetched changed (#") || strings.Contains(changes, "hunter2")) {
			t.Errorf("changes %s", changes)
		}
	}
	for _, tr := range env.Treatments {
		runTrial(t, tg, tr, 20)
	}
	if err := tg.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	j.WantAllUndone(t)
	end()
	if n := asked.Load(); n < 100 {
		t.Errorf("only %d requests were made elsewhere", n)
	}
}

// bundleWithItsKinds is a copy of testdata/bundle with the definition of its parameters, which tare makes up on control
// planes of its own only.
func bundleWithItsKinds(t *testing.T) string {
	t.Helper()
	const limits = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: limits.rules.example.com}
spec:
  group: rules.example.com
  names: {kind: Limit, plural: limits, singular: limit, listKind: LimitList}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, properties: {most: {type: integer}}}}
`
	const fetches = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: fetches}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'fetched': 'hunter' + '2'}}}"}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: fetches}
spec: {policyName: fetches}
`
	dir := t.TempDir()
	err := errors.Join(os.CopyFS(dir, os.DirFS("testdata/bundle")),
		os.WriteFile(filepath.Join(dir, "limits.yaml"), []byte(limits), 0o600),
		os.WriteFile(filepath.Join(dir, "fetches.yaml"), []byte(fetches), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// watchEvery is the pause between two requests of watchElsewhere: without one they take a processor.
const watchEvery = 100 * time.Millisecond

// watchElsewhere asks all the while, as dry runs, for a pod in another namespace of a cluster that everything of
// testdata/bundle, and most of the other bundles of testdata, objects to, and for an object of no namespace. end
// returns when it has ended.
func watchElsewhere(t *testing.T, config *rest.Config) (asked *atomic.Int64, end func()) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	const elsewhere = "elsewhere"
	in := func(resource string) dynamic.NamespaceableResourceInterface {
		return client.Resource(schema.GroupVersionResource{Version: "v1", Resource: resource})
	}
	namespace, pod := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Namespace",
		"metadata": map[string]any{"name": elsewhere, "labels": map[string]any{"environment": "test"}},
	}}, &unstructured.Unstructured{}
	_, err = in("namespaces").Create(t.Context(), namespace, metav1.CreateOptions{})
	if err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	for { // its controller makes it
		_, err := in("serviceaccounts").Namespace(elsewhere).Get(t.Context(), "default", metav1.GetOptions{})
		if err == nil {
			break
		}
		if !apierrors.IsNotFound(err) {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	body := mechanism.Pod{Name: "x", Namespace: elsewhere, Privileged: true}.JSON()
	if err := pod.UnmarshalJSON(body); err != nil {
		t.Fatal(err)
	}
	spec, _ := pod.Object["spec"].(map[string]any)
	spec["hostNetwork"], spec["hostPID"] = true, true
	role := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRole", "metadata": map[string]any{"name": "x"},
	}}
	roles := client.Resource(schema.GroupVersionResource{
		Group: "rbac.authorization.k8s.io", Version: "v1", Resource: "clusterroles",
	})
	ctx, cancel := context.WithCancel(t.Context())
	asked, ended := new(atomic.Int64), make(chan struct{})
	go func() {
		defer close(ended)
		for ; ctx.Err() == nil; time.Sleep(watchEvery) {
			options := metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}}
			is, err := in("pods").Namespace(elsewhere).Create(ctx, pod, options)
			if err == nil {
				_, err = roles.Create(ctx, role, options)
			}
			if err != nil && ctx.Err() == nil {
				t.Errorf("elsewhere, request %d: %v", asked.Load(), err)
				return
			}
			if err == nil && len(is.GetLabels()) != len(pod.GetLabels()) {
				t.Errorf("elsewhere, request %d has the labels %v", asked.Load(), is.GetLabels())
				return
			}
			asked.Add(1)
		}
	}()
	return asked, func() {
		cancel()
		<-ended
	}
}
