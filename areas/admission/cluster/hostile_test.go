package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/metadata"

	"tare/rigs/hosttest"
)

// ask does one of everything that talks to the server.
var ask = map[string]func(ctx context.Context, c *Cluster) error{
	"version": func(ctx context.Context, c *Cluster) error { _, err := c.Version(ctx); return err },
	"has": func(ctx context.Context, c *Cluster) error {
		_, err := c.Has(ctx, vaps)
		return err
	},
	"apply": func(ctx context.Context, c *Cluster) error {
		return c.Apply(ctx, []*unstructured.Unstructured{object("v1", "ConfigMap", "n", "a")}, 1)
	},
	"fill":   func(ctx context.Context, c *Cluster) error { return c.Fill(ctx, Pods, c.Shape("n"), "p-", 0, 3) },
	"count":  func(ctx context.Context, c *Cluster) error { _, err := c.Count(ctx, "n", pods); return err },
	"exists": func(ctx context.Context, c *Cluster) error { _, err := c.Exists(ctx, "n", pods, "a"); return err },
	"empty":  func(ctx context.Context, c *Cluster) error { return c.DeleteAll(ctx, "n", pods) },
	"remove": func(ctx context.Context, c *Cluster) error {
		return c.RemoveAll(ctx, []schema.GroupVersionResource{pods, vaps})
	},
	"namespace": func(ctx context.Context, c *Cluster) error { return c.EnsureNamespace(ctx, "n", nil) },
	"check": func(ctx context.Context, c *Cluster) error {
		rules, err := CallerRules([]string{"create-pod"})
		if err != nil {
			return err
		}
		_, err = c.Check(ctx, rules)
		return err
	},
}

// TestHostileServers: no server makes tare wait forever, report success wrongly, follow it elsewhere, or print a
// credential.
func TestHostileServers(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	var elsewhere atomic.Int64
	trap := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter,
		_ *http.Request,
	) {
		elsewhere.Add(1)
		reply(w, 200, map[string]any{})
	}))
	defer trap.Close()
	servers := map[string]func(w http.ResponseWriter, r *http.Request) bool{
		"hangs": func(_ http.ResponseWriter, r *http.Request) bool { <-r.Context().Done(); return true },
		"hangs in the body": func(w http.ResponseWriter, r *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind": "`))
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			return true
		},
		"sends a page of HTML": func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "text/html")
			_, _ = w.Write([]byte("<html><h1>Log in</h1>\x1b[31m\a"))
			return true
		},
		"sends half an object": func(w http.ResponseWriter, _ *http.Request) bool {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind": "Status", "status": "Succ`))
			return true
		},
		"repeats the credential": func(w http.ResponseWriter, r *http.Request) bool {
			status(w, 401, "Unauthorized", "who is "+r.Header.Get("Authorization")+"?\x1b[2J")
			return true
		},
		"forbids": func(w http.ResponseWriter, _ *http.Request) bool {
			status(w, 403, "Forbidden", "you may not")
			return true
		},
		"is ill":   func(w http.ResponseWriter, _ *http.Request) bool { status(w, 500, "InternalError", "ill"); return true },
		"is empty": func(w http.ResponseWriter, _ *http.Request) bool { w.WriteHeader(200); return true },
		"redirects": func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, trap.URL+r.URL.Path, http.StatusTemporaryRedirect)
			return true
		},
		"redirects to itself": func(w http.ResponseWriter, r *http.Request) bool {
			http.Redirect(w, r, r.URL.Path+"/x", http.StatusFound)
			return true
		},
		"cuts the connection": func(http.ResponseWriter, *http.Request) bool { panic(http.ErrAbortHandler) },
	}
	for how, first := range servers {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			s := startFakeServer(t)
			s.first = first
			o := s.options(t, 0)
			o.Timeout, o.Patience = 300*time.Millisecond, 300*time.Millisecond
			for name, do := range ask {
				c := connect(t, o)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				err := do(ctx, c)
				if err == nil || ctx.Err() != nil {
					t.Errorf("%s: %v after %v", name, err, ctx.Err())
				}
				cancel()
				if err != nil && (strings.Contains(err.Error(), token) || strings.ContainsAny(err.Error(), "\x1b\a")) {
					t.Errorf("%s repeats what it must not: %q", name, err)
				}
			}
		})
	}
	t.Cleanup(func() {
		if n := elsewhere.Load(); n > 0 {
			t.Errorf("%d requests went elsewhere", n)
		}
	})
}

