package identity

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"tare/area"
	"tare/areas/identity/reference"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/proc"
	"tare/internal/ratelimit"
)

// readyWithin bounds the start of a server: signing keys are made by us, but a CPU limit slows the start down.
const readyWithin = 30 * time.Second

// An arm is what is set up for one treatment: an address, and for embedded targets the processes and the group behind
// it.
type arm struct {
	plan
	treatment design.Treatment
	env       area.Env
	journal   area.Journal
	// planGroup is proc.PlanCgroup; tests of the fallback have none.
	planGroup func(name string) (string, error)
	limit     *ratelimit.Limiter // of what is asked outside of the load; nil: no bound
	index     int                // makes names unique within the run
	born      int64              // and this between runs: ns since 1970

	tally    *tally // of the tokens that callers get; nil before there are operations
	creds    *credentials
	files    map[string]string // contents of the files in the body of http-token, by name
	subjects []string          // whose token each identity has got, where tokens say so
	tls      *tls.Config       // nil: plaintext

	addr      netip.AddrPort
	port      *kit.HeldPort // of the embedded endpoint; nil: none
	emails    []string      // accounts by identity
	signer    *reference.Signer
	group     *proc.Cgroup
	throttled bool        // the endpoint limits its own CPU
	entered   *throttling // at the last Enter

	stopRenew func() // ends the renewal of credentials and waits for it; nil: none
	stopWatch func() // ends the liveness probe and waits for it; nil: none
	probed    int    // canary pools used so far
	proven    int    // the process whose limits Verify has proven; 0: none
	filled    int    // the process whose cache was filled; 0: none

	mu            sync.Mutex
	sts, endpoint *child
	groupChange   *area.Change
	starts        int
	restarts      int
	restarting    bool // between the end of one endpoint and the start of the next
}

// Ready implements area.Arm.
func (p *arm) Ready() bool { return p.addr.IsValid() }

// A child is a running server.
type child struct {
	*kit.Process
	ready reference.Ready
	admin *reference.Admin
}

// stop ends the server.
func (c *child) stop(ctx context.Context) error {
	c.admin.Close()
	return c.Stop(ctx)
}

// child returns the running server of that name, which may be replaced by a restart.
func (p *arm) child(name string) *child {
	p.mu.Lock()
	defer p.mu.Unlock()
	if name == serverSTS {
		return p.sts
	}
	return p.endpoint
}

// start brings up the embedded servers: the STS first, as the endpoint needs it.
func (p *arm) start(ctx context.Context) error {
	var err error
	if p.sts, err = p.launchSTS(ctx); err != nil {
		return err
	}
	if p.knobs.CPUQuota > 0 {
		if err := p.makeGroup(); err != nil {
			return err
		}
	}
	if p.port, err = kit.HoldPort(); err != nil {
		return err
	}
	if p.endpoint, err = p.launchEndpoint(ctx); err != nil {
		return err
	}
	for key := range p.identities {
		p.emails = append(p.emails, reference.WorkloadOf(sourceOf(key)).Email)
	}
	p.addr = p.port.Addr
	if p.knobs.LivenessPeriod > 0 {
		p.watch()
	}
	return nil
}

func (p *arm) launchSTS(ctx context.Context) (*child, error) {
	public, err := p.signer.Public()
	if err != nil {
		return nil, err
	}
	return p.spawn(ctx, serverSTS, nil, reference.STSConfig{
		Addr: "127.0.0.1:0", Admin: "127.0.0.1:0", TrustedKey: public, STSKnobs: p.knobs.STSKnobs,
	})
}

// launchEndpoint hands the private key over through the child's standard input: it is in no file, argument or
// environment.
func (p *arm) launchEndpoint(ctx context.Context) (*child, error) {
	private, err := p.signer.Private()
	if err != nil {
		return nil, err
	}
	return p.spawn(ctx, serverEndpoint, p.group, reference.EndpointConfig{
		Addr: p.port.Addr.String(), Admin: "127.0.0.1:0", STS: "http://" + p.child(serverSTS).ready.Addr,
		Throttle: p.throttled, SigningKey: private, Seed: uint64(p.index) + 1, EndpointKnobs: p.knobs.EndpointKnobs,
	})
}

