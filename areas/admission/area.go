// Package admission is the area of Kubernetes admission policy: what a policy costs a request to the API server, and a
// pod until it runs; how the cost grows with the number of policies; and at which rate the API server breaks. The
// control plane is one that tare starts, or a cluster of the user's.
package admission

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"tare/area"
	"tare/areas/admission/cluster"
	"tare/areas/admission/engine"
	"tare/areas/admission/node"
	"tare/areas/admission/own"
	"tare/areas/admission/webhook"
	"tare/internal/kit"
	"tare/internal/proc"
)

// Area is the admission area.
type Area struct{}

var _ area.Area = Area{}

const areaName = "admission"

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
		return nil, fmt.Errorf("open admission: %w", err)
	}
	chosen, err := chosen(env.Operations)
	if err != nil {
		return nil, fmt.Errorf("open admission: %w", err)
	}
	t := &target{
		spec: spec, env: env, operations: chosen, controls: newControls(spec, env), found: map[string]finding{},
		salt: make([]byte, sha256.Size),
	}
	if _, err := rand.Read(t.salt); err != nil {
		return nil, fmt.Errorf("open admission: %w", err)
	}
	return t, nil
}

// serve runs a server: "webhook" is the reference webhook, "nodes" are the simulated nodes, and "engine" is a policy
// engine of others.
func serve(ctx context.Context, name string, config json.RawMessage, ready func(any) error) error {
	switch name {
	case webhookServer:
		var cfg webhook.Config
		if err := json.Unmarshal(config, &cfg); err != nil {
			return fmt.Errorf("serve %s: malformed config", name)
		}
		return webhook.Run(ctx, cfg, func(r webhook.Ready) error { return ready(r) })
	case engineServer:
		var cfg engine.Config
		if err := json.Unmarshal(config, &cfg); err != nil {
			return fmt.Errorf("serve %s: malformed config", name)
		}
		return engine.Run(ctx, cfg, func(r engine.Ready) error { return ready(r) })
	case nodesServer:
		var cfg node.Config
		if err := json.Unmarshal(config, &cfg); err != nil {
			return fmt.Errorf("serve %s: malformed config", name) // the decoder's error may quote the token
		}
		return node.Run(ctx, cfg, func(r node.Ready) error { return ready(r) })
	}
	return fmt.Errorf("serve: admission has no server %q, only %s, %s and %s", name, webhookServer, nodesServer,
		engineServer)
}

// Undo implements area.Area: it removes this run's objects from the user's clusters, ends journaled processes, and
// removes folders and, when their processes have ended, control groups.
func (Area) Undo(ctx context.Context, changes []area.Change, env area.Env) error {
	isGroup := func(c area.Change) bool { return c.Kind == changeGroup }
	groups := slices.DeleteFunc(slices.Clone(changes), func(c area.Change) bool { return !isGroup(c) })
	changes = append(slices.DeleteFunc(slices.Clone(changes), isGroup), groups...)
	return kit.UndoEach(changes, func(c area.Change) error {
		switch c.Kind {
		case kit.ProcessKind:
			return kit.KillProcess(c)
		case changeFolder:
			return removeFolder(c)
		case changeGroup:
			return proc.RemoveCgroup(c.Data["path"])
		case cluster.ChangeKind:
			return cluster.Undo(ctx, c, env.Limit, env.Clock)
		}
		return errors.New("this area makes no such change")
	})
}

// Parts implements area.Area.
func (a Area) Parts() area.Parts {
	return area.Parts{
		Trim: a.Trim, Servers: servers(), Presets: kit.Named(a.Presets()), Commands: commands,
		DoctorModes: func() []area.Mode { return []area.Mode{rbacMode()} }, Builds: builds, Checks: checks, Files: embedded,
		Program: bundles, ComparePolicies: comparePolicies,
	}
}

func servers() map[string]area.Serve {
	out := kit.Servers(serve, webhookServer, nodesServer, engineServer)
	out[own.Builder] = own.ServeBuild
	return out
}
