package identity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"
	"weak"

	"tare/area"
	"tare/internal/clock"
	"tare/internal/kit"
)

const (
	// rereadEvery is how often file secrets are read again: projected service-account tokens rotate minutes before they
	// expire.
	rereadEvery = 20 * time.Second
	// renewRetry is the pause after a renewal that failed.
	renewRetry = 2 * time.Second
)

// credentials are the secrets and leases of one arm, in memory only. What changes in them is rendered into requests
// outside the timed path.
type credentials struct {
	getenv func(string) (string, bool)

	mu       sync.RWMutex
	values   map[area.Secret]string
	leases   []lease
	obtained []time.Time // when each lease was asked for
	followed []weak.Pointer[requests]
}

// newCredentials reads all secrets of s. Its errors name places only.
func newCredentials(s *Spec, getenv func(string) (string, bool), identities int) (*credentials, error) {
	c := &credentials{
		getenv: kit.Environment(getenv), values: map[area.Secret]string{}, leases: make([]lease, identities),
		obtained: make([]time.Time, identities),
	}
	for _, x := range kit.SentSecrets(s) {
		v, err := c.read(x)
		if err != nil {
			return nil, err
		}
		c.values[x] = v
	}
	return c, nil
}

// read resolves a secret that can stand in a request.
func (c *credentials) read(x area.Secret) (string, error) {
	v, err := x.Resolve(c.getenv)
	if err != nil {
		return "", err
	}
	if strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return "", fmt.Errorf("read secret %s: it has line ends or control characters within", x)
	}
	return v, nil
}

func (c *credentials) secret(x area.Secret) string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.values[x]
}

func (c *credentials) lease(key int) string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if key >= len(c.leases) {
		return ""
	}
	return c.leases[key].value
}

// follow renders r again whenever a credential changes, for as long as r is in use.
func (c *credentials) follow(r *requests) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.followed = append(c.followed, weak.Make(r))
}

// set stores what login has obtained.
func (c *credentials) set(key int, l lease, asked time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leases[key], c.obtained[key] = l, asked
}

// render renders all requests anew.
func (c *credentials) render() {
	for _, r := range c.following() {
		r.renew()
	}
}

// renderOf renders the requests of one identity anew.
func (c *credentials) renderOf(key int) {
	for _, r := range c.following() {
		r.renewOne(key)
	}
}

// following returns the requests that are still in use.
func (c *credentials) following() []*requests {
	c.mu.Lock()
	defer c.mu.Unlock()
	var live []*requests
	kept := c.followed[:0]
	for _, w := range c.followed {
		if r := w.Value(); r != nil {
			live, kept = append(live, r), append(kept, w)
		}
	}
	c.followed = kept
	return live
}

// reread reads file secrets again and reports whether one has changed. One that cannot be read keeps its value.
func (c *credentials) reread() (changed bool, err error) {
	c.mu.RLock()
	old := maps.Clone(c.values)
	c.mu.RUnlock()
	var errs []error
	for x, was := range old {
		if x.File == "" {
			continue
		}
		now, e := c.read(x)
		if e != nil {
			errs = append(errs, e)
			continue
		}
		if now != was {
			changed = true
			c.mu.Lock()
			c.values[x] = now
			c.mu.Unlock()
		}
	}
	return changed, errors.Join(errs...)
}

// rotates reports whether there are secrets that may change meanwhile.
func (c *credentials) rotates() bool {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for x := range c.values {
		if x.File != "" {
			return true
		}
	}
	return false
}

// due returns the identity whose lease must be renewed next, and when: at half of its life. ok is false if no lease
// ever needs renewal.
func (c *credentials) due() (key int, at time.Time, ok bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for k, l := range c.leases {
		if l.lives <= 0 {
			continue
		}
		if t := c.obtained[k].Add(l.lives / 2); !ok || t.Before(at) {
			key, at, ok = k, t, true
		}
	}
	return key, at, ok
}

// expired reports whether a lease has ended by now.
func (c *credentials) expired(now time.Time) bool {
	if c == nil {
		return false
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	for k, l := range c.leases {
		if l.lives > 0 && !now.Before(c.obtained[k].Add(l.lives)) {
			return true
		}
	}
	return false
}

// A renewer keeps credentials fresh outside the timed path, until its context ends.
type renewer struct {
	creds *credentials
	clock clock.Clock
	log   *slog.Logger
	login func(ctx context.Context, key int) error // nil: nothing is leased
}

// needed reports whether there is anything to keep fresh.
func (r renewer) needed() bool {
	_, _, leased := r.creds.due()
	return leased || r.creds.rotates()
}

func (r renewer) run(ctx context.Context) {
	reread := r.clock.Now().Add(rereadEvery)
	retry := time.Time{}
	for {
		at := reread
		key, due, leased := r.creds.due()
		if due.Before(retry) {
			due = retry
		}
		if leased && due.Before(at) {
			at = due
		}
		if r.clock.Sleep(ctx, max(0, at.Sub(r.clock.Now()))) != nil {
			return
		}
		now := r.clock.Now()
		if !now.Before(reread) {
			reread = now.Add(rereadEvery)
			r.readFiles()
		}
		if leased && !now.Before(due) {
			if err := r.login(ctx, key); err != nil && ctx.Err() == nil {
				r.log.Warn("renewal of a session token failed", slog.Int("identity", key), slog.String("error", err.Error()))
				retry = now.Add(renewRetry)
			}
		}
	}
}

func (r renewer) readFiles() {
	changed, err := r.creds.reread()
	if err != nil {
		r.log.Warn("a secret cannot be read again", slog.String("error", err.Error()))
	}
	if changed {
		r.creds.render()
	}
}
