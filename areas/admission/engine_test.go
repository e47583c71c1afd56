package admission

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"tare/area"
	"tare/internal/design"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// A testEngine is a third-party policy engine: it runs beside the cluster, defines a kind for each template that it
// finds, under a resource name that cannot be guessed from the kind, and its webhook denies pods on the host's network
// in the name of each rule of such a kind. Some time after a template is removed, it removes the kind.
type testEngine struct {
	t      *testing.T
	client dynamic.Interface
	server *httptest.Server
	stop   chan struct{}
	done   sync.WaitGroup

	mu    sync.Mutex
	rules []string
}

var (
	definitionsGVR = schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1",
		Resource: "customresourcedefinitions",
	}
	templatesGVR = schema.GroupVersionResource{
		Group: "templates.engine.example", Version: "v1",
		Resource: "ruletemplates",
	}
)

const rulesGroup = "rules.engine.example"

// runEngine runs an engine until the test ends.
func runEngine(t *testing.T, config *rest.Config) *testEngine {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	e := &testEngine{t: t, client: client, stop: make(chan struct{})}
	e.server = httptest.NewUnstartedServer(e)
	e.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	e.server.StartTLS()
	env := testEnv(t)
	ctx := t.Context()
	e.done.Go(func() {
		for env.Clock.Sleep(ctx, pause) == nil {
			select {
			case <-e.stop:
				return
			default:
				e.reconcile()
			}
		}
	})
	t.Cleanup(func() {
		close(e.stop)
		e.done.Wait()
		e.server.Close()
	})
	return e
}

// reconcile creates and removes kinds as the templates say, and reads the rules.
func (e *testEngine) reconcile() {
	ctx := e.t.Context()
	wanted := map[string]bool{}
	templates, err := e.client.Resource(templatesGVR).List(ctx, metav1.ListOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		return
	}
	if err == nil {
		for i := range templates.Items {
			kind, _, _ := unstructured.NestedString(templates.Items[i].Object, "spec", "kind")
			wanted[strings.ToLower(kind)+"."+rulesGroup] = true
			_, _ = e.client.Resource(definitionsGVR).Create(ctx, definition(kind), metav1.CreateOptions{}) // retried next time
		}
	}
	var rules []string
	defined, err := e.client.Resource(definitionsGVR).List(ctx, metav1.ListOptions{LabelSelector: "made-by=engine"})
	if err != nil {
		return
	}
	for i := range defined.Items {
		name := defined.Items[i].GetName()
		if !wanted[name] {
			_ = e.client.Resource(definitionsGVR).Delete(ctx, name, metav1.DeleteOptions{}) // retried next time
			continue
		}
		plural, _, _ := strings.Cut(name, ".")
		list, err := e.client.Resource(schema.GroupVersionResource{
			Group: rulesGroup, Version: "v1",
			Resource: plural,
		}).List(ctx, metav1.ListOptions{})
		for k := 0; err == nil && k < len(list.Items); k++ {
			rules = append(rules, list.Items[k].GetName())
		}
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rules = rules
}

// definition defines the kind of a template's rules. Its plural is the kind in lower case.
func definition(kind string) *unstructured.Unstructured {
	plural := strings.ToLower(kind)
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": plural + "." + rulesGroup, "labels": map[string]any{"made-by": "engine"}},
		"spec": map[string]any{
			"group": rulesGroup, "scope": "Cluster", "names": map[string]any{"kind": kind, "plural": plural, "singular": plural},
			"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type":                                 "object",
					"x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}
}

// ServeHTTP implements http.Handler: the engine's webhook.
func (e *testEngine) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Request struct {
			UID    string `json:"uid"`
			Object struct {
				Spec struct {
					HostNetwork bool `json:"hostNetwork"`
				} `json:"spec"`
			} `json:"object"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	answer := map[string]any{"uid": review.Request.UID, "allowed": true}
	if review.Request.Object.Spec.HostNetwork && len(e.rules) > 0 {
		answer["allowed"] = false
		answer["status"] = map[string]any{"code": http.StatusForbidden, "message": fmt.Sprintf("denied by %q", e.rules)}
	}
	w.Header().Set("Content-Type", jsonType)
	err := json.NewEncoder(w).Encode(map[string]any{
		"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview",
		"response": answer,
	})
	if err != nil {
		e.t.Errorf("the engine's webhook: %v", err)
	}
}

// manifests writes the files that bring the engine's policies in force: the definition of its templates, a template, a
// rule for each policy, of a kind that exists only once the engine has read the template, and the webhook.
func (e *testEngine) manifests() *Manifests {
	dir := e.t.TempDir()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: e.server.Certificate().Raw})
	for name, text := range map[string]string{
		"10-definition.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: ruletemplates.templates.engine.example}
spec:
  group: templates.engine.example
  scope: Cluster
  names: {kind: RuleTemplate, plural: ruletemplates, singular: ruletemplate}
  versions: [{name: v1, served: true, storage: true,
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`,
		"20-template.yaml": "apiVersion: templates.engine.example/v1\nkind: RuleTemplate\nmetadata: {name: hosts}\nspec: " +
			"{kind: NoHostAccess}\n",
		"30-rules.yaml": "apiVersion: rules.engine.example/v1\nkind: NoHostAccess\nmetadata: {name: " +
			"hosts-$(TARE_POLICY)}\n",
		"40-webhook.yaml": fmt.Sprintf(`apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: engine.example}
webhooks:
  - name: pods.engine.example
    admissionReviewVersions: [v1]
    sideEffects: None
    failurePolicy: Fail
    clientConfig: {url: %q, caBundle: %s}
    namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: $(TARE_NAMESPACE)}}
    rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
`, e.server.URL+"/admit", base64.StdEncoding.EncodeToString(ca)),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			e.t.Fatal(err)
		}
	}
	return &Manifests{
		Before: dir, Bad: "testdata/manifests/bad.yaml",
		Says: []string{"pods.engine.example", `"hosts-$(TARE_POLICY)"`},
	}
}

