package admission

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"k8s.io/client-go/rest"

	"tare/areas/admission/cluster"
	"tare/areas/admission/mechanism"
	"tare/internal/clock"
	"tare/internal/ratelimit"
)

const (
	// askWithin bounds single requests outside the load: with thousands of policies one request takes seconds.
	askWithin = 30 * time.Second
	// mostAnswer bounds the part of an answer that is read, in bytes.
	mostAnswer = 8 << 20
)

// An asker makes single requests outside the load, as the measured caller.
type asker struct {
	client  *http.Client
	server  string
	limit   *ratelimit.Limiter // bounds the requests outside the load, as the file demands; nil: no bound
	clock   clock.Clock
	cluster *cluster.Cluster // masks its credentials in what the server says
}

// newAsker makes an asker of a cluster with a rate limit; nil: none.
func newAsker(c *cluster.Cluster, limit *ratelimit.Limiter, by clock.Clock) (*asker, error) {
	config := c.Config()
	config.Timeout = askWithin
	config.Wrap(limit.Repeating)
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, c.Scrub(err)
	}
	return &asker{client: client, server: c.Location().Server, limit: limit, clock: by, cluster: c}, nil
}

// An answer is an answer of the API server.
type answer struct {
	status int
	body   []byte
	took   time.Duration // until it was read
}

// do makes one request. A status that reports a failure is no error.
func (a *asker) do(ctx context.Context, method, path, contentType string, body []byte) (answer, error) {
	if err := a.limit.Wait(ctx); err != nil {
		return answer{}, err
	}
	r, err := http.NewRequestWithContext(ctx, method, strings.TrimSuffix(a.server, "/")+path, bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	r.Header.Set("Accept", "application/json")
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	begin := a.clock.Now()
	res, err := a.client.Do(r)
	if err != nil {
		return answer{}, a.cluster.Scrub(fmt.Errorf("%s %s: %w", method, path, errors.Unwrap(err)))
	}
	text, err := io.ReadAll(io.LimitReader(res.Body, mostAnswer))
	if err = errors.Join(err, res.Body.Close()); err != nil {
		return answer{}, a.cluster.Scrub(fmt.Errorf("%s %s: %w", method, path, err))
	}
	return answer{res.StatusCode, a.cluster.Mask(text), a.clock.Now().Sub(begin)}, nil
}

// message returns the API server's message if the answer is a Status, and else the HTTP status.
func (a answer) message() string {
	const most = 400
	said := a.said()
	if len(said) > most {
		said = said[:most] + "…"
	}
	return said
}

// said is the whole of the server's message: it may name dozens of policies.
func (a answer) said() string {
	var s struct {
		Message string `json:"message"`
	}
	if err := json.Unmarshal(a.body, &s); err == nil && s.Message != "" {
		return s.Message
	}
	return fmt.Sprintf("status %d", a.status)
}

// webhookIsAway reports whether the API server refused a request since it could not call a webhook.
func (a answer) webhookIsAway() bool {
	return mechanism.RulingOf(a.status, a.body) == mechanism.PolicyFailed &&
		strings.Contains(a.said(), "failed calling webhook ")
}

// close closes idle connections.
func (a *asker) close() {
	if a != nil {
		a.client.CloseIdleConnections()
	}
}

// send sends a request of the load once, without the caller's headers, which the client adds; with dry as a dry run.
func (a *asker) send(ctx context.Context, raw []byte, dry bool) (answer, error) {
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(raw)))
	if err != nil {
		return answer{}, errors.New("the operation renders no request")
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return answer{}, errors.New("the operation renders no whole request")
	}
	path := r.URL.EscapedPath()
	switch {
	case dry:
		path += dryRunQuery
	case r.URL.RawQuery != "":
		path += "?" + r.URL.RawQuery
	}
	return a.do(ctx, r.Method, path, r.Header.Get("Content-Type"), body)
}
