package admission

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"tare/areas/admission/cluster"
	"tare/internal/clock"
)

// clusterToken is the bearer token of the kubeconfig that fakeCluster writes, which nothing may print.
const clusterToken = "s3cret-token"

// An apiAnswer is the status (0: 200) and the JSON body of a fake API server's response.
type apiAnswer struct {
	Status int
	Body   map[string]any
}

// defaultAccount is what a cluster with a controller-manager has.
const defaultAccount = "/api/v1/namespaces/default/serviceaccounts/default"

// fakeCluster starts an API server that tells its version and whether its user has a right, and has defaultAccount;
// lacks are the rights that the user does not have: "delete namespaces", "get /metrics". more are its answers to other
// requests, by method and path: "GET /metrics". Any other request fails the test.
func fakeCluster(t *testing.T, lacks []string, more map[string]apiAnswer) (kubeconfig string) {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		request := r.Method + " " + r.URL.Path
		answer, ok := more[request]
		switch {
		case ok:
		case request == "GET /version":
			answer.Body = map[string]any{"major": "1", "minor": "36", "gitVersion": "v1.36.3"}
		case request == "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
			answer.Body = reviewAccess(t, r, lacks)
		case request == "GET "+defaultAccount:
			answer.Body = map[string]any{"apiVersion": "v1", "kind": "ServiceAccount"}
		default:
			t.Errorf("the cluster got an unexpected request: %s", request)
		}
		w.Header().Set("Content-Type", "application/json")
		if answer.Status != 0 {
			w.WriteHeader(answer.Status)
		}
		if err := json.NewEncoder(w).Encode(answer.Body); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{
		Type:  "CERTIFICATE",
		Bytes: s.Certificate().Raw,
	}))
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "x",
"contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
"clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority-data": %q}}],
"users": [{"name": "u", "user": {"token": %q}}]}`, s.URL, ca, clusterToken)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// fakeKeeper is a connection to such an API server.
func fakeKeeper(t *testing.T, more map[string]apiAnswer) *cluster.Cluster {
	t.Helper()
	c, err := cluster.New(t.Context(), cluster.Options{Run: "r", Kubeconfig: fakeCluster(t, nil, more)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// reviewAccess is the response to a SelfSubjectAccessReview of a user who lacks some rights.
func reviewAccess(t *testing.T, r *http.Request, lacks []string) map[string]any {
	var in struct {
		Spec struct {
			ResourceAttributes    struct{ Verb, Resource string }
			NonResourceAttributes struct{ Verb, Path string }
		}
	}
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		t.Error(err)
	}
	a, b := in.Spec.ResourceAttributes, in.Spec.NonResourceAttributes
	lacking := slices.Contains(lacks, a.Verb+" "+a.Resource) || slices.Contains(lacks, b.Verb+" "+b.Path)
	return map[string]any{
		"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
		"status": map[string]any{"allowed": !lacking},
	}
}

// TestAnswersThatRepeatTheCredential: nothing that is made of an answer has the credential which the server sends back.
func TestAnswersThatRepeatTheCredential(t *testing.T) {
	const path = "/api/v1/namespaces/n/pods"
	keeper := fakeKeeper(t, map[string]apiAnswer{"POST " + path: {Status: http.StatusForbidden, Body: map[string]any{
		"kind": "Status", "message": "gateway: Authorization Bearer " + clusterToken + " is not allowed",
	}}})
	p, err := newAsker(keeper, nil, clock.System{})
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	a, err := p.do(t.Context(), http.MethodPost, path, jsonType, nil)
	if want := "gateway: Authorization Bearer ************ is not allowed"; err != nil || a.said() != want ||
		a.message() != want {
		t.Errorf("%s, %v; want %s", a.said(), err, want)
	}
}
