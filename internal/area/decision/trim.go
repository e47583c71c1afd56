package decision

import (
	"context"

	"tare/internal/area"
	"tare/internal/area/decision/engine"
	"tare/internal/design"
)

// Trim implements area.Trimmer: it drops treatments whose engine this host does not support.
func (Area) Trim(ctx context.Context, s area.Spec, treatments []design.Treatment, env area.Env,
) (kept []design.Treatment, out []area.Finding) {
	spec, ok := s.(*Spec)
	if !ok {
		return treatments, nil
	}
	need := func(t design.Treatment) area.Need {
		p, err := spec.plan(t)
		if err != nil { // Validate reports the error
			return area.Need{}
		}
		return area.Need{Name: string(p.kind), Find: func() error {
			_, err := find(ctx, p.kind, env)
			return err
		}}
	}
	return area.TrimMissing("an engine", engine.Kind("").Words(), treatments, need, findingOf)
}

// findingOf returns the finding about an engine that this host does not support.
func findingOf(err error) area.Finding {
	return area.Fault("embedded.engine", err, "")
}
