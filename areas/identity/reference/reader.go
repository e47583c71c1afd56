package reference

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// An Admin asks one server's admin address. It keeps a connection open, so that a reading costs the server, whose CPU
// time is measured, as little as can be.
type Admin struct{ ask Exchanger }

// NewAdmin asks at base, which is Ready.Admin. It connects to nothing yet.
func NewAdmin(base string) *Admin {
	return &Admin{Exchanger{
		base:   "http://" + base,
		client: &http.Client{Transport: &http.Transport{DisableCompression: true}},
	}}
}

// Counters reads what the server has counted since its start, and the knobs that it runs with.
func (a *Admin) Counters(ctx context.Context) (Counters, error) {
	var c Counters
	err := a.ask.get(ctx, "/debug", &c)
	return c, err
}

// Flush empties the cache of an endpoint. An STS has no cache.
func (a *Admin) Flush(ctx context.Context) error { return a.act(ctx, actFlush, "") }

// Slow makes each hop of an STS take so much longer, from now on.
func (a *Admin) Slow(ctx context.Context, by time.Duration) error {
	return a.act(ctx, actSlow, by.String())
}

// Rotate makes new keys for an STS: what it signed and sealed before is good no more.
func (a *Admin) Rotate(ctx context.Context) error { return a.act(ctx, actRotate, "") }

// Revoke takes from a workload the right to act as its account, at an STS; Restore gives back what was taken from any.
func (a *Admin) Revoke(ctx context.Context, w Workload) error {
	return a.act(ctx, actRevoke, w.Subject())
}

// Restore gives every workload the right back that Revoke has taken.
func (a *Admin) Restore(ctx context.Context) error { return a.act(ctx, actRestore, "") }

// act asks for a change.
func (a *Admin) act(ctx context.Context, what, value string) error {
	address := a.ask.base + "/" + what + "?" + url.Values{actValue: {value}}.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, nil)
	if err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	answer, err := a.ask.client.Do(r)
	if err != nil {
		return fmt.Errorf("%s: %w", what, errors.Unwrap(err)) // without the address, of which the path is secret
	}
	if err := answer.Body.Close(); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: status %d", what, answer.StatusCode)
	}
	return nil
}

// Close closes the connection.
func (a *Admin) Close() { a.ask.Close() }
