package webhook

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"tare/internal/clock"
	"tare/rigs/memtest"
)

// reviewOf is an AdmissionReview about an object with this metadata.
func reviewOf(metadata string) string {
	return fmt.Sprintf(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"705ab4f5","kind":{"group":"","version":"v1","kind":"Pod"},`+
		`"operation":"CREATE","object":{"kind":"Pod","apiVersion":"v1","metadata":%s,"spec":{"containers":[{"name":"main"}]}},"oldObject":null}}`, metadata)
}

func post(h http.Handler, path, body string) *httptest.ResponseRecorder {
	r := httptest.NewRecorder()
	h.ServeHTTP(r, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
	return r
}

func TestReviewsAreDecided(t *testing.T) {
	const marked = `[{"op":"add","path":"/metadata/annotations","value":{"tare.dev/mutated":"1"}}]`
	for name, c := range map[string]struct {
		path, metadata string
		allowed        bool
		patch          string
	}{
		"allowed":     {"/validate/c-relevant-00001", `{"name":"a"}`, true, ""},
		"other label": {"/validate/c-relevant-00001", `{"labels":{"app":"c-relevant-00001"}}`, true, ""},
		"denied by name": {
			"/validate/c-relevant-00001",
			`{"labels":{"tare.dev/deny":"c-relevant-00001"}}`, false, "",
		},
		"denied by all":          {"/validate/c-relevant-00001", `{"labels":{"tare.dev/deny":"all"}}`, false, ""},
		"denied by another":      {"/validate/c-relevant-00001", `{"labels":{"tare.dev/deny":"c-relevant-00002"}}`, true, ""},
		"no object":              {"/validate/c-relevant-00001", `null`, true, ""},
		"marked":                 {"/mutate/c-relevant-00001", `{"name":"a"}`, true, marked},
		"marked, no annotations": {"/mutate/c-relevant-00001", `{"annotations":{}}`, true, marked},
		"marked beside another": {
			"/mutate/c-relevant-00001", `{"annotations":{"a":"b"}}`, true,
			`[{"op":"add","path":"/metadata/annotations/tare.dev~1mutated","value":"1"}]`,
		},
		"marked again": {
			"/mutate/c-relevant-00001", `{"annotations":{"tare.dev/mutated":"41"}}`, true,
			`[{"op":"add","path":"/metadata/annotations/tare.dev~1mutated","value":"42"}]`,
		},
		"marked by a stranger": {
			"/mutate/c-relevant-00001", `{"annotations":{"tare.dev/mutated":"x"}}`, true,
			`[{"op":"add","path":"/metadata/annotations/tare.dev~1mutated","value":"1"}]`,
		},
		"mutating denies": {"/mutate/c-relevant-00001", `{"labels":{"tare.dev/deny":"all"}}`, false, ""},
	} {
		r := post(newHandler(clock.System{}, Latency{}, 0), c.path, reviewOf(c.metadata))
		var got answer
		if err := json.Unmarshal(r.Body.Bytes(), &got); err != nil || r.Code != http.StatusOK {
			t.Errorf("%s: status %d: %v", name, r.Code, err)
			continue
		}
		if got.APIVersion != reviewVersion || got.Kind != reviewKind || got.Response.UID != "705ab4f5" ||
			got.Response.Allowed != c.allowed {
			t.Errorf("%s: got %s, want a review with the request's uid and its decision", name, r.Body)
		}
		if !c.allowed && (got.Response.Status == nil || got.Response.Status.Code != 403 ||
			!strings.Contains(got.Response.Status.Message, "c-relevant-00001")) {
			t.Errorf("%s: does not say who denied: %s", name, r.Body)
		}
		if diff := cmp.Diff(c.patch, string(got.Response.Patch)); diff != "" ||
			(got.Response.PatchType == "JSONPatch") != (c.patch != "") {
			t.Errorf("%s: patch type %q (-want +got):\n%s", name, got.Response.PatchType, diff)
		}
	}
}

func TestInvalidReviewsAreRejected(t *testing.T) {
	good := reviewOf(`{}`)
	for name, c := range map[string]struct {
		method, path, body string
		code               int
	}{
		"garbage":         {"POST", "/validate/a", "garbage", 400},
		"nothing":         {"POST", "/validate/a", "", 400},
		"null":            {"POST", "/validate/a", "null", 400},
		"two values":      {"POST", "/validate/a", good + good, 400},
		"no request":      {"POST", "/validate/a", `{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}`, 400},
		"no uid":          {"POST", "/validate/a", strings.Replace(good, "705ab4f5", "", 1), 400},
		"endless uid":     {"POST", "/validate/a", strings.Replace(good, "705ab4f5", strings.Repeat("a", 200), 1), 400},
		"old version":     {"POST", "/validate/a", strings.Replace(good, "k8s.io/v1", "k8s.io/v1beta1", 1), 400},
		"other kind":      {"POST", "/validate/a", strings.Replace(good, "AdmissionReview", "TokenReview", 1), 400},
		"labels are list": {"POST", "/validate/a", reviewOf(`{"labels":[]}`), 400},
		"deep":            {"POST", "/validate/a", strings.Repeat("[", 100_000), 400},
		"too large":       {"POST", "/validate/a", `"` + strings.Repeat("a", mostBody) + `"`, 413},
		"no policy":       {"POST", "/validate/", good, 404},
		"other path":      {"POST", "/", good, 404},
		"path below":      {"POST", "/validate/a/b", good, 404},
		"long name":       {"POST", "/validate/" + strings.Repeat("a", 64), good, 404},
		"read":            {"GET", "/validate/a", "", 405},
		"counts written":  {"POST", "/counts", "", 405},
	} {
		h := newHandler(clock.System{}, Latency{}, 0)
		r := httptest.NewRecorder()
		h.ServeHTTP(r, httptest.NewRequest(c.method, c.path, strings.NewReader(c.body)))
		if r.Code != c.code {
			t.Errorf("%s: status %d, want %d: %s", name, r.Code, c.code, r.Body)
		}
		if n := h.counts.snapshot(); n.Reviews != 0 || len(n.Paths) != 0 || (n.Bad != 1 && c.path != "/counts") {
			t.Errorf("%s: counted %+v", name, n)
		}
	}
}

func TestReviewsAreCounted(t *testing.T) {
	h := newHandler(clock.System{}, Latency{}, 0)
	for range 3 {
		post(h, "/validate/a", reviewOf(`{}`))
	}
	post(h, "/mutate/a", reviewOf(`{"labels":{"tare.dev/deny":"all"}}`))
	r := httptest.NewRecorder()
	h.ServeHTTP(r, httptest.NewRequest(http.MethodGet, CountsPath, nil))
	var got Counts
	if err := json.Unmarshal(r.Body.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Counts{Reviews: 4, Paths: map[string]int64{"/validate/a": 3, "/mutate/a": 1}}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLatencyPasses(t *testing.T) {
	start := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	c := clock.NewFake(start)
	h := newHandler(c, Latency{Median: 5 * time.Millisecond}, 0)
	if r := post(h, "/validate/a", reviewOf(`{}`)); r.Code != http.StatusOK {
		t.Fatal(r.Code)
	}
	if got := c.Now().Sub(start); got != 5*time.Millisecond {
		t.Errorf("answered after %v, want 5ms", got)
	}
	if r := post(h, "/validate/a", "garbage"); r.Code != http.StatusBadRequest ||
		c.Now().Sub(start) != 5*time.Millisecond {
		t.Errorf("garbage: status %d after %v more", r.Code, c.Now().Sub(start)-5*time.Millisecond)
	}
}

// FuzzReview: the answer to any request is JSON with the caller's uid, or a rejection.
func FuzzReview(f *testing.F) {
	f.Add("/validate/c-relevant-00001", []byte(reviewOf(`{"labels":{"tare.dev/deny":"all"}}`)))
	f.Add("/mutate/c-relevant-00001", []byte(reviewOf(`{"annotations":{"a":"b"}}`)))
	f.Add("/mutate/c-relevant-00001", []byte(reviewOf(`{"annotations":{"tare.dev/mutated":"9223372036854775807"}}`)))
	f.Add("/validate/", []byte(`{"request":null}`))
	f.Add("/counts", []byte("garbage"))
	f.Add("/mutate/~1", []byte(reviewOf(`null`)))
	f.Fuzz(func(t *testing.T, path string, body []byte) {
		defer memtest.Bound(t, len(path)+len(body))()
		h := newHandler(clock.System{}, Latency{}, 0)
		r := httptest.NewRecorder()
		req := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		req.URL.Path = path
		h.ServeHTTP(r, req)
		if r.Code != http.StatusOK {
			if n := h.counts.snapshot(); n.Reviews != 0 {
				t.Fatalf("status %d was counted as a review", r.Code)
			}
			return
		}
		var asked review
		if err := json.Unmarshal(body, &asked); err != nil || asked.Request == nil {
			t.Fatalf("answered %q: %v", body, err)
		}
		var got answer
		if err := json.Unmarshal(r.Body.Bytes(), &got); err != nil || got.Response.UID != asked.Request.UID {
			t.Fatalf("answer %s: %v", r.Body, err)
		}
		if got.Response.Allowed == (got.Response.Status != nil) ||
			(len(got.Response.Patch) > 0 && !json.Valid(got.Response.Patch)) {
			t.Fatalf("answer %s", r.Body)
		}
	})
}

// BenchmarkReview is what a review costs without TLS and HTTP.
func BenchmarkReview(b *testing.B) {
	body := []byte(reviewOf(`{"name":"a","labels":{"app":"b"},"annotations":{"c":"d"}}`))
	for _, path := range []string{"/validate/c-relevant-00001", "/mutate/c-relevant-00001"} {
		b.Run(path[1:7], func(b *testing.B) {
			h := newHandler(clock.System{}, Latency{}, 0)
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, path, io.NopCloser(bytes.NewReader(body)))
				h.ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
}