// wantFutureKind wants a finding about the one kind that only the engine will define, and nothing that stops the run.
func wantFutureKind(t *testing.T, findings []area.Finding) {
	t.Helper()
	said := false
	for _, f := range findings {
		said = said || strings.HasSuffix(f.Message, ": NoHostAccess.rules.engine.example")
		if f.Severity == area.Error || strings.Contains(f.Message, "RuleTemplate") {
			t.Errorf("preflight: %+v", f)
		}
	}
	if !said {
		t.Errorf("preflight does not say which kind is yet to come: %+v", findings)
	}
}

// TestEngine measures an engine on an external cluster with one policy and with three: kinds come and go with the
// policies, all policies are verified, and nothing is left behind.
func TestEngine(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	kubeconfig, config := foreignCluster(t)
	before := awaitSettled(t, config)
	e := runEngine(t, config)
	spec := &Spec{Kubeconfig: kubeconfig, Objects: 10, Manifests: e.manifests()}
	arms := []design.Treatment{
		treatment("mechanism", "none"), treatment("mechanism", "manifests", "policies", "1"),
		treatment("mechanism", "manifests", "policies", "3"),
	}
	env := testEnv(t)
	env.Treatments = arms
	wantFutureKind(t, Area{}.Preflight(t.Context(), spec, env))
	tg, j := opened(t, spec, env)
	prepare(t, tg, j, arms)
	for _, k := range []int{1, 0, 2, 2, 1} {
		runTrial(t, tg, arms[k], 10)
	}
	if err := tg.Enter(t.Context(), arms[2]); err != nil {
		t.Fatal(err)
	}
	if err := e.client.Resource(schema.GroupVersionResource{Group: rulesGroup, Version: "v1", Resource: "nohostaccess"}).
		Delete(t.Context(), "hosts-00002", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	wantVerifyFails(t, tg, arms[2], "hosts-00002") // the other two deny the pod as well
	if err := tg.Leave(t.Context(), arms[2]); err != nil {
		t.Fatal(err)
	}
	none := armOf(t, tg, arms[0])
	createBehind(t, none, foreignPolicy("engine-stranger", "!object.spec.?hostNetwork.orValue(false)"))
	wantVerifyFails(t, tg, arms[0], "the baseline is none", "denied by a stranger")
	deleteBehind(t, none, "ValidatingAdmissionPolicyBinding", "engine-stranger")
	deleteBehind(t, none, "ValidatingAdmissionPolicy", "engine-stranger")
	if err := tg.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	j.WantAllUndone(t)
	wantUnchanged(t, config, before)
}

// TestUndoEngine undoes an engine's policies twice from the journal's data alone, including kinds that did not exist
// when the journal was written.
func TestUndoEngine(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	t.Parallel()
	kubeconfig, config := foreignCluster(t)
	before := awaitSettled(t, config)
	e := runEngine(t, config)
	env := testEnv(t)
	o, err := Area{}.Open(t.Context(), &Spec{Kubeconfig: kubeconfig, Objects: 10, Manifests: e.manifests()}, env)
	if err != nil {
		t.Fatal(err)
	}
	tg, _ := o.(*target)
	j := &areatest.Journal{}
	tr := treatment("mechanism", "manifests", "policies", "2")
	if err := tg.Prepare(t.Context(), tr, j); err != nil {
		t.Fatal(err)
	}
	if err := tg.Enter(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	armOf(t, tg, tr).stopRenewal() // as if another process did the rest
	areatest.UndoTwice(t, Area{}, j.Pending(), area.Env{Clock: env.Clock, Log: env.Log})
	wantUnchanged(t, config, before)
}
