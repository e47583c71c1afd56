package decision

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"tare/internal/area"
	"tare/internal/area/decision/engine"
	"tare/internal/area/decision/model"
	"tare/internal/area/decision/protocol"
	"tare/internal/design"
)

var (
	_ area.Conditioner = (*target)(nil)
	_ area.Conditioned = (*Spec)(nil)
)

const (
	// reloadEvery is the pause between two replacements of the policies.
	reloadEvery = 200 * time.Millisecond
)

// Conditions implements area.Conditioned.
func (s *Spec) Conditions() (names []string) {
	p, err := s.plan(design.Treatment{})
	if err != nil {
		return nil
	}
	if p.url == nil {
		names = append(names, area.Restart, area.Starved)
	}
	if p.enforcer != nil {
		names = append(names, area.Partition)
	}
	if p.replaceable() {
		names = append(names, area.Reload)
	}
	if p.revocable() {
		names = append(names, area.Revoke)
	}
	return names
}

// Conditions implements area.Conditioner: what can be done to an embedded decision point, and to policies that tare put
// into another.
func (t *target) Conditions(tr design.Treatment) (out []area.Condition) {
	p, err := t.arms.Of(tr)
	if err != nil {
		return nil
	}
	if p.url == nil {
		out = append(out, area.Condition{
			Name: area.Restart, Does: "the decision point's process is killed, and started again",
			Impose: func(ctx context.Context) (func(context.Context) error, error) { return nil, p.killAndWait(ctx) },
		}, area.Condition{
			Name: area.Starved, Impose: p.starve, Does: area.StarvedDoes("the decision point's process"),
		})
	}
	if p.enforcer != nil {
		out = append(out, area.Condition{
			Name: area.Partition, Impose: p.freeze,
			Does: "the decision point's process is stopped: the enforcement point gets no answer from it",
		})
	}
	if p.replaceable() && !p.foreignOPA() {
		out = append(out, area.Condition{
			Name: area.Reload, Impose: p.reload,
			Does: fmt.Sprintf("the policies are replaced by the same ones, every %v", reloadEvery),
		})
	}
	if p.revocable() && !p.foreignOPA() {
		out = append(out, p.revokeCondition())
	}
	return out
}

// replaceable reports whether tare can replace the policies while the decision point answers.
func (p *plan) replaceable() bool {
	if p.url != nil {
		return p.revocable()
	}
	return p.kind == engine.Cedar || p.kind == engine.PDPX || p.kind == engine.OPA
}

// revocable reports whether the policies are the model's, so that one can be withdrawn. A guard of pdpx that is
// withdrawn permits more than before.
func (p *plan) revocable() bool {
	if p.url != nil {
		return p.spec.Load && p.adapter.Name == engine.OPA.Adapter()
	}
	return p.kind == engine.Cedar || p.kind == engine.OPA
}

// foreignOPA reports an opa found in PATH, which is started with a bundle: nobody can write its policies.
func (p *arm) foreignOPA() bool { return p.kind == engine.OPA && p.launch.Path == p.env.Self }

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
	return area.Starve(p.env.Clock, c.Signal), nil
}

// freeze stops the process. A process of tare's that is stopped ends with tare all the same.
func (p *arm) freeze(context.Context) (func(context.Context) error, error) {
	c, _ := p.latest()
	return func(context.Context) error { return c.Signal(syscall.SIGCONT) }, c.Signal(syscall.SIGSTOP)
}

// reload replaces the policies by the same ones, again and again.
func (p *arm) reload(ctx context.Context) (func(context.Context) error, error) {
	if err := p.replace(ctx, p.set); err != nil {
		return nil, err
	}
	return area.Meanwhile(func(ctx context.Context) error {
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
	return admin.Reload(ctx, engine.ReloadPath)
}
