package decision

import (
	"context"

	"tare/area"
	"tare/areas/decision/engine"
)

// bundles is area.Parts.Program: what says what is measured are the user's own policies, if there are any.
func bundles(_ context.Context, s area.Spec, env area.Env) (area.Program, error) {
	spec, err := area.SpecOf[*Spec](s)
	if err != nil {
		return area.Program{}, err
	}
	out := area.Program{Files: true}
	for _, t := range env.Treatments {
		p, err := spec.plan(t)
		if err != nil || p.bundle == "" || out.Identity[p.bundle] != "" {
			continue // Validate reports the error
		}
		sum, err := engine.Sum(p.bundle)
		if err != nil {
			return out, err
		}
		if out.Identity == nil {
			out.Identity = map[string]string{}
		}
		out.Identity[p.bundle] = sum
	}
	return out, nil
}
