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
	"strings"
	"testing"

	"tare/internal/area"
	"tare/internal/area/admission/cluster"
	"tare/internal/load"
)

// denying is a cluster of somebody's that answers what is asked before a run; its user lacks these rights: "delete
// namespaces", "get /metrics".
func denying(t *testing.T, lacks ...string) (kubeconfig string) {
	t.Helper()
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]any{}
		switch r.Method + " " + r.URL.Path {
		case "GET /version":
			answer = map[string]any{"major": "1", "minor": "36", "gitVersion": "v1.36.3"}
		case "POST /apis/authorization.k8s.io/v1/selfsubjectaccessreviews":
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
			no := slices.Contains(lacks, a.Verb+" "+a.Resource) || slices.Contains(lacks, b.Verb+" "+b.Path)
			answer = map[string]any{
				"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview",
				"status": map[string]any{"allowed": !no},
			}
		case "GET /metrics":
			w.WriteHeader(http.StatusForbidden)
			answer = map[string]any{
				"apiVersion": "v1", "kind": "Status", "status": "Failure", "code": http.StatusForbidden, "reason": "Forbidden",
				"message": `forbidden: User "jane" cannot get path "/metrics"`,
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
"clusters": [{"name": "c", "cluster": {"server": %q, "certificate-authority-data": %q}}], "users": [{"name": "u", "user": {"token": "s3cret"}}]}`, s.URL, ca)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// TestPreflightAsksForMetrics: a run can do without that right, and is told what it loses; it cannot do without the
// others.
func TestPreflightAsksForMetrics(t *testing.T) {
	for _, c := range []struct {
		lacks      []string
		warns, bad []string // words of the warning and of the error
	}{
		{nil, nil, nil},
		{[]string{"get /metrics"}, []string{"the right to get /metrics", "from samples alone", "attribution"}, nil},
		{[]string{"delete namespaces"}, nil, []string{"lacks 1 right(s) that the run needs: delete namespaces"}},
		{
			[]string{"get /metrics", "create pods"},
			[]string{"get /metrics"},
			[]string{"lacks 1 right(s) that the run needs: create pods"},
		},
	} {
		got := map[area.Severity][]string{}
		for _, f := range (Area{}).Preflight(t.Context(), &Spec{Kubeconfig: denying(t, c.lacks...)}, testEnv(t)) {
			got[f.Severity] = append(got[f.Severity], f.Message)
			if f.Severity != area.Info && f.Hint == "" {
				t.Errorf("%v: no next step: %+v", c.lacks, f)
			}
		}
		for severity, want := range map[area.Severity][]string{area.Warning: c.warns, area.Error: c.bad} {
			said := got[severity]
			if len(said) > 1 || (len(said) == 0) != (len(want) == 0) {
				t.Errorf("lacking %v, %v: %q, want %q", c.lacks, severity, said, want)
			}
			for _, w := range want {
				if !strings.Contains(strings.Join(said, ""), w) {
					t.Errorf("lacking %v, %v: %q lacks %q", c.lacks, severity, said, w)
				}
			}
		}
	}
}

// TestNoteOfMetrics: a report carries what it lacks because the server's own metrics could not be read.
func TestNoteOfMetrics(t *testing.T) {
	c, err := cluster.New(t.Context(), cluster.Options{Run: "x", Kubeconfig: denying(t), Clock: testEnv(t).Clock})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	p := &arm{plan: plan{foreign: true}, admin: c, endpoint: &load.Endpoint{Host: c.Host()}}
	if notes := strings.Join(p.notes(), "\n"); strings.Contains(notes, "metrics") {
		t.Errorf("before it was tried: %s", notes)
	}
	if err := p.checkMetrics(t.Context()); err != nil {
		t.Fatal(err)
	}
	notes := strings.Join(p.notes(), "\n")
	for _, want := range []string{"client-side only", `cannot get path`, "from samples alone", "attribution"} {
		if !strings.Contains(notes, want) {
			t.Errorf("the notes lack %q: %s", want, notes)
		}
	}
}
