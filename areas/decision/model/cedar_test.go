package model_test

import (
	"bytes"
	"maps"
	"testing"

	cedar "github.com/cedar-policy/cedar-go"

	"tare/areas/decision/model"
)

// sizes are numbers of policies that tests render.
var sizes = []int{1, 2, 3, 10, 200}

// questionsOf returns the questions about a set, with the decision that each expects.
func questionsOf(s model.Set) map[string]model.Question {
	return map[string]model.Question{
		"permit first": s.Ask(model.First), "permit last": s.Ask(model.Last), "absent": s.Ask(model.Absent),
		"deny first": s.Forbidden(model.First), "deny last": s.Forbidden(model.Last),
		"of another role": changed(s.Ask(model.Last),
			func(q *model.Question) { q.Subject.Properties[model.RoleKey] = "nobody" }),
		"another action": changed(s.Ask(model.Last), func(q *model.Question) { q.Action = "write" }),
	}
}

func changed(q model.Question, change func(*model.Question)) model.Question {
	q.Want = model.Deny
	change(&q)
	return q
}

func TestCedarDecides(t *testing.T) {
	for _, n := range sizes {
		set := model.Set{N: n}
		policies, err := cedar.NewPolicySetFromBytes("policies.cedar", set.Cedar())
		if err != nil {
			t.Fatalf("N=%d: parse the policies: %v", n, err)
		}
		if got := len(maps.Collect(policies.All())); got != n {
			t.Errorf("N=%d: %d policies", n, got)
		}
		for name, q := range questionsOf(set) {
			decision, diagnostic := cedar.Authorize(policies, principal(q), cedar.Request{
				Principal: cedar.NewEntityUID(cedar.EntityType(q.Subject.Type), cedar.String(q.Subject.ID)),
				Action:    cedar.NewEntityUID("Action", cedar.String(q.Action)),
				Resource:  cedar.NewEntityUID(cedar.EntityType(q.Resource.Type), cedar.String(q.Resource.ID)),
			})
			if len(diagnostic.Errors) > 0 {
				t.Errorf("N=%d %s: evaluation errors %v", n, name, diagnostic.Errors)
			}
			if want := q.Want == model.Permit; bool(decision) != want {
				t.Errorf("N=%d %s: allowed %v, want %v", n, name, decision, want)
			}
		}
	}
}

// principal is the subject as AuthZEN's properties become Cedar's entities: the role a parent, all of them attributes.
func principal(q model.Question) cedar.EntityMap {
	uid := cedar.NewEntityUID(cedar.EntityType(q.Subject.Type), cedar.String(q.Subject.ID))
	attributes := cedar.RecordMap{}
	for name, value := range q.Subject.Properties {
		attributes[cedar.String(name)] = cedar.String(value)
	}
	role := cedar.NewEntityUID("Role", cedar.String(q.Subject.Properties[model.RoleKey]))
	return cedar.EntityMap{uid: {UID: uid, Parents: cedar.NewEntityUIDSet(role), Attributes: cedar.NewRecord(attributes)}}
}

func TestRenderingIsDeterministic(t *testing.T) {
	set := model.Set{N: 30}
	for name, render := range map[string]func() []byte{
		"cedar": set.Cedar, "xacml": set.XACML, "openfga": model.OpenFGASchema,
		"rego": func() []byte { return set.Rego("a.b") },
	} {
		if a, b := render(), render(); !bytes.Equal(a, b) {
			t.Errorf("%s: two renderings differ", name)
		}
	}
}
