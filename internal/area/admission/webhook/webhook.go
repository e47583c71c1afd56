// Package webhook is the reference admission webhook: a server of admission.k8s.io/v1 AdmissionReviews that does next to nothing, so that what a
// webhook costs by being there can be told from what an engine costs by thinking. It runs as a child process, so that its CPU is seen apart.
package webhook

import (
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"tare/internal/clock"
)

const (
	shutWithin  = 2 * time.Second // bounds how long answers that are under way at the end are waited for
	mostHeaders = 64 << 10
	// MostLatency is the longest latency that makes sense: the API server gives no webhook more than 30 s.
	MostLatency = 29 * time.Second
)

// Config says how the webhook answers. What it does to a pod stands in the request: mechanism.ValidatePath and MutatePath, each followed by the short name
// of a policy, which denies pods whose label mechanism.DenyLabel is that name or mechanism.DenyAll, and mutates all others if its path is MutatePath.
type Config struct {
	Addr  string   `json:"addr,omitempty"`  // to listen on. Default "127.0.0.1:0"
	Names []string `json:"names,omitempty"` // IP addresses and DNS names of the certificate. Default 127.0.0.1
	// Latency is how long after the arrival of a request its answer leaves, in ns: never earlier, and a few tenths of a millisecond later, as timers are.
	Latency time.Duration `json:"latency,omitempty"`
	// HTTP1 offers HTTP/1.1 only. An API server asks for HTTP/2 only from webhooks at loopback addresses: those of a real cluster, which it calls by
	// service or by another host's name, it calls by HTTP/1.1. Then it keeps no more than 25 idle connections to one host: more webhooks than that at
	// one address pay for handshakes on every pod (1.36.3: 100 of them 76 ms CPU, by HTTP/2 21 ms), which engines at addresses of their own do not.
	HTTP1 bool `json:"http1,omitempty"`
}

// Ready is what the webhook says when it answers.
type Ready struct {
	Addr string `json:"addr"` // host and port on which it listens
	URL  string `json:"url"`  // base of its address by the first name of its certificate, with Base
	Base string `json:"base"` // path below which it answers, which only the caller is told: "/ABC…"
	CA   []byte `json:"ca"`   // PEM: the authority of its certificate, made for this process alone
}

// Run serves until ctx ends. It calls ready once, when it answers, and returns ctx's error if that is why it ended.
func Run(ctx context.Context, cfg Config, ready func(Ready) error) error {
	return run(ctx, clock.System{}, cfg, ready)
}

func run(ctx context.Context, c clock.Clock, cfg Config, ready func(Ready) error) error {
	if cfg.Latency < 0 || cfg.Latency > MostLatency {
		return fmt.Errorf("webhook: latency %v: want 0 to %v", cfg.Latency, MostLatency)
	}
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	if len(cfg.Names) == 0 {
		cfg.Names = []string{"127.0.0.1"}
	}
	leaf, ca, err := certificate(c.Now(), cfg.Names)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	h := newHandler(c, cfg.Latency)
	h.base = "/" + rand.Text()
	return serve(ctx, l, newServer(h, leaf, cfg.HTTP1), func() error {
		return ready(Ready{Addr: l.Addr().String(), URL: base(cfg.Names[0], l.Addr()) + h.base, Base: h.base, CA: ca})
	})
}

// base is https://NAME:PORT.
func base(name string, addr net.Addr) string {
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return "https://" + name
	}
	return "https://" + net.JoinHostPort(name, port)
}

func serve(ctx context.Context, l net.Listener, srv *http.Server, ready func() error) error {
	served := make(chan error, 1)
	go func() { served <- srv.ServeTLS(l, "", "") }()
	err := ready()
	if err == nil {
		select {
		case <-ctx.Done():
			err = context.Cause(ctx)
		case err = <-served:
			served <- err
		}
	}
	return errors.Join(err, shut(srv, served))
}

// newServer bounds what a caller can make the process hold: headers, and the time for a request and for its answer. A connection may be
// idle for as long as a run can last: closing it would make the next call pay for a handshake.
func newServer(h *handler, leaf tls.Certificate, http1 bool) *http.Server {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(!http1)
	return &http.Server{
		Handler: h, Protocols: &protocols, ConnState: h.counts.connection,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{leaf}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 10 * time.Second, ReadTimeout: 30 * time.Second, WriteTimeout: 60 * time.Second,
		IdleTimeout: 48 * time.Hour, MaxHeaderBytes: mostHeaders,
	}
}

// shut lets answers under way be finished and then waits for the server's goroutine.
func shut(srv *http.Server, served <-chan error) error {
	ctx, cancel := context.WithTimeout(context.Background(), shutWithin)
	defer cancel()
	err := srv.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = srv.Close()
	}
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}
