package cluster

import (
	"fmt"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/areas/plane"
	"tare/internal/clock"
	"tare/internal/ratelimit"
)

var (
	vaps = schema.GroupVersionResource{
		Group: admissionGroup, Version: "v1",
		Resource: "validatingadmissionpolicies",
	}
	vapBindings = schema.GroupVersionResource{
		Group: admissionGroup, Version: "v1",
		Resource: "validatingadmissionpolicybindings",
	}
	psps = schema.GroupVersionResource{Group: "policy", Version: "v1beta1", Resource: "podsecuritypolicies"}
)

func policy(t *testing.T, name, message string) *unstructured.Unstructured {
	t.Helper()
	return manifest(t, fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: %s}
spec:
  matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  validations: [{expression: "!has(object.metadata.labels.deny)", message: %q}]
`, name, message))
}

func binding(t *testing.T, name, namespace string) *unstructured.Unstructured {
	t.Helper()
	return manifest(t, fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: %s}
spec:
  policyName: %[1]s
  validationActions: [Deny]
  matchResources: {namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: %s}}}
`, name, namespace))
}

func TestRealPlane(t *testing.T) {
	t.Parallel()
	p := startPlane(t, plane.V136, false, false)
	c, other := admin(t, p, "run-1", true), admin(t, p, "run-2", true)
	t.Run("version", func(t *testing.T) {
		v, err := c.Version(t.Context())
		if err != nil || !strings.HasPrefix(v.GitVersion, "v1.36.") {
			t.Errorf("version %+v, %v; want 1.36", v, err)
		}
		if has, err := c.Has(t.Context(), psps); has || err != nil {
			t.Errorf("has PodSecurityPolicies: %v, %v", has, err)
		}
		text, err := c.Metrics(t.Context())
		if err != nil || !strings.Contains(string(text), "apiserver_request_duration_seconds_bucket") {
			t.Errorf("metrics of %d bytes, %v", len(text), err)
		}
	})
	t.Run("create", func(t *testing.T) { tryCreate(t, c, other) })
	t.Run("fill", func(t *testing.T) { tryFill(t, c) })
	t.Run("wire", func(t *testing.T) { tryWire(t, c) })
	t.Run("undo", func(t *testing.T) { tryUndo(t, p) })
	t.Run("remove", func(t *testing.T) { tryRemove(t, c, other) })
}

// tryCreate: twice is fine, but not what is another's, and never a change.
func tryCreate(t *testing.T, c, other *Cluster) {
	ctx := t.Context()
	restricted := map[string]string{"pod-security.kubernetes.io/enforce": "restricted"}
	for range 2 {
		if err := c.EnsureNamespace(ctx, "tare-one", restricted); err != nil {
			t.Fatal(err)
		}
		if err := c.Apply(ctx, []*unstructured.Unstructured{
			policy(t, "a", "no"), policy(t, "b", "no"),
			binding(t, "a", "tare-one"),
		}, 8); err != nil {
			t.Fatal(err)
		}
	}
	wantError(t, c.Apply(ctx, []*unstructured.Unstructured{policy(t, "b", "other")}, 1), "ValidatingAdmissionPolicy b",
		"other contents")
	wantError(t, other.Apply(ctx, []*unstructured.Unstructured{policy(t, "a", "no")}, 1), "ValidatingAdmissionPolicy a",
		"another run", "run-1")
	wantError(t, c.EnsureNamespace(ctx, "default", nil), "Namespace default", "did not create it")
	wantError(t, c.Apply(ctx, []*unstructured.Unstructured{object("policy/v1beta1", "PodSecurityPolicy", "", "x")}, 1),
		"PodSecurityPolicy x", "does not have")
	got, err := c.Dynamic().Resource(vaps).Get(ctx, "b", metav1.GetOptions{})
	if err != nil || got.GetGeneration() != 1 || got.GetLabels()[OwnerLabel] != "run-1" ||
		got.GetLabels()[ManagerLabel] != Manager {
		t.Errorf("got generation %v, labels %v, %v; want generation 1 and the run's labels",
			got.GetGeneration(), got.GetLabels(), err)
	}
}

