package startup

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"k8s.io/client-go/rest"
)

// A connection is a separate HTTP client of an API server: the client that creates pods shares no TCP connection with
// the one that watches them, or with any other. client-go's transport cache, limiter and retries are bypassed.
type connection struct {
	cfg       *rest.Config
	base      *url.URL
	transport *http.Transport
	wrapped   http.RoundTripper // with the identity of cfg
}

func connect(cfg *rest.Config) (*connection, error) {
	if cfg == nil {
		return nil, fmt.Errorf("no server is named")
	}
	host := cfg.Host
	if !strings.Contains(host, "://") {
		host = "https://" + host
	}
	base, err := url.Parse(host)
	if err != nil {
		return nil, fmt.Errorf("server %q: %w", cfg.Host, err)
	}
	tlsConfig, err := rest.TLSConfigFor(cfg)
	if err != nil {
		return nil, fmt.Errorf("credentials for %s: %w", host, err)
	}
	c := &connection{cfg: cfg, base: base, transport: &http.Transport{
		TLSClientConfig: tlsConfig, ForceAttemptHTTP2: true, Proxy: http.ProxyFromEnvironment, DialContext: cfg.Dial,
		TLSHandshakeTimeout: 10 * time.Second, MaxIdleConnsPerHost: 256, IdleConnTimeout: 90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10, // after HPACK; each call in flight may hold as much
		// As in client-go, pings detect a dead connection.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}}
	if cfg.Proxy != nil {
		c.transport.Proxy = cfg.Proxy
	}
	if c.wrapped, err = rest.HTTPWrappersForConfig(cfg, &scale{c.transport}); err != nil {
		return nil, fmt.Errorf("credentials for %s: %w", host, err)
	}
	return c, nil
}

func (c *connection) close() { c.transport.CloseIdleConnections() }

// scale counts the size of requests as they are sent, with all headers that authentication adds.
type scale struct{ next http.RoundTripper }

// weightKey is the context key of a request's *uint64 for its size.
type weightKey struct{}

// RoundTrip implements http.RoundTripper.
func (s *scale) RoundTrip(r *http.Request) (*http.Response, error) {
	if out, ok := r.Context().Value(weightKey{}).(*uint64); ok {
		*out = requestLength(r)
	}
	return s.next.RoundTrip(r)
}

// requestLength returns the length of r as HTTP/1.1: over HTTP/2 it depends on the connection's earlier requests.
func requestLength(r *http.Request) uint64 {
	n := len(r.Method) + len(" ") + len(r.URL.RequestURI()) + len(" HTTP/1.1\r\nHost: ") + len(r.URL.Host) + 2*len("\r\n")
	return uint64(n+headerLength(r.Header)) + uint64(max(0, r.ContentLength))
}

// answerLength returns the same for the head of an answer.
func answerLength(r *http.Response) uint64 {
	return uint64(len("HTTP/1.1 200 ") + len(http.StatusText(r.StatusCode)) + 2*len("\r\n") + headerLength(r.Header))
}

func headerLength(h http.Header) (n int) {
	for name, values := range h {
		for _, v := range values {
			n += len(name) + len(": ") + len(v) + len("\r\n")
		}
	}
	return n
}
