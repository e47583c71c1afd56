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
	"tare/internal/kit"
	"tare/internal/unit"
)

// A failure is how a policy fails: it cannot decide about requests, so that they are refused.
type failure struct {
	requests int    // how many
	first    int    // the first of them in the catalogue
	of       string // its name
	why      string // the first one's reason
	sure     bool   // no objection has such words
}

// failureOn is a failure on the i-th request of the catalogue, with its reason on one line.
func (f *finding) failureOn(i int, why string, sure bool) failure {
	const most = 240
	why = kit.Clipped(strings.Join(strings.Fields(why), " "), most)
	return failure{requests: 1, first: i, of: f.requests[i].Name, why: why, sure: sure}
}

// failures are the policies, by the user's names, that could not decide about the i-th request of the catalogue.
func (p *arm) failures(f *finding, i int, a answer) map[string]failure {
	if p.policies.own == nil || a.status < http.StatusBadRequest {
		return nil
	}
	out := map[string]failure{}
	said := a.said()
	for _, one := range p.policies.own.Policies {
		if why, ok, sure := one.Failure(p.scope(), said); ok {
			out[one.Name] = f.failureOn(i, why, sure)
		}
	}
	return out
}

// also adds another request of the same kind.
func (x failure) also(other failure) failure {
	if x.requests == 0 {
		return other
	}
	x.requests++
	return x
}

// keepFailures adds the policies that failed on a request, and returns those that objected to it.
func (f *finding) keepFailures(failed map[string]failure, deniers []string) (objected []string) {
	for name, is := range failed {
		f.failures[name] = f.failures[name].also(is)
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
			f.meet(name, is.first)
		}
	}
	return nil
}

// failureWarnings say which policies fail, and what is refused without a policy's name. In a cluster of the user's the
// reason could hold what is no business of a report.
func (p *arm) failureWarnings() (out []string) {
	const most = 3
	x := &p.policies.finding
	var says []string
	for _, name := range slices.Sorted(maps.Keys(x.failures)) {
		if len(says) == most {
			says = append(says, fmt.Sprintf("%d more", len(x.failures)-most))
			break
		}
		is := x.failures[name]
		one := fmt.Sprintf("%s on %d of %d, such as a %s", name, is.requests, len(x.requests), is.of)
		if !p.foreign {
			one += " (" + is.why + ")"
		}
		says = append(says, one)
	}
	if len(says) > 0 {
		out = append(out, fmt.Sprintf("%s: %s cannot decide about requests that tare makes, so that these are refused: %s",
			p.spec.Bundle, unit.Count(len(x.failures), "policy"), strings.Join(says, "; ")))
	}
	if is := x.unnamed; is.requests > 0 {
		out = append(out, fmt.Sprintf("%s: %d of %d requests are refused in words that name no policy, such as a %s (%s)",
			p.spec.Bundle, is.requests, len(x.requests), is.of, is.why))
	}
	return out
}

// refusedOnOurs reports whether policies of the treatment refused a request that no answer names: on a control plane of
// tare's own there are no others.
func (p *arm) refusedOnOurs(a answer) bool {
	return !p.foreign && mechanism.RulingOf(a.status, a.body) == mechanism.PolicyDenied
}