func tryFill(t *testing.T, c *Cluster) {
	ctx := t.Context()
	shape := c.Shape("tare-one")
	shape.Scheduler = NoScheduler
	for _, s := range []Stock{Pods, Deployments, ConfigMaps} {
		begin := time.Now()
		for _, part := range [][2]int{{0, 40}, {30, 30}} { // the second lacks only what the first has not made
			if err := c.Fill(ctx, s, shape, "stock-", part[0], part[1]); err != nil {
				t.Fatal(err)
			}
		}
		n, err := c.Count(ctx, "tare-one", s.Resource())
		if err != nil || n != 60 {
			t.Errorf("%d of %s, %v; want 60", n, s, err)
		}
		for name, want := range map[string]bool{StockName("stock-", 59): true, StockName("stock-", 60): false} {
			if there, err := c.Exists(ctx, "tare-one", s.Resource(), name); there != want || err != nil {
				t.Errorf("%s %s is there: %v, %v", s, name, there, err)
			}
		}
		filled := time.Since(begin)
		if err := c.DeleteAll(ctx, "tare-one", s.Resource()); err != nil {
			t.Fatal(err)
		}
		if n, err := c.Count(ctx, "", s.Resource()); err != nil || n != 0 {
			t.Errorf("%d of %s left, %v", n, s, err)
		}
		t.Logf("%s: 60 made in %v, removed in %v", s, filled, time.Since(begin)-filled)
	}
}

