package decision

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"time"

	"tare/areas/decision/engine"
	"tare/internal/kit"
	"tare/internal/proc"
	"tare/internal/unit"
)

// enforcerName is the name of the enforcement point's process.
const enforcerName = "enforcer"

// usualTimeout is Envoy's for external authorization.
const usualTimeout = 200 * time.Millisecond

// Enforcer is an enforcement point between the callers and an embedded decision point.
type Enforcer struct {
	Timeout          unit.Duration `yaml:"timeout,omitempty" json:"timeout,omitempty" jsonschema_description:"How long it waits for the decision point's answer. Default 200ms."`
	FailureModeAllow bool          `yaml:"failure_mode_allow,omitempty" json:"failure_mode_allow,omitempty" jsonschema_description:"Permit what the decision point does not answer in time, as Envoy's option of that name. Default false: deny it."`
}

// setEnforcer sets what a level of the factor says.
func (s *Spec) setEnforcer(name, level string) (err error) {
	e := s.embed()
	if e.Enforcer == nil {
		e.Enforcer = &Enforcer{}
	}
	if name == "enforcer.timeout" {
		e.Enforcer.Timeout, err = unit.ParseDuration(level)
	} else {
		e.Enforcer.FailureModeAllow, err = strconv.ParseBool(level)
	}
	if err != nil {
		return fmt.Errorf("%s: %q: want a duration such as 50ms, or for failure_mode_allow true or false", name, level)
	}
	return nil
}

// judgeEnforcer checks that the enforcement point can stand before the decision point.
func (p *plan) judgeEnforcer() error {
	if p.enforcer == nil {
		return nil
	}
	switch {
	case p.adapter.Plain == nil:
		return fmt.Errorf("enforcer: it has no answer of its own in %s: use the engine cedar, opa, att or authzforce",
			p.adapter.Name)
	case p.options.HasMessages():
		return errors.New("enforcer: its own answer is true or false: leave out opa.messages")
	case p.batch > 1:
		return errors.New("enforcer: it answers one question in a request: leave out batch")
	case p.enforcer.Timeout < 0 || p.enforcer.Timeout > unit.Duration(time.Minute):
		return fmt.Errorf("enforcer.timeout: %v is not between 0 and 1m", p.enforcer.Timeout)
	}
	return nil
}

// within is how long the enforcement point waits.
func (e *Enforcer) within() time.Duration {
	if e.Timeout == 0 {
		return usualTimeout
	}
	return time.Duration(e.Timeout)
}

// words says what an enforcement point does.
func (e *Enforcer) words() string {
	does := "denies"
	if e.FailureModeAllow {
		does = "permits"
	}
	return fmt.Sprintf("an enforcement point of tare's stands before the decision point: it %s what has no answer after "+
		"%v, and its own CPU time and memory are not in the figures", does, e.within())
}

// startEnforcer starts the enforcement point before the decision point at an address, and returns where it listens.
func (p *arm) startEnforcer(ctx context.Context, at string) (netip.AddrPort, error) {
	var ready engine.Ready
	var err error
	p.front, err = kit.StartProcess(ctx, p.journal, areaName, fmt.Sprintf("%s-%d", enforcerName, p.index), proc.Spec{
		Name: enforcerName, Path: p.env.Self, Args: []string{"serve", areaName, enforcerName},
		Config: engine.Config{
			Addr: at, Upstream: p.pdp.String(), Pair: p.config.Pair, Path: p.config.Path, Within: p.enforcer.within().Seconds(),
			Admin: p.admin, Fallback: p.adapter.Plain(p.enforcer.FailureModeAllow),
		},
		LogFile: p.env.LogFile(enforcerName, p.index), ReadyWithin: startWithin, CPUs: p.env.CPUs,
	}, &ready)
	if err != nil {
		return netip.AddrPort{}, err
	}
	return netip.ParseAddrPort(ready.Addr)
}
