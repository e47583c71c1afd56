package own

import (
	"regexp"
	"strings"

	"tare/areas/admission/mechanism"
)

// Failure finds in the message of a refusal why the policy failed on the request: it could not decide, and what cannot
// be decided is refused. ok is false if the message does not say so of it. sure is false where an objection could have
// the same words.
func (p *Policy) Failure(s mechanism.Scope, said string) (why string, ok, sure bool) {
	name := p.nameIn(s)
	const inError = " resulted in error: "
	generated := func(kind string) (string, bool) {
		_, rest, found := strings.Cut(said, "ValidatingAdmissionPolicy '"+kind+name+"' with binding '")
		_, why, failed := strings.Cut(rest, inError)
		return why, found && failed
	}
	after := func(words string) (why string, ok, sure bool) {
		_, why, ok = strings.Cut(said, words)
		return why, ok, true
	}
	switch {
	case p.mutating != nil:
		_, rest, found := strings.Cut(said, "policy '"+name+"' with binding '")
		_, why, failed := strings.Cut(rest, inError)
		return why, found && failed, true
	case p.engine == nil:
		why, ok = generated("")
		return why, ok, true
	case !isKyverno(p.engine.GroupVersionKind()):
		return "", false, false
	case p.engine.GroupVersionKind().Group == celGroup && p.Mutates():
		return after("Policy " + name + ": failed to evaluate policy: ")
	case p.engine.GroupVersionKind().Group == celGroup:
		if why, ok = generated("vpol-"); ok {
			return why, true, true
		}
		return after("Policy " + name + " error: ")
	}
	if why, ok = generated("cpol-"); ok {
		return why, true, true
	}
	if why, ok, sure = after("mutation policy " + name + " error: "); ok {
		return why, ok, sure
	}
	_, rest, found := strings.Cut(said, "\n"+name+":\n")
	rest, _, _ = strings.Cut(rest, "\n\n")
	rules := strings.Split(strings.TrimRight(rest, "\n"), "\n")
	for _, rule := range rules {
		if found && !failedRule.MatchString(rule) {
			return "", false, false
		}
	}
	return strings.TrimSpace(rest), found, false
}

// failedRule matches what Kyverno says of a rule that could not be evaluated.
var failedRule = regexp.MustCompile(`^\s+\S+: ['"]?failed to `)
