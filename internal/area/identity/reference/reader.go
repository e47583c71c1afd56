package reference

import (
	"context"
	"fmt"
	"net/http"
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
func (a *Admin) Flush(ctx context.Context) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.ask.base+"/flush", nil)
	if err != nil {
		return fmt.Errorf("flush the endpoint's cache: %w", err)
	}
	answer, err := a.ask.client.Do(r)
	if err != nil {
		return fmt.Errorf("flush the endpoint's cache: %w", err)
	}
	if err := answer.Body.Close(); err != nil {
		return fmt.Errorf("flush the endpoint's cache: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		return fmt.Errorf("flush the endpoint's cache: status %d", answer.StatusCode)
	}
	return nil
}

// Close closes the connection.
func (a *Admin) Close() { a.ask.Close() }
