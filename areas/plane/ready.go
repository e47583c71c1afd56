package plane

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

const (
	pollEvery = 20 * time.Millisecond
	// askWithin bounds one request to a health endpoint.
	askWithin = 5 * time.Second
	// mostSaid bounds the part of an answer that is kept, in bytes.
	mostSaid = 16 << 10
)

// startAll starts the components and waits until each is healthy. etcd and kube-apiserver start together: the server
// waits for its store itself. The scheduler looks for the server once and then sleeps for a second, so it starts as
// soon as that answers at all. The controller-manager ends if the server is not healthy within 10 s, which on a busy
// host the creation of its default roles alone can take, so it starts when the server is ready.
func (p *Plane) startAll(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.config.Within, fmt.Errorf("not ready within %v", p.config.Within))
	defer cancel()
	defer p.client.CloseIdleConnections()
	if err := p.spawn(ctx, Etcd, APIServer); err != nil {
		return causeOr(ctx, err)
	}
	if p.config.Nodes {
		if err := p.await(ctx, APIServer, p.checkServing); err != nil {
			return err
		}
		if err := p.spawn(ctx, Scheduler); err != nil {
			return causeOr(ctx, err)
		}
		if err := p.awaitHealth(ctx, APIServer); err != nil {
			return err
		}
		if err := p.spawn(ctx, ControllerManager); err != nil {
			return causeOr(ctx, err)
		}
	}
	for _, c := range p.components() {
		if err := p.awaitHealth(ctx, c); err != nil {
			return err
		}
	}
	return p.Failed()
}

// awaitHealth waits until a component is ready.
func (p *Plane) awaitHealth(ctx context.Context, component string) error {
	for _, path := range p.healthURLs(component) {
		healthy := func(ctx context.Context) error { return p.checkHealth(ctx, path) }
		if err := p.await(ctx, component, healthy); err != nil {
			return err
		}
	}
	return nil
}

// healthURLs returns the URLs that must answer 200 before a component counts as ready. Some components report health
// before they work, so the result of their work is checked: for the server namespaces, for the controller-manager a
// ServiceAccount, without which no pod is admitted.
func (p *Plane) healthURLs(component string) []string {
	switch component {
	case APIServer:
		return []string{p.Server() + "/readyz", p.Server() + "/api/v1/namespaces/default", p.Server() +
			"/api/v1/namespaces/kube-node-lease"}
	case Scheduler:
		path := "/readyz" // its informers have synced too
		if p.config.Binary.Version == V124 {
			path = "/healthz"
		}
		return []string{url(p.ports.scheduler) + path}
	case ControllerManager:
		return []string{url(p.ports.controller) + "/healthz", p.Server() +
			"/api/v1/namespaces/default/serviceaccounts/default"}
	}
	return nil // etcd: the server's readiness depends on it
}

// causeOr returns why the context ended, if it has, and else err.
func causeOr(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return err
}

// await calls ask until it succeeds, a component of the plane has ended, or ctx has.
func (p *Plane) await(ctx context.Context, component string, ask func(context.Context) error) error {
	var last error
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if failed := p.Failed(); failed != nil {
			return failed
		}
		if last == nil || ctx.Err() == nil { // a request that the deadline cut short says less than an answer
			last = err
		}
		if p.config.Clock.Sleep(ctx, pollEvery) != nil {
			return fmt.Errorf("%s: %w: %w; see its log %s", component, context.Cause(ctx), last, p.LogFile(component))
		}
	}
}

// checkServing returns nil when the server answers, with any status.
func (p *Plane) checkServing(ctx context.Context) error {
	if err := p.checkHealth(ctx, p.Server()+"/readyz"); err != nil && !errors.Is(err, errUnhealthy) {
		return err
	}
	return nil
}

// errUnhealthy is an answer that is not 200.
var errUnhealthy = errors.New("unhealthy")

// checkHealth returns nil when the URL answers 200. Components other than the server need no credentials.
func (p *Plane) checkHealth(ctx context.Context, url string) error {
	ctx, cancel := context.WithTimeout(ctx, askWithin)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return err
	}
	if strings.HasPrefix(url, p.Server()+"/") {
		req.Header.Set("Authorization", "Bearer "+p.AdminToken)
	}
	res, err := p.client.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close() //nolint:errcheck // read only
	said, err := io.ReadAll(io.LimitReader(res.Body, mostSaid))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s answers %s%s", errUnhealthy, req.URL.Path, res.Status, failedChecks(string(said)))
	}
	return nil
}

// failedChecks extracts the failed checks from the answer of a health endpoint: lines that begin with "[-]".
func failedChecks(said string) string {
	var checks []string
	for line := range strings.Lines(said) {
		if check, ok := strings.CutPrefix(line, "[-]"); ok {
			name, _, _ := strings.Cut(check, " ")
			checks = append(checks, strings.TrimSpace(name))
		}
	}
	if len(checks) == 0 {
		return ""
	}
	return ", not yet: " + strings.Join(checks, ", ")
}

// newClient returns a client that trusts the plane's authority only, and uses no proxy.
func newClient(ca []byte) (*http.Client, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("the authority's certificate cannot be read")
	}
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
	}}, nil
}
