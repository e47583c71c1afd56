package model

import (
	"fmt"
	"iter"
)

// OpenFGASchema returns the set's authorization model for OpenFGA (https://openfga.dev/docs/configuration-language, in
// its JSON form), the body of POST /stores/{id}/authorization-models. In the modelling language it says:
//
//	model
//	  schema 1.1
//	type User
//	type Role
//	  relations
//	    define member: [User]
//	type Doc
//	  relations
//	    define read: [Role#member with in_department]
//	condition in_department(dept: string, wanted: string) { dept == wanted }
func OpenFGASchema() []byte {
	return fmt.Appendf(nil, `{"schema_version":"1.1","type_definitions":[{"type":%[1]q},`+
		`{"type":%[2]q,"relations":{%[3]q:{"this":{}}},"metadata":{"relations":{%[3]q:{"directly_related_user_types":[{"type":%[1]q}]}}}},`+
		`{"type":%[4]q,"relations":{%[5]q:{"this":{}}},"metadata":{"relations":{%[5]q:{"directly_related_user_types":`+
		`[{"type":%[2]q,"relation":%[3]q,"condition":%[6]q}]}}}}],`+
		`"conditions":{%[6]q:{"name":%[6]q,"expression":"%[7]s == wanted",`+
		`"parameters":{%[7]q:{"type_name":"TYPE_NAME_STRING"},"wanted":{"type_name":"TYPE_NAME_STRING"}}}}}`,
		SubjectType, openFGARole, openFGAMember, ResourceType, Action, openFGACondition, DepartmentKey)
}

const (
	openFGARole      = "Role"
	openFGAMember    = "member"
	openFGACondition = "in_department"
)

// A Tuple is one relationship, as OpenFGA writes it.
type Tuple struct {
	User      string          `json:"user"`
	Relation  string          `json:"relation"`
	Object    string          `json:"object"`
	Condition *TupleCondition `json:"condition,omitempty"`
}

// A TupleCondition is what must hold for a relationship.
type TupleCondition struct {
	Name    string            `json:"name"`
	Context map[string]string `json:"context"`
}

// OpenFGATuplesEach is how many tuples make one policy.
const OpenFGATuplesEach = 2

// OpenFGATuples returns the set's relationships, OpenFGATuplesEach per policy, in the order of the policies: the
// members of role<i> read doc<i> where the question's context has department d<i>; and the subject is a member of
// role<i>. The subject has all roles at once, since a question to OpenFGA cannot say which role somebody acts in; with
// the department, it can.
//
// A question is answered from the relationships of its resource alone, so that a position among the policies has no
// meaning to OpenFGA. What no relationship allows is not allowed: deny and absent are both Deny.
func (s Set) OpenFGATuples() iter.Seq[Tuple] {
	return func(yield func(Tuple) bool) {
		for i := range s.policies() {
			role := fmt.Sprintf("%s:role%d", openFGARole, i)
			member := Tuple{User: SubjectType + ":" + Subject, Relation: openFGAMember, Object: role}
			reads := Tuple{
				User: role + "#" + openFGAMember, Relation: Action, Object: fmt.Sprintf("%s:doc%d", ResourceType, i),
				Condition: &TupleCondition{openFGACondition, map[string]string{"wanted": fmt.Sprintf("d%d", i)}},
			}
			if !yield(member) || !yield(reads) {
				return
			}
		}
	}
}
