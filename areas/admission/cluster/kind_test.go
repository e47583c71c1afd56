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

	"tare/rigs/hosttest"
)

var (
	ruleKind = schema.GroupVersionKind{Group: "x.example", Version: "v1", Kind: "Rules"}
	rules    = schema.GroupVersionResource{Group: "x.example", Version: "v1", Resource: "rules"}
)

// serveRulesWhile makes a server define Rules while on says so, as an engine's kinds come and go.
func serveRulesWhile(s *fakeServer, on func() bool) {
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

// TestKindsDefinedLaterAreAwaited: Apply waits for a kind that appears some time after the object before it; without
// such an object it does not wait.
func TestKindsDefinedLaterAreAwaited(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	s := startFakeServer(t)
	c := connect(t, s.options(t, 0))
	var asked atomic.Int64
	serveRulesWhile(s, func() bool { return asked.Add(1) > 3 })
	rule := object("x.example/v1", "Rules", "", "r")
	wantError(t, c.Apply(t.Context(), []*unstructured.Unstructured{rule}, 1), "x.example/v1 Rules",
		"does not have this kind")
	asked.Store(0)
	objects := []*unstructured.Unstructured{object("v1", "ConfigMap", "n", "template"), rule}
	if err := c.Apply(t.Context(), objects, 1); err != nil {
		t.Fatal(err)
	}
	serveRulesWhile(s, func() bool { return false })
	c.patience = time.Second
	wantError(t, c.Apply(t.Context(), []*unstructured.Unstructured{objects[0], object("x.example/v2", "Rules", "", "r")},
		1), "Rules", "1s after", "engine")
}

// TestUnsettledAnswers: errors of a kind that comes or goes, or of a webhook that starts, are retried; other errors are
// not.
func TestUnsettledAnswers(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
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
		"kind of a parameter not found yet": {
			403, "Forbidden", `configmaps "a" is forbidden: ValidatingAdmissionPolicy 'b' denied request: failed to configure ` +
				`policy: failed to find resource referenced by paramKind: 'rules.example.com/v1, Kind=Limit'`, nil, true,
		},
		"no such namespace": {
			404, "NotFound", `namespaces "n" not found`,
			map[string]any{"kind": "namespaces", "name": "n"},
			false,
		},
		"webhook that says no":    {403, "Forbidden", `admission webhook "a" denied the request`, nil, false},
		"server that is not well": {500, "InternalError", "Internal error occurred: etcd", nil, false},
	} {
		s := startFakeServer(t)
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

// TestKindsThatGoAreRemoved: objects of a kind that was defined later are removed by the resource that the server
// names, after the policies and before everything else, from a journal that knows only the kind. At the end the kind is
// gone, or named in an error.
func TestKindsThatGoAreRemoved(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	s := startFakeServer(t)
	o := s.options(t, 0)
	o.Run = "run-1"
	c := connect(t, o)
	serveRulesWhile(s, func() bool { return false })
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
	serveRulesWhile(s, there.Load)
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

// TestRememberedKinds: DeleteAll takes a kind whose definition is gone to have no objects.
func TestRememberedKinds(t *testing.T) {
	s := startFakeServer(t)
	c := connect(t, s.options(t, 0))
	var there atomic.Bool
	there.Store(true)
	serveRulesWhile(s, there.Load)
	if has, err := c.Has(t.Context(), rules); !has || err != nil {
		t.Fatalf("has: %v, %v", has, err)
	}
	there.Store(false)
	if err := c.DeleteAll(t.Context(), "", rules); err != nil {
		t.Errorf("it has gone: %v", err)
	}
}
