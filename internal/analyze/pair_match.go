package analyze

import (
	"fmt"
	"slices"
	"strings"

	"tare/internal/design"
	"tare/internal/record"
)

// MatchArms finds which arms of two runs are compared with each other. Named ones are; of two runs without names, those
// that both have, or the only ones there are; within one run, a single named one is compared with the run's baseline.
// alone are arms without a counterpart, as "run:treatment".
func MatchArms(base, treated Run, baseName, treatedName string) (arms []Arms, alone []string, err error) {
	for _, x := range []struct {
		run  Run
		name string
	}{{base, baseName}, {treated, treatedName}} {
		if ids := armIDs(x.run.Record, true); x.name != "" && !slices.Contains(ids, x.name) {
			return nil, nil, fmt.Errorf("%s has no treatment %q; it has: %s", x.run.Name, x.name, strings.Join(ids, ", "))
		}
	}
	if SameRun(base.Record, treated.Record) {
		return within(base, baseName, treatedName)
	}
	x, y := choose(base.Record, baseName, treatedName), choose(treated.Record, treatedName, baseName)
	if len(x) == 1 && len(y) == 1 {
		return []Arms{{x[0], y[0]}}, nil, nil
	}
	for _, id := range y {
		if slices.Contains(x, id) {
			arms = append(arms, Arms{id, id})
			continue
		}
		alone = append(alone, treated.Name+":"+id)
	}
	for _, id := range x {
		if !slices.Contains(y, id) {
			alone = append(alone, base.Name+":"+id)
		}
	}
	if len(arms) == 0 {
		return nil, nil, fmt.Errorf("no treatment is in both runs: %s has %s, %s has %s; name one of each, as in %s:%s %s:%s",
			base.Name, strings.Join(x, ", "), treated.Name, strings.Join(y, ", "), base.Name, x[0], treated.Name, y[0])
	}
	return arms, alone, nil
}

// choose are the arms of a run that may be meant: the named one, or the one of the other side's name, or all.
func choose(r *record.Record, own, other string) []string {
	ids := armIDs(r, false)
	switch {
	case own != "":
		return []string{own}
	case other != "" && slices.Contains(ids, other):
		return []string{other}
	}
	return ids
}

// within compares two arms of one run.
func within(run Run, base, treated string) ([]Arms, []string, error) {
	if base != "" && treated == "" {
		base, treated = "", base
	}
	if base == "" {
		i := slices.IndexFunc(run.Record.Plan.Treatments, func(t design.Treatment) bool { return t.Baseline })
		if i >= 0 {
			base = run.Record.Plan.Treatments[i].ID
		}
	}
	if base == "" || treated == "" || base == treated {
		return nil, nil,
			fmt.Errorf("both sides are the run %s: name two of its treatments, as in %s:ONE %s:OTHER; it has: %s",
				run.Name, run.Name, run.Name, strings.Join(armIDs(run.Record, true), ", "))
	}
	return []Arms{{base, treated}}, nil, nil
}

// armIDs lists a run's treatments, with or without those that only check the run.
func armIDs(r *record.Record, controls bool) []string {
	var out []string
	for _, t := range r.Plan.Treatments {
		if controls || t.Control == design.None {
			out = append(out, t.ID)
		}
	}
	if len(out) == 0 {
		return []string{"none at all"}
	}
	return out
}
