package decision

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/areas/decision/protocol"
	"tare/internal/design"
	"tare/internal/kit"
)

const (
	// reloadEvery is the pause between two replacements of the policies.
	reloadEvery = 200 * time.Millisecond
)

// Conditions is area.Says.Conditions.
func (s *Spec) Conditions() []string {
	return slices.DeleteFunc(conditionNames(), func(name string) bool { return s.WhyNot(name, nil) != "" })
}

// WhyNot is area.Says.WhyNot: a condition that one treatment can be brought into is noted where another cannot.
func (s *Spec) WhyNot(name string, treatments []design.Treatment) (why string) {
	for _, t := range kit.AtLeastOne(treatments) {
		p, err := s.plan(t)
		if err != nil {
			continue // Validate says so
		}
		why = p.whyNot(name, p.kind == engine.OPA && engine.Host{Getenv: os.LookupEnv}.TakesOPAFromPATH())
		if why == "" {
			return ""
		}
	}
	return why
}

// conditionNames are those that some decision point can be brought into.
func conditionNames() []string {
	return []string{area.Restart, area.ColdStart, area.Starved, area.Slow, area.Partition, area.Reload, area.Revoke}
}

// Conditions is area.Can.Conditions: what can be done to an embedded decision point, and to policies that tare put
// into another.
func (t *target) Conditions(tr design.Treatment) (out []area.Condition) {
	p, err := t.arms.Of(tr)
	if err != nil {
		return nil
	}
	for _, name := range conditionNames() {
		if p.whyNot(name, p.foreign()) == "" {
			out = append(out, p.condition(name))
		}
	}
	return out
}

// condition returns the condition of one of conditionNames.
func (p *arm) condition(name string) area.Condition {
	switch name {
	case area.Restart:
		return area.Condition{
			Name: name, Does: "the decision point's process is killed, and started again",
			Impose: func(ctx context.Context) (func(context.Context) error, error) { return nil, p.killAndWait(ctx) },
		}
	case area.ColdStart:
		return area.Condition{
			Name: name, Idle: true,
			Does:   "the decision point's process is replaced by a new one, and the load begins when that serves",
			Impose: func(ctx context.Context) (func(context.Context) error, error) { return nil, p.killAndWait(ctx) },
		}
	case area.Starved:
		return area.Condition{
			Name: name, Impose: p.starve, Does: kit.StarvedDoes("the decision point's process"),
		}
	case area.Slow:
		return area.Condition{
			Name: name, Impose: p.slow,
			Does: fmt.Sprintf("the decision point's answers take up to %v longer, half of them more than the enforcement point "+
				"waits", 2*p.enforcer.within()),
		}
	case area.Partition:
		return area.Condition{
			Name: name, Impose: p.freeze,
			Does: "the decision point's process is stopped: the enforcement point gets no answer from it",
		}
	case area.Reload:
		return area.Condition{
			Name: name, Impose: p.reload,
			Does: fmt.Sprintf("the policies are replaced by the same ones, every %v", reloadEvery),
		}
	}
	return p.revokeCondition()
}

// whyNot returns why a condition cannot be brought about; empty: it can. foreign says that the opa in PATH is used.
func (p *plan) whyNot(name string, foreign bool) string {
	switch name {
	case area.Restart, area.ColdStart, area.Starved, area.Slow, area.Partition:
		switch {
		case p.url != nil:
			return "tare did not start the decision point"
		case p.kind == engine.OpenFGA && (name == area.Restart || name == area.ColdStart):
			return "its store is in memory, and gone with its process"
		case p.enforcer == nil && (name == area.Slow || name == area.Partition):
			return "it takes an enforcement point that waits for the decision point: embedded.enforcer"
		}
		return ""
	case area.Reload, area.Revoke:
		return p.whyNotReplaced(name, foreign)
	}
	return ""
}

// whyNotReplaced returns why policies cannot be replaced, or permissions be withdrawn, under load.
func (p *plan) whyNotReplaced(name string, foreign bool) string {
	switch {
	case p.bundle != "":
		return "policies of your own are not replaced by others"
	case p.url != nil && (!p.spec.Load || p.adapter.Name != engine.OPA.Adapter()):
		return "only in an opa, by load: true, are there policies of tare's that can be replaced under load"
	case p.kind == engine.ATT, p.kind == engine.AuthzForce, p.kind == engine.OpenFGA:
		return "the engine " + string(p.kind) + " reads its policies once"
	case p.kind == engine.PDPX && name == area.Revoke:
		return "a guard of pdpx that is withdrawn permits more than before"
	case foreign:
		return "the opa in PATH is started with a bundle, which nobody can write: out of PATH, tare builds one of its own"
	}
	return ""
}

// killAndWait kills the process and returns when its successor serves.
func (p *arm) killAndWait(ctx context.Context) error {
	before, _ := p.latest()
	if err := p.kill(); err != nil {
		return err
	}
	for {
		if c, down := p.latest(); c != before && !down {
			return nil
		}
		if err := p.failed(); err != nil {
			return err
		}
		if err := p.env.Clock.Sleep(ctx, pause/50); err != nil {
			return errors.Join(fmt.Errorf("%s is not up again", p.kind), err)
		}
	}
}

// starve stops and continues the process by turns. What ends it lets the process run.
func (p *arm) starve(context.Context) (func(context.Context) error, error) {
	c, _ := p.latest()
	return kit.Starve(p.env.Clock, c.Signal), nil
}

// freeze stops the process. A process of tare's that is stopped ends with tare all the same.
func (p *arm) freeze(ctx context.Context) (func(context.Context) error, error) {
	c, _ := p.latest()
	return c.Freeze(ctx)
}

// slow has the enforcement point hold the decision point's answers back.
func (p *arm) slow(ctx context.Context) (func(context.Context) error, error) {
	s := &protocol.Session{Addr: p.session.Addr, Host: p.session.Host, Token: p.admin}
	return func(ctx context.Context) error { return s.Manage(ctx, engine.PromptPath) }, s.Manage(ctx, engine.SlowPath)
}

// reload replaces the policies by the same ones, again and again.
func (p *arm) reload(ctx context.Context) (func(context.Context) error, error) {
	if err := p.replace(ctx, p.set); err != nil {
		return nil, err
	}
	return kit.Meanwhile(func(ctx context.Context) error {
		for p.env.Clock.Sleep(ctx, reloadEvery) == nil {
			if err := p.replace(context.WithoutCancel(ctx), p.set); err != nil {
				return err
			}
		}
		return nil
	}), nil
}

// replace makes set the policies, and returns when they are in force.
func (p *arm) replace(ctx context.Context, set model.Set) error {
	p.mu.Lock()
	p.replaced++
	mark := p.replaced
	p.mu.Unlock()
	if p.url != nil {
		return protocol.OPAModule(p.loaded.Data["name"]).Put(ctx, p.session, set, mark)
	}
	admin := &protocol.Session{Addr: p.pdp, Host: p.pdp.String(), Token: p.config.Admin}
	if p.kind == engine.OPA {
		file := strings.TrimPrefix(p.config.File, "/") // as OPA calls it
		m := protocol.Module{ID: file, Package: model.RegoPackage}
		return m.Put(ctx, admin, set, mark)
	}
	if p.config.File != "" {
		if _, err := p.launch.Prepare(filepath.Dir(p.config.File), set); err != nil {
			return err
		}
	}
	return admin.Manage(ctx, engine.ReloadPath)
}
