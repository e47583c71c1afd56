// Package cluster is a connection to a Kubernetes API server: whose it is, how it is reached, and what is created on it and taken away again.
// Everything that it creates carries the label of its run, and it removes nothing else.
package cluster

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"tare/internal/area"
	"tare/internal/clock"
	"tare/internal/ratelimit"
)

// Options say which cluster, as whom, and how hard it may be used. Exactly one of Kubeconfig and Server is set.
type Options struct {
	// Run is the run's id (area.Env.Run): the value of the label OwnerLabel.
	Run string
	// Kubeconfig is a file; Context one of its contexts, "" for its current one.
	Kubeconfig, Context string
	// Server, CA (PEM) and Token reach a control plane of our own.
	Server string
	CA     []byte
	Token  string
	// ExposeSecrets allows credentials to be sent to another host without verifying its certificate. Without TLS none are sent.
	ExposeSecrets bool
	// Bare says that no controller-manager runs there: default ServiceAccounts are made, and namespaces finalized, by this package.
	Bare bool
	// Limit bounds the requests of setting up and removing; nil: as many as go.
	Limit *ratelimit.Limiter
	// Timeout bounds one request of setting up; 0: 30 s. Patience bounds how long is waited without progress, for an object to come or to go; 0: 60 s.
	Timeout, Patience time.Duration
	Clock             clock.Clock // nil: the system's
}

// A Cluster is one API server, reached as one user. Its methods may be called from several goroutines at once.
type Cluster struct {
	run       string
	place     Place
	notes     []string
	url       *url.URL
	bare      bool
	patience  time.Duration
	clock     clock.Clock
	guard     *guard
	plugin    *plugin      // nil: the credentials come from the kubeconfig
	config    *rest.Config // unpaced
	transport *http.Transport
	client    *http.Client
	limit     *ratelimit.Limiter
	dynamic   dynamic.Interface
	metadata  metadata.Interface

	mu    sync.Mutex
	kinds map[schema.GroupVersion][]kind // what the server has, as far as it was asked
}

// Place is where a cluster is, as data: enough to find it again in a new process, and to notice that the name now means another. It holds no
// credential.
type Place struct {
	Kubeconfig string // absolute; "" for a control plane of our own
	Context    string
	Server     string // URL
	CA         string // SHA-256 of the authorities that are trusted, hexadecimal; "" for the host's
}

const (
	defaultTimeout  = 30 * time.Second
	defaultPatience = 60 * time.Second
)

// New reads the kubeconfig, and asks its plugin for credentials where it names one. It does not contact the server. No error holds a
// credential.
func New(ctx context.Context, o Options) (*Cluster, error) {
	if err := checkRun(o.Run); err != nil {
		return nil, err
	}
	if o.Clock == nil {
		o.Clock = clock.System{}
	}
	config, place, plugin, err := connection(ctx, o)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		run: o.Run, place: place, bare: o.Bare, limit: o.Limit, patience: o.Patience, clock: o.Clock, plugin: plugin,
		kinds: map[schema.GroupVersion][]kind{},
	}
	if c.patience <= 0 {
		c.patience = defaultPatience
	}
	if c.url, err = url.Parse(place.Server); err != nil {
		return nil, errors.New("the server's URL cannot be read")
	}
	if config.Insecure {
		c.notes = append(c.notes, area.NoteInsecure)
	}
	if how := area.Exposure(c.url, &area.TLS{Insecure: config.Insecure}); how != "" && sendsSecrets(config) {
		c.notes = append(c.notes, fmt.Sprintf("the credentials of the kubeconfig were sent to %s %s (expose_secrets)", c.url.Host, how))
	}
	c.guard = &guard{host: c.url.Host}
	config.Wrap(c.guard.wrap)
	if plugin != nil {
		config.Wrap(plugin.wrap)
	}
	c.config = config
	if err := c.connect(o.Timeout); err != nil {
		return nil, err
	}
	return c, nil
}

