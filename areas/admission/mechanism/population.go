package mechanism

import (
	"fmt"
	"strings"
)

// MostPolicies bounds a population: names have five digits, so that the cost of parsing a policy does not depend on N.
const MostPolicies = 99_999

// Population is the geometry of the policies: how many exist, how many of them are bound to the run's namespace, and
// how many of those apply to its pods. Counts are literal (0 is none); Default returns the usual ones.
type Population struct {
	Total int // policies that exist
	// of these: those with a binding (PSP: those that the pods' creators may use; webhooks: those that select the run's
	// namespace)
	Bound   int
	Useable int // of these: those relevant to the pod (PSP: those that allow it)

	Position   Position    // PSP only
	Irrelevant Irrelevance // why bound policies are not useable; Unauthorized: why unbound ones are not
	Bindings   Bindings    // PSP only

	Level string // PSA only: privileged, baseline, restricted

	// Params is, of VAP, how many bindings each bound policy has, each with a parameter of its own; 0: one binding without
	// a parameter.
	Params int
}

// Default returns the usual population of total policies of kind k: all bound and all relevant; of PodSecurityPolicies
// a single one allows the pod, all others are tried before it, and one RoleBinding binds them all.
func Default(k Kind, total int) Population {
	p := Population{Total: total, Bound: total, Useable: total}
	switch k {
	case PSP:
		p.Useable = min(total, 1)
		p.Position, p.Irrelevant, p.Bindings = Last, Rejects, One
	case VAP, MAP, Webhook, MutatingWebhook:
		p.Irrelevant = NamespaceSelector
	case PSA:
		p = Population{Level: Restricted}
	case None, Manifests, Own:
		p = Population{}
	}
	return p
}

// Refusal says why a population is invalid. Field is the field's name as in a file: total, bound, useable, position,
// irrelevant, bindings, level, params.
type Refusal struct {
	Field   string
	Reason  string
	Instead string // what to write
}

// Error implements error.
func (r *Refusal) Error() string { return r.Field + ": " + r.Reason + ": " + r.Instead }

func refuse(field, reason, instead string) error {
	return &Refusal{Field: field, Reason: reason, Instead: instead}
}

// Check returns a *Refusal if p is invalid as a population of kind k. Fields that do not apply to k must be empty.
func Check(k Kind, p Population) error {
	if k != Own && !k.Known() {
		return refuse("mechanism", fmt.Sprintf("%q is not known", k), "write one of "+list(Kinds()))
	}
	for _, check := range []func(Kind, Population) error{
		checkLevel, checkCounts, checkPosition, checkBindings,
		checkIrrelevance, checkParams,
	} {
		if err := check(k, p); err != nil {
			return err
		}
	}
	return nil
}

func checkLevel(k Kind, p Population) error {
	switch {
	case k == PSA && p.Level != Privileged && p.Level != Baseline && p.Level != Restricted:
		return refuse("level", fmt.Sprintf("%q is no level of the Pod Security Standards", p.Level),
			"write privileged, baseline or restricted")
	case k != PSA && p.Level != "":
		return refuse("level", fmt.Sprintf("%s has no levels, Pod Security Admission has", k),
			"leave it out, or write mechanism: psa")
	}
	return nil
}

func checkCounts(k Kind, p Population) error {
	switch {
	case !k.Populated() && (p.Total != 0 || p.Bound != 0 || p.Useable != 0):
		return refuse("total", fmt.Sprintf("%s does not come in numbers", k), "leave out total, bound and useable")
	case !k.Populated():
		return nil
	case p.Total < 1:
		return refuse("total", fmt.Sprintf("%d policies of kind %s are no mechanism", p.Total, k),
			"write 1 or more, or mechanism: none")
	case p.Total > MostPolicies:
		return refuse("total", fmt.Sprintf("%d is more than can be named", p.Total),
			fmt.Sprintf("write %d or less", MostPolicies))
	case p.Bound < 0 || p.Useable < 0:
		return refuse("bound", "a count is not negative", "write 0 or more")
	case p.Bound > p.Total:
		return refuse("bound", fmt.Sprintf("%d of %d policies cannot be bound", p.Bound, p.Total),
			fmt.Sprintf("write bound: %d or less, or total: %d", p.Total, p.Bound))
	case p.Useable > p.Bound:
		return refuse("useable", fmt.Sprintf("%d of %d bound policies cannot be useable: one that is not bound is never "+
			"relevant", p.Useable, p.Bound),
			fmt.Sprintf("write useable: %d or less, or bound: %d", p.Bound, p.Useable))
	case k == PSP && p.Useable == 0:
		return refuse("useable", "with no policy that allows the pod, every pod is denied and nothing is measured",
			"write useable: 1")
	}
	return nil
}