// spawn starts a server as a child process of this binary.
func (p *arm) spawn(ctx context.Context, name string, group *proc.Cgroup, config any) (*child, error) {
	p.starts++
	c := &child{}
	var err error
	c.Process, err = kit.StartProcess(ctx, p.journal, areaName, fmt.Sprintf("%s-%d-%d", name, p.index, p.starts),
		proc.Spec{
			Name: name, Path: p.env.Self, Args: []string{"serve", areaName, name}, Config: config,
			LogFile:     p.env.LogFile(name, p.index),
			ReadyWithin: readyWithin, Cgroup: group, CPUs: p.env.CPUs,
		}, &c.ready)
	if err != nil {
		return nil, err
	}
	c.admin = reference.NewAdmin(c.ready.Admin)
	return c, nil
}

// makeGroup makes a control group for the endpoint, or chooses the throttle inside the process if the host allows no
// group.
func (p *arm) makeGroup() error {
	name := proc.CgroupName(p.env.Run, serverEndpoint+"-"+strconv.Itoa(p.index))
	path, err := p.planGroup(name)
	if err == nil {
		change := cgroupChange("cgroup-"+strconv.Itoa(p.index), path)
		if err := p.journal.Intend(change); err != nil {
			return err
		}
		if p.group, err = proc.NewCgroup(name, proc.Quota{Share: p.knobs.CPUQuota}); err == nil {
			p.groupChange = &change
			return nil
		}
		if err := p.journal.Undone(change); err != nil {
			return err
		}
	}
	if !errors.Is(err, proc.ErrNoCgroup) {
		return err
	}
	p.env.Log.Info("no control group: the endpoint throttles itself", slog.String("reason", err.Error()))
	p.throttled = true
	return nil
}

// watch starts the liveness probe. close ends it.
func (p *arm) watch() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		err := reference.Watch(ctx, p.env.Clock, p.knobs.EndpointKnobs,
			func() string { return p.child(serverEndpoint).ready.Admin }, p.restart)
		if err != nil {
			p.env.Log.Error("liveness probe", slog.String("error", err.Error()))
		}
	}()
	p.stopWatch = func() { cancel(); <-done }
}

// restart replaces the endpoint, as a supervisor does.
func (p *arm) restart(ctx context.Context) error {
	if err := p.replace(ctx, false); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restarts++
	return nil
}

// replace replaces the endpoint by a new process at the same address; its cache and all connections are lost. So is,
// if both are replaced, what the token service remembers.
func (p *arm) replace(ctx context.Context, both bool) error {
	p.setRestarting(true)
	defer p.setRestarting(false)
	if err := p.child(serverEndpoint).stop(ctx); err != nil {
		return err
	}
	if both {
		if err := p.child(serverSTS).stop(ctx); err != nil {
			return err
		}
		c, err := p.launchSTS(ctx)
		if err != nil {
			return err
		}
		p.setChild(serverSTS, c)
	}
	c, err := p.launchEndpoint(ctx)
	if err != nil {
		return err
	}
	p.setChild(serverEndpoint, c)
	return nil
}

func (p *arm) setChild(name string, c *child) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if name == serverSTS {
		p.sts = c
	} else {
		p.endpoint = c
	}
}

func (p *arm) setRestarting(on bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restarting = on
}

func (p *arm) restarted() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.restarts
}

// alive reports a server that has ended by itself.
func (p *arm) alive() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.creds.expired(p.env.Clock.Now()) {
		return errors.New("the session token that calls need has expired, and could not be renewed; see the log")
	}
	if p.url != nil || p.restarting {
		return nil
	}
	return errors.Join(p.sts.Failed(), p.endpoint.Failed())
}

// Close implements area.Arm: it ends the servers, the one that calls the other first, and removes the group.
func (p *arm) Close(ctx context.Context) error {
	if p.stopRenew != nil {
		p.stopRenew()
	}
	if p.stopWatch != nil {
		p.stopWatch()
	}
	var errs []error
	for _, c := range []*child{p.endpoint, p.sts} {
		if c != nil {
			errs = append(errs, c.stop(ctx))
		}
	}
	errs = append(errs, p.port.Close())
	if p.group != nil {
		err := p.group.Remove()
		if err == nil {
			err = p.journal.Undone(*p.groupChange)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}
