package decision

import (
	"context"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/internal/design"
	"tare/internal/kit"
)

// Trim is area.Parts.Trim: it drops treatments whose engine this host does not support.
func (Area) Trim(ctx context.Context, s area.Spec, treatments []design.Treatment, env area.Env,
) (kept []design.Treatment, out []area.Finding) {
	spec, ok := s.(*Spec)
	if !ok {
		return treatments, nil
	}
	need := func(t design.Treatment) kit.Need {
		p, err := spec.plan(t)
		if err != nil { // Validate reports the error
			return kit.Need{}
		}
		return kit.Need{Name: string(p.kind), Find: func() error {
			_, err := find(ctx, p.kind, env)
			return err
		}}
	}
	return kit.TrimMissing("an engine", engine.Kind("").Words(), treatments, need, findingOf)
}

// findingOf returns the finding about an engine that this host does not support.
func findingOf(err error) area.Finding {
	return area.Fault("embedded.engine", err, "")
}