// connect makes the clients that set up and remove, over connections of their own.
func (c *Cluster) connect(timeout time.Duration) error {
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	secure, err := c.TLS()
	if err != nil {
		return err
	}
	c.transport = &http.Transport{
		TLSClientConfig: secure, ForceAttemptHTTP2: true, TLSHandshakeTimeout: timeout, MaxIdleConnsPerHost: abreast,
		DialContext: (&net.Dialer{Timeout: timeout}).DialContext,
	}
	rt, err := rest.HTTPWrappersForConfig(c.config, c.transport)
	if err != nil {
		return c.scrub(fmt.Errorf("connect to %s: %w", c.place, err))
	}
	c.client = &http.Client{Transport: rt, Timeout: timeout}
	paced := rest.CopyConfig(c.config)
	paced.RateLimiter = turns{c.limit}
	if c.dynamic, err = dynamic.NewForConfigAndClient(paced, c.client); err != nil {
		return c.scrub(fmt.Errorf("connect to %s: %w", c.place, err))
	}
	if c.metadata, err = metadata.NewForConfigAndClient(paced, c.client); err != nil {
		return c.scrub(fmt.Errorf("connect to %s: %w", c.place, err))
	}
	return nil
}

// Close gives up the connections.
func (c *Cluster) Close() { c.transport.CloseIdleConnections() }

// Run is the run's id.
func (c *Cluster) Run() string { return c.run }

// Place is where the cluster is.
func (c *Cluster) Place() Place { return c.place }

// Notes are what every report must say about the connection.
func (c *Cluster) Notes() []string { return c.notes }

// Host is the server's host, with the port where the URL has one: the value of the Host header.
func (c *Cluster) Host() string { return c.url.Host }

// Prefix is the path under which the server's API begins: "" unless the URL has one ("/k8s/clusters/c-1").
func (c *Cluster) Prefix() string { return strings.TrimSuffix(c.url.EscapedPath(), "/") }

// Addr is the server's address, IPv4 first.
func (c *Cluster) Addr(ctx context.Context) (netip.AddrPort, error) {
	a, err := area.ResolveHost(ctx, c.url)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("resolve %s: %w", c.place, err)
	}
	return a, nil
}

// TLS is how clients of the server set up a connection, with the client certificate where there is one; nil for a server without TLS. HTTP/2 is
// offered first. It is the caller's own copy.
func (c *Cluster) TLS() (*tls.Config, error) {
	if c.url.Scheme != "https" {
		return nil, nil //nolint:nilnil // No TLS is no error.
	}
	t, err := rest.TLSConfigFor(c.config)
	if err != nil {
		return nil, c.scrub(fmt.Errorf("TLS for %s: %w", c.place, err))
	}
	if t == nil {
		t = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	if t.ServerName == "" {
		t.ServerName = c.url.Hostname()
	}
	if c.plugin != nil && c.plugin.hasCertificate() {
		t.GetClientCertificate = c.plugin.certificate
	}
	t.NextProtos = []string{"h2", "http/1.1"}
	return t, nil
}

// Header is what a request needs to come from the user of the kubeconfig: Authorization, Impersonate-…, User-Agent. Tokens end: call it again
// from time to time, outside of what is timed. It may start the kubeconfig's plugin.
func (c *Cluster) Header(ctx context.Context) (http.Header, error) {
	var got http.Header
	end := roundTrip(func(r *http.Request) (*http.Response, error) {
		got = r.Header.Clone()
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
	})
	rt, err := rest.HTTPWrappersForConfig(c.config, end)
	if err != nil {
		return nil, c.scrub(fmt.Errorf("credentials for %s: %w", c.place, err))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url.String(), http.NoBody)
	if err != nil {
		return nil, errors.New("the server's URL cannot be requested")
	}
	res, err := rt.RoundTrip(r)
	if err != nil {
		return nil, c.scrub(fmt.Errorf("credentials for %s: %w", c.place, err))
	}
	if err := res.Body.Close(); err != nil {
		return nil, err
	}
	for name, values := range got {
		if strings.ContainsFunc(strings.Join(values, ""), func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, fmt.Errorf("credentials for %s: header %s would hold control characters", c.place, name)
		}
	}
	return got, nil
}

// Config is for clients of other packages: without a limit of its own, and without a timeout, so that it can watch.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Dynamic is a client whose requests keep to Options.Limit.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// String names the place for errors.
func (p Place) String() string {
	if p.Kubeconfig == "" {
		return p.Server
	}
	return fmt.Sprintf("%s (context %q of %s)", p.Server, p.Context, p.Kubeconfig)
}
