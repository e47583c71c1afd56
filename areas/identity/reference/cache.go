package reference

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"tare/internal/clock"
)

const (
	// least is the remaining life below which a credential counts as expired: expires_in has whole seconds and must not be
	// 0.
	least = time.Second
	// mintTimeout bounds one way through the STS, for callers that share it.
	mintTimeout = 30 * time.Second
	// retryAfter is the pause after an early refresh that failed.
	retryAfter = time.Second
	// maxEntries bounds the cache: unique audiences would fill it without end.
	maxEntries = 1 << 16
)

// A credential is an access token or an identity token with its end.
type credential struct {
	value   string
	expires time.Time
}

// mint makes a new credential.
type mint func(ctx context.Context) (credential, error)

type entry struct {
	credential
	refresh time.Time // from then on it is renewed in the background; zero: never
}

// A flight is one mint that several requests wait for.
type flight struct {
	done chan struct{}
	got  credential
	err  error
}

// cache keeps credentials by key. Its flights belong to the server, not to the request that began them: owner waits for
// them.
type cache struct {
	on, share     bool
	early, jitter time.Duration
	clock         clock.Clock
	owner         *gate
	life          context.Context //nolint:containedctx // the server's life, which flights share instead of a request's

	hits, misses, refreshes atomic.Int64

	mu      sync.Mutex
	rng     *rand.Rand
	entries map[string]entry
	flights map[string]*flight
}

func newCache(life context.Context, k EndpointKnobs, seed uint64, c clock.Clock, owner *gate) *cache {
	return &cache{
		on: k.Cache, share: k.Singleflight, early: k.RefreshEarly, jitter: k.Jitter, clock: c, owner: owner, life: life,
		rng: rand.New(rand.NewPCG(seed, 0xcac4e)), entries: map[string]entry{}, flights: map[string]*flight{},
	}
}

// get returns the credential for key, from the cache or from m.
func (c *cache) get(ctx context.Context, key string, m mint) (credential, error) {
	if got, ok := c.lookup(key, m); ok {
		c.hits.Add(1)
		return got, nil
	}
	if !c.share {
		c.misses.Add(1)
		ctx, cancel := context.WithTimeout(ctx, mintTimeout)
		defer cancel()
		got, err := m(ctx)
		if err == nil {
			c.store(key, got)
		}
		return got, err
	}
	f := c.join(key, m)
	select {
	case <-f.done:
		return f.got, f.err
	case <-ctx.Done():
		return credential{}, ctx.Err()
	}
}

// lookup finds a valid credential, and starts its renewal if that is due.
func (c *cache) lookup(key string, m mint) (credential, bool) {
	if !c.on {
		return credential{}, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.entries[key]
	now := c.clock.Now()
	if !ok || e.expires.Sub(now) < least {
		return credential{}, false
	}
	if !e.refresh.IsZero() && !now.Before(e.refresh) && c.flights[key] == nil {
		c.refreshes.Add(1)
		c.launch(key, m)
	}
	return e.credential, true
}

// join returns the flight for key, and starts one if necessary. If a credential has arrived since the lookup, the
// flight returns that.
func (c *cache) join(key string, m mint) *flight {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; c.on && ok && e.expires.Sub(c.clock.Now()) >= least {
		c.hits.Add(1)
		f := &flight{done: make(chan struct{}), got: e.credential}
		close(f.done)
		return f
	}
	if f := c.flights[key]; f != nil {
		return f
	}
	c.misses.Add(1)
	return c.launch(key, m)
}

// launch starts a flight. The caller holds mu.
func (c *cache) launch(key string, m mint) *flight {
	f := &flight{done: make(chan struct{})}
	if !c.owner.enter() {
		f.err = context.Canceled
		close(f.done)
		return f
	}
	c.flights[key] = f
	go c.fly(f, key, m)
	return f
}

func (c *cache) fly(f *flight, key string, m mint) {
	defer c.owner.leave()
	ctx, cancel := context.WithTimeout(c.life, mintTimeout)
	defer cancel()
	f.got, f.err = m(ctx)
	if f.err == nil {
		c.store(key, f.got)
	} else {
		c.postpone(key)
	}
	c.mu.Lock()
	delete(c.flights, key)
	c.mu.Unlock()
	close(f.done)
}

func (c *cache) store(key string, got credential) {
	if !c.on {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for old := range c.entries {
		if len(c.entries) < maxEntries {
			break
		}
		delete(c.entries, old) // any: Go's map order is random
	}
	e := entry{credential: got}
	if c.early > 0 {
		e.refresh = got.expires.Add(-c.early)
		if c.jitter > 0 {
			e.refresh = e.refresh.Add(-time.Duration(c.rng.Int64N(int64(c.jitter))))
		}
	}
	c.entries[key] = e
}

// flush drops every credential. A credential that is being made is still stored.
func (c *cache) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.entries)
}

// postpone keeps a failing STS from being asked again by every request.
func (c *cache) postpone(key string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; ok && !e.refresh.IsZero() {
		e.refresh = c.clock.Now().Add(retryAfter)
		c.entries[key] = e
	}
}