func checkParams(k Kind, p Population) error {
	switch {
	case p.Params == 0:
		return nil
	case k != VAP:
		return refuse("params", fmt.Sprintf("%s has no parameters here", k), "leave it out, or write mechanism: vap")
	case p.Params < 0:
		return refuse("params", "a count is not negative", "write 0 or more")
	case p.Bound*p.Params > MostPolicies:
		return refuse("params", fmt.Sprintf("%d bindings are more than can be named", p.Bound*p.Params),
			fmt.Sprintf("write %d or less", MostPolicies/p.Bound))
	}
	return nil
}

func checkPosition(k Kind, p Population) error {
	switch {
	case p.Position == "":
		return nil
	case p.Position != First && p.Position != Last:
		return refuse("position", fmt.Sprintf("%q is no position", p.Position), "write first or last")
	case !k.Populated():
		return refuse("position", fmt.Sprintf("%s has no policies that could stand before others", k), "leave it out")
	case k == Webhook:
		return refuse("position", "validating webhooks are all called at the same time: none stands before another",
			"leave it out; useable: N says how many are called")
	case k != PSP:
		return refuse("position", fmt.Sprintf("every relevant policy of kind %s is evaluated, wherever the one that "+
			"decides stands", k),
			"leave it out; useable: N says how many are relevant")
	}
	return nil
}

func checkBindings(k Kind, p Population) error {
	switch {
	case p.Bindings == "":
		return nil
	case p.Bindings != One && p.Bindings != Each:
		return refuse("bindings", fmt.Sprintf("%q is not known", p.Bindings), "write one or each")
	case k == VAP || k == MAP:
		return refuse("bindings", fmt.Sprintf("a binding of kind %s names one policy, so there is always one for each", k),
			"leave it out; bound: N says how many there are")
	case k != PSP:
		return refuse("bindings", fmt.Sprintf("%s has no bindings", k), "leave it out")
	}
	return nil
}

func checkIrrelevance(k Kind, p Population) error {
	cel := p.Irrelevant == NamespaceSelector || p.Irrelevant == MatchConditions || p.Irrelevant == ResourceRule
	psp := p.Irrelevant == Rejects || p.Irrelevant == Unauthorized
	switch {
	case p.Irrelevant == "":
		return nil
	case !cel && !psp:
		return refuse("irrelevant", fmt.Sprintf("%q is not known", p.Irrelevant),
			"write namespace-selector, match-conditions or resource-rule; for psp rejects or unauthorized")
	case !k.Populated():
		return refuse("irrelevant", fmt.Sprintf("%s has no policies that could be irrelevant", k), "leave it out")
	case k == PSP && cel:
		return refuse("irrelevant", "a PodSecurityPolicy has no "+words(p.Irrelevant)+": every one is tried on every pod",
			"write rejects or unauthorized")
	case k != PSP && psp:
		return refuse("irrelevant", fmt.Sprintf("%s is about PodSecurityPolicy: one that rejects in kind %s decides",
			p.Irrelevant, k),
			"write namespace-selector, match-conditions or resource-rule")
	case p.Irrelevant == Unauthorized && p.Bound == p.Total:
		return refuse("irrelevant", "unauthorized is about policies that are not bound, and all are",
			fmt.Sprintf("write bound: %d, or irrelevant: rejects", p.Useable))
	}
	return nil
}

// words turns "match-conditions" into "match conditions".
func words[S ~string](s S) string { return strings.ReplaceAll(string(s), "-", " ") }

// list joins names: "a, b, c".
func list[S ~string](names []S) string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = string(n)
	}
	return strings.Join(out, ", ")
}
