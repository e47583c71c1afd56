package reference

import (
	"context"
	"crypto/subtle"
	"net/http"
	"sync"
	"time"

	"tare/internal/clock"
)

// managed adds a request, POST to path, with which who knows the token has do done while next answers. It is answered
// when that is done. Without a token there is no such request.
func managed(next http.Handler, token, path string, do func(context.Context) error) http.Handler {
	if token == "" {
		return next
	}
	want := []byte("Bearer " + token)
	mux := http.NewServeMux()
	mux.Handle("/", next)
	var one sync.Mutex // at a time
	mux.HandleFunc("POST "+path, func(w http.ResponseWriter, r *http.Request) {
		if subtle.ConstantTimeCompare([]byte(r.Header.Get("Authorization")), want) != 1 {
			http.Error(w, "only tare itself may do this", http.StatusForbidden)
			return
		}
		one.Lock()
		defer one.Unlock()
		if err := do(r.Context()); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.WriteHeader(http.StatusNoContent)
	})
	return mux
}

// mostCached bounds the decisions that a cache holds.
const mostCached = 100_000

// A cache is a planted fault: it gives decisions again for a while, whatever the policies are by then. Nil caches
// nothing.
type cache struct {
	clock clock.Clock
	ttl   time.Duration

	mu    sync.Mutex
	known map[string]cached // by request
}

type cached struct {
	permit bool
	until  time.Time
}

// newCache returns nil for no time.
func newCache(c clock.Clock, ttl time.Duration) *cache {
	if ttl <= 0 {
		return nil
	}
	return &cache{clock: c, ttl: ttl, known: map[string]cached{}}
}

// of returns the decision on a request that it knows, or what decide says. An error is not kept.
func (c *cache) of(request []byte, decide func() (bool, error)) (bool, error) {
	if c == nil {
		return decide()
	}
	key, now := string(request), c.clock.Now()
	c.mu.Lock()
	k, ok := c.known[key]
	c.mu.Unlock()
	if ok && now.Before(k.until) {
		return k.permit, nil
	}
	permit, err := decide()
	if err != nil {
		return permit, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.known) >= mostCached {
		clear(c.known)
	}
	c.known[key] = cached{permit, now.Add(c.ttl)}
	return permit, nil
}
