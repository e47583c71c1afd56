package admission

import (
	"context"

	"tare/area"
	"tare/areas/plane"
	"tare/internal/design"
	"tare/internal/kit"
)

// Trim is area.Parts.Trim: it drops treatments whose control plane this host cannot run.
func (Area) Trim(ctx context.Context, s area.Spec, treatments []design.Treatment, env area.Env,
) (kept []design.Treatment, out []area.Finding) {
	spec, ok := s.(*Spec)
	if !ok {
		return treatments, nil
	}
	need := func(t design.Treatment) kit.Need {
		p, err := spec.plan(t)
		if err != nil || p.foreign { // Validate reports the error
			return kit.Need{}
		}
		return kit.Need{Name: string(p.version), Find: func() error {
			_, _, err := find(ctx, &p, env)
			return err
		}}
	}
	releases := []string{string(plane.V136), string(plane.V124)}
	return kit.TrimMissing("a control plane", releases, treatments, need, findingOf)
}

// findingOf turns the error into a finding.
func findingOf(err error) area.Finding {
	return area.Fault("embedded", err, "")
}
