package startup

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
)

const (
	testNamespace = "tare-test"
	testSelector  = "tare.dev/run=r1"
	podsPath      = "/api/v1/namespaces/" + testNamespace + "/pods"
)

// api is a server of one namespace's pods that does what a test says. It speaks HTTP/2, and JSON.
type api struct {
	t      *testing.T
	server *httptest.Server

	mu      sync.Mutex
	changed *sync.Cond
	pods    map[string]*corev1.Pod
	log     []event
	oldest  int  // events before this one are forgotten: who watches from there gets 410
	cut     int  // raised: watches end
	hasty   bool // each watch sends one event, and ends
	endless bool // each page of a list is followed by another one
	frozen  bool
	closing bool

	onPost      func(http.ResponseWriter, *http.Request) bool // true: it has answered
	afterPost   func(name string)                             // in a goroutine of its own, after the pod exists
	refuseReads int                                           // status of lists and watches; 0: they are served
	posts       []string                                      // protocol and remote address of each
	watchers    []string
	written     map[string]time.Time // when the event "running" of a pod was written to a watch
	running     sync.WaitGroup
}

type event struct {
	Type   string      `json:"type"`
	Object *corev1.Pod `json:"object"`
}

func newAPI(t *testing.T) *api {
	t.Helper()
	a := &api{t: t, pods: map[string]*corev1.Pod{}, written: map[string]time.Time{}}
	a.changed = sync.NewCond(&a.mu)
	a.server = httptest.NewUnstartedServer(a)
	a.server.EnableHTTP2 = true
	a.server.StartTLS()
	t.Cleanup(func() {
		a.mu.Lock()
		a.closing = true
		a.changed.Broadcast()
		a.mu.Unlock()
		a.running.Wait()
		a.server.Close()
	})
	return a
}

func (a *api) config() *rest.Config {
	c := a.server.Certificate()
	return &rest.Config{
		Host: a.server.URL, BearerToken: "secret", QPS: 1, Burst: 1, // a limiter that would be felt
		TLSClientConfig: rest.TLSClientConfig{CAData: pemOf(c.Raw)},
	}
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer secret" {
		refuse(w, http.StatusUnauthorized, "who?")
		return
	}
	w.Header().Set("Content-Type", "application/json")
	q := r.URL.Query()
	switch {
	case r.Method == http.MethodPost && r.URL.Path == podsPath:
		a.post(w, r)
	case r.Method == http.MethodGet && strings.HasPrefix(r.URL.Path, podsPath+"/"):
		a.get(w, strings.TrimPrefix(r.URL.Path, podsPath+"/"))
	case r.Method != http.MethodGet || r.URL.Path != podsPath || q.Get("labelSelector") != testSelector:
		a.t.Errorf("unexpected request %s %s", r.Method, r.URL)
		refuse(w, http.StatusNotFound, "")
	case a.reads() != 0:
		refuse(w, a.reads(), "not now")
	case q.Get("sendInitialEvents") != "" || q.Get("watch") == "" && q.Get("limit") != "500":
		a.t.Errorf("%s asks for everything at once", r.URL)
		refuse(w, http.StatusUnprocessableEntity, "")
	case q.Get("watch") != "":
		a.watch(w, r)
	default:
		a.list(w, q.Get("continue"))
	}
}

func refuse(w http.ResponseWriter, code int, message string) {
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   "Failure", Code: int32(code), Message: message,
	})
}

func (a *api) reads() int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refuseReads
}

func (a *api) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	a.mu.Lock()
	a.posts = append(a.posts, r.Proto+" "+r.RemoteAddr)
	on, after := a.onPost, a.afterPost
	a.mu.Unlock()
	if on != nil && on(w, r) {
		return
	}
	pod := new(corev1.Pod)
	if err := json.Unmarshal(body, pod); err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	pod.TypeMeta = metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}
	pod.CreationTimestamp = metav1.NewTime(time.Now().Truncate(time.Second))
	pod.Status.Phase = corev1.PodPending
	pod = a.put("ADDED", pod)
	if after != nil {
		a.running.Go(func() { after(pod.Name) })
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(pod)
}

