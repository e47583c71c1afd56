package analyze

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"tare/internal/design"
	"tare/internal/record"
)

// Unmatched says why it is not known which treatments of two runs correspond. Candidates are pairs that may be meant.
type Unmatched struct {
	Reason     string
	Candidates []Arms
}

// Error implements error.
func (u *Unmatched) Error() string { return u.Reason }

// MatchArms finds which treatments of two runs are compared with each other. Named ones are; of two runs without names,
// those of the same name or the same levels are, and then those that are left on both sides if each has one candidate
// only; within one run, a single named one is compared with the run's baseline. alone are treatments without a
// counterpart, as "run:treatment". It fails with *Unmatched if several treatments may be meant, or none.
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
		named := baseName != "" || treatedName != ""
		return []Arms{{Base: x[0].ID, Treated: y[0].ID, Likely: !named && !areAlike(&x[0], &y[0])}}, nil, nil
	}
	arms, x, y = alike(x, y)
	more, err := likely(base, treated, x, y)
	if err != nil {
		return nil, nil, err
	}
	arms = append(arms, more...)
	for _, t := range y {
		if !slices.ContainsFunc(more, func(m Arms) bool { return m.Treated == t.ID }) {
			alone = append(alone, treated.Name+":"+t.ID)
		}
	}
	for _, t := range x {
		if !slices.ContainsFunc(more, func(m Arms) bool { return m.Base == t.ID }) {
			alone = append(alone, base.Name+":"+t.ID)
		}
	}
	if len(arms) > 0 {
		return arms, alone, nil
	}
	none := &Unmatched{Reason: fmt.Sprintf("no treatment is in both runs: %s has %s, %s has %s", base.Name,
		strings.Join(armIDs(base.Record, false), ", "), treated.Name, strings.Join(armIDs(treated.Record, false), ", "))}
	if len(x) > 0 && len(y) > 0 {
		none.Candidates = []Arms{{Base: x[0].ID, Treated: y[0].ID}}
	}
	return nil, nil, none
}

// alike pairs the treatments of the same name, then those of the same levels, in the order of the second run. It
// returns what is left of both.
func alike(x, y []design.Treatment) (arms []Arms, restX, restY []design.Treatment) {
	for _, same := range []func(a, b *design.Treatment) bool{
		func(a, b *design.Treatment) bool { return a.ID == b.ID }, areAlike,
	} {
		restY = nil
		for i := range y {
			k := slices.IndexFunc(x, func(t design.Treatment) bool { return same(&t, &y[i]) })
			if k < 0 {
				restY = append(restY, y[i])
				continue
			}
			arms = append(arms, Arms{Base: x[k].ID, Treated: y[i].ID})
			x = slices.Delete(slices.Clone(x), k, k+1)
		}
		y = restY
	}
	return arms, x, y
}

// areAlike reports whether two treatments have the same name or the same levels.
func areAlike(a, b *design.Treatment) bool {
	return a.ID == b.ID || len(a.Levels) > 0 && maps.Equal(a.Levels, b.Levels)
}

// likely pairs treatments of different levels where each has one candidate only. It fails with *Unmatched where one has
// several, or where the candidates have other factors.
func likely(base, treated Run, x, y []design.Treatment) (arms []Arms, err error) {
	var all []Arms
	certain := true
	for i := range y {
		for k := range x {
			ok, sameFactors := mayCorrespond(&x[k], &y[i])
			if !ok {
				continue
			}
			certain = certain && sameFactors
			for _, other := range all {
				certain = certain && other.Base != x[k].ID && other.Treated != y[i].ID
			}
			all = append(all, Arms{Base: x[k].ID, Treated: y[i].ID, Likely: true})
		}
	}
	if certain {
		return all, nil
	}
	var bases, others []string
	for _, m := range all {
		addOnce(&bases, m.Base)
		addOnce(&others, m.Treated)
	}
	return nil, &Unmatched{
		Reason: fmt.Sprintf("it is not clear which treatments correspond: %s of %s have no namesake in %s, which has %s",
			strings.Join(bases, ", "), base.Name, treated.Name, strings.Join(others, ", ")),
		Candidates: all,
	}
}

// mayCorrespond reports whether two treatments of different levels may be the same thing in two runs, and whether they
// set the same factors. A baseline corresponds to a baseline only, and a size to no other size.
func mayCorrespond(a, b *design.Treatment) (ok, sameFactors bool) {
	if a.Baseline != b.Baseline {
		return false, false
	}
	if sameFactors = slices.Equal(sortedKeys(a.Levels), sortedKeys(b.Levels)); !sameFactors {
		return true, false
	}
	for factor, level := range a.Levels {
		if level != b.Levels[factor] && (isNumber(level) || isNumber(b.Levels[factor])) {
			return false, true
		}
	}
	return true, true
}

func isNumber(s string) bool {
	_, err := strconv.ParseFloat(s, 64)
	return err == nil
}

// choose are the treatments of a run that may be meant: the named one, or the one of the other side's name, or all that
// do not only check the run.
func choose(r *record.Record, own, other string) []design.Treatment {
	var all []design.Treatment
	for _, t := range r.Plan.Treatments {
		switch {
		case own != "" && t.ID == own, own == "" && other != "" && t.Control == design.None && t.ID == other:
			return []design.Treatment{t}
		case own == "" && t.Control == design.None:
			all = append(all, t)
		}
	}
	return all
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
	return []Arms{{Base: base, Treated: treated}}, nil, nil
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
