package mechanism_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"tare/areas/admission/apimetrics"
	"tare/areas/admission/mechanism"
	"tare/areas/admission/webhook"
	"tare/areas/plane"
	"tare/rigs/hosttest"
)

// tried is one population on a real API server.
type tried struct {
	kind  mechanism.Kind
	p     mechanism.Population
	large bool
}

func population(k mechanism.Kind, total int, change func(*mechanism.Population)) tried {
	p := mechanism.Default(k, total)
	if change != nil {
		change(&p)
	}
	return tried{kind: k, p: p, large: total > 100}
}

func irrelevantBy(why mechanism.Irrelevance) func(*mechanism.Population) {
	return func(p *mechanism.Population) { p.Useable, p.Irrelevant = 1, why }
}

func TestMechanismsAreInForceOn136(t *testing.T) {
	a := startPlane(t, plane.V136)
	hooks := serveWebhook(t)
	all := []tried{
		{kind: mechanism.None},
		{kind: mechanism.PSA, p: mechanism.Population{Level: mechanism.Privileged}},
		{kind: mechanism.PSA, p: mechanism.Population{Level: mechanism.Baseline}},
		{kind: mechanism.PSA, p: mechanism.Population{Level: mechanism.Restricted}},
	}
	for _, k := range []mechanism.Kind{mechanism.VAP, mechanism.MAP, mechanism.Webhook, mechanism.MutatingWebhook} {
		for _, total := range []int{1, 10, 100} {
			all = append(all, population(k, total, nil))
		}
		for _, why := range []mechanism.Irrelevance{
			mechanism.NamespaceSelector, mechanism.MatchConditions,
			mechanism.ResourceRule,
		} {
			all = append(all, population(k, 20, irrelevantBy(why)))
		}
		all = append(all,
			population(k, 20, func(p *mechanism.Population) { p.Bound, p.Useable = 5, 2 }),
			population(k, 20, func(p *mechanism.Population) { p.Bound, p.Useable = 0, 0 }))
	}
	all = append(all, population(mechanism.VAP, 1000, nil), population(mechanism.MAP, 1000, nil))
	costs := map[tried]float64{}
	for i, c := range all {
		name := fmt.Sprintf("%s-%s%d-%d-%d-%s", c.kind, c.p.Level, c.p.Total, c.p.Bound, c.p.Useable, c.p.Irrelevant)
		t.Run(name, func(t *testing.T) { costs[tried{kind: c.kind, p: c.p}] = a.at(t).try(i, c, hooks) })
	}
	growth(t, costs)
}

// growth: a hundred that are evaluated cost at least three times what one does, by far less than they do and more than
// noise makes of one.
func growth(t *testing.T, costs map[tried]float64) {
	t.Helper()
	for _, k := range []mechanism.Kind{mechanism.VAP, mechanism.MAP, mechanism.Webhook, mechanism.MutatingWebhook} {
		one, hundred := costs[population(k, 1, nil)], costs[population(k, 100, nil)]
		if one > 0 && hundred > 0 && hundred < 3*one {
			t.Errorf("%s: %.2f ms CPU with 1 policy, %.2f ms with 100: they are not evaluated", k, one, hundred)
		}
	}
}

func TestPodSecurityPoliciesAreInForceOn124(t *testing.T) {
	a := startPlane(t, plane.V124)
	all := []tried{
		population(mechanism.PSP, 1, nil), population(mechanism.PSP, 10, nil),
		population(mechanism.PSP, 100, nil), population(mechanism.PSP, 1000, nil),
	}
	for _, bindings := range []mechanism.Bindings{mechanism.One, mechanism.Each} {
		for _, position := range []mechanism.Position{mechanism.First, mechanism.Last} {
			all = append(all, population(mechanism.PSP, 20, func(p *mechanism.Population) {
				p.Bound, p.Useable, p.Bindings,
					p.Position = 8, 2, bindings, position
			}))
		}
	}
	all = append(all, population(mechanism.PSP, 20, func(p *mechanism.Population) {
		p.Bound, p.Irrelevant = 1,
			mechanism.Unauthorized
	}))
	for i, c := range all {
		name := fmt.Sprintf("%d-%d-%d-%s-%s-%s", c.p.Total, c.p.Bound, c.p.Useable, c.p.Irrelevant,
			c.p.Position, c.p.Bindings)
		t.Run(name, func(t *testing.T) { a.at(t).try(i, c, webhook.Ready{}) })
	}
}

