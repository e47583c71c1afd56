package model

import (
	"bytes"
	"fmt"
)

// Cedar returns the set as Cedar policies (https://docs.cedarpolicy.com/policies/syntax-policy.html), policy i at place
// i. The subject's role is a parent Role::"role<i>" of the principal, its department an attribute.
//
// What no policy permits is denied, by default: Cedar has no not-applicable, so deny and absent are both Deny.
func (s Set) Cedar() []byte {
	var b bytes.Buffer
	for i := range s.policies() {
		fmt.Fprintf(&b, "@id(\"p%[1]d\")\npermit(principal in Role::\"role%[1]d\", action == Action::%[2]q, resource == "+
			"%[3]s::\"doc%[1]d\") "+
			"when { principal.%[4]s == \"d%[1]d\" };\n", i, Action, ResourceType, DepartmentKey)
	}
	return b.Bytes()
}
