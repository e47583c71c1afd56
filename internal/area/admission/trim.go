package admission

import (
	"context"

	"tare/internal/area"
	"tare/internal/design"
	"tare/internal/plane"
)

// Trim implements area.Trimmer: it drops treatments whose control plane this host cannot run.
func (Area) Trim(ctx context.Context, s area.Spec, treatments []design.Treatment, env area.Env,
) (kept []design.Treatment, out []area.Finding) {
	spec, ok := s.(*Spec)
	if !ok {
		return treatments, nil
	}
	need := func(t design.Treatment) area.Need {
		p, err := spec.plan(t)
		if err != nil || p.foreign { // Validate reports the error
			return area.Need{}
		}
		return area.Need{Name: string(p.version), Find: func() error {
			_, _, err := find(ctx, &p, env)
			return err
		}}
	}
	releases := []string{string(plane.V136), string(plane.V124)}
	return area.TrimMissing("a control plane", releases, treatments, need, findingOf)
}

// findingOf turns the error into a finding.
func findingOf(err error) area.Finding {
	return area.Fault("embedded", err, "")
}
