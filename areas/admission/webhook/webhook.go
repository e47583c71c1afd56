// Package webhook is the reference admission webhook: a server of admission.k8s.io/v1 AdmissionReviews that does
// minimal work, so that the cost of calling any webhook can be separated from the cost of an engine. It runs as a child
// process, so that its CPU time is counted separately.
package webhook

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"time"

	"tare/internal/clock"
	"tare/internal/kit"
)

const mostHeaders = 64 << 10

// Config configures the webhook. The request's path decides about a pod: mechanism.ValidatePath and MutatePath, each
// followed by the short name of a policy, deny pods whose label mechanism.DenyLabel is that name or mechanism.DenyAll;
// MutatePath mutates all others.
type Config struct {
	Addr string `json:"addr,omitempty"` // to listen on. Default "127.0.0.1:0"
	// Identity is the certificate of the process that this one replaces; nil: it makes its own, for 127.0.0.1.
	Identity *Identity `json:"identity,omitempty"`
	// Latency is the time from the arrival of a request to its answer. Those who ask at LatencyPath change it.
	Latency Latency `json:"latency"`
	// Workers is how many reviews are worked on at the same time, each for Latency; others wait for their turn. 0: all.
	Workers int `json:"workers,omitempty"`
	// HTTP1 offers HTTP/1.1 only. An API server uses HTTP/2 only for webhooks at loopback addresses. It calls those of a
	// real cluster, by service or by another host's name, over HTTP/1.1, with at most 25 idle connections to one host:
	// more webhooks than that at one address pay for handshakes on every pod (1.36.3: 76 ms CPU for 100 of them, 21 ms
	// over HTTP/2), which engines at separate addresses do not.
	HTTP1 bool `json:"http1,omitempty"`
}

// Ready is the webhook's ready message.
type Ready struct {
	Addr string `json:"addr"` // host and port on which it listens
	URL  string `json:"url"`  // base of its address with Base, by the first name of its certificate
	Base string `json:"base"` // path below which it answers, known only to the caller: "/ABC…"
	CA   []byte `json:"ca"`   // PEM: the authority of its certificate, made for this run alone
}

// Run serves until ctx ends. It calls ready once, when it serves, and returns ctx's error if that ended it.
func Run(ctx context.Context, cfg Config, ready func(Ready) error) error {
	return run(ctx, clock.System{}, cfg, ready)
}

func run(ctx context.Context, c clock.Clock, cfg Config, ready func(Ready) error) error {
	if err := cfg.Latency.Check(); err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	if cfg.Addr == "" {
		cfg.Addr = "127.0.0.1:0"
	}
	who := cfg.Identity
	if who == nil {
		var err error
		if who, err = NewIdentity(c.Now(), nil); err != nil {
			return fmt.Errorf("webhook: %w", err)
		}
	}
	leaf, err := who.leaf()
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", cfg.Addr)
	if err != nil {
		return fmt.Errorf("webhook: %w", err)
	}
	h := newHandler(c, cfg.Latency, cfg.Workers)
	h.base = who.Base
	return kit.ServeHTTP(ctx, l, newServer(h, leaf, cfg.HTTP1), func() error {
		return ready(Ready{Addr: l.Addr().String(), URL: base(who.Names[0], l.Addr()) + h.base, Base: h.base, CA: who.CA})
	})
}

// base returns https://NAME:PORT.
func base(name string, addr net.Addr) string {
	_, port, err := net.SplitHostPort(addr.String())
	if err != nil {
		return "https://" + name
	}
	return "https://" + net.JoinHostPort(name, port)
}

// newServer bounds the resources that a caller can use: headers, and the time for a request and for its answer.
// Connections may be idle for as long as a run can last: closing one would add a handshake to the next call.
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
