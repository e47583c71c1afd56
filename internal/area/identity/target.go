package identity

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"tare/internal/area"
	"tare/internal/design"
	"tare/internal/load"
)

const (
	// callTimeout bounds single calls outside the load.
	callTimeout = 5 * time.Second
	// noteThrottle must be in every report of a run without a control group.
	noteThrottle = "the endpoint's CPU limit is a throttle inside its process, because this host gives no control group"
)

// target is the endpoint under test: one place per treatment, side by side.
type target struct {
	spec *Spec
	env  area.Env

	mu     sync.Mutex
	places map[string]*place // by treatment
	asked  int               // how often Operations was called
	// planGroup finds the place for control groups.
	planGroup func(name string) (string, error)
	patience  time.Duration // of Recover, before it restarts a server
}

var _ area.Target = (*target)(nil)

// Prepare implements area.Target.
func (t *target) Prepare(ctx context.Context, tr design.Treatment, j area.Journal) error {
	plan, err := t.spec.plan(tr)
	if err != nil {
		return err
	}
	t.mu.Lock()
	if t.places[tr.ID] != nil {
		t.mu.Unlock()
		return fmt.Errorf("treatment %q is prepared already", tr.ID)
	}
	p := &place{plan: plan, spec: t.spec, env: t.env, journal: j, planGroup: t.planGroup, patience: t.patience, index: len(t.places), born: t.env.Clock.Now().UnixNano()}
	t.places[tr.ID] = p // before it is whole, so that Close finds what has been started
	t.mu.Unlock()
	if err = p.unlock(); err == nil && plan.url != nil {
		err = p.find(ctx)
	} else if err == nil {
		err = p.start(ctx)
	}
	if err == nil {
		err = p.warm(ctx)
	}
	if err == nil {
		p.keepFresh()
	}
	return err
}

// place finds what Prepare made.
func (t *target) place(tr design.Treatment) (*place, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p := t.places[tr.ID]; p != nil && p.addr.IsValid() {
		return p, nil
	}
	return nil, fmt.Errorf("treatment %q is not prepared", tr.ID)
}

// Notes implements area.Target.
func (t *target) Notes() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var notes []string
	for _, id := range slices.Sorted(maps.Keys(t.places)) {
		if p := t.places[id]; p.addr.IsValid() {
			notes = append(notes, p.notes()...)
		}
	}
	slices.Sort(notes)
	return slices.Compact(notes)
}

// Enter implements area.Target. It remembers the throttling so far.
func (t *target) Enter(ctx context.Context, tr design.Treatment) error {
	p, err := t.place(tr)
	if err != nil {
		return err
	}
	p.entered = nil
	if now, ok := p.throttling(ctx); ok {
		p.entered = &now
	}
	return p.alive()
}

// Leave implements area.Target. It reports a server that has ended by itself meanwhile.
func (t *target) Leave(_ context.Context, tr design.Treatment) error {
	p, err := t.place(tr)
	if err != nil {
		return err
	}
	return p.alive()
}

// Operations implements area.Target. Each call returns operations that ask for new audiences.
func (t *target) Operations(tr design.Treatment) ([]load.Operation, error) {
	p, err := t.place(tr)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.asked++
	s := p.session("run-" + strconv.Itoa(t.asked))
	if p.tally == nil {
		p.tally = newTally(s.identities())
	}
	s.tally = p.tally
	t.mu.Unlock()
	return []load.Operation{{
		Name: p.operation, Weight: 1, Expect: p.adapter.expect(p.operation), Causes: causes(),
		Wire: p.adapter.wire(s),
	}}, nil
}

// Endpoint implements area.Target.
func (t *target) Endpoint(tr design.Treatment) (*load.Endpoint, error) {
	p, err := t.place(tr)
	if err != nil {
		return nil, err
	}
	return &load.Endpoint{Addr: p.addr, Host: p.host(), TLS: p.tls, Keys: p.identities, Local: p.caller().local}, nil
}

// Recover implements area.Target: it waits until the endpoint answers new connections and has none waiting, and restarts it if
// that takes too long. Endpoints behind a URL are only waited for.
func (t *target) Recover(ctx context.Context, tr design.Treatment) error {
	p, err := t.place(tr)
	if err != nil {
		return err
	}
	return p.recover(ctx)
}

// Close implements area.Target.
func (t *target) Close(ctx context.Context) error {
	t.mu.Lock()
	places := slices.Collect(maps.Values(t.places))
	t.places = map[string]*place{}
	t.mu.Unlock()
	var errs []error
	for _, p := range places {
		errs = append(errs, p.close(ctx))
	}
	return errors.Join(errs...)
}

// resolveHost finds the address behind a URL, IPv4 first: metadata servers have no other.
func resolveHost(ctx context.Context, u *url.URL) (netip.AddrPort, error) {
	port := uint64(80)
	if u.Scheme == "https" {
		port = 443
	}
	if u.Port() != "" {
		var err error
		if port, err = strconv.ParseUint(u.Port(), 10, 16); err != nil {
			return netip.AddrPort{}, fmt.Errorf("port %q: %w", u.Port(), err)
		}
	}
	addrs, err := net.DefaultResolver.LookupNetIP(ctx, "ip", u.Hostname())
	if err != nil {
		return netip.AddrPort{}, err
	}
	best := addrs[0]
	for _, a := range addrs {
		if a.Unmap().Is4() && !best.Unmap().Is4() {
			best = a
		}
	}
	return netip.AddrPortFrom(best.Unmap(), uint16(port)), nil
}
