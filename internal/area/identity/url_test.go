package identity

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tare/internal/area"
	"tare/internal/area/identity/reference"
)

// TestURL measures an endpoint that is not ours.
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
	if len(j.changes) != 0 {
		t.Errorf("a URL target made changes: %v", j.changes)
	}
	if err := tg.Enter(t.Context(), standard); err != nil {
		t.Fatal(err)
	}
	if err := tg.Verify(t.Context(), standard); err != nil {
		t.Fatal(err)
	}
	end, err := tg.Endpoint(standard)
	if err != nil {
		t.Fatal(err)
	}
	if "http://"+end.Host != srv.URL || "http://"+end.Addr.String() != srv.URL || end.Keys != 1 || (end.Local != nil && end.Local(0).IsValid()) {
		t.Errorf("endpoint %+v", end)
	}
	if err := tg.Recover(t.Context(), standard); err != nil {
		t.Error(err)
	}
	if q := tg.Observe(t.Context(), standard).ListenQueue; q == nil || *q != 0 {
		t.Errorf("listen queue %v", q)
	}
	strict = false
	if err := tg.Verify(t.Context(), standard); err == nil || !strings.Contains(err.Error(), "without the header Metadata-Flavor must be refused") {
		t.Errorf("an endpoint that refuses nothing: %v", err)
	}
}

func TestPrepareFailsOnWrongAnswers(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer srv.Close()
	opened, err := Area{}.Open(t.Context(), &Spec{Adapter: "gce-metadata", URL: srv.URL}, testEnv(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Prepare(t.Context(), standard, &memory{}); err == nil || !strings.Contains(err.Error(), "not the token that was asked for") {
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
	if len(f) != 1 || f[0].Severity != area.Error || f[0].Path != "url" {
		t.Errorf("nobody listens: %v", f)
	}
	deep := embedded("healthy")
	deep.Embedded.Backlog = new(reference.MaxBacklog() + 1)
	f = Area{}.Preflight(t.Context(), deep, area.Env{})
	if len(f) != 1 || f[0].Severity != area.Warning || !strings.Contains(f[0].Message, "somaxconn") {
		t.Errorf("a backlog beyond somaxconn: %v", f)
	}
}