// TestIncompleteAnswersAreRejected: a server must say what it was asked for.
func TestIncompleteAnswersAreRejected(t *testing.T) {
	foreign := map[string]any{
		"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
		"metadata": map[string]any{}, "items": []any{
			map[string]any{"metadata": map[string]any{
				"name": "precious", "namespace": "kube-system",
				"labels": map[string]any{OwnerLabel: "run-2"},
			}},
		},
	}
	s := startFakeServer(t)
	c := connect(t, s.options(t, 0))
	s.first = func(w http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Has("limit") {
			reply(w, 200, foreign)
		}
		return r.URL.Query().Has("limit")
	}
	wantError(t, c.DeleteAll(t.Context(), "", pods), `lists "precious"`)
	if n := s.count(http.MethodDelete); n > 0 {
		t.Errorf("%d requests to delete", n)
	}
	s.first = func(w http.ResponseWriter, r *http.Request) bool { // what it has is suddenly not there
		if r.URL.Query().Has("limit") {
			status(w, 404, "NotFound", "the server could not find the requested resource")
		}
		return r.URL.Query().Has("limit")
	}
	wantError(t, c.DeleteAll(t.Context(), "", pods), "could not find")
	if err := c.DeleteAll(t.Context(), "", schema.GroupVersionResource{
		Group: "gone.example", Version: "v1",
		Resource: "things",
	}); err != nil {
		t.Errorf("a kind that is not served any more: %v", err)
	}
}

