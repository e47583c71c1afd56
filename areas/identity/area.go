// Package identity is the area of workload-identity token endpoints: what does a token cost, and at what rate does its
// source break? Its operation is to obtain a token and to check that it is one.
package identity

import (
	"context"
	"embed"
	"encoding/json"
	"errors"
	"fmt"

	"tare/area"
	"tare/areas/identity/reference"
	"tare/internal/kit"
	"tare/internal/proc"
)

// Area is the identity area.
type Area struct{}

var _ area.Area = Area{}

const areaName = "identity"

// The embedded servers' names, as arguments of "serve" and as subjects of samples.
const (
	serverEndpoint = "endpoint"
	serverSTS      = "sts"
)

// The kinds of changes.
const (
	changeCgroup = "cgroup"
)

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
		return nil, fmt.Errorf("open identity: %w", err)
	}
	return &target{
		spec: spec, env: env, signers: map[reference.Algorithm]*reference.Signer{}, planGroup: proc.PlanCgroup,
	}, nil
}

// hostFindings reports the knobs that this host does not support.
func hostFindings(k reference.Knobs) []area.Finding {
	var out []area.Finding
	if k.CPUQuota > 0 {
		if _, err := proc.PlanCgroup(proc.CgroupName("preflight", serverEndpoint)); err != nil {
			out = append(out, area.Finding{
				Path: "embedded.cpu_quota", Severity: area.Warning, Message: noteThrottle + ": " + err.Error(),
				Hint: "run as root, or in a delegated control group, for a limit by the kernel",
			})
		}
	}
	if limit := reference.MaxBacklog(); k.Backlog > limit {
		out = append(out, area.Finding{
			Path: "embedded.backlog", Severity: area.Warning,
			Message: fmt.Sprintf("net.core.somaxconn clips the backlog of %d to %d", k.Backlog, limit),
			Hint:    fmt.Sprintf("sysctl -w net.core.somaxconn=%d", k.Backlog),
		})
	}
	return out
}

func serveEndpoint(ctx context.Context, config json.RawMessage, ready func(any) error) error {
	var cfg reference.EndpointConfig
	if err := json.Unmarshal(config, &cfg); err != nil {
		return errors.New("serve endpoint: malformed config") // the decoder's error may quote the key
	}
	return reference.RunEndpoint(ctx, cfg, func(r reference.Ready) error { return ready(r) })
}

func serveSTS(ctx context.Context, config json.RawMessage, ready func(any) error) error {
	var cfg reference.STSConfig
	if err := json.Unmarshal(config, &cfg); err != nil {
		return errors.New("serve sts: malformed config")
	}
	return reference.RunSTS(ctx, cfg, func(r reference.Ready) error { return ready(r) })
}

// Undo implements area.Area: it kills journaled processes and removes journaled groups, in the order given.
func (Area) Undo(_ context.Context, changes []area.Change, _ area.Env) error {
	return kit.UndoEach(changes, undo)
}

func undo(c area.Change) error {
	switch c.Kind {
	case kit.ProcessKind:
		return kit.KillProcess(c)
	case changeCgroup:
		return proc.RemoveCgroup(c.Data["path"])
	}
	return errors.New("this area makes no such change")
}

func cgroupChange(id, path string) area.Change {
	return area.Change{Area: areaName, Kind: changeCgroup, ID: id, Data: map[string]string{"path": path}}
}

// Parts implements area.Area.
func (a Area) Parts() area.Parts {
	return area.Parts{
		Servers: map[string]area.Serve{serverEndpoint: serveEndpoint, serverSTS: serveSTS}, Adapters: listed(),
		Presets: kit.Named(a.Presets()), Clues: clues(), Files: embeddedFiles, Usual: "capacity",
	}
}

// embeddedFiles are area.Parts.Files.
//
//go:embed templates words.md
var embeddedFiles embed.FS
