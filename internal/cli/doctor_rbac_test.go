package cli

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// clusterThatDenies answers what doctor --rbac asks; the user lacks two rights.
func clusterThatDenies(t *testing.T) (kubeconfig string) {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in struct {
			Spec struct {
				ResourceAttributes    struct{ Verb, Resource string }
				NonResourceAttributes struct{ Path string }
			}
		}
		answer := map[string]any{}
		switch r.Method + " " + r.URL.Path {
		case "GET /version":
			answer = map[string]any{"major": "1", "minor": "36", "gitVersion": "v1.36.3"}
		case "GET /apis/authentication.k8s.io/v1":
			answer = map[string]any{"kind": "APIResourceList", "groupVersion": "authentication.k8s.io/v1", "resources": []any{
				map[string]any{"name": "selfsubjectreviews", "kind": "SelfSubjectReview"},
			}}
		case "POST /apis/authentication.k8s.io/v1/selfsubjectreviews":
			answer = map[string]any{
				"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
				"status": map[string]any{"userInfo": map[string]any{"username": "jane"}},
			}
		case "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
			if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
				t.Error(err)
			}
			no := in.Spec.ResourceAttributes.Verb+in.Spec.ResourceAttributes.Resource == "deletenamespaces" ||
				in.Spec.NonResourceAttributes.Path == "/metrics"
			answer = map[string]any{
				"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
				"status": map[string]any{"allowed": !no},
			}
		default:
			t.Errorf("%s %s was not to be asked", r.Method, r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(s.Close)
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{
		Type:  "CERTIFICATE",
		Bytes: s.Certificate().Raw,
	}))
	text := fmt.Sprintf(`{"apiVersion": "v1", "kind": "Config", "current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
"clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority-data": %q}}], "users": [{"name": "u", "user": {"token": "s3cret-token"}}]}`, s.URL, ca)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestDoctorRBACSaysWhatIsMissing(t *testing.T) {
	path := clusterThatDenies(t)
	run := func(args ...string) (int, string, string) {
		var out, errs bytes.Buffer
		e := Env{
			Args:  append([]string{"tare", "doctor", "--rbac", "--kubeconfig", path}, args...),
			Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: os.Getenv,
		}
		code := Main(context.Background(), e)
		return code, out.String(), errs.String()
	}
	code, out, errs := run("--mechanism", "vap")
	if code != 0 || errs != "" {
		t.Errorf("exit %d, %s", code, errs)
	}
	for _, want := range []string{
		"kind: ClusterRole\n", "  - validatingadmissionpolicybindings\n",
		"# jane lacks 2 of 15:\n#   delete namespaces\n#   get /metrics (optional)\n",
		"without it how many policies looked at a request is known from samples alone", "Kubernetes v1.36.3",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "mutating") || strings.Contains(out+errs, "s3cret-token") {
		t.Errorf("too much:\n%s", out)
	}
	if code, out, errs := run("--metrics=false", "--mechanism", "vap"); code != 0 || errs != "" ||
		strings.Contains(out, "/metrics") || !strings.Contains(out, "lacks 1 of 14:") {
		t.Errorf("without metrics: exit %d, %s%s", code, out, errs)
	}
	if code, _, errs := run("--context", "y"); code != 2 || !strings.Contains(errs, `no context "y"; there are: x`) {
		t.Errorf("exit %d, %s", code, errs)
	}
}
