package admission

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"tare/areas/admission/mechanism"
	"tare/areas/admission/own"
	"tare/internal/unit"
)

// A failure is how a policy fails: it cannot decide about requests, so that they are refused.
type failure struct {
	first, requests int // the first of them in the catalogue, and how many there are
	why             string
	sure            bool // no objection has such words
}

// failures are the policies, by the user's names, that could not decide about a request, with the reasons.
func (p *arm) failures(a answer) map[string]failure {
	if p.policies.own == nil || a.status < http.StatusBadRequest {
		return nil
	}
	var out map[string]failure
	said := a.said()
	for _, one := range p.policies.own.Policies {
		if why, ok, sure := one.Failure(p.scope(), said); ok {
			if out == nil {
				out = map[string]failure{}
			}
			out[one.Name] = failure{requests: 1, why: why, sure: sure}
		}
	}
	return out
}

// keepFailures adds the policies that failed on a request, and returns those that objected to it.
func (f *finding) keepFailures(i int, failed map[string]failure, deniers []string) (objected []string) {
	for name, is := range failed {
		is.first = i
		if was, ok := f.failures[name]; ok {
			was.requests++
			is = was
		}
		f.failures[name] = is
	}
	return slices.DeleteFunc(slices.Clone(deniers), func(name string) bool {
		_, is := failed[name]
		return is
	})
}

// settleFailures tells those apart that fail, and those that object in words as if they did: their engine counts
// objections, and no failures. Where it does not count, what could be an objection is one.
func (p *arm) settleFailures(ctx context.Context, f *finding) error {
	uncounted := p.uncounted()
	for _, name := range slices.Sorted(maps.Keys(f.failures)) {
		is := f.failures[name]
		if is.sure {
			continue
		}
		objecting, err := p.objections(ctx, p.probe(f.requests[is.first]))
		if err != nil {
			return err
		}
		if !slices.Contains(p.named(objecting), name) && !uncounted[own.NameIn(p.scope(), name)] {
			continue
		}
		delete(f.failures, name)
		if _, known := f.proof[name]; !known {
			f.proof[name] = is.first
		}
	}
	return nil
}

// failureNotes says which policies fail. In a cluster of the user's the reason could hold what is no business of a
// report.
func (p *arm) failureNotes() []string {
	const most = 3
	x := &p.policies
	if len(x.failures) == 0 {
		return nil
	}
	var says []string
	for _, name := range slices.Sorted(maps.Keys(x.failures)) {
		if len(says) == most {
			says = append(says, fmt.Sprintf("%d more", len(x.failures)-most))
			break
		}
		is := x.failures[name]
		one := fmt.Sprintf("%s on %d of %d, such as a %s", name, is.requests, x.asked, is.of)
		if !p.foreign {
			one += " (" + is.why + ")"
		}
		says = append(says, one)
	}
	return []string{fmt.Sprintf("%s: %s cannot decide about requests that tare makes, so that these are refused: %s",
		p.spec.Bundle, unit.Count(len(x.failures), "policy"), strings.Join(says, "; "))}
}

// A failing is a failure, for the notes.
type failing struct {
	failure

	of string // the first request
}

// failing are the failures of a finding, with what was asked for.
func (f *finding) failing() map[string]failing {
	const mostReason = 240
	out := map[string]failing{}
	for name, is := range f.failures {
		is.why = strings.Join(strings.Fields(is.why), " ")
		if runes := []rune(is.why); len(runes) > mostReason {
			is.why = string(runes[:mostReason]) + "…"
		}
		out[name] = failing{is, f.requests[is.first].Name}
	}
	return out
}

// refusedOnOurs reports whether policies of the treatment refused a request that no answer names: on a control plane of
// tare's own there are no others.
func (p *arm) refusedOnOurs(a answer) bool {
	return !p.foreign && mechanism.RulingOf(a.status, a.body) == mechanism.PolicyDenied
}
