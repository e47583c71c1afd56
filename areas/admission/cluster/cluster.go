// Package cluster connects to a Kubernetes API server, and creates and removes objects there. Everything that it
// creates carries the label of its run, and it removes nothing else.
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

	"tare/internal/clock"
	"tare/internal/kit"
	"tare/internal/ratelimit"
)

// Options say which cluster to use, as which user, and at which rate. Exactly one of Kubeconfig and Server is set.
type Options struct {
	// Run is the run's id (area.Env.Run): the value of the label OwnerLabel.
	Run string
	// Kubeconfig is a file, and Context one of its contexts; "": its current context.
	Kubeconfig, Context string
	// Server, CA (PEM) and Token connect to an embedded control plane.
	Server string
	CA     []byte
	Token  string
	// ExposeSecrets allows sending credentials to another host without verifying its certificate. Without TLS none are
	// sent.
	ExposeSecrets bool
	// Bare says that no controller-manager runs there: this package then creates default ServiceAccounts and finalizes
	// namespaces.
	Bare bool
	// Limit bounds the requests of setup and removal; nil: unbounded.
	Limit *ratelimit.Limiter
	// Timeout bounds one request of setup; 0: 30 s. Patience bounds a wait without progress for an object to appear or to
	// disappear; 0: 60 s.
	Timeout, Patience time.Duration
	Clock             clock.Clock // nil: the system's
}

// A Cluster is a connection to one API server as one user. Its methods may be called from several goroutines.
type Cluster struct {
	run       string
	location  Location
	notes     []string
	url       *url.URL
	bare      bool
	patience  time.Duration
	pass      int // objects that a removal goes through before it begins anew
	clock     clock.Clock
	guard     *guard
	plugin    *plugin      // nil: the credentials come from the kubeconfig
	config    *rest.Config // without a rate limit
	transport *http.Transport
	client    *http.Client
	limit     *ratelimit.Limiter
	dynamic   dynamic.Interface
	metadata  metadata.Interface

	mu    sync.Mutex
	kinds map[schema.GroupVersion][]kind // the server's kinds, as far as asked
}

// Location identifies a cluster as data: enough to find it again in a new process, and to notice that the name now
// refers to another cluster. It holds no credential.
type Location struct {
	Kubeconfig string // absolute; "" for an embedded control plane
	Context    string
	Server     string // URL
	CA         string // SHA-256 of the trusted authorities, hexadecimal; "" for the host's
}

const (
	defaultTimeout  = 30 * time.Second
	defaultPatience = 60 * time.Second
)

// New reads the kubeconfig, and runs its credential plugin, if it names one. It does not contact the server. No error
// holds a credential.
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
		run: o.Run, location: place, bare: o.Bare, limit: o.Limit, patience: o.Patience, clock: o.Clock, plugin: plugin,
		pass: defaultPass, kinds: map[schema.GroupVersion][]kind{},
	}
	if c.patience <= 0 {
		c.patience = defaultPatience
	}
	if c.url, err = url.Parse(place.Server); err != nil {
		return nil, errors.New("the server's URL cannot be read")
	}
	if config.Insecure {
		c.notes = append(c.notes, kit.NoteInsecure)
	}
	if how := kit.Exposure(c.url, &kit.TLS{Insecure: config.Insecure}); how != "" && sendsSecrets(config) {
		c.notes = append(c.notes, fmt.Sprintf("the credentials of the kubeconfig were sent to %s %s (expose_secrets)",
			c.url.Host, how))
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

// maxHeaders bounds the headers of an answer, after HPACK.
const maxHeaders = 64 << 10

// connect makes the clients for setup and removal, with connections of their own.
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
		DialContext: (&net.Dialer{Timeout: timeout}).DialContext, MaxResponseHeaderBytes: maxHeaders,
	}
	rt, err := rest.HTTPWrappersForConfig(c.config, c.limit.Repeating(c.transport))
	if err != nil {
		return c.scrub(fmt.Errorf("connect to %s: %w", c.location, err))
	}
	c.client = &http.Client{Transport: rt, Timeout: timeout}
	paced := rest.CopyConfig(c.config)
	paced.RateLimiter = turns{c.limit}
	if c.dynamic, err = dynamic.NewForConfigAndClient(paced, c.client); err != nil {
		return c.scrub(fmt.Errorf("connect to %s: %w", c.location, err))
	}
	if c.metadata, err = metadata.NewForConfigAndClient(paced, c.client); err != nil {
		return c.scrub(fmt.Errorf("connect to %s: %w", c.location, err))
	}
	return nil
}

