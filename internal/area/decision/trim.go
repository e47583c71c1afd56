package decision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tare/internal/area"
	"tare/internal/area/decision/engine"
	"tare/internal/design"
)

// Trim implements area.Trimmer: treatments whose engine this host cannot have are left out with a warning. Where the baseline needs it, or
// nothing would be left, there is nothing to hold the others against: that is an error, and all are kept.
func (Area) Trim(ctx context.Context, s area.Spec, treatments []design.Treatment, env area.Env) (kept []design.Treatment, out []area.Finding) {
	spec, ok := s.(*Spec)
	if !ok {
		return treatments, nil
	}
	missing := map[engine.Kind]error{}
	var gone []design.Treatment
	for _, t := range treatments {
		k, err := spec.lacks(ctx, t, env, missing)
		if err == nil {
			kept = append(kept, t)
			continue
		}
		if t.Baseline || t.Control == design.AA {
			f := findingOf(err)
			f.Severity, f.Message = area.Error, "the baseline needs an engine that this host cannot have: "+f.Message
			return treatments, []area.Finding{f}
		}
		missing[k] = err
		gone = append(gone, t)
	}
	if len(kept) == 0 || !slices.ContainsFunc(kept, func(t design.Treatment) bool { return t.Control == "" }) {
		for _, k := range engine.Kinds() {
			if missing[k] != nil {
				out = append(out, findingOf(missing[k]))
			}
		}
		return treatments, out
	}
	for _, k := range engine.Kinds() {
		if missing[k] == nil {
			continue
		}
		f := findingOf(missing[k])
		f.Severity = area.Warning
		f.Message = fmt.Sprintf("left out: %s: %s", namesOf(spec, gone, k), f.Message)
		out = append(out, f)
	}
	return kept, out
}

// lacks reports the engine of t that this host cannot have. known are those that were looked for already.
func (s *Spec) lacks(ctx context.Context, t design.Treatment, env area.Env, known map[engine.Kind]error) (engine.Kind, error) {
	p, err := s.plan(t)
	if err != nil || p.kind == "" {
		return "", nil //nolint:nilerr // Validate speaks of it
	}
	if err, ok := known[p.kind]; ok {
		return p.kind, err
	}
	_, err = find(ctx, p.kind, env)
	known[p.kind] = err
	return p.kind, err
}

// findingOf words what is missing.
func findingOf(err error) area.Finding {
	f := fault("embedded.engine", err, "")
	if m, ok := errors.AsType[*engine.Missing](err); ok {
		f.Hint = m.Next
	}
	return f
}

// namesOf lists the treatments with engine k, shortly.
func namesOf(s *Spec, treatments []design.Treatment, k engine.Kind) string {
	var names []string
	for _, t := range treatments {
		if p, err := s.plan(t); err == nil && p.kind == k {
			names = append(names, t.ID)
		}
	}
	const most = 3
	if len(names) > most {
		names = append(names[:most-1:most-1], fmt.Sprintf("and %d more", len(names)-most+1))
	}
	return strings.Join(names, "; ")
}