// put stores a pod as it is now, and tells watchers.
func (a *api) put(kind string, pod *corev1.Pod) *corev1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	pod = pod.DeepCopy()
	pod.ResourceVersion = strconv.Itoa(len(a.log) + 1)
	a.pods[pod.Name] = pod
	if kind == "DELETED" {
		delete(a.pods, pod.Name)
	}
	a.log = append(a.log, event{kind, pod})
	a.changed.Broadcast()
	return pod
}

func (a *api) pod(name string) *corev1.Pod {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pods[name].DeepCopy()
}

// schedule and start do what a scheduler and a kubelet do.
func (a *api) schedule(name string) {
	p := a.pod(name)
	p.Spec.NodeName = "n1"
	a.put("MODIFIED", p)
}

func (a *api) start(name string) {
	p := a.pod(name)
	p.Status.Phase = corev1.PodRunning
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	p.Status.Conditions = []corev1.PodCondition{{
		Type: corev1.PodReady, Status: corev1.ConditionTrue,
		LastTransitionTime: now,
	}}
	for _, c := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, corev1.ContainerStatus{
			Name: c.Name, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		})
	}
	a.put("MODIFIED", p)
}

func (a *api) get(w http.ResponseWriter, name string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if p := a.pods[name]; p != nil {
		_ = json.NewEncoder(w).Encode(p)
		return
	}
	refuse(w, http.StatusNotFound, name)
}

// list answers with one pod a page, which a server may.
func (a *api) list(w http.ResponseWriter, after string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	out := corev1.PodList{TypeMeta: metav1.TypeMeta{Kind: "PodList", APIVersion: "v1"}}
	out.ResourceVersion = strconv.Itoa(len(a.log))
	for _, name := range slices.Sorted(maps.Keys(a.pods)) {
		if len(out.Items) > 0 {
			out.Continue = out.Items[0].Name
			break
		}
		if name > after {
			out.Items = append(out.Items, *a.pods[name])
		}
	}
	if a.endless {
		out.Continue = "-"
	}
	_ = json.NewEncoder(w).Encode(out)
}

func (a *api) watch(w http.ResponseWriter, r *http.Request) {
	from, err := strconv.Atoi(r.URL.Query().Get("resourceVersion"))
	if err != nil {
		refuse(w, http.StatusBadRequest, err.Error())
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.watchers = append(a.watchers, r.Proto+" "+r.RemoteAddr)
	if from < a.oldest {
		refuse(w, http.StatusGone, "too old resource version")
		return
	}
	if a.hasty {
		_ = json.NewEncoder(w).Encode(a.log[min(from, len(a.log)-1)])
		return
	}
	flush(w)
	stop := make(chan struct{})
	defer close(stop)
	a.running.Go(func() { // so that a client that has gone is noticed
		select {
		case <-r.Context().Done():
		case <-stop:
		}
		a.mu.Lock()
		defer a.mu.Unlock()
		a.changed.Broadcast()
	})
	for cut := a.cut; !a.closing && a.cut == cut && r.Context().Err() == nil; {
		if a.frozen || from >= len(a.log) {
			a.changed.Wait()
			continue
		}
		e := a.log[from]
		from++
		if started(e.Object) {
			a.written[e.Object.Name] = time.Now()
		}
		_ = json.NewEncoder(w).Encode(e)
		flush(w)
	}
}

func flush(w http.ResponseWriter) {
	if f, ok := w.(http.Flusher); ok {
		f.Flush()
	}
}

// set changes what the server does, and ends its watches if cut.
func (a *api) set(cut bool, change func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if change != nil {
		change()
	}
	if cut {
		a.cut++
	}
	a.changed.Broadcast()
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

func podJSON(name string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Pod","metadata":{"name":%q,"labels":{"tare.dev/run":"r1"}},"spec":{"containers":[{"name":"a","image":"i"},{"name":"b","image":"i"}]}}`, name)
}
