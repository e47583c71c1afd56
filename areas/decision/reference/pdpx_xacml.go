package reference

import "slices"

// Decisions of XACML 3.0. An indeterminate decision remembers what it could have been (section 7.10), because combining
// depends on it.
type xacmlDecision uint8

const (
	notApplicable xacmlDecision = iota
	permits
	denies
	indeterminateP  // could have been Permit
	indeterminateD  // could have been Deny
	indeterminateDP // could have been either
)

// An attribute names a bag of values in a request.
type attribute uint8

const (
	attrPolicyID attribute = iota
	attrPolicyType
	attrActor
	attrOperation
	attrTarget
	attrLoop
	attrVFCount
	attributes // how many there are
)

// bags are the attributes of one request. A bag without values is an attribute that is not there.
type bags [attributes][]string

// A match is string-equal between a value and any value of a bag.
type match struct {
	attribute attribute
	value     string
}

// A target is a disjunction of conjunctions (AnyOf and AllOf). An empty one matches every request.
type target [][]match

// applies reports whether t is about the request. Designators are not MustBePresent, so an absent attribute matches
// nothing and is no error.
func (t target) applies(b *bags) bool {
	if len(t) == 0 {
		return true
	}
	for _, all := range t {
		if allOf(all, b) {
			return true
		}
	}
	return false
}

func allOf(all []match, b *bags) bool {
	for _, m := range all {
		if !slices.Contains(b[m.attribute], m.value) {
			return false
		}
	}
	return true
}

// A condition decides whether a rule has its effect. An error makes the rule indeterminate.
type condition func(b *bags) (bool, error)

// A rule has an effect, permits or denies, where target and condition hold.
type rule struct {
	effect    xacmlDecision
	target    target
	condition condition // nil: always
}

func (r *rule) decide(b *bags) xacmlDecision {
	if !r.target.applies(b) {
		return notApplicable
	}
	if r.condition == nil {
		return r.effect
	}
	holds, err := r.condition(b)
	switch {
	case err != nil && r.effect == permits:
		return indeterminateP
	case err != nil:
		return indeterminateD
	case holds:
		return r.effect
	}
	return notApplicable
}

// A policy combines the decisions of its rules. Obligation goes with a permit: the policy's own document.
type policy struct {
	id, kind   string // kind is its TOSCA type
	target     target
	rules      []rule
	combine    func([]xacmlDecision) xacmlDecision
	obligation *document
}

// maxRules is how many rules a policy of the reference has at most.
const maxRules = 4

func (p *policy) decide(b *bags) xacmlDecision {
	if !p.target.applies(b) {
		return notApplicable
	}
	var room [maxRules]xacmlDecision
	decisions := room[:0]
	for i := range p.rules {
		decisions = append(decisions, p.rules[i].decide(b))
	}
	return p.combine(decisions)
}

// An application is the root of the policies that one action is decided with.
type application struct {
	name     string
	policies []*policy
	combine  func([]xacmlDecision) xacmlDecision
}

// decide evaluates all policies, as ONAP's combined algorithms do: the obligations of every policy that permits are in
// the answer.
func (a *application) decide(b *bags) (xacmlDecision, []*document) {
	var obligations []*document
	decisions := make([]xacmlDecision, 0, 8)
	for _, p := range a.policies {
		d := p.decide(b)
		if d == notApplicable {
			continue // it changes the outcome of no algorithm at the root
		}
		decisions = append(decisions, d)
		if d == permits && p.obligation != nil {
			obligations = append(obligations, p.obligation)
		}
	}
	d := a.combine(decisions)
	if d != permits {
		return d, nil
	}
	return d, obligations
}

// denyUnlessPermit is the rule-combining algorithm of guard policies (XACML 3.0, C.6).
func denyUnlessPermit(ds []xacmlDecision) xacmlDecision {
	if slices.Contains(ds, permits) {
		return permits
	}
	return denies
}

// firstApplicable is the rule-combining algorithm of monitoring policies (XACML 3.0, C.8).
func firstApplicable(ds []xacmlDecision) xacmlDecision {
	for _, d := range ds {
		if d != notApplicable {
			return d
		}
	}
	return notApplicable
}

// denyOverrides combines guard policies (XACML 3.0, C.2).
func denyOverrides(ds []xacmlDecision) xacmlDecision {
	return overrides(ds, denies, indeterminateD, permits, indeterminateP)
}

// permitOverrides combines monitoring policies (XACML 3.0, C.4).
func permitOverrides(ds []xacmlDecision) xacmlDecision {
	return overrides(ds, permits, indeterminateP, denies, indeterminateD)
}

// overrides lets strong win over weak; the others are the indeterminate decisions that could have been strong or weak.
func overrides(ds []xacmlDecision, strong, couldBeStrong, weak, couldBeWeak xacmlDecision) xacmlDecision {
	var seen [indeterminateDP + 1]bool
	for _, d := range ds {
		seen[d] = true
	}
	switch {
	case seen[strong]:
		return strong
	case seen[indeterminateDP], seen[couldBeStrong] && (seen[couldBeWeak] || seen[weak]):
		return indeterminateDP
	case seen[couldBeStrong]:
		return couldBeStrong
	case seen[weak]:
		return weak
	case seen[couldBeWeak]:
		return couldBeWeak
	}
	return notApplicable
}
