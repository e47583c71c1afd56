// Package decision is the area of policy decision points: what does an authorization decision cost, how does that grow
// with the policies, and does it hold for hours? Its operations are questions whose right answers are known.
package decision

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/areas/decision/reference"
	"tare/internal/kit"
)

// Area is the decision area.
type Area struct{}

var _ area.Area = Area{}

const areaName = "decision"

// subject is the decision point in samples.
const subject = "pdp"

// Name implements area.Area.
func (Area) Name() string { return areaName }

// Offers implements area.Area.
func (Area) Offers() area.Offers {
	return area.Offers{AnyRate: area.Yes, SteadyLoad: area.Yes, Trespasses: area.Yes}
}

// NewSpec implements area.Area.
func (Area) NewSpec() area.Spec { return &Spec{} }

// Open implements area.Area. It changes nothing and connects to nothing.
func (Area) Open(_ context.Context, s area.Spec, env area.Env) (area.Target, error) {
	spec, err := area.SpecOf[*Spec](s)
	if err != nil {
		return nil, fmt.Errorf("open decision: %w", err)
	}
	return &target{
		spec: spec, env: env, patience: readyWithin, warmth: rehearsal{warmWorkers, warmCalls, warmWithin},
	}, nil
}

// serve runs a server: "cedar", "pdpx", "opa", which supervises the opa found in PATH, and "enforcer", an
// enforcement point.
func serve(ctx context.Context, name string, config json.RawMessage, ready func(any) error) error {
	var cfg engine.Config
	if err := json.Unmarshal(config, &cfg); err != nil {
		return fmt.Errorf("serve %s: malformed config", name) // the decoder's error may quote the password
	}
	tell := func(r engine.Ready) error { return ready(r) }
	if name == enforcerName {
		return reference.RunEnforcer(ctx, cfg, tell)
	}
	switch engine.Kind(name) {
	case engine.Cedar:
		return reference.RunCedar(ctx, cfg, tell)
	case engine.PDPX:
		return reference.RunPDPX(ctx, cfg, tell)
	case engine.OPA:
		return engine.RunOPA(ctx, cfg, tell)
	case engine.ATT, engine.AuthzForce, engine.OpenFGA:
	}
	return fmt.Errorf("serve: decision has no server %q, only %s, %s and %s", name, engine.Cedar, engine.PDPX, engine.OPA)
}

// Undo implements area.Area: it kills journaled processes, and removes policies from decision points that tare did not
// start.
func (Area) Undo(ctx context.Context, changes []area.Change, env area.Env) error {
	return kit.UndoEach(changes, func(c area.Change) error {
		switch c.Kind {
		case kit.ProcessKind:
			return kit.KillProcess(c)
		case changePolicies:
			if env.Limit == nil { // all changes of a run share its bound
				var err error
				if env.Limit, err = limitOf(c, env.Clock); err != nil {
					return err
				}
			}
			return undoPolicies(ctx, c, env)
		}
		return errors.New("this area makes no such change")
	})
}

// Parts implements area.Area.
func (a Area) Parts() area.Parts {
	return area.Parts{
		Trim: a.Trim, Servers: servers(), Adapters: listed(), Presets: kit.Named(a.Presets()), Clues: clues(), Builds: builds,
		Checks: checks, Program: bundles, ComparePolicies: comparePolicies, Files: embeddedFiles,
	}
}

func servers() map[string]area.Serve {
	return kit.Servers(serve, string(engine.Cedar), string(engine.PDPX), string(engine.OPA), enforcerName)
}
