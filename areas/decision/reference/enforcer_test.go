package reference

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"tare/areas/decision/engine"
)

// TestEnforcerHandsOnTheQuestionOnly: a decision point that knows tare by a certificate would take every other user who
// connects to the enforcement point for tare.
func TestEnforcerHandsOnTheQuestionOnly(t *testing.T) {
	pair, err := engine.NewPair()
	if err != nil {
		t.Fatal(err)
	}
	known, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	point := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte(r.Method + " " + r.RequestURI))
	}))
	point.TLS = &tls.Config{
		Certificates: known.Certificates, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: known.RootCAs,
	}
	point.StartTLS()
	defer point.Close()
	ctx, stop := context.WithCancel(t.Context())
	at, ended := make(chan string, 1), make(chan error, 1)
	go func() {
		ended <- RunEnforcer(ctx, engine.Config{
			Addr: "127.0.0.1:0", Upstream: point.Listener.Addr().String(), Pair: pair, Path: "/v1/data/a/b", Within: 60,
		}, func(r engine.Ready) error { at <- r.Addr; return nil })
	}()
	defer func() {
		stop()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	}()
	addr := <-at
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{http.MethodPost, "/v1/data/a/b", http.StatusOK},
		{http.MethodGet, "/v1/data/a/b", http.StatusForbidden},
		{http.MethodPost, "/v1/data/a/b?explain=full", http.StatusForbidden},
		{http.MethodPost, "/v1/data/a%2Fb", http.StatusForbidden},
		{http.MethodPost, "/v1/data/", http.StatusForbidden},
		{http.MethodPost, "/v1/query", http.StatusForbidden},
		{http.MethodGet, "/v1/policies", http.StatusForbidden},
		{http.MethodGet, "/metrics", http.StatusForbidden},
	} {
		req, err := http.NewRequestWithContext(t.Context(), c.method, "http://"+addr+c.path, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		said, err := io.ReadAll(resp.Body)
		if err = errors.Join(err, resp.Body.Close()); err != nil {
			t.Fatal(err)
		}
		isHandedOn := string(said) == c.method+" "+c.path
		if resp.StatusCode != c.status || isHandedOn != (c.status == http.StatusOK) {
			t.Errorf("%s %s: got status %d, %s; want %d", c.method, c.path, resp.StatusCode, said, c.status)
		}
	}
}
