package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/internal/load"
	"tare/rigs/hosttest"
)

// TestLimitAppliesToEveryRequest: to repeated requests, to discovery, and to several clusters that share a limit.
func TestLimitAppliesToEveryRequest(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	s := startFakeServer(t)
	const rate = 100.0
	o := s.options(t, rate)
	a, b := connect(t, o), connect(t, o)
	var busy atomic.Int64
	s.first = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || busy.Add(1) > 4 {
			return false
		}
		w.Header().Set("Retry-After", "0")
		status(w, 429, "TooManyRequests", "later")
		return true
	}
	begin := time.Now()
	errs := make(chan error, 2)
	for prefix, c := range map[string]*Cluster{"a-": a, "b-": b} {
		go func() {
			err := c.Fill(context.Background(), ConfigMaps, c.Shape("n"), prefix, 0, 20)
			_, e := c.Has(context.Background(), vaps)
			errs <- errors.Join(err, e)
		}()
	}
	if err := errors.Join(<-errs, <-errs); err != nil {
		t.Fatal(err)
	}
	if err := a.RemoveAll(t.Context(), []schema.GroupVersionResource{configMaps}); err != nil {
		t.Fatal(err)
	}
	took, n := time.Since(begin).Seconds(), s.count("")
	if n < 40+4+2+40+2 {
		t.Errorf("%d requests, which is too few", n)
	}
	if most := 1 + rate*took*1.001; float64(n) > most {
		t.Errorf("%d requests in %.3f s, at most %.0f were allowed", n, took, most)
	}
}

// TestRemovalOrder: bindings go before policies, in whatever order they are given, and each is gone before the next is
// removed.
func TestRemovalOrder(t *testing.T) {
	s := startFakeServer(t)
	c := connect(t, s.options(t, 0))
	ns := object("v1", "Namespace", "", "n")
	objects := []*unstructured.Unstructured{
		ns, object("v1", "ConfigMap", "n", "c"), policy(t, "p", "no"),
		binding(t, "b", "n"),
	}
	for range 2 {
		if err := c.Apply(t.Context(), objects, 4); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.RemoveAll(t.Context(), []schema.GroupVersionResource{
		namespaces, configMaps, vaps, vapBindings,
		vaps,
	}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range s.asked {
		if path, ok := strings.CutPrefix(a, "DELETE "); ok {
			got = append(got, path[strings.LastIndex(path, "/")+1:])
		}
	}
	if d := cmp.Diff([]string{"b", "p", "c", "n"}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	if n := s.count("PUT") + s.count("PATCH"); n > 0 {
		t.Errorf("%d requests changed something", n)
	}
}

// TestStockGoesWithItsNamespace: a user who may not list pods in all namespaces can still remove a run's namespaces;
// nothing else is skipped.
func TestStockGoesWithItsNamespace(t *testing.T) {
	s := startFakeServer(t)
	c := connect(t, s.options(t, 0))
	if err := c.Apply(t.Context(), []*unstructured.Unstructured{object("v1", "Namespace", "", "n")}, 1); err != nil {
		t.Fatal(err)
	}
	s.first = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Path != "/api/v1/namespaces" && r.URL.Query().Has("limit") {
			status(w, 403, "Forbidden", "you may not list "+r.URL.Path)
			return true
		}
		return false
	}
	wantError(t, c.RemoveAll(t.Context(), []schema.GroupVersionResource{pods}), "may not list")
	if err := c.RemoveAll(t.Context(), []schema.GroupVersionResource{pods, deploys, configMaps, namespaces}); err != nil {
		t.Error(err)
	}
	if n, err := c.Count(t.Context(), "", namespaces); n != 0 || err != nil {
		t.Errorf("%d namespaces left, %v", n, err)
	}
	wantError(t, c.RemoveAll(t.Context(), []schema.GroupVersionResource{vaps, namespaces}), "may not list",
		"validatingadmissionpolicies")
}

// TestLateCreations: a creation that is not answered in time is tried again, whether the object was created or not; the
// server's own word that it ran out of time counts as well.
func TestLateCreations(t *testing.T) {
	for name, late := range map[string]func(s *fakeServer, w http.ResponseWriter, r *http.Request){
		"not created": func(_ *fakeServer, _ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"created": func(s *fakeServer, _ http.ResponseWriter, r *http.Request) {
			s.mu.Lock()
			s.create(httptest.NewRecorder(), r)
			s.mu.Unlock()
			<-r.Context().Done()
		},
		"the server ran out of time": func(_ *fakeServer, w http.ResponseWriter, _ *http.Request) {
			status(w, 504, "Timeout", "Timeout: request did not complete within requested timeout")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := startFakeServer(t)
			o := s.options(t, 0)
			o.Timeout = 500 * time.Millisecond
			c := connect(t, o)
			var tries atomic.Int64
			s.first = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method != http.MethodPost || tries.Add(1) > 1 {
					return false
				}
				late(s, w, r)
				return true
			}
			if err := c.Apply(t.Context(), []*unstructured.Unstructured{object("v1", "ConfigMap", "n", "a")}, 1); err != nil {
				t.Fatal(err)
			}
			if n := s.count("POST"); n != 2 || s.objects["/api/v1/namespaces/n/configmaps/a"] == nil {
				t.Errorf("%d attempts, and %v", n, s.objects)
			}
		})
	}
}

// TestApplyAwaitsDeletion: Apply waits for an object of this run that is being deleted, and creates it again.
func TestApplyAwaitsDeletion(t *testing.T) {
	s := startFakeServer(t)
	c := connect(t, s.options(t, 0))
	o := object("v1", "ConfigMap", "n", "a")
	if err := c.Apply(t.Context(), []*unstructured.Unstructured{o}, 1); err != nil {
		t.Fatal(err)
	}
	path := "/api/v1/namespaces/n/configmaps/a"
	meta, _ := s.objects[path]["metadata"].(map[string]any)
	meta["deletionTimestamp"] = "2026-01-01T00:00:00Z"
	var looks atomic.Int64
	s.first = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodGet && looks.Add(1) == 3 {
			s.mu.Lock()
			delete(s.objects, path)
			s.mu.Unlock()
		}
		return false
	}
	if err := c.Apply(t.Context(), []*unstructured.Unstructured{o}, 1); err != nil {
		t.Fatal(err)
	}
	meta, _ = s.objects[path]["metadata"].(map[string]any)
	if _, going := meta["deletionTimestamp"]; going || meta["uid"] != "uid-2" {
		t.Errorf("it was not made anew: %v", meta)
	}
}

