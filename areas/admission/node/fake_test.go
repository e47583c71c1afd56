package node

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"tare/internal/clock"
)

// api is a server that keeps nodes and leases, and notes what is asked of it. It reads protobuf, as kubelets write it,
// and answers JSON.
type api struct {
	t      *testing.T
	server *httptest.Server
	decode runtime.Decoder

	mu      sync.Mutex
	nodes   map[string]*corev1.Node
	leases  map[string]*coordinationv1.Lease
	asked   []seenRequest
	answer  func(method, path string) int // a status to refuse with, 0: as usual
	bound   []corev1.Pod                  // those of each page of pods
	endless bool                          // no page of pods is the last
}

type seenRequest struct{ method, path, body string }

func newAPI(t *testing.T) *api {
	t.Helper()
	c, err := codecs()
	if err != nil {
		t.Fatal(err)
	}
	a := &api{
		t: t, decode: c.UniversalDeserializer(), nodes: map[string]*corev1.Node{},
		leases: map[string]*coordinationv1.Lease{},
	}
	a.server = httptest.NewTLSServer(a)
	t.Cleanup(a.server.Close)
	return a
}

func (a *api) config(nodes int) Config {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: a.server.Certificate().Raw})
	return Config{Server: a.server.URL, CA: ca, Token: "secret", Nodes: nodes}
}

func (a *api) fleet(nodes int, c clock.Clock) *fleet {
	a.t.Helper()
	cfg := a.config(nodes)
	cfg.Log = slog.New(slog.DiscardHandler)
	client, err := dial(cfg)
	if err != nil {
		a.t.Fatal(err)
	}
	return newFleet(client, cfg, c)
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.URL.Path == "/api/v1/pods" {
		a.pods(w, r)
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	body, _ := io.ReadAll(r.Body)
	a.asked = append(a.asked, seenRequest{r.Method, r.URL.Path, string(body)})
	w.Header().Set("Content-Type", "application/json")
	if a.answer != nil {
		if code := a.answer(r.Method, r.URL.Path); code != 0 {
			refuse(w, code)
			return
		}
	}
	var out any
	code := http.StatusNotFound
	switch name := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]; {
	case r.Header.Get("Authorization") != "Bearer secret":
		code = http.StatusUnauthorized
	case r.Method == http.MethodPost:
		out, code = a.create(body)
	case r.Method == http.MethodPut:
		out, code = a.renew(body)
	case r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/nodes"):
		out, code = a.list(r.URL.Query().Get("labelSelector")), http.StatusOK
	case r.Method == http.MethodGet && a.leases[name] != nil:
		out, code = a.leases[name], http.StatusOK
	case r.Method == http.MethodPatch:
		name, sub, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/v1/nodes/"), "/")
		out, code = a.patch(name, sub, body)
	case r.Method == http.MethodDelete:
		out, code = metav1.Status{Status: "Success"}, http.StatusOK
	}
	if code >= 300 {
		refuse(w, code)
		return
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(out)
}

// pods lists the pods that are bound, and never sends events.
func (a *api) pods(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	w.Header().Set("Content-Type", "application/json")
	switch {
	case q.Get("fieldSelector") != "spec.nodeName!=":
		a.t.Errorf("pods are asked for with %s", r.URL)
		refuse(w, http.StatusNotFound)
	case q.Get("sendInitialEvents") == "true": // as servers before 1.32
		refuse(w, http.StatusUnprocessableEntity)
	case q.Get("watch") != "":
		if q.Get("timeoutSeconds") != "60" {
			a.t.Errorf("a watch of %s s", q.Get("timeoutSeconds"))
		}
		w.WriteHeader(http.StatusOK)
		if f, ok := w.(http.Flusher); ok {
			f.Flush()
		}
		<-r.Context().Done()
	default:
		list := corev1.PodList{
			TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"},
			ListMeta: metav1.ListMeta{ResourceVersion: "1"}, Items: a.bound,
		}
		if a.endless {
			list.Continue = "more"
		}
		_ = json.NewEncoder(w).Encode(list)
	}
}

func refuse(w http.ResponseWriter, code int) {
	reasons := map[int]metav1.StatusReason{
		404: metav1.StatusReasonNotFound, 409: metav1.StatusReasonConflict, 403: metav1.StatusReasonForbidden,
		500: metav1.StatusReasonInternalError,
		401: metav1.StatusReasonUnauthorized, 410: metav1.StatusReasonAlreadyExists,
	}
	reason := reasons[code]
	if code == http.StatusGone { // the tests' own number for "already exists", whose status is that of a conflict
		code = http.StatusConflict
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: "Failure", Code: int32(code),
		Reason: reason, Message: "no",
	})
}