// TestRemovalIsVerified: tare gives up on a server that accepts every removal and removes nothing, after asking once.
func TestRemovalIsVerified(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	s := startFakeServer(t)
	o := s.options(t, 0)
	o.Patience = time.Second
	c := connect(t, o)
	if err := c.Fill(t.Context(), Pods, c.Shape("n"), "p-", 0, 7); err != nil {
		t.Fatal(err)
	}
	s.first = func(w http.ResponseWriter, r *http.Request) bool {
		if r.Method == http.MethodDelete {
			reply(w, 200, map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Success"})
		}
		return r.Method == http.MethodDelete
	}
	wantError(t, c.DeleteAll(t.Context(), "n", pods), "7 did not go", "and 2 more")
	if n := s.count(http.MethodDelete); n != 7 {
		t.Errorf("%d removals asked for, want 7", n)
	}
}

// TestEndlessAnswer: reading an endless answer is given up.
func TestEndlessAnswer(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	s := startFakeServer(t)
	o := s.options(t, 0)
	o.Timeout = time.Minute
	c := connect(t, o)
	part := []byte(strings.Repeat(" ", 1<<20))
	s.first = func(w http.ResponseWriter, _ *http.Request) bool {
		for {
			if _, err := w.Write(part); err != nil {
				return true
			}
		}
	}
	_, err := c.Metrics(t.Context())
	wantError(t, err, "longer than 64 MiB")
}

// TestAnswersThatFillMemory: what is short, and becomes long when it is decoded, is not decoded, whatever it is called.
func TestAnswersThatFillMemory(t *testing.T) {
	s := startFakeServer(t)
	c := connect(t, s.options(t, 0))
	var form, text string
	s.first = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header().Set("Content-Type", form)
		_, _ = w.Write([]byte(text))
		return true
	}
	count, exists := ask["count"], ask["exists"]
	n := 0 // events of watches
	watch := func(ctx context.Context, c *Cluster) error {
		config := c.Config()
		config.ContentType = protobuf
		client, err := metadata.NewForConfig(config)
		if err != nil {
			return err
		}
		w, err := client.Resource(pods).Watch(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		defer w.Stop()
		for e := range w.ResultChan() {
			if n++; e.Type == apiwatch.Error {
				err = apierrors.FromObject(e.Object)
			}
		}
		return err
	}
	many := func(what string) string { return "[" + strings.Repeat(what+",", 1<<17) + what + "]" }
	const head, list = `{"kind":"Pod","apiVersion":"v1","spec":`, `{"kind":"PodList","apiVersion":"v1","items":`
	const event = `{"type":"ADDED","object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"}}`
	for _, a := range []struct {
		ask              func(context.Context, *Cluster) error
		form, text, want string
	}{
		{count, jsonType, list + many("{}") + "}", "in arrays"},
		{count, "application/octet-stream", list + many("null") + "}", "in arrays"},
		{count, jsonType, list + `[{"spec":{"containers":` + many("{}") + "}}]}", "in arrays"},
		{count, jsonType, list + "[" + strings.Repeat(`{"a":"\"[","b":0},`, 1<<15) + "0]}", "cannot unmarshal"}, // few enough
		{count, jsonType, head + strings.Repeat(`{"":`, 1<<20), "more than 1048576 values"},
		{count, "application/yaml", "kind: PodList\napiVersion: v1\nitems: [{}]\n", "invalid character"},
		{count, protobuf, "k8s\x00\n\x08\n\x02v1\x12\x02xy", "invalid character"},
		{exists, jsonType, head + `{"a":` + many("0") + "}}", "more than 131072 values"},
		{exists, "", strings.Repeat(" ", 9<<20), "longer than 8 MiB"},
		{watch, jsonType, strings.Repeat(event, 5000) + `{"a":"` + strings.Repeat("A", 300<<10) + `"}`, "longer than 256 KiB"},
		{watch, protobuf + ";stream=watch", "\x00\x04\x00\x01", "longer than 256 KiB"},
	} {
		form, text = a.form, a.text
		wantError(t, a.ask(t.Context(), c), a.want)
	}
	if n != 5000+1+1 {
		t.Errorf("%d events, want 5000 that are short, and an error of each watch", n)
	}
}

// TestLongHeadersAreRefused: HTTP/2 makes megabytes of headers of some kilobytes.
func TestLongHeadersAreRefused(t *testing.T) {
	s := startFakeServer(t)
	c := connect(t, s.options(t, 0))
	s.first = func(w http.ResponseWriter, _ *http.Request) bool {
		w.Header()["X"] = slices.Repeat([]string{strings.Repeat("x", 1<<10)}, 100)
		return false
	}
	wantError(t, ask["version"](t.Context(), c), "header")
}

// TestEndlessListsEnd: a server that lists ever more objects of the run is given up, whether it removes them or not.
func TestEndlessListsEnd(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	for name, c := range map[string]struct {
		items, status int // of a page, and of a removal
		want          string
	}{
		"one at a time":          {1, 404, "list does not end"},
		"none at a time":         {0, 404, "list does not end"},
		"that nobody can remove": {page, 404, "1000 did not go: n/new-"},
		"that are removed":       {page, 200, "ever more"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := startFakeServer(t)
			o := s.options(t, 0)
			o.Patience = 300 * time.Millisecond
			k := connect(t, o)
			k.pass = 1000
			var made atomic.Int64
			s.first = func(w http.ResponseWriter, r *http.Request) bool {
				if r.Method == http.MethodDelete {
					status(w, c.status, "NotFound", "gone")
					return true
				}
				items := make([]any, c.items)
				for i := range items {
					items[i] = map[string]any{"metadata": map[string]any{
						"name": fmt.Sprint("new-", made.Add(1)), "namespace": "n", "labels": map[string]any{OwnerLabel: "run-1"},
					}}
				}
				reply(w, 200, map[string]any{
					"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
					"metadata": map[string]any{"continue": fmt.Sprint("at-", made.Add(1))}, "items": items,
				})
				return true
			}
			wantError(t, k.DeleteAll(t.Context(), "", pods), c.want)
			if _, err := k.Count(t.Context(), "", pods); err == nil {
				t.Error("they are counted")
			}
		})
	}
}