// at is a, for a subtest.
func (a *api) at(t *testing.T) *api { return &api{t: t, plane: a.plane, client: a.client} }

// try puts a population in place, proves it, counts what is evaluated, removes it, and returns what it costs: ms of the
// API server's CPU for a pod.
func (a *api) try(index int, c tried, hooks webhook.Ready) (cpu float64) {
	if c.large {
		hosttest.SkipUnlessLong(a.t)
	}
	s := mechanism.Scope{
		Run: fmt.Sprintf("r%d", index), Namespace: fmt.Sprintf("tare-try-%d", index), Caller: plane.CallerUser,
		WebhookURL: hooks.URL, CABundle: hooks.CA,
	}
	r, err := mechanism.Render(c.kind, c.p, s)
	if err != nil {
		a.t.Fatal(err)
	}
	a.namespace(s.Namespace, r.NamespaceLabels)
	a.apply(r)
	proof := mechanism.Prove(c.kind, c.p, s)
	waited := a.inForce(s.Namespace, proof)
	if proof.Count != nil {
		a.count(s.Namespace, *proof.Count, hooks)
	}
	n := 30
	if c.p.Total >= 100 {
		n = 10
	}
	a.cost(s.Namespace, proof.Good, 3)
	var p50 float64
	p50, cpu = a.cost(s.Namespace, proof.Good, n)
	a.t.Logf("p50 %.2f ms, %.2f ms CPU of the API server, in force after %.1f s", p50, cpu, waited.Seconds())
	a.remove(r, s.Run, s.Namespace)
	if c.kind == mechanism.VAP || c.kind == mechanism.Webhook { // what was denied is admitted again
		absence := mechanism.Prove(mechanism.None, mechanism.Population{}, s)
		absence.Bad[0].Pod = proof.Bad[0].Pod
		a.inForce(s.Namespace, absence)
	}
	return cpu
}

// count sends the probe and compares what the counters say before and after it.
func (a *api) count(namespace string, c mechanism.Count, hooks webhook.Ready) {
	a.t.Helper()
	read, want := a.checks, c.Policies
	if len(c.Policies) == 0 {
		read, want = func() map[string]uint64 { return a.reviews(hooks) }, c.Paths
	}
	before := read()
	if err := a.judge(namespace, c.Probe); err != nil {
		a.t.Fatal(err)
	}
	got, wanted := map[string]uint64{}, map[string]uint64{}
	for name, n := range read() {
		if n != before[name] && strings.HasPrefix(name, c.Prefix) {
			got[name] = n - before[name]
		}
	}
	for _, name := range want {
		wanted[name] = 1
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		a.t.Errorf("evaluated by one request (-want +got):\n%s", diff)
	}
}

// checks are the API server's counts of denials, by policy.
func (a *api) checks() map[string]uint64 {
	a.t.Helper()
	status, text := a.send(a.plane.AdminToken, http.MethodGet, "/metrics", nil)
	if status != http.StatusOK {
		a.t.Fatalf("read /metrics: status %d", status)
	}
	counts, err := apimetrics.PolicyChecks(text)
	if err != nil {
		a.t.Fatal(err)
	}
	return counts
}

// reviews are the reference webhook's counts, by path.
func (a *api) reviews(r webhook.Ready) map[string]uint64 {
	a.t.Helper()
	client := trusting(a.t, r.CA)
	resp, err := client.Get(r.URL + webhook.CountsPath)
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var counts webhook.Counts
	if err := json.NewDecoder(resp.Body).Decode(&counts); err != nil {
		a.t.Fatal(err)
	}
	out := map[string]uint64{}
	for path, n := range counts.Paths {
		out[path] = uint64(n)
	}
	return out
}

