package model

import (
	"bytes"
	"fmt"
	"strings"
)

// The identifiers of XACML 3.0 (core specification, appendix B) that the set needs.
const (
	XACMLString      = "http://www.w3.org/2001/XMLSchema#string"
	XACMLSubject     = "urn:oasis:names:tc:xacml:1.0:subject-category:access-subject"
	XACMLResource    = "urn:oasis:names:tc:xacml:3.0:attribute-category:resource"
	XACMLAction      = "urn:oasis:names:tc:xacml:3.0:attribute-category:action"
	XACMLEnvironment = "urn:oasis:names:tc:xacml:3.0:attribute-category:environment"
	XACMLSubjectID   = "urn:oasis:names:tc:xacml:1.0:subject:subject-id"
	XACMLResourceID  = "urn:oasis:names:tc:xacml:1.0:resource:resource-id"
	XACMLActionID    = "urn:oasis:names:tc:xacml:1.0:action:action-id"
)

// XACMLRoot is the PolicySetId of a set.
const XACMLRoot = "root"

// XACMLAttribute returns the AttributeId of a property. One whose name holds a colon is an identifier already.
func XACMLAttribute(property string) string {
	if strings.Contains(property, ":") {
		return property
	}
	return "urn:tare:attribute:" + property
}

const (
	xacmlEqual = "urn:oasis:names:tc:xacml:1.0:function:string-equal"
	xacmlIsIn  = "urn:oasis:names:tc:xacml:1.0:function:string-is-in"
	// Every policy and the set above them answer Deny where nothing permits (appendix C.6).
	xacmlRules    = "urn:oasis:names:tc:xacml:3.0:rule-combining-algorithm:deny-unless-permit"
	xacmlPolicies = "urn:oasis:names:tc:xacml:3.0:policy-combining-algorithm:deny-unless-permit"
)

// XACML returns the set as one XACML 3.0 PolicySet, policy i at place i: its target is resource and role, its rule's
// the action, and its condition the department.
//
// The set is deny-unless-permit: deny and absent are both Deny, and it is never NotApplicable or Indeterminate
// (appendix C.6). A request without an attribute is denied as well, since none must be present.
func (s Set) XACML() []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<?xml version="1.0" encoding="UTF-8"?>
<PolicySet xmlns="urn:oasis:names:tc:xacml:3.0:core:schema:wd-17" PolicySetId="%s" Version="1.0" PolicyCombiningAlgId="%s">
<Target/>
`, XACMLRoot, xacmlPolicies)
	for i := range s.policies() {
		s.xacmlPolicy(&b, i)
	}
	b.WriteString("</PolicySet>\n")
	return b.Bytes()
}

func (Set) xacmlPolicy(b *bytes.Buffer, i int) {
	target := xacmlTarget(
		xacmlMatch(fmt.Sprintf("doc%d", i), XACMLResource, XACMLResourceID),
		xacmlMatch(fmt.Sprintf("role%d", i), XACMLSubject, XACMLAttribute(RoleKey)),
	)
	fmt.Fprintf(b, `<Policy PolicyId="p%d" Version="1.0" RuleCombiningAlgId="%s">%s<Rule RuleId="r%d" Effect="Permit">%s`,
		i, xacmlRules, target, i, xacmlTarget(xacmlMatch(Action, XACMLAction, XACMLActionID)))
	fmt.Fprintf(b, `<Condition><Apply FunctionId="%s">%s%s</Apply></Condition></Rule></Policy>`+"\n",
		xacmlIsIn, xacmlValue(fmt.Sprintf("d%d", i)), xacmlDesignator(XACMLSubject, XACMLAttribute(DepartmentKey)))
}

func xacmlTarget(matches ...string) string {
	return "<Target><AnyOf><AllOf>" + strings.Join(matches, "") + "</AllOf></AnyOf></Target>"
}

func xacmlMatch(value, category, attribute string) string {
	return fmt.Sprintf(`<Match MatchId="%s">%s%s</Match>`, xacmlEqual, xacmlValue(value), xacmlDesignator(category, attribute))
}

func xacmlValue(value string) string {
	return fmt.Sprintf(`<AttributeValue DataType="%s">%s</AttributeValue>`, XACMLString, value)
}

func xacmlDesignator(category, attribute string) string {
	return fmt.Sprintf(`<AttributeDesignator Category="%s" AttributeId="%s" DataType="%s" MustBePresent="false"/>`, category, attribute, XACMLString)
}
