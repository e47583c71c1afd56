package cluster

import (
	"bytes"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/internal/clock"
	"tare/internal/ratelimit"
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