// serveWebhook runs the reference webhook until the test ends.
func serveWebhook(t *testing.T) webhook.Ready {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ready, done := make(chan webhook.Ready, 1), make(chan error, 1)
	go func() {
		done <- webhook.Run(ctx, webhook.Config{}, func(r webhook.Ready) error { ready <- r; return nil })
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Errorf("the webhook ended with %v", err)
		}
	})
	select {
	case r := <-ready:
		return r
	case err := <-done:
		done <- err
		t.Fatal(err)
		return webhook.Ready{}
	}
}

// A refused is a request that a real API server answers with a Status, kept in testdata/status.
type refused struct {
	name      string
	status    int
	want      mechanism.Ruling
	namespace string // ours if empty
	pod       string // YAML of more than the usual pod has; the label "case" is the name
	body      string // instead of a pod
	token     func(*plane.Plane) string
}

// refusedCases are tried on a real API server, and what it answered is judged without one, by the same table.
func refusedCases() []refused {
	return []refused{
		{name: "webhook-sets-no-code", status: 400, want: mechanism.PolicyDenied},
		{name: "webhook-says-403", status: 403, want: mechanism.PolicyDenied},
		{name: "webhook-says-nothing", status: 400, want: mechanism.PolicyDenied},
		{name: "webhook-says-500", status: 500, want: mechanism.PolicyFailed},
		{name: "webhook-says-429", status: 429, want: mechanism.PolicyFailed},
		{name: "webhook-is-away", status: 500, want: mechanism.PolicyFailed},
		{name: "webhook-answers-502", status: 500, want: mechanism.PolicyFailed},
		{name: "webhook-condition-fails", status: 403, want: mechanism.PolicyFailed},
		{name: "cel-denies", status: 422, want: mechanism.PolicyDenied},
		{name: "cel-denies-as-forbidden", status: 403, want: mechanism.PolicyDenied},
		{name: "cel-fails", status: 422, want: mechanism.PolicyFailed},
		{name: "cel-condition-fails", status: 422, want: mechanism.PolicyFailed},
		{name: "cel-parameter-is-missing", status: 422, want: mechanism.PolicyFailed},
		{name: "pod-security", status: 403, want: mechanism.PolicyDenied, namespace: "tare-restricted"},
		{name: "quota", status: 403, want: mechanism.PolicyDenied, namespace: "tare-quota"},
		{
			name: "limit-range", status: 403, want: mechanism.PolicyDenied, namespace: "tare-limits",
			pod: `spec: {containers: [{name: main, image: none, resources: {limits: {cpu: "2"}}}]}`,
		},
		{name: "no-right", status: 403, want: mechanism.AccessDenied, namespace: "kube-system"},
		{name: "namespace-ends", status: 403, want: mechanism.NoRuling, namespace: "tare-ends"},
		{name: "no-service-account", status: 403, want: mechanism.NoRuling, pod: `spec: {serviceAccountName: nobody}`},
		{name: "no-priority-class", status: 403, want: mechanism.NoRuling, pod: `spec: {priorityClassName: nobody}`},
		{name: "unknown-caller", status: 401, want: mechanism.NoRuling, token: func(*plane.Plane) string { return "nobody" }},
		{
			name: "no-namespace", status: 404, want: mechanism.NoRuling, namespace: "nowhere",
			token: func(p *plane.Plane) string { return p.AdminToken },
		},
		{name: "malformed", status: 400, want: mechanism.NoRuling, body: `{"kind":"Pod","spec":7}`},
		{
			name: "malformed-quotes-a-denial", status: 400, want: mechanism.NoRuling,
			body: `{"apiVersion":"v1","kind":"Pod","spec":{"hostNetwork":"admission webhook \"w\" denied the request: no"}}`,
		},
		{name: "invalid-quotes-a-denial", status: 422, want: mechanism.NoRuling, pod: `metadata: {labels: {` +
			`"quoted": "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'p' denied request: no"}}`},
		{
			name: "name-quotes-a-denial", status: 422, want: mechanism.NoRuling,
			pod: `metadata: {name: "x is forbidden: ValidatingAdmissionPolicy 'p' denied request: no"}`,
		},
	}
}

