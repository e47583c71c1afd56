package mechanism

import "fmt"

// Role is the role of a policy in its population.
type Role string

// The roles.
const (
	Relevant   Role = "relevant"   // evaluated for the run's pods (PSP: allows them)
	Irrelevant Role = "irrelevant" // bound, and not evaluated for the run's pods (PSP: tried, and rejects them)
	Unbound    Role = "unbound"    // exists
)

// Policy is one policy of a population.
type Policy struct {
	Name  string // of the object: the namespace, a dot, and Short
	Short string // value of DenyLabel that only this policy denies: "c-relevant-00001"
	Role  Role
	// Number is unique: numberBase plus the policy's index, from 1. Different sets of policies have different sums, unless
	// their sizes and the sums of their indexes agree.
	Number int
}

// numberBase exceeds the number of policies, so that a sum of numbers also gives their count.
const numberBase = 1_000_000

// Policies returns all policies of p in the order of their names: with position First the relevant ones come first,
// otherwise last, after unbound and irrelevant ones.
func Policies(p Population, s Scope) []Policy {
	groups := []struct {
		role  Role
		count int
	}{{Unbound, p.Total - p.Bound}, {Irrelevant, p.Bound - p.Useable}, {Relevant, p.Useable}}
	if p.Position == First {
		groups[0], groups[2] = groups[2], groups[0]
	}
	out := make([]Policy, 0, max(p.Total, 0))
	for i, g := range groups {
		for n := range g.count {
			short := fmt.Sprintf("%c-%s-%05d", 'a'+i, g.role, n+1)
			out = append(out, Policy{
				Name: s.Namespace + "." + short, Short: short, Role: g.role,
				Number: numberBase + len(out) + 1,
			})
		}
	}
	return out
}

// withRole returns the policies of one role.
func withRole(policies []Policy, r Role) (out []Policy) {
	for _, p := range policies {
		if p.Role == r {
			out = append(out, p)
		}
	}
	return out
}

// sample returns the first, the middle and the last of policies, to represent thousands.
func sample(policies []Policy) []Policy {
	if len(policies) <= 3 {
		return policies
	}
	return []Policy{policies[0], policies[len(policies)/2], policies[len(policies)-1]}
}
