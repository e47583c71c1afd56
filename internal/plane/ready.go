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
	// askWithin bounds one question to a health endpoint.
	askWithin = 5 * time.Second
	// mostSaid bounds what is kept of an answer, in bytes.
	mostSaid = 16 << 10
)

// up starts the components and waits until each is well. etcd and kube-apiserver start together: the server waits for its store by itself.
// The other two look for the server once and then wait for a second; so they come as soon as it answers at all. It is then about to wait for
// a second itself, before it makes its default roles (kubernetes/pkg/registry/rbac/rest, "wait.Poll(1*time.Second").
func (p *Plane) up(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.config.Within, fmt.Errorf("not ready within %v", p.config.Within))
	defer cancel()
	defer p.client.CloseIdleConnections()
	if err := p.spawn(ctx, Etcd, APIServer); err != nil {
		return late(ctx, err)
	}
	if p.config.Nodes {
		if err := p.await(ctx, APIServer, p.serving); err != nil {
			return err
		}
		if err := p.spawn(ctx, Scheduler, ControllerManager); err != nil {
			return late(ctx, err)
		}
	}
	for _, c := range p.components() {
		for _, path := range p.wellAt(c) {
			if err := p.await(ctx, c, func(ctx context.Context) error { return p.ask(ctx, path) }); err != nil {
				return err
			}
		}
	}
	return p.Failed()
}

// wellAt is what must answer 200 before a component counts as ready. Some say that they are well before they have worked, so their work is looked
// for: that of the server is namespaces, that of the controller-manager is a ServiceAccount, without which no pod is admitted.
func (p *Plane) wellAt(component string) []string {
	switch component {
	case APIServer:
		return []string{p.Server() + "/readyz", p.Server() + "/api/v1/namespaces/default", p.Server() + "/api/v1/namespaces/kube-node-lease"}
	case Scheduler:
		path := "/readyz" // its informers have synced, too
		if p.config.Binary.Version == V124 {
			path = "/healthz"
		}
		return []string{url(p.ports.scheduler) + path}
	case ControllerManager:
		return []string{url(p.ports.controller) + "/healthz", p.Server() + "/api/v1/namespaces/default/serviceaccounts/default"}
	}
	return nil // etcd: the server's own readiness depends on it
}

// late prefers the reason for which the context ended.
func late(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return context.Cause(ctx)
	}
	return err
}

// await asks until there is no error, one of the plane's components has ended, or ctx has.
func (p *Plane) await(ctx context.Context, component string, ask func(context.Context) error) error {
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if failed := p.Failed(); failed != nil {
			return failed
		}
		if p.config.Clock.Sleep(ctx, pollEvery) != nil {
			return fmt.Errorf("%s: %w: %w; see its log %s", component, context.Cause(ctx), err, p.LogFile(component))
		}
	}
}

// serving is nil when the server answers, whatever it says.
func (p *Plane) serving(ctx context.Context) error {
	if err := p.ask(ctx, p.Server()+"/readyz"); err != nil && !errors.Is(err, errUnwell) {
		return err
	}
	return nil
}

// errUnwell is an answer that is not 200.
var errUnwell = errors.New("not well")

// ask is nil when the answer at the URL is 200. Components other than the server answer without knowing who asks.
func (p *Plane) ask(ctx context.Context, url string) error {
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
	defer res.Body.Close() //nolint:errcheck // nothing that could be lost
	said, err := io.ReadAll(io.LimitReader(res.Body, mostSaid))
	if err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%w: %s answers %s%s", errUnwell, req.URL.Path, res.Status, unwell(string(said)))
	}
	return nil
}

// unwell picks the failed checks out of what a health endpoint says: lines that begin with "[-]".
func unwell(said string) string {
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

// verified makes a client that knows the plane's authority only, and no proxy.
func verified(ca []byte) (*http.Client, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(ca) {
		return nil, errors.New("the authority's certificate cannot be read")
	}
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}, ForceAttemptHTTP2: true,
	}}, nil
}
