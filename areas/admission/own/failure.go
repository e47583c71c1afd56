package own

import (
	"regexp"
	"slices"
	"strings"

	admission "k8s.io/api/admissionregistration/v1"

	"tare/areas/admission/mechanism"
)

// Failure finds in the message of a refusal why the policy failed on the request: it could not decide, and what cannot
// be decided is refused. ok is false if the message does not say so of it. sure is false where an objection could have
// the same words.
func (p *Policy) Failure(s mechanism.Scope, said string) (why string, ok, sure bool) {
	name := p.nameIn(s)
	expression := func(policy string) (why string, ok bool) {
		_, rest, found := strings.Cut(said, policy+"' with binding '")
		_, says, denied := strings.Cut(rest, "' denied request: ")
		_, why, failed := strings.Cut(says, " resulted in error: ")
		return why, found && denied && failed && strings.HasPrefix(strings.TrimPrefix(says, "["), "expression '")
	}
	const validating = "ValidatingAdmissionPolicy '"
	after := func(words string) (why string, ok, sure bool) {
		_, why, ok = strings.Cut(said, words)
		return why, ok, true
	}
	switch {
	case p.mutating != nil:
		why, ok = expression("policy '" + name)
		return why, ok, true
	case p.engine == nil:
		why, ok = expression(validating + name)
		return why, ok, true
	case !isKyverno(p.engine.GroupVersionKind()):
		return "", false, false
	case p.engine.GroupVersionKind().Group == celGroup && p.Mutates():
		return after("Policy " + name + ": failed to evaluate policy: ")
	case p.engine.GroupVersionKind().Group == celGroup:
		if why, ok = expression(validating + "vpol-" + name); ok {
			return why, true, true
		}
		return after("Policy " + name + " error: ")
	}
	if why, ok = expression(validating + "cpol-" + name); ok {
		return why, true, true
	}
	if why, ok, sure = after("mutation policy " + name + " error: "); ok {
		return why, ok, sure
	}
	_, rest, found := strings.Cut(said, "\n"+name+":\n")
	rest, _, _ = strings.Cut(rest, "\n\n")
	for rule := range strings.SplitSeq(strings.TrimRight(rest, "\n"), "\n") {
		if found && !failedRule.MatchString(rule) {
			return "", false, false
		}
	}
	return strings.TrimSpace(rest), found, false
}

// FailsOpen reports whether a request is permitted if the policy's engine does not answer in time: Gatekeeper's chart
// says so for all of its policies, and of Kyverno's each says it for itself.
func (p *Policy) FailsOpen() bool {
	if p.engine == nil || EngineOf(p.engine) == gatekeeper {
		return p.engine != nil
	}
	spec, _ := p.engine.Object["spec"].(tree)
	webhook, _ := spec["webhookConfiguration"].(tree)
	return spec["failurePolicy"] == "Ignore" || webhook["failurePolicy"] == "Ignore"
}

// failedRule matches what Kyverno says of a rule that could not be evaluated.
var failedRule = regexp.MustCompile(`^\s+\S+: ['"]?failed to `)

// Judges reports whether the policy is evaluated when a request comes: one of Kyverno's may be about what exists alone,
// or about what is no object of a cluster.
func (p *Policy) Judges() bool {
	if p.engine == nil || !isKyverno(p.engine.GroupVersionKind()) {
		return true
	}
	spec, _ := p.engine.Object["spec"].(tree)
	evaluation, _ := spec["evaluation"].(tree)
	admission, _ := evaluation["admission"].(tree)
	if IsCEL(p.engine) {
		return evaluation["mode"] != "JSON" && admission["enabled"] != false
	}
	return spec["admission"] != false
}

// Denies reports whether a policy in force is to deny what it objects to, and not only to report it, or to change
// objects.
func (f *InForce) Denies(p *Policy) bool {
	if p.Mutates() && p.Words(f.Scope) == nil || !p.Judges() {
		return false
	}
	if p.engine == nil {
		return slices.ContainsFunc(f.bindings, func(b Binding) bool {
			return b.binds(p) && slices.Contains(b.Spec.ValidationActions, admission.Deny)
		})
	}
	spec, _ := p.engine.Object["spec"].(tree)
	switch k := p.engine.GroupVersionKind(); {
	case isConstraint(k):
		action, _ := spec["enforcementAction"].(string)
		return action == "" || action == "deny" || action == "scoped"
	case k.Group == celGroup:
		actions := words(spec["validationActions"])
		validates := !p.Mutates() && !isGeneratingPolicy(p.engine)
		return validates && (len(actions) == 0 || slices.Contains(actions, "Deny"))
	}
	denies := false
	inside(spec, func(key string, value any) {
		action, _ := value.(string)
		denies = denies || strings.HasSuffix(strings.ToLower(key), "action") && strings.EqualFold(action, "enforce")
	})
	return denies
}