func TestObjectsThatCannotBeApplied(t *testing.T) {
	s := startFakeServer(t)
	c := connect(t, s.options(t, 0))
	for want, o := range map[string]*unstructured.Unstructured{
		"needs a name":              object("v1", "ConfigMap", "n", ""),
		"needs a namespace":         object("v1", "ConfigMap", "", "a"),
		"have no namespace":         object("v1", "Namespace", "n", "a"),
		"does not have this kind":   object("v1", "Secrets", "n", "a"),
		"apiVersion and kind":       object("", "", "n", "a"),
		"x.example/v1 Thing":        object("x.example/v1", "Thing", "n", "a"),
		"unexpected GroupVersion":   object("a/b/c", "Thing", "n", "a"),
		"/../ServiceAccount \"\x1b": object("../v1", "../", "n", "\x1b"),
	} {
		if err := c.Apply(t.Context(), []*unstructured.Unstructured{o}, 1); err == nil {
			t.Errorf("%s: no error", want)
		} else if strings.ContainsRune(err.Error(), '\x1b') {
			t.Errorf("the error contains a control character: %q", err)
		}
	}
	if n := s.count("POST"); n > 0 {
		t.Errorf("%d objects made", n)
	}
}

func TestEach(t *testing.T) {
	for _, parallel := range []int{-1, 1, 7, 1000} {
		var sum, now, most atomic.Int64
		err := Each(t.Context(), 100, parallel, func(_ context.Context, i int) error {
			most.Store(max(most.Load(), now.Add(1)))
			defer now.Add(-1)
			sum.Add(int64(i))
			return nil
		})
		if err != nil || sum.Load() != 4950 || most.Load() > int64(min(max(1, parallel), abreast)) {
			t.Errorf("%d abreast: sum %d, %d at once, %v", parallel, sum.Load(), most.Load(), err)
		}
	}
	var begun atomic.Int64
	bad := errors.New("bad")
	err := Each(t.Context(), 1000, 4, func(ctx context.Context, i int) error {
		begun.Add(1)
		if i == 3 {
			return bad
		}
		<-ctx.Done()
		return ctx.Err()
	})
	if !errors.Is(err, bad) || errors.Is(err, context.Canceled) || begun.Load() > 8 {
		t.Errorf("%v after %d", err, begun.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Each(ctx, 3, 2, func(context.Context, int) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("%v, want the context's error: not all were done", err)
	}
}

// TestStockTemplates: templates are JSON with a mark in place of the name, which the load replaces with StockName.
func TestStockTemplates(t *testing.T) {
	shape := Shape{
		Namespace: "n", Run: "run-1", Labels: map[string]string{"a": "b", OwnerLabel: "other"},
		Scheduler: NoScheduler,
	}
	for _, s := range []Stock{Pods, Deployments, ConfigMaps} {
		text := load.NewTemplate(s.JSON("s-"+load.CallMark, shape)).AppendTo(nil, 255)
		var o struct {
			Metadata struct {
				Name, Namespace string
				Labels          map[string]string
			}
			Spec struct {
				SchedulerName string
				Replicas      *int
			}
		}
		if err := json.Unmarshal(text, &o); err != nil {
			t.Fatal(err)
		}
		if o.Metadata.Name != StockName("s-", 255) || o.Metadata.Namespace != "n" ||
			o.Metadata.Labels[OwnerLabel] != "run-1" || o.Metadata.Labels["a"] != "b" {
			t.Errorf("%s: metadata %+v lacks the name, the namespace or a label", s, o.Metadata)
		}
		if s == Pods && o.Spec.SchedulerName != NoScheduler || s == Deployments &&
			(o.Spec.Replicas == nil || *o.Spec.Replicas != 0) {
			t.Errorf("%s: its pods could run: %s", s, text)
		}
	}
}

func TestRules(t *testing.T) {
	show := func(n Need) string {
		rules, err := Rules(n)
		if err != nil {
			return "error: " + err.Error()
		}
		var out []string
		for _, r := range rules {
			out = append(out, fmt.Sprint(r.Verbs, r.APIGroups, r.Resources, r.NonResourceURLs))
		}
		return strings.Join(out, "\n")
	}
	base := "[create] [] [pods] []\n[create get list delete] [] [namespaces] []\n[get] [] [serviceaccounts] []"
	for want, n := range map[string]Need{
		base: {Operations: []string{"create-pod-dry-run"}, Mechanisms: []string{"none", "psa"}},
		strings.Replace(base, "[create] [] [pods] []\n[create get list delete] [] [namespaces]",
			"[create get list delete] [] [namespaces pods]", 1) +
			"\n[get] [] [] [/metrics]": {Operations: []string{"create-pod"}, Metrics: true},
		base + "\n[create get list delete] [admissionregistration.k8s.io] [validatingadmissionpolicies " +
			"validatingadmissionpolicybindings] []": {Mechanisms: []string{"vap"}},
		"error: operation \"get-pod-dry-run\"": {Operations: []string{"get-pod-dry-run"}},
		"error: operation \"create-secret\"":   {Operations: []string{"create-secret"}},
		"error: operation \"\"":                {Operations: []string{""}},
		"error: mechanism \"psp\"":             {Mechanisms: []string{"psp"}},
	} {
		if got := show(n); got != want && (!strings.HasPrefix(want, "error") || !strings.HasPrefix(got, want)) {
			t.Errorf("%+v:\n%s\nwant\n%s", n, got, want)
		}
	}
	rules, err := CallerRules([]string{"create-pod-dry-run", "list-configmap", "pod-startup"})
	if err != nil || fmt.Sprint(Rights(rules)) != "[create pods list pods watch pods list configmaps]" &&
		fmt.Sprint(Rights(rules)) != "[list configmaps create pods list pods watch pods]" {
		t.Errorf("got rights %v, %v; want create, list and watch pods, and list configmaps", Rights(rules), err)
	}
}
