package decision

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"syscall"
	"time"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/areas/decision/protocol"
	"tare/internal/files"
	"tare/internal/kit"
	"tare/internal/proc"
)

const (
	// startWithin bounds the start of an embedded decision point with its policies: a JVM on a busy host takes its time.
	startWithin = 2 * time.Minute
	// embeddedUser is the user of the embedded pdpx server; its password is made up for each run.
	embeddedUser = "healthcheck"
)

// host returns what finding an engine needs.
func host(env area.Env) engine.Host {
	return engine.Host{Self: env.Self, Log: env.Log, Getenv: env.Getenv}
}

// start brings up the embedded decision point with its policies.
func (p *arm) start(ctx context.Context) error {
	var err error
	if p.launch, err = engine.Find(ctx, p.kind, host(p.env)); err != nil {
		return fmt.Errorf("find engine %s: %w", p.kind, err)
	}
	dir, err := files.MakeIn(p.env.Dir, "policies-"+strconv.Itoa(p.index))
	if err != nil {
		return fmt.Errorf("make a folder for policies: %w", err)
	}
	if p.bundle != "" {
		p.config, err = p.launch.Adopt(dir, p.bundle, p.data)
		p.config.V0, p.config.Network = p.spec.Embedded.RegoV0, p.spec.Embedded.Network
	} else if p.config, err = p.launch.Prepare(dir, p.set); err != nil {
		err = fmt.Errorf("write %d policies for %s: %w", p.set.N, p.kind, err)
	}
	if err != nil {
		return err
	}
	if p.kind == engine.OPA {
		p.config.Path = protocol.OPAPath(p.options)
	}
	if p.bundle != "" {
		if p.proved, err = p.proofNotes(ctx); err != nil {
			return fmt.Errorf("read the policies of %s: %w", p.bundle, err)
		}
		grown, err := p.dataNotes()
		if err != nil {
			return fmt.Errorf("read the data of %s: %w", p.bundle, err)
		}
		p.proved = append(p.proved, grown...)
	}
	p.config.Answer, p.config.Leak = p.planted.Answer, float64(p.planted.Leak)/60
	p.config.Delay = time.Duration(p.planted.NotReady).Seconds()
	p.config.AnswerAfter = time.Duration(p.planted.AnswerAfter).Seconds()
	p.config.Cache, p.config.Gap = time.Duration(p.planted.Cache).Seconds(), time.Duration(p.planted.Gap).Seconds()
	if p.foreign() {
		if p.config.Pair, err = engine.NewPair(); err != nil {
			return err
		}
	}
	p.admin = rand.Text()
	if p.whyNotReplaced(area.Reload, false) == "" {
		p.config.Admin = p.admin
	}
	if p.kind == engine.PDPX {
		p.config.Username, p.config.Password = embeddedUser, rand.Text()
	}
	if p.kind == engine.OpenFGA {
		p.config.Token = rand.Text()
	}
	if !p.foreign() && p.kind != engine.OpenFGA { // these two share a port with nobody
		if p.config.Addr, err = p.hold(); err != nil {
			return err
		}
	}
	c, err := p.spawn(ctx)
	if err != nil {
		return err
	}
	addr, err := netip.ParseAddrPort(c.ready.Addr)
	if err != nil {
		return fmt.Errorf("start %s: address: %w", p.kind, err)
	}
	p.config.Addr = addr.String() // whatever takes its place is to listen there, too
	if p.pdp = addr; p.enforcer != nil {
		at, err := p.hold()
		if err != nil {
			return err
		}
		if addr, err = p.startEnforcer(ctx, at); err != nil {
			return fmt.Errorf("start the enforcement point: %w", err)
		}
	}
	p.session = &protocol.Session{
		Addr: addr, Host: addr.String(), Options: p.options, Username: p.config.Username, Password: p.config.Password,
		Token: p.config.Token,
	}
	if p.enforcer == nil {
		if p.session.TLS, err = p.config.Pair.TLS(); err != nil {
			return err
		}
	}
	p.adoptNames(c)
	p.startKeeper()
	return nil
}

// hold returns an address at which no other user listens until Close, while processes there are replaced.
func (p *arm) hold() (string, error) {
	port, err := kit.HoldPort()
	if err != nil {
		return "", err
	}
	p.ports = append(p.ports, port)
	return port.Addr.String(), nil
}

// foreign reports whether the decision point is the opa in PATH.
func (p *arm) foreign() bool { return p.kind == engine.OPA && p.launch.Path == p.env.Self }

// adoptNames asks for what a decision point holds by the names that it has given to that.
func (p *arm) adoptNames(c *child) {
	if c.ready.Store == "" {
		return
	}
	o := protocol.OpenFGA{}
	if p.spec.OpenFGA != nil {
		o = *p.spec.OpenFGA
	}
	o.Store, o.Model = c.ready.Store, c.ready.Model
	p.options.Section = &o
	p.session.Options = p.options
}

// spawn starts the decision point. The config, which may hold a password, goes through its standard input.
func (p *arm) spawn(ctx context.Context) (*child, error) {
	p.mu.Lock()
	p.starts++
	id := fmt.Sprintf("%s-%d-%d", p.kind, p.index, p.starts)
	p.mu.Unlock()
	c := &child{}
	begin := p.env.Clock.Now()
	var memory uint64
	var err error
	if p.bundle != "" && slices.Contains([]engine.Kind{engine.OPA, engine.Cedar, engine.OpenFGA}, p.kind) { // no JVM
		if memory, err = engine.Memory(engine.ServeWith, p.config.File); err != nil {
			return nil, err
		}
	}
	c.Process, err = kit.StartProcess(ctx, p.journal, areaName, id, proc.Spec{
		Name: string(p.kind), Path: p.launch.Path, Args: p.launch.Args, Config: p.config,
		LogFile:     p.env.LogFile(string(p.kind), p.index),
		ReadyWithin: startWithin, CPUs: p.env.CPUs, Memory: memory,
	}, &c.ready)
	if err != nil {
		return nil, err
	}
	c.seconds = p.env.Clock.Now().Sub(begin).Seconds()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.child, p.down = c, false
	return c, nil
}

// latest returns the child that was started last, and whether it has ended.
func (p *arm) latest() (c *child, down bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.child, p.down
}

// kill ends a child that hangs, so that the keeper starts another.
func (p *arm) kill() error {
	c, down := p.latest()
	if c == nil || down {
		return nil
	}
	c.killed.Store(true)
	return c.Signal(syscall.SIGKILL)
}
