// Package model is one authorization model that every decision point is given: N policies, and questions whose answers
// are known.
package model

import (
	"encoding/json"
	"fmt"
	"iter"
)

// Decision is what a decision point says.
type Decision uint8

// The decisions. None is an answer that holds no decision at all.
const (
	None Decision = iota
	Permit
	Deny
	NotApplicable
	Indeterminate
)

var decisionNames = [...]string{"none", "permit", "deny", "not-applicable", "indeterminate"}

// String returns the decision's word in files, records and reports.
func (d Decision) String() string {
	if int(d) < len(decisionNames) {
		return decisionNames[d]
	}
	return fmt.Sprintf("decision(%d)", uint8(d))
}

// ParseDecision reads the word of a decision that can be expected: permit, deny or not-applicable.
func ParseDecision(word string) (Decision, error) {
	for d := Permit; d <= NotApplicable; d++ {
		if decisionNames[d] == word {
			return d, nil
		}
	}
	return None, fmt.Errorf("%q is not one of permit, deny, not-applicable", word)
}

// Position is the position, among the policies, of the one that decides a question.
type Position string

// The positions. With Absent there is no policy about the question's resource.
const (
	First  Position = "first"
	Last   Position = "last"
	Absent Position = "absent"
)

// An Entity is a subject or a resource. Properties are texts: what every protocol can carry.
type Entity struct {
	Type       string
	ID         string
	Properties map[string]string
}

// A Question is one request for a decision.
type Question struct {
	Name     string // "permit", "deny", "absent", or as the file names it
	Subject  Entity
	Action   string
	Resource Entity
	Context  map[string]string
	// Body replaces what the adapter would make of the fields above: the protocol's own request.
	Body json.RawMessage
	Want Decision
	// List is the right answer of a question for a list, which wants Permit; nil: the question asks for a decision.
	List *List
	// Policy names the kind of policy that decides it, so that there is a known deny for each kind.
	Policy string
}

// A List is the right answer to a question for a list: what is in it, in any order.
type List struct{ Has []string }

// Set is N policies. Policy i permits subjects with role "role<i>" and department "d<i>" to "read" the resource
// "doc<i>", and nothing else.
type Set struct {
	N int
	// Beyond are the numbers of further policies, from N on.
	Beyond []int
}

// policies returns the numbers of all policies, in order.
func (s Set) policies() iter.Seq[int] {
	return func(yield func(int) bool) {
		for i := range s.N {
			if !yield(i) {
				return
			}
		}
		for _, i := range s.Beyond {
			if !yield(i) {
				return
			}
		}
	}
}

// The vocabulary of the model.
const (
	SubjectType  = "User"
	ResourceType = "Doc"
	Action       = "read"
	Subject      = "alice"
	// RoleKey and DepartmentKey are the subject's properties.
	RoleKey       = "role"
	DepartmentKey = "dept"
	// PolicyKind is the kind of all policies of a Set.
	PolicyKind = "access"
)

// index returns the number of the policy at p.
func (s Set) index(p Position) int {
	switch p {
	case First:
		return 0
	case Absent:
		return s.N
	case Last:
	}
	return max(0, s.N-1)
}

// Ask returns the question that the policy at p answers with Permit. At Absent no policy applies, and the answer is not
// Permit.
func (s Set) Ask(p Position) Question {
	q := s.Granted(s.index(p))
	if p == Absent {
		q.Name, q.Want = "absent", Deny
	}
	return q
}

// Forbidden returns a question that must be denied: the policy at p applies to its resource, and its condition does not
// hold.
func (s Set) Forbidden(p Position) Question {
	i := s.index(p)
	q := s.question(i, i+1)
	q.Name, q.Want = "deny", Deny
	return q
}

// Granted returns the question that policy i answers with Permit.
func (s Set) Granted(i int) Question {
	q := s.question(i, i)
	q.Name, q.Want = "permit", Permit
	return q
}

func (s Set) question(i, department int) Question {
	return Question{
		Subject: Entity{Type: SubjectType, ID: Subject, Properties: map[string]string{
			RoleKey: fmt.Sprintf("role%d", i), DepartmentKey: fmt.Sprintf("d%d", department),
		}},
		Action: Action, Resource: Entity{Type: ResourceType, ID: fmt.Sprintf("doc%d", i)}, Policy: PolicyKind,
	}
}
