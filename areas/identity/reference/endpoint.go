package reference

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"net/url"
	"runtime"
	"time"

	"tare/internal/clock"
	"tare/internal/proc"
)

// RunEndpoint serves the metadata protocol on cfg.Addr, and /healthz and /debug on cfg.Admin, until ctx ends. ready is
// called once, when it answers. It sets GOMAXPROCS of the process: under a quota below one CPU a second processor would
// only use up each period sooner and serve requests in bursts of two.
func RunEndpoint(ctx context.Context, cfg EndpointConfig, ready func(Ready) error) error {
	if err := cfg.Validate(); err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	if procs := cfg.procs(); procs > 0 {
		runtime.GOMAXPROCS(procs)
	}
	return runEndpoint(ctx, clock.System{}, cfg, ready)
}

// procs returns the GOMAXPROCS that the knobs ask for; 0: the runtime's own.
func (k EndpointKnobs) procs() int {
	if k.Procs > 0 {
		return k.Procs
	}
	return int(math.Ceil(k.CPUQuota))
}

func runEndpoint(ctx context.Context, c clock.Clock, cfg EndpointConfig, ready func(Ready) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	m, err := newMetadata(ctx, c, cfg)
	if err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	defer m.exchange.Close()
	socket, backlog, err := listen(ctx, cfg.Addr, cfg.Backlog)
	if err != nil {
		return fmt.Errorf("endpoint: %w", err)
	}
	main := newLimitListener(socket, cfg.MaxConns)
	admin, _, err := listen(ctx, cfg.Admin, 0)
	if err != nil {
		return errors.Join(fmt.Errorf("endpoint: %w", err), main.Close())
	}
	secret := newSecret()
	var s servers
	front := newServer(ctx, m)
	front.IdleTimeout = cfg.IdleTimeout
	s.serve(front, main)
	s.serve(newServer(ctx, adminHandler(secret, func() Counters { return m.counters(main) },
		map[string]func(url.Values) error{actFlush: func(url.Values) error { m.cache.flush(); return nil }})), admin)
	err = ready(Ready{
		Addr: main.Addr().String(), Admin: adminBase(admin, secret), Backlog: backlog,
		Procs: runtime.GOMAXPROCS(0),
	})
	if err == nil {
		err = s.wait(ctx)
	}
	cancel()
	err = errors.Join(err, s.shut())
	m.inside.shut()
	return err
}

func newMetadata(life context.Context, c clock.Clock, cfg EndpointConfig) (*metadata, error) {
	signer, err := ParseSigner(cfg.SigningKey)
	if err != nil {
		return nil, err
	}
	ledger, err := newLedger(cfg.CPUPerRequest)
	if err != nil {
		return nil, err
	}
	m := &metadata{
		knobs: cfg.EndpointKnobs, ledger: ledger, clock: c, inside: newGate(),
		exchange: NewExchanger(cfg.STS, signer, cfg.UpstreamConns, c),
		rng:      rand.New(rand.NewPCG(cfg.Seed, 0xd209)), known: map[netip.Addr]time.Time{},
	}
	m.cache = newCache(life, cfg.EndpointKnobs, cfg.Seed, c, m.inside)
	if cfg.Throttle && cfg.CPUQuota > 0 {
		if m.throttle, err = proc.NewThrottle(proc.Quota{Share: cfg.CPUQuota}, c); err != nil {
			return nil, err
		}
	}
	return m, nil
}

func (m *metadata) counters(l *limitListener) Counters {
	c := Counters{
		Requests: m.requests.Load(), InFlight: m.inFlight.Load(), Connections: l.open.Load(),
		Hits: m.cache.hits.Load(), Misses: m.cache.misses.Load(), Refreshes: m.cache.refreshes.Load(),
		OverQuota: m.overQuota.Load(), Dropped: m.dropped.Load(), Unavailable: m.unavailable.Load(), Failed: m.failed.Load(),
		Endpoint: &m.knobs,
	}
	if m.throttle != nil {
		s := m.throttle.Stats()
		c.Periods, c.ThrottledPeriods = int64(s.Periods), int64(s.Throttled)
	}
	return c
}