// Close closes idle connections.
func (c *Cluster) Close() { c.transport.CloseIdleConnections() }

// Run returns the run's id.
func (c *Cluster) Run() string { return c.run }

// Location returns where the cluster is.
func (c *Cluster) Location() Location { return c.location }

// Notes returns what every report must say about the connection.
func (c *Cluster) Notes() []string { return c.notes }

// Host returns the value of the Host header: the server's host, with the port if the URL has one.
func (c *Cluster) Host() string { return c.url.Host }

// Prefix returns the path below which the server's API is: "" unless the URL has one ("/k8s/clusters/c-1").
func (c *Cluster) Prefix() string { return strings.TrimSuffix(c.url.EscapedPath(), "/") }

// Addr returns the server's address, preferably IPv4.
func (c *Cluster) Addr(ctx context.Context) (netip.AddrPort, error) {
	a, err := kit.ResolveHost(ctx, c.url)
	if err != nil {
		return netip.AddrPort{}, fmt.Errorf("resolve %s: %w", c.location, err)
	}
	return a, nil
}

// TLS returns a new TLS configuration for clients of the server, with the client certificate if there is one, and with
// HTTP/2 preferred; nil for a server without TLS.
func (c *Cluster) TLS() (*tls.Config, error) {
	if c.url.Scheme != "https" {
		return nil, nil //nolint:nilnil // no TLS is no error
	}
	t, err := rest.TLSConfigFor(c.config)
	if err != nil {
		return nil, c.scrub(fmt.Errorf("TLS for %s: %w", c.location, err))
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

// Header returns the headers that identify the kubeconfig's user: Authorization, Impersonate-…, User-Agent. Tokens
// expire: call it again from time to time, outside the timed path. It may run the kubeconfig's plugin.
func (c *Cluster) Header(ctx context.Context) (http.Header, error) {
	var got http.Header
	end := roundTrip(func(r *http.Request) (*http.Response, error) {
		got = r.Header.Clone()
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
	})
	rt, err := rest.HTTPWrappersForConfig(c.config, end)
	if err != nil {
		return nil, c.scrub(fmt.Errorf("credentials for %s: %w", c.location, err))
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url.String(), http.NoBody)
	if err != nil {
		return nil, errors.New("the server's URL cannot be requested")
	}
	res, err := rt.RoundTrip(r)
	if err != nil {
		return nil, c.scrub(fmt.Errorf("credentials for %s: %w", c.location, err))
	}
	if err := res.Body.Close(); err != nil {
		return nil, err
	}
	for name, values := range got {
		if strings.ContainsFunc(strings.Join(values, ""), func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }) {
			return nil, fmt.Errorf("credentials for %s: header %s would hold control characters", c.location, name)
		}
	}
	return got, nil
}

// Config returns the configuration for clients of other packages: without a rate limit and without a timeout, so that
// they can watch.
func (c *Cluster) Config() *rest.Config { return rest.CopyConfig(c.config) }

// Paced returns the same configuration, but each request waits for Options.Limit, also a watch, and one that client-go
// or net/http repeats.
func (c *Cluster) Paced() *rest.Config {
	config := c.Config()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		next = c.limit.Repeating(next)
		return roundTrip(func(r *http.Request) (*http.Response, error) {
			if err := c.limit.Wait(r.Context()); err != nil {
				return nil, err
			}
			return next.RoundTrip(r)
		})
	})
	return config
}

// Dynamic returns a client whose requests respect Options.Limit.
func (c *Cluster) Dynamic() dynamic.Interface { return c.dynamic }

// String names the location in errors.
func (p Location) String() string {
	if p.Kubeconfig == "" {
		return p.Server
	}
	return fmt.Sprintf("%s (context %q of %s)", p.Server, p.Context, p.Kubeconfig)
}
