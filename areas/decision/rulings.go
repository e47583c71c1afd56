package decision

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"tare/area"
	"tare/areas/decision/model"
	"tare/internal/design"
)

// Rulings is area.Can.Rulings, of the questions that the file names. From then on a treatment is expected to permit
// what it permits although the baseline refuses it: that says something of its policies, and what it costs is measured.
// Only where the load itself asks for what must be refused a permit stays a fault.
func (t *target) Rulings(ctx context.Context) (map[string]area.Rulings, error) {
	compared := slices.DeleteFunc(t.arms.Ready(), func(p *arm) bool {
		return len(p.spec.Requests) == 0 || p.treatment.Control != area.Ordinary
	})
	i := slices.IndexFunc(compared, func(p *arm) bool { return p.treatment.Baseline })
	if i < 0 || len(compared) == 1 {
		return nil, nil
	}
	base, out, lists := compared[i], map[string]area.Rulings{}, map[*arm]map[string][]string{}
	for _, p := range compared {
		lists[p] = p.listed(ctx)
	}
	all := membersOf(lists)
	was := append(base.rulings(ctx), base.listRulings(lists[base], all)...)
	out[base.treatment.ID] = area.Rulings{Of: was}
	for _, p := range compared {
		if p == base {
			continue
		}
		is := area.Rulings{Of: append(p.rulings(ctx), p.listRulings(lists[p], all)...)}
		names, err := p.differences(&base.plan)
		if err != nil {
			return nil, fmt.Errorf("compare the policies of %s with those of %s: %w", p.bundle, base.bundle, err)
		}
		if len(names) > 0 {
			shows := "no request shows what that permits: "
			if !slices.EqualFunc(was, is.Of, sameRuling) {
				shows = "requests may not show all that it permits: "
			}
			is.Unasked = []string{"policies, or what they decide by, differ, and " + shows + some(names)}
		}
		if !t.env.Trespasses {
			p.expectGranted(was, is.Of)
			p.expectListed(lists[base], lists[p])
		}
		out[p.treatment.ID] = is
	}
	return out, ctx.Err()
}

func sameRuling(a, b area.Ruling) bool {
	return a.Request == b.Request && a.Refused == b.Refused && a.Undecided == b.Undecided
}

// rulings asks each question once. What does not answer with a decision, Verify explains.
func (p *arm) rulings(ctx context.Context) (out []area.Ruling) {
	for _, q := range p.questions {
		if q.List != nil || q.Want == model.None {
			continue
		}
		a, err := p.question(ctx, q)
		refused := err == nil && (a.Decision == model.Deny || a.Decision == model.NotApplicable)
		out = append(out, area.Ruling{
			Request: q.Name, Refused: refused, Undecided: !refused && (err != nil || a.Decision != model.Permit),
		})
	}
	return out
}

// expectGranted expects of the arm that it permits what it permits and the baseline rightly refuses.
func (p *arm) expectGranted(was, is []area.Ruling) {
	p.questions = slices.Clone(p.questions)
	for i, q := range p.questions {
		of := func(r area.Ruling) bool { return r.Request == q.Name }
		before, after := slices.IndexFunc(was, of), slices.IndexFunc(is, of)
		if mustBeRefused(q) && before >= 0 && after >= 0 && was[before].Refused && !is[after].Refused &&
			!is[after].Undecided {
			p.questions[i].Want = model.Permit
			p.granted = true
		}
	}
}

// listed asks each question for a list once: what the lists hold, by the names of the questions. What is no list,
// Verify explains.
func (p *arm) listed(ctx context.Context) map[string][]string {
	out := map[string][]string{}
	for _, q := range p.questions {
		if q.List == nil {
			continue
		}
		if a, err := p.question(ctx, q); err == nil && a.Listed != nil {
			out[q.Name] = a.Listed
		}
	}
	return out
}

// membersOf are all members of the lists of several arms, by the names of the questions.
func membersOf(lists map[*arm]map[string][]string) map[string][]string {
	out := map[string][]string{}
	for _, of := range lists {
		for name, members := range of {
			out[name] = slices.Concat(out[name], members)
		}
	}
	for name, members := range out {
		slices.Sort(members)
		out[name] = slices.Compact(members)
	}
	return out
}

// listRulings are rulings about each member of any arm's list: it is permitted where the arm's own list holds it.
func (p *arm) listRulings(lists, all map[string][]string) (out []area.Ruling) {
	for _, q := range p.questions {
		if q.List == nil {
			continue
		}
		has, known := lists[q.Name]
		for _, member := range all[q.Name] {
			out = append(out, area.Ruling{
				Request: q.Name + " with " + member, Refused: known && !slices.Contains(has, member), Undecided: !known,
			})
		}
	}
	return out
}

// expectListed expects of the arm's lists that they hold what they hold and the baseline's rightly do not.
func (p *arm) expectListed(was, is map[string][]string) {
	for i, q := range p.questions {
		if q.List == nil {
			continue
		}
		right := len(without(was[q.Name], q.List.Has))+len(without(q.List.Has, was[q.Name])) == 0
		if has, known := is[q.Name]; right && known && len(without(q.List.Has, has)) == 0 {
			p.questions[i].List = &model.List{Has: has}
		}
	}
}

// differences names in what the policies of a bundle differ from a base's, if they are in one language.
func (p *plan) differences(base *plan) ([]string, error) {
	if p.bundle == "" || base.bundle == "" || p.bundle == base.bundle || p.kind.Adapter() != base.kind.Adapter() {
		return nil, nil
	}
	is, err := partsOf(p.kind, p.bundle)
	was, e := partsOf(base.kind, base.bundle)
	return differing(was, is), errors.Join(err, e)
}

// findDifferences says, before a run, in what policies differ.
func (s *Spec) findDifferences(treatments []design.Treatment) (out []area.Finding) {
	i := slices.IndexFunc(treatments, func(t design.Treatment) bool { return t.Baseline })
	if i < 0 {
		return nil
	}
	base, err := s.plan(treatments[i])
	for _, t := range treatments {
		p, e := s.plan(t)
		if err != nil || e != nil || t.Control != area.Ordinary {
			continue // it has been reported
		}
		if names, e := p.differences(&base); e == nil && len(names) > 0 {
			out = append(out, area.Finding{
				Path: "embedded.bundle", Severity: area.Info, Message: fmt.Sprintf("%s: policies, or what they decide by, "+
					"differ from those of %s; a run that finds no request answered otherwise ends undecided: %s", p.bundle,
					base.bundle, some(names)),
			})
		}
	}
	return out
}

// differing names the parts that only one of two sides has, whatever their order.
func differing(was, is []part) (names []string) {
	more := map[sum]int{}
	for _, p := range is {
		more[p.says]++
	}
	for _, p := range was {
		more[p.says]--
	}
	for _, p := range slices.Concat(was, is) {
		if more[p.says] != 0 {
			names = append(names, strings.TrimSpace(p.name))
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
