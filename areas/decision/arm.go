package decision

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/areas/decision/protocol"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/load"
	"tare/internal/probe"
)

const (
	// callTimeout bounds single calls outside the load.
	callTimeout = 10 * time.Second
	// readyWithin is how long a decision point may say that it is not ready.
	readyWithin = time.Minute
	// pause is the time between two attempts.
	pause = 250 * time.Millisecond
)

// An arm is what is set up for one treatment: an address, and for embedded decision points the process behind it.
type arm struct {
	plan
	treatment design.Treatment
	granted   bool // it permits what the baseline refuses
	env       area.Env
	journal   area.Journal
	index     int // makes names unique within the run
	patience  time.Duration
	warmth    rehearsal // of a JVM
	ready     bool      // Prepare has gone through

	session  *protocol.Session
	pdp      netip.AddrPort // where an embedded decision point listens: session leads to the enforcement point, if any
	front    *kit.Process   // the enforcement point; nil: none
	ports    []*kit.HeldPort
	attached []probe.Probe // of a decision point behind a URL
	// lost says why its process cannot be read; empty: it can.
	lost string
	// cold explains that the JVM has decided little since it was started; empty: it is warm, or there is no JVM.
	cold string
	// loaded is what Load has made; nil: nothing.
	loaded  *area.Change
	loading time.Duration // that took

	launch     engine.Launch
	config     engine.Config
	held       string   // what the bundle's rules may not reach, in words; empty: they try nothing
	proved     []string // which policies of the user's own decide about a question, for the notes
	failing    []string // warnings: which of the bundle's own tests fail
	admin      string   // the token of who may change policies or pace
	stopKeeper func()   // ends the keeper and waits for it; nil: none

	mu       sync.Mutex
	child    *child // the last that was started
	down     bool   // it has ended, and no other has taken its place yet
	starts   int
	restarts int
	replaced int   // how often its policies were replaced
	broken   error // why it is not started any more
}

// Ready implements area.Arm.
func (p *arm) Ready() bool { return p.ready }

// A child is a running decision point.
type child struct {
	*kit.Process
	killed  atomic.Bool // by tare
	ready   engine.Ready
	seconds float64 // from its start until it was ready
}

// addr returns where the decision point listens.
func (p *arm) addr() netip.AddrPort { return p.session.Addr }

func (p *arm) endpoint() *load.Endpoint {
	return &load.Endpoint{Addr: p.session.Addr, Host: p.session.Host, TLS: p.session.TLS, Keys: 1}
}

// operations returns the timed calls, in the order of the questions.
func (p *arm) operations() ([]load.Operation, error) { return p.render(p.questions) }

func (p *arm) render(questions []model.Question) ([]load.Operation, error) {
	var out []load.Operation
	for _, q := range questions {
		op, err := p.adapter.Operation(p.session, q, p.batch)
		if err != nil {
			return nil, fmt.Errorf("render %s: %w", q.Name, err)
		}
		out = append(out, op)
	}
	return out, nil
}

// Close implements area.Arm: it ends the child, and removes the policies.
func (p *arm) Close(ctx context.Context) error {
	if p.stopKeeper != nil {
		p.stopKeeper()
	}
	var errs []error
	errs = append(errs, p.front.Stop(ctx))
	if c, down := p.latest(); c != nil && !down {
		errs = append(errs, c.Stop(ctx))
	}
	for _, port := range p.ports {
		errs = append(errs, port.Close())
	}
	if p.loaded != nil {
		errs = append(errs, p.unload(ctx))
	}
	if p.session != nil {
		errs = append(errs, p.session.Close())
	}
	return errors.Join(errs...)
}
