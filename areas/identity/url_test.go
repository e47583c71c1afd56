package identity

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"tare/area"
	"tare/areas/identity/reference"
	"tare/internal/design"
	"tare/internal/kit/oneshot"
	"tare/internal/ratelimit"
	"tare/rigs/areatest"
)

// TestURL measures an external endpoint.
func TestURL(t *testing.T) {
	const mine = "robot@project.iam.gserviceaccount.com"
	strict := true
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strict && (r.Header.Get("Metadata-Flavor") != "Google" || r.Header.Get("X-Forwarded-For") != ""):
			w.WriteHeader(403)
		case r.URL.Path == gceAccounts+"default/email":
			_, _ = w.Write([]byte(mine))
		case r.URL.Path == gceAccounts+mine+"/token":
			_, _ = w.Write([]byte(goodToken))
		default:
			w.WriteHeader(404)
		}
	}))
	defer srv.Close()
	spec := &Spec{Adapter: "gce-metadata", URL: srv.URL, Account: accountEmail}
	tg, j := prepared(t, spec, standard)
	if len(j.Changes()) != 0 {
		t.Errorf("a URL target made changes: %v", j.Changes())
	}
	if err := tg.Can().Enter(t.Context(), standard); err != nil {
		t.Fatal(err)
	}
	if err := tg.Verify(t.Context(), standard); err != nil {
		t.Fatal(err)
	}
	end, err := tg.Endpoint(standard)
	if err != nil {
		t.Fatal(err)
	}
	if "http://"+end.Host != srv.URL || "http://"+end.Addr.String() != srv.URL || end.Keys != 1 ||
		(end.Local != nil && end.Local(0).IsValid()) {
		t.Errorf("endpoint %+v", end)
	}
	if q := tg.Observe(t.Context(), standard).ListenQueue; q == nil || *q != 0 {
		t.Errorf("listen queue %v", q)
	}
	strict = false
	if err := tg.Verify(t.Context(), standard); err == nil ||
		!strings.Contains(err.Error(), "without the header Metadata-Flavor must be refused") {
		t.Errorf("an endpoint that refuses nothing: %v", err)
	}
}

func TestPrepareFailsOnWrongAnswers(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("<html>"))
	}))
	defer srv.Close()
	opened, err := Area{}.Open(t.Context(), &Spec{Adapter: "gce-metadata", URL: srv.URL}, testEnv(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Prepare(t.Context(), standard, &areatest.Journal{}); err == nil ||
		!strings.Contains(err.Error(), "not the token that was asked for") {
		t.Errorf("prepare: %v", err)
	}
	if err := opened.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestPreflight(t *testing.T) {
	srv := httptest.NewServer(http.NotFoundHandler())
	url := srv.URL
	if f := (Area{}).Preflight(t.Context(), &Spec{Adapter: "gce-metadata", URL: url}, area.Env{}); len(f) != 0 {
		t.Errorf("a server that listens: %v", f)
	}
	srv.Close()
	f := (Area{}).Preflight(t.Context(), &Spec{Adapter: "gce-metadata", URL: url}, area.Env{})
	if len(f) != 1 || f[0].Severity != area.Error || f[0].Path != "url" ||
		!strings.Contains(f[0].Message, "nothing listens at 127.0.0.1:") ||
		!strings.Contains(f[0].Hint, "start the server") || strings.Contains(f[0].Hint, "node") {
		t.Errorf("nobody listens: %v", f)
	}
	deep := embedded("healthy")
	deep.Embedded.Backlog = new(reference.MaxBacklog() + 1)
	f = Area{}.Preflight(t.Context(), deep, area.Env{})
	if len(f) != 1 || f[0].Severity != area.Warning || !strings.Contains(f[0].Message, "somaxconn") {
		t.Errorf("a backlog beyond somaxconn: %v", f)
	}
}

// TestMaxRateLimitsAllRequests: max_rate also limits requests outside of the load, over all treatments together.
func TestMaxRateLimitsAllRequests(t *testing.T) {
	var asked atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if r.Header.Get("Metadata-Flavor") != "Google" || r.Header.Get("X-Forwarded-For") != "" {
			w.WriteHeader(403)
			return
		}
		_, _ = w.Write([]byte(goodToken))
	}))
	defer srv.Close()
	env := testEnv(t)
	const rate = 20
	env.Limit = ratelimit.New(env.Clock, rate)
	tg, err := Area{}.Open(t.Context(), &Spec{Adapter: "gce-metadata", URL: srv.URL}, env)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tg.Close(context.Background()) })
	begin := time.Now()
	for _, tr := range []design.Treatment{{ID: "a"}, {ID: "b"}} {
		if err := tg.Prepare(t.Context(), tr, &areatest.Journal{}); err != nil {
			t.Fatal(err)
		}
		if err := tg.Can().Enter(t.Context(), tr); err != nil {
			t.Fatal(err)
		}
		if err := tg.Verify(t.Context(), tr); err != nil {
			t.Fatal(err)
		}
	}
	took, n := time.Since(begin).Seconds(), asked.Load()
	if n < 8 {
		t.Errorf("%d requests, want the warm-up, the canaries and the timed call of two treatments", n)
	}
	if most := 1 + rate*took; float64(n) > most {
		t.Errorf("%d requests in %.2f s, at most %.0f were allowed", n, took, most)
	}
}

// TestLongAnswersAreRejected: the beginning of an endless answer is no token, and the request is not repeated until the
// time is over.
func TestLongAnswersAreRejected(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = w.Write(bytes.Repeat([]byte("a"), oneshot.MaxBody+1))
	}))
	t.Cleanup(server.Close)
	opened, err := Area{}.Open(t.Context(), &Spec{Adapter: "http-token", URL: server.URL, HTTP: &HTTP{Token: wholeBody}},
		testEnv(t))
	if err != nil {
		t.Fatal(err)
	}
	err = opened.Prepare(t.Context(), standard, &areatest.Journal{})
	if !errors.Is(err, oneshot.ErrTooLong) || asked != 1 {
		t.Errorf("asked %d times: %v", asked, err)
	}
	if err := opened.Close(t.Context()); err != nil {
		t.Error(err)
	}
}