// tryWire asks the server with nothing but what Addr, TLS and Header say.
func tryWire(t *testing.T, c *Cluster) {
	secure, err := c.TLS()
	if err != nil {
		t.Fatal(err)
	}
	header, err := c.Header(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	addr, err := c.Addr(t.Context())
	if err != nil || addr.String() != c.Host() {
		t.Fatalf("%v for %s, %v", addr, c.Host(), err)
	}
	tr := &http.Transport{TLSClientConfig: secure, ForceAttemptHTTP2: true}
	defer tr.CloseIdleConnections()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		"https://"+c.Host()+c.Prefix()+"/api/v1/namespaces", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	r.Header = header
	res, err := tr.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	if res.StatusCode != 200 || res.ProtoMajor != 2 || header.Get("User-Agent") != userAgent {
		t.Errorf("%s over %s as %q", res.Status, res.Proto, header.Get("User-Agent"))
	}
	if err := res.Body.Close(); err != nil {
		t.Error(err)
	}
}

// tryUndo works from a change's data alone, as a new process does after kill −9.
func tryUndo(t *testing.T, p *plane.Plane) {
	path := write(t, kubeconfig(p.Server(), p.CA, "token: "+p.AdminToken))
	c := connect(t, Options{Run: "run-3", Kubeconfig: path, Bare: true, Limit: ratelimit.New(clock.System{}, 500)})
	resources := []schema.GroupVersionResource{vaps, vapBindings, configMaps}
	change, err := c.Change("admission", "objects-1", resources)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range change.Data {
		if strings.Contains(value, p.AdminToken) {
			t.Errorf("the journal's %s holds the token", name)
		}
	}
	objects := []*unstructured.Unstructured{
		policy(t, "undo-a", "no"), binding(t, "undo-a", "default"),
		object("v1", "ConfigMap", "default", "undo-c"),
	}
	if err := c.Apply(t.Context(), objects, 1); err != nil {
		t.Fatal(err)
	}
	another := change
	another.Data = maps.Clone(change.Data)
	another.Data["ca_sha256"] = strings.Repeat("0", 64)
	wantError(t, Undo(t.Context(), another, nil, clock.System{}), "now means", "nothing was removed", "tare.dev/run=run-3")
	for round, want := range []int{1, 0, 0} {
		for _, r := range resources {
			if n, err := c.Count(t.Context(), "", r); n != want || err != nil {
				t.Errorf("before round %d: %d of %s, %v; want %d", round, n, r.Resource, err, want)
			}
		}
		if err := Undo(t.Context(), change, nil, clock.System{}); err != nil {
			t.Fatal(err)
		}
	}
}

// tryRemove: everything of the run goes, nothing of others; what does not go is named.
func tryRemove(t *testing.T, c, other *Cluster) {
	ctx := t.Context()
	foreign := policy(t, "foreign", "no")
	if _, err := c.Dynamic().Resource(vaps).Create(ctx, foreign, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := other.Apply(ctx, []*unstructured.Unstructured{policy(t, "others", "no")}, 1); err != nil {
		t.Fatal(err)
	}
	held := object("v1", "ConfigMap", "tare-one", "held")
	held.SetFinalizers([]string{"tare.dev/test"})
	if err := c.Apply(ctx, []*unstructured.Unstructured{held}, 1); err != nil {
		t.Fatal(err)
	}
	c.patience = time.Second
	defer func() { c.patience = 20 * time.Second }()
	wantError(t, c.DeleteAll(ctx, "", configMaps), "tare-one/held", "finalizers tare.dev/test", "did not go")
	patch := []byte(`{"metadata": {"finalizers": null}}`)
	if _, err := c.Dynamic().Resource(configMaps).Namespace("tare-one").Patch(ctx, "held", "application/merge-patch+json",
		patch, metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	gone := schema.GroupVersionResource{Group: "tare.example", Version: "v1", Resource: "things"}
	for range 2 {
		if err := c.RemoveAll(ctx, []schema.GroupVersionResource{
			namespaces, vaps, gone, psps, configMaps, accounts, pods,
			vapBindings,
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, r := range []schema.GroupVersionResource{namespaces, vaps, vapBindings, accounts} {
		if n, err := c.Count(ctx, "", r); n != 0 || err != nil {
			t.Errorf("%d of %s left, %v", n, r.Resource, err)
		}
	}
	for _, name := range []string{"foreign", "others"} {
		if _, err := c.Dynamic().Resource(vaps).Get(ctx, name, metav1.GetOptions{}); err != nil {
			t.Errorf("%s does not belong to this run: %v", name, err)
		}
	}
}

func TestRealPSP(t *testing.T) {
	t.Parallel()
	p := startPlane(t, plane.V124, false, true)
	c := admin(t, p, "run-1", true)
	if has, err := c.Has(t.Context(), psps); !has || err != nil {
		t.Fatalf("has PodSecurityPolicies: %v, %v", has, err)
	}
	psp := manifest(t, `apiVersion: policy/v1beta1
kind: PodSecurityPolicy
metadata: {name: p, annotations: {seccomp.security.alpha.kubernetes.io/allowedProfileNames: "*"}}
spec: {seLinux: {rule: RunAsAny}, runAsUser: {rule: RunAsAny}, supplementalGroups: {rule: RunAsAny},
  fsGroup: {rule: RunAsAny}, volumes: ["*"]}
`)
	for range 2 {
		if err := c.Apply(t.Context(), []*unstructured.Unstructured{psp}, 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.EnsureNamespace(t.Context(), "tare-one", nil); err != nil {
		t.Fatal(err)
	}
	if err := c.Fill(t.Context(), Pods, c.Shape("tare-one"), "p-", 0, 3); err != nil {
		t.Fatal(err)
	}
	if user, err := c.User(t.Context()); user != "" || err != nil {
		t.Errorf("user %q, %v", user, err)
	}
	if err := c.RemoveAll(t.Context(), []schema.GroupVersionResource{namespaces, pods, accounts, psps}); err != nil {
		t.Fatal(err)
	}
	if n, err := c.Count(t.Context(), "", psps); n != 0 || err != nil {
		t.Errorf("%d left, %v", n, err)
	}
}
