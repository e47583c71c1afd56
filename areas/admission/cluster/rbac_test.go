package cluster

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"tare/areas/plane"
)

var (
	roles    = schema.GroupVersionResource{Group: rbacv1.GroupName, Version: "v1", Resource: "clusterroles"}
	bindings = schema.GroupVersionResource{Group: rbacv1.GroupName, Version: "v1", Resource: "clusterrolebindings"}
)

// everything is all that the area can do on a user's cluster.
var everything = Need{
	Operations: []string{
		"create-pod", "create-pod-dry-run", "update-pod", "patch-pod", "get-pod", "list-pod", "delete-pod", "pod-startup",
		"create-configmap", "patch-configmap-dry-run", "update-deployment", "get-deployment",
	},
	Mechanisms: []string{"none", "psa", "vap", "map", "webhook", "mutating-webhook"},
	Metrics:    true,
}

// grant gives the plane's caller exactly these rules.
func grant(t *testing.T, c *Cluster, rules []rbacv1.PolicyRule) {
	t.Helper()
	role := &rbacv1.ClusterRole{
		TypeMeta:   metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: RoleName}, Rules: rules,
	}
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(role)
	if err != nil {
		t.Fatal(err)
	}
	o := &unstructured.Unstructured{Object: fields}
	if _, err := c.Dynamic().Resource(roles).Create(t.Context(), o, metav1.CreateOptions{}); err == nil {
		bind := manifest(t, fmt.Sprintf(`apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: tare}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: tare}
subjects: [{apiGroup: rbac.authorization.k8s.io, kind: User, name: %s}]
`, plane.CallerUser))
		if _, err := c.Dynamic().Resource(bindings).Create(t.Context(), bind, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	} else if _, err := c.Dynamic().Resource(roles).Update(t.Context(), o, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// without is rules less one right.
func without(rules []rbacv1.PolicyRule, r Right) []rbacv1.PolicyRule {
	var out []rbacv1.PolicyRule
	for _, x := range Rights(rules) {
		switch {
		case x == r:
		case x.Path != "":
			out = append(out, rbacv1.PolicyRule{Verbs: []string{x.Verb}, NonResourceURLs: []string{x.Path}})
		default:
			out = append(out, rbacv1.PolicyRule{
				Verbs: []string{x.Verb}, APIGroups: []string{x.Group},
				Resources: []string{x.Resource},
			})
		}
	}
	return out
}

// await waits until the server says that exactly these rights are lacking: its authorizer follows changes with a delay.
func await(t *testing.T, c *Cluster, rules []rbacv1.PolicyRule, want ...Right) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for {
		missing, err := c.Check(t.Context(), rules)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Equal(missing, want) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("missing %v, want %v", missing, want)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// TestRealRBAC lets a user with exactly the printed rights do everything; and, with any one of them less, not
// everything.
func TestRealRBAC(t *testing.T) {
	t.Parallel()
	p := startPlane(t, plane.V136, true, false)
	boss := admin(t, p, "boss", false)
	rules, err := Rules(everything)
	if err != nil {
		t.Fatal(err)
	}
	path := write(t, kubeconfig(p.Server(), p.CA, "token: "+p.CallerToken))
	user := func(run string) *Cluster {
		return connect(t, Options{Run: run, Kubeconfig: path, Patience: 20 * time.Second})
	}
	none := user("none")
	await(t, none, rules, Rights(rules)...)
	if name, err := none.User(t.Context()); name != plane.CallerUser || err != nil {
		t.Errorf("we are %q, %v", name, err)
	}
	grant(t, boss, rules)
	await(t, none, rules)
	if err := script(t, user("whole"), true); err != nil {
		t.Fatal(err)
	}
	tryLeast(t, boss, user("least"), rules)
	for i, r := range Rights(rules) {
		grant(t, boss, without(rules, r))
		await(t, none, rules, r)
		err := script(t, user(fmt.Sprintf("less-%d", i)), false)
		switch {
		case err == nil:
			t.Errorf("without the right to %s everything still goes: it is not needed", r)
		case !Denied(err) && !strings.Contains(err.Error(), "forbidden"):
			t.Errorf("without the right to %s: %v", r, err)
		}
	}
}

// tryLeast: with the rights for one operation that stores nothing, a run can clean up after itself, too.
func tryLeast(t *testing.T, boss, c *Cluster, all []rbacv1.PolicyRule) {
	t.Helper()
	rules, err := Rules(Need{Operations: []string{"create-pod-dry-run"}, Mechanisms: []string{"vap"}})
	if err != nil {
		t.Fatal(err)
	}
	grant(t, boss, rules)
	has := map[Right]bool{}
	for _, r := range Rights(rules) {
		has[r] = true
	}
	await(t, c, all, slices.DeleteFunc(Rights(all), func(r Right) bool { return has[r] })...)
	if err := c.EnsureNamespace(t.Context(), "tare-least", nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Apply(t.Context(), []*unstructured.Unstructured{
		policy(t, "least", "no"),
		binding(t, "least", "tare-least"),
	}, 1); err != nil {
		t.Fatal(err)
	}
	if err := c.RemoveAll(t.Context(), []schema.GroupVersionResource{
		pods, deploys, configMaps, namespaces, vaps,
		vapBindings,
	}); err != nil {
		t.Fatal(err)
	}
}

// script does all that the area does on a user's cluster.
func script(t *testing.T, c *Cluster, whole bool) error {
	t.Helper()
	ctx := t.Context()
	ns := "tare-" + c.Run()
	objects := []*unstructured.Unstructured{policy(t, ns, "no"), binding(t, ns, ns)}
	for _, text := range []string{
		mapManifest, mapBindingManifest, webhookManifest("Validating"),
		webhookManifest("Mutating"),
	} {
		objects = append(objects, manifest(t, strings.ReplaceAll(text, "NAME", ns)))
	}
	resources := []schema.GroupVersionResource{
		vaps, vapBindings, vaps.GroupVersion().WithResource("mutatingadmissionpolicies"),
		vaps.GroupVersion().WithResource("mutatingadmissionpolicybindings"),
		vaps.GroupVersion().WithResource("validatingwebhookconfigurations"),
		vaps.GroupVersion().WithResource("mutatingwebhookconfigurations"), namespaces,
	}
	steps := []func() error{
		func() error { _, err := c.Metrics(ctx); return err },
		func() error { return c.EnsureNamespace(ctx, ns, nil) },
		func() error { return c.EnsureNamespace(ctx, ns, nil) }, // after a crash
		func() error { return c.Apply(ctx, objects, 1) },
		func() error { return c.Apply(ctx, objects, 1) },
		func() error { return operate(ctx, c, ns) },
		func() error { return c.RemoveAll(ctx, resources[:len(resources)-1]) },
		func() error { return c.RemoveAll(ctx, resources) },
	}
	for _, step := range steps {
		if err := step(); err != nil {
			return err
		}
	}
	for _, r := range resources {
		if n, err := c.Count(ctx, "", r); whole && (n != 0 || err != nil) {
			t.Errorf("%d of %s left, %v", n, r.Resource, err)
		}
	}
	return nil
}

// operate is what load does, with the verbs of everything's operations.
func operate(ctx context.Context, c *Cluster, ns string) error {
	shape := c.Shape(ns)
	shape.Scheduler = NoScheduler
	for _, s := range []Stock{Pods, ConfigMaps, Deployments} {
		for range 2 {
			if err := c.Fill(ctx, s, shape, "s-", 0, 2); err != nil {
				return err
			}
		}
	}
	name := StockName("s-", 0)
	label := []byte(`{"metadata": {"labels": {"touched": "yes"}}}`)
	on := func(s Stock) interface {
		Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions,
			...string) (*unstructured.Unstructured, error)
		Get(context.Context, string, metav1.GetOptions, ...string) (*unstructured.Unstructured, error)
		Update(context.Context, *unstructured.Unstructured, metav1.UpdateOptions,
			...string) (*unstructured.Unstructured, error)
	} {
		return c.Dynamic().Resource(s.Resource()).Namespace(ns)
	}
	for _, s := range []Stock{Pods, ConfigMaps} {
		if _, err := on(s).Patch(ctx, name, types.MergePatchType, label, metav1.PatchOptions{}); err != nil {
			return err
		}
	}
	for _, s := range []Stock{Pods, Deployments} {
		for again := true; again; {
			o, err := on(s).Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			_, err = on(s).Update(ctx, o, metav1.UpdateOptions{})
			if again = apierrors.IsConflict(err); err != nil && !again { // its controller may come in between
				return err
			}
		}
	}
	w, err := c.Dynamic().Resource(pods).Namespace(ns).Watch(ctx, metav1.ListOptions{LabelSelector: c.Selector()})
	if err != nil {
		return err
	}
	w.Stop()
	for _, s := range []Stock{Pods, ConfigMaps, Deployments} {
		if err := c.DeleteAll(ctx, ns, s.Resource()); err != nil {
			return err
		}
	}
	return nil
}

const mapManifest = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: NAME}
spec:
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  mutations: [{patchType: ApplyConfiguration,
    applyConfiguration: {expression: 'Object{metadata: Object.metadata{labels: {"m": "y"}}}'}}]
`

const mapBindingManifest = `apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: NAME}
spec:
  policyName: NAME
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: NAME}}}
`

// webhookManifest is a webhook that is asked about nothing: no namespace has its label.
func webhookManifest(how string) string {
	return `apiVersion: admissionregistration.k8s.io/v1
kind: ` + how + `WebhookConfiguration
metadata: {name: NAME}
webhooks:
- name: one.tare.dev
  sideEffects: None
  admissionReviewVersions: [v1]
  clientConfig: {url: "https://127.0.0.1:1/"}
  namespaceSelector: {matchLabels: {tare.dev/none: NAME}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
`
}
