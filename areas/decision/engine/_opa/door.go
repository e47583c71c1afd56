package main

import (
	"context"
	"crypto/subtle"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"

	"github.com/open-policy-agent/opa/v1/topdown/cache"
)

// A door stands before all of OPA's routes. It lets in the question of the run, the health check, and policies from who
// knows the token. Every user of the host can connect to loopback, and the rest of OPA's REST API reads and changes
// policies and data, traces how they are evaluated, runs any query, and shows the environment and what was counted.
// OPA's own authorization (system.authz) would evaluate an additional policy for each question, and its middlewares do
// not stand before /metrics.
type door struct {
	routes   *http.ServeMux              // as OPA knows it
	question string                      // its path, as it stands in a request
	policy   []byte                      // the header Authorization of who may change policies; nil: nobody may
	server   atomic.Pointer[http.Server] // OPA's, as soon as it has answered
}

func newDoor(cfg config) (*door, error) {
	at, err := url.ParseRequestURI(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("path: %w", err)
	}
	d := &door{routes: http.NewServeMux(), question: at.EscapedPath()}
	if cfg.Admin != "" {
		d.policy = []byte("Bearer " + cfg.Admin)
	}
	return d, nil
}

// OnInterQueryCache implements hooks.InterQueryCacheHook. OPA calls it when it has made all of its routes and does not
// listen yet: the place of its router goes to one that only knows the door.
func (d *door) OnInterQueryCache(context.Context, cache.InterQueryCache) error {
	opa := moved(d.routes)
	d.routes.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		if !d.opens(r) {
			http.Error(w, "tare serves the question of its run only", http.StatusForbidden)
			return
		}
		if d.server.Load() == nil {
			s, _ := r.Context().Value(http.ServerContextKey).(*http.Server)
			d.server.Store(s)
		}
		opa.ServeHTTP(w, r)
	})
	return nil
}

// moved returns what was in a place, which is empty from then on.
func moved[T any](from *T) *T {
	was := *from
	*from = *new(T)
	return &was
}

// opens reports whether a request is let in.
func (d *door) opens(r *http.Request) bool {
	switch {
	case r.URL.RawQuery != "":
		return false
	case r.Method == http.MethodPost:
		return r.URL.EscapedPath() == d.question
	case r.Method == http.MethodGet:
		return r.URL.Path == "/health"
	}
	return d.policy != nil && r.Method == http.MethodPut && strings.HasPrefix(r.URL.Path, "/v1/policies/") &&
		subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), d.policy) == 1
}