// TestPagesOfARemoval: a removal goes through as many pages as there are, and begins anew when the server has forgotten
// where the next one begins.
func TestPagesOfARemoval(t *testing.T) {
	s := startFakeServer(t)
	c := connect(t, s.options(t, 0))
	if err := c.Fill(t.Context(), Pods, c.Shape("n"), "p-", 0, 7); err != nil {
		t.Fatal(err)
	}
	expired := 0
	s.first = func(w http.ResponseWriter, r *http.Request) bool {
		switch {
		case r.Method != http.MethodGet:
			return false
		case r.URL.Query().Has("continue") && expired < 4:
			expired++
			status(w, 410, "Expired", "the continue parameter is too old")
			return true
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		all := httptest.NewRecorder()
		s.list(all, r)
		var list struct {
			APIVersion, Kind string
			Metadata         map[string]any
			Items            []any
		}
		if err := json.Unmarshal(all.Body.Bytes(), &list); err != nil {
			t.Error(err)
		}
		if len(list.Items) > 1 {
			list.Items, list.Metadata["continue"] = list.Items[:1], "more"
		}
		reply(w, 200, map[string]any{
			"apiVersion": list.APIVersion, "kind": list.Kind, "metadata": list.Metadata, "items": list.Items,
		})
		return true
	}
	if err := c.DeleteAll(t.Context(), "", pods); err != nil || expired != 4 || len(s.objects) != 0 {
		t.Errorf("%v, with %d pages forgotten and %d objects left", err, expired, len(s.objects))
	}
}

// TestVersionsRepeatNoCredential: of what the server says of itself, and of the user, what looks like a version is
// repeated, and no credential.
func TestVersionsRepeatNoCredential(t *testing.T) {
	const unknown = "of an unknown version"
	for said, want := range map[string]string{
		"v1.36.3": "v1.36.3", "v1.30.2-eks-1552ad0": "v1.30.2-eks-1552ad0", "v1.29.1+k3s2": "v1.29.1+k3s2",
		"v1.27.4-gke.900": "v1.27.4-gke.900", "v1.30.0 Bearer " + token: unknown, "v1.30.0-" + token: unknown, token: unknown,
		"v1.30.0\n": unknown, "": unknown, "v1.30.0-" + strings.Repeat("a", 100): unknown,
	} {
		s := startFakeServer(t)
		s.first = func(w http.ResponseWriter, r *http.Request) bool {
			switch r.URL.Path {
			case "/version":
				reply(w, 200, map[string]any{"major": "1", "minor": "30", "gitVersion": said})
			case "/apis/authentication.k8s.io/v1":
				reply(w, 200, map[string]any{
					"kind": "APIResourceList", "groupVersion": "authentication.k8s.io/v1",
					"resources": []any{map[string]any{"name": "selfsubjectreviews", "kind": "SelfSubjectReview"}},
				})
			default:
				reply(w, 201, map[string]any{
					"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview",
					"status": map[string]any{"userInfo": map[string]any{"username": "jane " + token}},
				})
			}
			return true
		}
		c := connect(t, s.options(t, 0))
		if v, err := c.Version(t.Context()); err != nil || v.GitVersion != want {
			t.Errorf("%q: %q, %v, want %q", said, v.GitVersion, err, want)
		}
		if user, err := c.User(t.Context()); err != nil || user != "jane [credential]" {
			t.Errorf("user %q, %v", user, err)
		}
	}
}

// TestUntrustedServer: another server at the same address receives no request.
func TestUntrustedServer(t *testing.T) {
	s := startFakeServer(t)
	stranger, _ := certificate(t)
	text := kubeconfig(s.server.URL, stranger, "token: "+token)
	c := connect(t, Options{Run: "run-1", Kubeconfig: write(t, text)})
	_, err := c.Version(t.Context())
	wantError(t, err, "certificate")
	if n := s.count(""); n > 0 {
		t.Errorf("%d requests to a server that is not trusted", n)
	}
}

// TestErrorsKeepCauses: scrubbed errors keep their types.
func TestErrorsKeepCauses(t *testing.T) {
	s := startFakeServer(t)
	c := connect(t, s.options(t, 0))
	s.first = func(w http.ResponseWriter, _ *http.Request) bool {
		status(w, 403, "Forbidden", "no "+token)
		return true
	}
	_, err := c.Metrics(t.Context())
	if !Denied(err) || strings.Contains(fmt.Sprint(err), token) {
		t.Errorf("%v, denied: %v", err, Denied(err))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.Count(ctx, "", pods); !errors.Is(err, context.Canceled) {
		t.Errorf("%v is not the context's", err)
	}
}