func (a *api) create(body []byte) (any, int) {
	o, _, err := a.decode.Decode(body, nil, nil)
	if err != nil {
		a.t.Error(err)
		return nil, http.StatusBadRequest
	}
	switch o := o.(type) {
	case *corev1.Node:
		if a.nodes[o.Name] != nil {
			return nil, http.StatusGone
		}
		o.TypeMeta = metav1.TypeMeta{Kind: "Node", APIVersion: "v1"}
		o.Spec.Taints = []corev1.Taint{{Key: corev1.TaintNodeNotReady, Effect: corev1.TaintEffectNoSchedule}}
		a.nodes[o.Name] = o
		return o, http.StatusCreated
	case *coordinationv1.Lease:
		if a.leases[o.Name] != nil {
			return nil, http.StatusGone
		}
		o.TypeMeta = metav1.TypeMeta{Kind: "Lease", APIVersion: "coordination.k8s.io/v1"}
		o.ResourceVersion = "1"
		a.leases[o.Name] = o
		return o, http.StatusCreated
	}
	a.t.Errorf("%T is created", o)
	return nil, http.StatusBadRequest
}

func (a *api) renew(body []byte) (any, int) {
	o, _, err := a.decode.Decode(body, nil, nil)
	lease, ok := o.(*coordinationv1.Lease)
	if err != nil || !ok {
		a.t.Errorf("%T is renewed: %v", o, err)
		return nil, http.StatusBadRequest
	}
	last := a.leases[lease.Name]
	switch {
	case last == nil:
		return nil, http.StatusNotFound
	case last.ResourceVersion != lease.ResourceVersion:
		return nil, http.StatusConflict
	}
	lease.TypeMeta = last.TypeMeta
	lease.ResourceVersion = fmt.Sprint(len(a.asked) + 1)
	a.leases[lease.Name] = lease
	return lease, http.StatusOK
}

func (a *api) list(selector string) corev1.NodeList {
	out := corev1.NodeList{TypeMeta: metav1.TypeMeta{Kind: "NodeList", APIVersion: "v1"}}
	for _, n := range a.nodes {
		if selector != "!"+Label || n.Labels[Label] == "" {
			out.Items = append(out.Items, *n)
		}
	}
	return out
}

func (a *api) patch(name, sub string, body []byte) (any, int) {
	if strings.Contains(name, "namespaces") { // of a pod
		return metav1.Status{Status: "Success"}, http.StatusOK
	}
	n := a.nodes[name]
	if n == nil {
		return nil, http.StatusNotFound
	}
	if sub == "" && string(body) == `{"spec":{"taints":null}}` {
		n.Spec.Taints = nil
	}
	return n, http.StatusOK
}

// count is how many requests had this method and this end of their path.
func (a *api) count(method, end string) (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, q := range a.asked {
		if q.method == method && strings.HasSuffix(q.path, end) {
			n++
		}
	}
	return n
}

// newRequests returns the requests since its last call: "GET /path".
func (a *api) newRequests() (out []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, q := range a.asked {
		out = append(out, q.method+" "+q.path)
	}
	a.asked = nil
	slices.Sort(out)
	return out
}

func (a *api) refuseWhere(f func(method, path string) int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.answer = f
}

// eventually waits until f returns true.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !f(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
	}
}
