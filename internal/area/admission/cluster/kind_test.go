package cluster

import (
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	ruleKind = schema.GroupVersionKind{Group: "x.example", Version: "v1", Kind: "Rules"}
	rules    = schema.GroupVersionResource{Group: "x.example", Version: "v1", Resource: "rules"}
)

// later lets a store serve Rules while on says so, as an engine's definitions come and go.
func later(s *store, on func() bool) {
	s.first = func(w http.ResponseWriter, r *http.Request) bool {
		switch there := on(); {
		case r.URL.Path == "/apis/x.example/v1" && there:
			reply(w, 200, map[string]any{
				"kind": "APIResourceList", "groupVersion": "x.example/v1",
				"resources": []any{resourceOf("rules", "Rules", false)},
			})
			return true
		case strings.HasPrefix(r.URL.Path, "/apis/x.example/") && !there:
			status(w, 404, "NotFound", "the server could not find the requested resource")
			return true
		}
		return false
	}
}

// TestKindsThatCome: a kind that is there some time after the object before it is waited for; without one before it
// there is nothing to wait for.
func TestKindsThatCome(t *testing.T) {
	s := serve(t)
	c := connect(t, s.options(t, 0))
	var asked atomic.Int64
	later(s, func() bool { return asked.Add(1) > 3 })
	rule := object("x.example/v1", "Rules", "", "r")
	wantError(t, c.Apply(t.Context(), []*unstructured.Unstructured{rule}, 1), "x.example/v1 Rules",
		"does not have this kind")
	asked.Store(0)
	objects := []*unstructured.Unstructured{object("v1", "ConfigMap", "n", "template"), rule}
	if err := c.Apply(t.Context(), objects, 1); err != nil {
		t.Fatal(err)
	}
	later(s, func() bool { return false })
	c.patience = time.Second
	wantError(t, c.Apply(t.Context(), []*unstructured.Unstructured{objects[0], object("x.example/v2", "Rules", "", "r")},
		1), "Rules", "1s after", "engine")
}

// TestUnsettledAnswers: what an API server says while a kind comes or goes, or a webhook's server starts, is not its
// last word; other refusals are.
func TestUnsettledAnswers(t *testing.T) {
	for name, c := range map[string]struct {
		code            int
		reason, message string
		details         map[string]any
		again           bool
	}{
		"not served yet": {404, "NotFound", "the server could not find the requested resource", nil, true},
		"on its way out": {
			405, "MethodNotAllowed",
			"create not allowed while custom resource definition is terminating", nil, true,
		},
		"webhook not up yet": {
			500, "InternalError",
			`Internal error occurred: failed calling webhook "a": connection refused`, nil, true,
		},
		"no such namespace": {
			404, "NotFound", `namespaces "n" not found`,
			map[string]any{"kind": "namespaces", "name": "n"},
			false,
		},
		"webhook that says no":    {403, "Forbidden", `admission webhook "a" denied the request`, nil, false},
		"server that is not well": {500, "InternalError", "Internal error occurred: etcd", nil, false},
	} {
		s := serve(t)
		cl := connect(t, s.options(t, 0))
		var tries atomic.Int64
		s.first = func(w http.ResponseWriter, r *http.Request) bool {
			if r.Method != http.MethodPost || tries.Add(1) > 3 {
				return false
			}
			reply(w, c.code, map[string]any{
				"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": c.reason, "message": c.message, "code": c.code,
				"details": c.details,
			})
			return true
		}
		err := cl.Apply(t.Context(), []*unstructured.Unstructured{object("v1", "ConfigMap", "n", "a")}, 1)
		if c.again && (err != nil || tries.Load() != 4) || !c.again && (err == nil || tries.Load() != 1) {
			t.Errorf("%s: %d tries, %v", name, tries.Load(), err)
		}
	}
}

// TestKindsThatGo: objects of a kind that came are removed by the resource that the server names, after what acts and
// before all else, from a journal that knew the kind only; the kind is gone at the end, or named.
func TestKindsThatGo(t *testing.T) {
	s := serve(t)
	o := s.options(t, 0)
	o.Run = "run-1"
	c := connect(t, o)
	later(s, func() bool { return false })
	standing, coming, err := c.Lookup(t.Context(),
		[]schema.GroupVersionKind{ruleKind, {Version: "v1", Kind: "ConfigMap"}, ruleKind})
	if err != nil || !cmp.Equal(coming, []schema.GroupVersionKind{ruleKind}) ||
		!cmp.Equal(standing, []schema.GroupVersionResource{configMaps}) {
		t.Fatalf("standing %v, coming %v, %v", standing, coming, err)
	}
	change, err := c.Change("admission", "policies-1", append(standing, vapBindings), coming...)
	if err != nil {
		t.Fatal(err)
	}
	var there atomic.Bool
	there.Store(true)
	later(s, there.Load)
	objects := []*unstructured.Unstructured{
		object("v1", "ConfigMap", "n", "template"),
		object("x.example/v1", "Rules", "", "r"), binding(t, "b", "n"),
	}
	if err := c.Apply(t.Context(), objects, 1); err != nil {
		t.Fatal(err)
	}
	j, err := parseChange(change.Data)
	if err != nil {
		t.Fatal(err)
	}
	other := connect(t, o) // a new process
	other.patience = time.Second
	if err := other.RemoveAll(t.Context(), j.resources, j.coming...); err != nil {
		t.Fatal(err)
	}
	got := slices.Collect(func(yield func(string) bool) {
		for _, a := range s.asked {
			if path, ok := strings.CutPrefix(a, "DELETE "); ok && !yield(path[strings.LastIndex(path, "/")+1:]) {
				return
			}
		}
	})
	if d := cmp.Diff([]string{"b", "r", "template"}, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
	wantError(t, other.AwaitGone(t.Context(), j.coming), "still has Rules (x.example/v1)", "CustomResourceDefinition")
	there.Store(false)
	for range 2 { // the first time discovery is remembered from before
		if err := c.RemoveAll(t.Context(), []schema.GroupVersionResource{rules}, j.coming...); err != nil {
			t.Error(err)
		}
		if err := c.AwaitGone(t.Context(), j.coming); err != nil {
			t.Error(err)
		}
	}
}

// TestRememberedKinds: a kind that was there, and has gone with who defined it, is empty; one that the server has and
// does not list is an error.
func TestRememberedKinds(t *testing.T) {
	s := serve(t)
	c := connect(t, s.options(t, 0))
	var there atomic.Bool
	there.Store(true)
	later(s, there.Load)
	if has, err := c.Has(t.Context(), rules); !has || err != nil {
		t.Fatalf("has: %v, %v", has, err)
	}
	there.Store(false)
	if err := c.DeleteAll(t.Context(), "", rules); err != nil {
		t.Errorf("it has gone: %v", err)
	}
}
