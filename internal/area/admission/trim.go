package admission

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tare/internal/area"
	"tare/internal/design"
	"tare/internal/plane"
)

// Trim implements area.Trimmer: it drops treatments whose control plane this host cannot run, with a warning. If the
// baseline needs it, or no treatment would remain, there is nothing to compare: that is an error, and all are kept.
func (Area) Trim(ctx context.Context, s area.Spec, treatments []design.Treatment,
	env area.Env,
) (kept []design.Treatment, out []area.Finding) {
	spec, ok := s.(*Spec)
	if !ok {
		return treatments, nil
	}
	missing := map[string]error{} // by release; nil: available
	gone := map[string][]string{} // names of treatments by release
	for _, t := range treatments {
		version, err := spec.missingRelease(ctx, t, env, missing)
		if err == nil {
			kept = append(kept, t)
			continue
		}
		if t.Baseline || t.Control == design.AA {
			f := findingOf(err)
			f.Message = "the baseline needs a control plane that this host cannot have: " + f.Message
			return treatments, []area.Finding{f}
		}
		gone[version] = append(gone[version], t.ID)
	}
	nothing := !slices.ContainsFunc(kept, func(t design.Treatment) bool { return t.Control == "" })
	for _, version := range []string{string(plane.V136), string(plane.V124)} {
		if len(gone[version]) == 0 {
			continue
		}
		f := findingOf(missing[version])
		if !nothing {
			f.Severity, f.Message = area.Warning, fmt.Sprintf("left out: %s: %s", some(gone[version]), f.Message)
		}
		out = append(out, f)
	}
	if nothing {
		return treatments, out
	}
	return kept, out
}

// missingRelease returns the release of t if this host cannot run it. known caches earlier results.
func (s *Spec) missingRelease(ctx context.Context, t design.Treatment, env area.Env,
	known map[string]error,
) (version string, err error) {
	p, err := s.plan(t)
	if err != nil || p.foreign {
		return "", nil //nolint:nilerr // Validate reports it
	}
	if err, ok := known[string(p.version)]; ok {
		return string(p.version), err
	}
	_, _, err = find(ctx, &p, env)
	known[string(p.version)] = err
	return string(p.version), err
}

// findingOf turns the error into a finding.
func findingOf(err error) area.Finding {
	f := fault("embedded", err, "")
	if m, ok := errors.AsType[*plane.Missing](err); ok {
		f.Hint = m.Next
	}
	return f
}

// some lists the first names.
func some(names []string) string {
	const most = 3
	if len(names) > most {
		names = append(names[:most-1:most-1], fmt.Sprintf("and %d more", len(names)-most+1))
	}
	return strings.Join(names, "; ")
}
