package model

import (
	"bytes"
	"fmt"
)

// RegoPackage is the package of an Open Policy Agent that tare starts itself, and RegoRule its rule.
const (
	RegoPackage = "authz"
	RegoRule    = "allow"
)

// Rego returns the set as one Rego module (version 1, https://www.openpolicyagent.org/docs/policy-language) of package
// pkg, whose parts are identifiers with dots between them. Its input is an AuthZEN evaluation request. Each policy is
// one rule of equalities between input and constants, which OPA looks up in an index instead of trying them in turn
// (policy-performance#use-indexed-statements).
//
// What no rule allows is false, by default: deny and absent are both Deny. Where the rule itself is not there, nothing
// is defined: NotApplicable.
func (s Set) Rego(pkg string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "package %s\n\nimport rego.v1\n\ndefault %s := false\n", pkg, RegoRule)
	for i := range s.policies() {
		fmt.Fprintf(&b, "\n%[2]s if {\n\tinput.resource.id == \"doc%[1]d\"\n\tinput.subject.properties.%[3]s == "+
			"\"role%[1]d\"\n"+
			"\tinput.action.name == %[4]q\n\tinput.resource.type == %[5]q\n\tinput.subject.properties.%[6]s == \"d%[1]d\"\n}\n",
			i, RegoRule, RoleKey, Action, ResourceType, DepartmentKey)
	}
	return b.Bytes()
}