// request is the body of a case.
func (r refused) request(t *testing.T) []byte {
	t.Helper()
	if r.body != "" {
		return []byte(r.body)
	}
	pod := parsed(t, `{apiVersion: v1, kind: Pod, metadata: {name: x, labels: {case: `+r.name+`}}, spec: {containers: [{name: main, image: none}]}}`)
	if r.pod != "" {
		for section, more := range parsed(t, r.pod) {
			merge(pod, section, more)
		}
	}
	out, err := json.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// merge puts the fields of a section into the same section of object, and of its labels into its labels.
func merge(object map[string]any, section string, more any) {
	from, _ := more.(map[string]any)
	into, _ := object[section].(map[string]any)
	for name, value := range from {
		if name == "labels" {
			merge(into, name, value)
			continue
		}
		into[name] = value
	}
}

func parsed(t *testing.T, text string) (out map[string]any) {
	t.Helper()
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return out
}

func statusFile(name string) string { return filepath.Join("testdata", "status", name+".json") }

// TestRulingsOn136 makes a real API server refuse pods in every way that matters, and judges what it answers.
func TestRulingsOn136(t *testing.T) {
	a := startPlane(t, plane.V136)
	a.refusals()
	update := flag.Lookup("update").Value.String() == "true"
	for _, c := range refusedCases() {
		t.Run(c.name, func(t *testing.T) {
			code, body := a.at(t).refused(c)
			if got := mechanism.RulingOf(code, body); code != c.status || got != c.want {
				t.Errorf("status %d, ruling %d, want %d and %d: %s", code, got, c.status, c.want, body)
			}
			if update && !t.Failed() {
				if err := os.WriteFile(statusFile(c.name), body, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// refused sends a case until it is refused by what it is about: policies take a while to be in force.
func (a *api) refused(c refused) (code int, body []byte) {
	a.t.Helper()
	token, namespace := a.plane.CallerToken, "tare-refused"
	if c.token != nil {
		token = c.token(a.plane)
	}
	if c.namespace != "" {
		namespace = c.namespace
	}
	for began := time.Now(); time.Since(began) < time.Minute; {
		code, body = a.send(token, http.MethodPost, "/api/v1/namespaces/"+namespace+"/pods?dryRun=All", c.request(a.t))
		if code != http.StatusCreated && !strings.Contains(string(body), "not yet ready") {
			return code, body
		}
		time.Sleep(50 * time.Millisecond)
	}
	return code, body
}

// refusals creates what refuses.
func (a *api) refusals() {
	a.t.Helper()
	a.namespace("tare-refused", nil)
	a.namespace("tare-restricted", map[string]string{"pod-security.kubernetes.io/enforce": "restricted"})
	for _, name := range []string{"tare-quota", "tare-limits", "tare-ends"} {
		a.namespace(name, nil)
	}
	core := schema.GroupVersionResource{Version: "v1", Resource: "resourcequotas"}
	a.put(core, `{apiVersion: v1, kind: ResourceQuota, metadata: {name: q, namespace: tare-quota}, spec: {hard: {pods: "0"}}}`)
	quota := `{"status":{"hard":{"pods":"0"},"used":{"pods":"0"}}}`
	if code, body := a.patch("/api/v1/namespaces/tare-quota/resourcequotas/q/status", quota); code != http.StatusOK {
		a.t.Fatalf("set the quota's status: %d %s", code, body) // no controller runs that would do it
	}
	core.Resource = "limitranges"
	a.put(core, `{apiVersion: v1, kind: LimitRange, metadata: {name: l, namespace: tare-limits}, spec: {limits: [{type: Container, max: {cpu: "1"}}]}}`)
	if code, body := a.send(a.plane.AdminToken, http.MethodDelete, "/api/v1/namespaces/tare-ends",
		nil); code != http.StatusOK {
		a.t.Fatalf("delete namespace tare-ends: %d %s", code, body)
	}
	a.expressions()
	a.webhooks()
}

func (a *api) put(r schema.GroupVersionResource, text string) {
	a.t.Helper()
	a.create(&unstructured.Unstructured{Object: parsed(a.t, text)}, r)
}

func (a *api) patch(path, body string) (int, []byte) {
	a.t.Helper()
	req, err := http.NewRequestWithContext(a.t.Context(), http.MethodPatch, a.plane.Server()+path, strings.NewReader(body))
	if err != nil {
		a.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/merge-patch+json")
	req.Header.Set("Authorization", "Bearer "+a.plane.AdminToken)
	resp, err := a.client.Do(req)
	if err != nil {
		a.t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	var out [512]byte
	n, _ := resp.Body.Read(out[:])
	return resp.StatusCode, out[:n]
}

// expressions creates ValidatingAdmissionPolicies, each for pods of one case.
func (a *api) expressions() {
	a.t.Helper()
	const param = `paramKind: {apiVersion: v1, kind: ConfigMap}, `
	for name, c := range map[string]struct{ policy, binding string }{
		"cel-denies":              {`validations: [{expression: "false", message: no pods}]`, ""},
		"cel-denies-as-forbidden": {`validations: [{expression: "false", reason: Forbidden}]`, ""},
		"cel-fails":               {`validations: [{expression: "object.metadata.annotations['x'] == 'y'"}]`, ""},
		"cel-condition-fails": {
			`matchConditions: [{name: c, expression: "object.metadata.annotations['x'] == 'y'"}], validations: [{expression: "false"}]`, "",
		},
		"cel-parameter-is-missing": {
			param + `validations: [{expression: "false"}]`,
			`paramRef: {name: nowhere, namespace: tare-refused, parameterNotFoundAction: Deny}, `,
		},
	} {
		vap := schema.GroupVersionResource{
			Group: "admissionregistration.k8s.io", Version: "v1",
			Resource: "validatingadmissionpolicies",
		}
		a.put(vap, `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {name: `+name+`}, spec: {failurePolicy: Fail,
			matchConstraints: {resourceRules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}, `+c.policy+`}}`)
		vap.Resource = "validatingadmissionpolicybindings"
		a.put(vap, `{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: `+name+`}, spec: {policyName: `+name+`,
			validationActions: [Deny], `+c.binding+`matchResources: {objectSelector: {matchLabels: {case: `+name+`}}}}}`)
	}
}

// webhooks runs a webhook that answers as its path says, and has it asked for pods of each case.
func (a *api) webhooks() {
	a.t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(answerByPath))
	a.t.Cleanup(server.Close)
	authority := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	for name, c := range map[string]struct{ url, more string }{
		"webhook-sets-no-code": {url: server.URL + `/{"message":"no pods"}`},
		"webhook-says-nothing": {url: server.URL + `/{}`},
		"webhook-says-403":     {url: server.URL + `/{"message":"no pods","reason":"Forbidden","code":403}`},
		"webhook-says-500":     {url: server.URL + `/{"message":"no such key","code":500}`},
		"webhook-says-429":     {url: server.URL + `/{"message":"later","reason":"TooManyRequests","code":429}`},
		"webhook-answers-502":  {url: server.URL + `/`},
		"webhook-is-away":      {url: "https://127.0.0.1:1/"},
		"webhook-condition-fails": {server.URL +
			`/{}`, `, matchConditions: [{name: c, expression: "object.metadata.annotations['x'] == 'y'"}]`},
	} {
		a.put(schema.GroupVersionResource{
			Group: "admissionregistration.k8s.io", Version: "v1",
			Resource: "validatingwebhookconfigurations",
		},
			fmt.Sprintf(`{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingWebhookConfiguration, metadata: {name: %s}, webhooks: [{name: %s.example.com,
			failurePolicy: Fail, admissionReviewVersions: [v1], clientConfig: {url: %q, caBundle: %s},
			objectSelector: {matchLabels: {case: %s}},
			rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}], sideEffects: None%s}]}`,
				name, name, c.url, base64.StdEncoding.EncodeToString(authority), name, c.more))
	}
}

// answerByPath denies with the Status that its path names; without one it answers 502.
func answerByPath(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Request struct {
			UID string `json:"uid"`
		} `json:"request"`
	}
	said := strings.TrimPrefix(r.URL.Path, "/")
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil || said == "" {
		http.Error(w, `admission webhook "w" denied the request: no`, http.StatusBadGateway)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":false,"status":%s}}`,
		review.Request.UID, said)
}
