package cluster

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"tare/areas/plane"
	"tare/internal/clock"
	"tare/internal/ratelimit"
	"tare/rigs/hosttest"
)

// A fakeServer is as much of an API server as this package uses, in memory: it creates, gets, lists by label and
// deletes.
type fakeServer struct {
	mu      sync.Mutex
	objects map[string]map[string]any // by path
	asked   []string                  // "GET /api/v1/…"
	headers []http.Header
	uid     int
	// first may answer in the store's place.
	first  func(w http.ResponseWriter, r *http.Request) bool
	server *httptest.Server
}

const token = "tok-5ecret-0f-the-user"

// startFakeServer starts a fakeServer behind TLS.
func startFakeServer(t *testing.T) *fakeServer {
	t.Helper()
	s := &fakeServer{objects: map[string]map[string]any{}}
	s.server = httptest.NewUnstartedServer(s)
	s.server.EnableHTTP2 = true
	s.server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	s.server.StartTLS()
	t.Cleanup(s.server.Close)
	return s
}

func (s *fakeServer) ca() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.server.Certificate().Raw})
}

// options reach the store by a kubeconfig.
func (s *fakeServer) options(t *testing.T, rate float64) Options {
	t.Helper()
	return Options{
		Run: "run-1", Kubeconfig: write(t, kubeconfig(s.server.URL, s.ca(), "token: "+token)),
		Limit: ratelimit.New(clock.System{}, rate), Timeout: 10 * time.Second,
		Patience: 10 * time.Second,
	}
}

func (s *fakeServer) count(prefix string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.asked {
		if strings.HasPrefix(a, prefix) {
			n++
		}
	}
	return n
}

// ServeHTTP implements http.Handler.
func (s *fakeServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.asked = append(s.asked, r.Method+" "+r.URL.Path)
	s.headers = append(s.headers, r.Header.Clone())
	first := s.first
	s.mu.Unlock()
	if first != nil && first(w, r) {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch known := groups[r.URL.Path]; {
	case r.URL.Path == "/version":
		reply(w, 200, map[string]any{"major": "1", "minor": "36", "gitVersion": "v1.36.3"})
	case known != nil:
		reply(w, 200, map[string]any{
			"kind":         "APIResourceList",
			"groupVersion": strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/api/"), "resources": known,
		})
	case r.Method == http.MethodPost:
		s.create(w, r)
	case r.Method == http.MethodGet && r.URL.Query().Has("limit"):
		s.list(w, r)
	case s.objects[r.URL.Path] == nil:
		status(w, 404, "NotFound", r.URL.Path+" is not found")
	case r.Method == http.MethodGet:
		reply(w, 200, s.objects[r.URL.Path])
	case r.Method == http.MethodDelete:
		delete(s.objects, r.URL.Path)
		reply(w, 200, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
	default:
		status(w, 405, "MethodNotAllowed", "no")
	}
}

var groups = map[string][]any{
	"/api/v1": {
		resourceOf("configmaps", "ConfigMap", true), resourceOf("pods", "Pod", true),
		resourceOf("pods/status", "Pod", true), resourceOf("namespaces", "Namespace", false),
	},
	"/apis/admissionregistration.k8s.io/v1": {resourceOf("validatingadmissionpolicies", "ValidatingAdmissionPolicy",
		false), resourceOf("validatingadmissionpolicybindings", "ValidatingAdmissionPolicyBinding", false)},
}

func resourceOf(name, kind string, namespaced bool) any {
	return map[string]any{"name": name, "kind": kind, "namespaced": namespaced, "verbs": []string{"list"}}
}

func (s *fakeServer) create(w http.ResponseWriter, r *http.Request) {
	var o map[string]any
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		status(w, 400, "BadRequest", err.Error())
		return
	}
	meta, _ := o["metadata"].(map[string]any)
	path := r.URL.Path + "/" + fmt.Sprint(meta["name"])
	if s.objects[path] != nil {
		status(w, 409, "AlreadyExists", path+" already exists")
		return
	}
	s.uid++
	meta["uid"] = fmt.Sprint("uid-", s.uid)
	s.objects[path] = o
	reply(w, 201, o)
}

// list answers with the objects below a path ("" namespace: in all of them) that carry the label, in pages as the
// server likes them.
func (s *fakeServer) list(w http.ResponseWriter, r *http.Request) {
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/"):] + "/"
	in := strings.TrimSuffix(r.URL.Path, strings.TrimSuffix(resource, "/"))
	name, value, _ := strings.Cut(r.URL.Query().Get("labelSelector"), "=")
	items := []any{}
	for path, o := range s.objects {
		meta, _ := o["metadata"].(map[string]any)
		labels, _ := meta["labels"].(map[string]any)
		if strings.HasPrefix(path, in) && strings.Contains(path, resource) && labels[name] == value {
			items = append(items, map[string]any{
				"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
				"metadata": meta,
			})
		}
	}
	slices.SortFunc(items, func(a, b any) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
	reply(w, 200, map[string]any{
		"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
		"metadata": map[string]any{}, "items": items,
	})
}

func reply(w http.ResponseWriter, code int, o any) {
	var b bytes.Buffer
	_ = json.NewEncoder(&b).Encode(o) // maps of plain values
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes()) // the client may have disconnected
}

func status(w http.ResponseWriter, code int, reason, message string) {
	reply(w, code, map[string]any{
		"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": reason,
		"message": message, "code": code,
	})
}

func TestMain(m *testing.M) { hosttest.Main(m) }

// startPlane starts a real control plane, which ends with the test. Without a binary the test is skipped, unless one
// was named.
func startPlane(t *testing.T, v plane.Version, nodes, psp bool) *plane.Plane {
	t.Helper()
	hosttest.SkipIfShort(t)
	host := plane.Host{Getenv: os.LookupEnv}
	b, ok := plane.Cached(t.Context(), v, host)
	if !ok {
		if _, named := os.LookupEnv(plane.Variable); named && v == plane.V136 {
			t.Fatalf("%s is set, and no control plane works", plane.Variable)
		}
		hosttest.Missing(t, fmt.Sprintf("no control plane of Kubernetes %s is built", v), hosttest.Plane)
	}
	hosttest.Place(t)
	p, err := plane.Start(t.Context(), plane.Config{Binary: b, Dir: t.TempDir(), Nodes: nodes, PSP: psp})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := p.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return p
}

// connect is New with an end.
func connect(t *testing.T, o Options) *Cluster {
	t.Helper()
	c, err := New(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// admin reaches a plane as its administrator.
func admin(t *testing.T, p *plane.Plane, run string, bare bool) *Cluster {
	t.Helper()
	return connect(t, Options{
		Run: run, Server: p.Server(), CA: p.CA, Token: p.AdminToken, Bare: bare,
		Patience: 20 * time.Second,
	})
}

// kubeconfig is the text of a file with one context, "here".
func kubeconfig(server string, ca []byte, user string) string {
	return fmt.Sprintf(`apiVersion: v1
kind: Config
current-context: here
contexts: [{name: here, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: %q, certificate-authority-data: %q}}]
users: [{name: u, user: {%s}}]
`, server, base64.StdEncoding.EncodeToString(ca), user)
}

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "kubeconfig")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// manifest is an object from YAML.
func manifest(t *testing.T, text string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

// wantError fails unless err says all of the words.
func wantError(t *testing.T, err error, words ...string) {
	t.Helper()
	if err == nil {
		t.Fatalf("no error, want one that says %q", words)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%v\nwant it to say %q", err, w)
		}
	}
}
