package model_test

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/cedar-policy/cedar-go"
	"github.com/google/go-cmp/cmp"

	"tare/areas/decision/model"
	"tare/rigs/hosttest"
)

func TestDecisionWords(t *testing.T) {
	for _, d := range []model.Decision{model.Permit, model.Deny, model.NotApplicable} {
		if got, err := model.ParseDecision(d.String()); err != nil || got != d {
			t.Errorf("%v reads back as %v (%v)", d, got, err)
		}
	}
	for _, word := range []string{"", "none", "indeterminate", "Permit", "allow"} {
		if d, err := model.ParseDecision(word); err == nil {
			t.Errorf("%q is %v, want an error", word, d)
		}
	}
	if got := model.Decision(200).String(); got != "decision(200)" {
		t.Errorf("decision 200 is %q", got)
	}
}

func TestQuestions(t *testing.T) {
	for _, n := range []int{1, 2, 50} {
		s := model.Set{N: n}
		for name, c := range map[string]struct {
			q              model.Question
			resource, dept string
			called         string
			want           model.Decision
		}{
			"first":        {s.Ask(model.First), "doc0", "d0", "permit", model.Permit},
			"deny first":   {s.Forbidden(model.First), "doc0", "d1", "deny", model.Deny},
			"absent":       {s.Ask(model.Absent), "doc" + strconv.Itoa(n), "d" + strconv.Itoa(n), "absent", model.Deny},
			"last":         {s.Ask(model.Last), "doc" + strconv.Itoa(n-1), "d" + strconv.Itoa(n-1), "permit", model.Permit},
			"deny last":    {s.Forbidden(model.Last), "doc" + strconv.Itoa(n-1), "d" + strconv.Itoa(n), "deny", model.Deny},
			"deny nowhere": {s.Forbidden(model.Absent), "doc" + strconv.Itoa(n), "d" + strconv.Itoa(n+1), "deny", model.Deny},
		} {
			if c.q.Resource.ID != c.resource || c.q.Subject.Properties[model.DepartmentKey] != c.dept || c.q.Want != c.want ||
				c.q.Name != c.called || c.q.Policy != model.PolicyKind {
				t.Errorf("N=%d %s: got question %+v", n, name, c.q)
			}
		}
	}
}

func TestMain(m *testing.M) { hosttest.Main(m) }

func TestOpenFGATuples(t *testing.T) {
	for _, n := range sizes {
		all := slices.Collect(model.Set{N: n}.OpenFGATuples())
		if len(all) != n*model.OpenFGATuplesEach {
			t.Fatalf("N=%d: %d tuples", n, len(all))
		}
		seen := map[[3]string]bool{}
		for _, x := range all {
			seen[[3]string{x.User, x.Relation, x.Object}] = true
		}
		if len(seen) != len(all) {
			t.Errorf("N=%d: %d tuples of %d are twice there, which a write refuses", n, len(all)-len(seen), len(all))
		}
	}
	got := slices.Collect(model.Set{N: 2}.OpenFGATuples())[2:]
	want := []model.Tuple{
		{User: "User:alice", Relation: "member", Object: "Role:role1"},
		{
			User: "Role:role1#member", Relation: "read", Object: "Doc:doc1",
			Condition: &model.TupleCondition{Name: "in_department", Context: map[string]string{"wanted": "d1"}},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestOpenFGATuplesCanBeLeft(t *testing.T) {
	n := 0
	for range (model.Set{N: 1000}).OpenFGATuples() {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d tuples", n)
	}
}

func TestOpenFGASchemaNamesWhatTuplesUse(t *testing.T) {
	var doc struct {
		Version string `json:"schema_version"`
		Types   []struct {
			Type      string
			Relations map[string]any
			Metadata  struct {
				Relations map[string]struct {
					Users []struct{ Type, Relation, Condition string } `json:"directly_related_user_types"`
				}
			}
		} `json:"type_definitions"`
		Conditions map[string]struct {
			Name       string
			Expression string
			Parameters map[string]any
		}
	}
	if err := json.Unmarshal(model.OpenFGASchema(), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Version != "1.1" || len(doc.Types) != 3 || doc.Types[0].Type != model.SubjectType ||
		doc.Types[2].Type != model.ResourceType {
		t.Fatalf("got schema %+v, want version 1.1 with 3 types", doc)
	}
	users := doc.Types[2].Metadata.Relations[model.Action].Users
	if len(users) != 1 || users[0].Type != doc.Types[1].Type {
		t.Fatalf("who reads: %+v", users)
	}
	c := doc.Conditions[users[0].Condition]
	if c.Name != users[0].Condition || c.Expression != model.DepartmentKey+" == wanted" || len(c.Parameters) != 2 {
		t.Errorf("condition %+v", c)
	}
}

// The part of XACML that a Set uses, as encoding/xml reads it.
type (
	xacmlSet struct {
		XMLName   xml.Name `xml:"urn:oasis:names:tc:xacml:3.0:core:schema:wd-17 PolicySet"`
		ID        string   `xml:"PolicySetId,attr"`
		Algorithm string   `xml:"PolicyCombiningAlgId,attr"`
		Policies  []struct {
			ID        string     `xml:"PolicyId,attr"`
			Algorithm string     `xml:"RuleCombiningAlgId,attr"`
			Matches   []xacmlFit `xml:"Target>AnyOf>AllOf>Match"`
			Rules     []struct {
				Effect  string     `xml:"Effect,attr"`
				Matches []xacmlFit `xml:"Target>AnyOf>AllOf>Match"`
				Apply   xacmlFit   `xml:"Condition>Apply"`
			} `xml:"Rule"`
		} `xml:"Policy"`
	}
	xacmlFit struct {
		Match      string `xml:"MatchId,attr"`
		Function   string `xml:"FunctionId,attr"`
		Value      string `xml:"AttributeValue"`
		Designator struct {
			Category string `xml:"Category,attr"`
			ID       string `xml:"AttributeId,attr"`
		} `xml:"AttributeDesignator"`
	}
)

// fits reports whether a question has the value that a match or condition wants.
func (f xacmlFit) fits(t *testing.T, q model.Question) bool {
	t.Helper()
	if fn := f.Match + f.Function; fn != "urn:oasis:names:tc:xacml:1.0:function:string-equal" &&
		fn != "urn:oasis:names:tc:xacml:1.0:function:string-is-in" {
		t.Fatalf("function %q", fn)
	}
	has := map[[2]string]string{
		{model.XACMLSubject, model.XACMLSubjectID}:   q.Subject.ID,
		{model.XACMLResource, model.XACMLResourceID}: q.Resource.ID,
		{model.XACMLAction, model.XACMLActionID}:     q.Action,
	}
	for name, value := range q.Subject.Properties {
		has[[2]string{model.XACMLSubject, model.XACMLAttribute(name)}] = value
	}
	return has[[2]string{f.Designator.Category, f.Designator.ID}] == f.Value
}

// permits evaluates a set whose algorithms are all deny-unless-permit.
func (s xacmlSet) permits(t *testing.T, q model.Question) bool {
	t.Helper()
	not := func(f xacmlFit) bool { return !f.fits(t, q) }
	for _, p := range s.Policies {
		if slices.ContainsFunc(p.Matches, not) {
			continue
		}
		for _, r := range p.Rules {
			if r.Effect == "Permit" && !slices.ContainsFunc(r.Matches, not) && r.Apply.fits(t, q) {
				return true
			}
		}
	}
	return false
}

func TestXACMLDecides(t *testing.T) {
	for _, n := range sizes {
		set := model.Set{N: n}
		var doc xacmlSet
		if err := xml.Unmarshal(set.XACML(), &doc); err != nil {
			t.Fatalf("N=%d: parse the policy set: %v", n, err)
		}
		if doc.ID != model.XACMLRoot || len(doc.Policies) != n ||
			doc.Algorithm != "urn:oasis:names:tc:xacml:3.0:policy-combining-algorithm:deny-unless-permit" {
			t.Fatalf("N=%d: set %q of %d policies with %q", n, doc.ID, len(doc.Policies), doc.Algorithm)
		}
		for i, p := range doc.Policies {
			if len(p.Matches) != 2 || len(p.Rules) != 1 || len(p.Rules[0].Matches) != 1 ||
				p.Algorithm != "urn:oasis:names:tc:xacml:3.0:rule-combining-algorithm:deny-unless-permit" {
				t.Fatalf("N=%d: policy %d is %+v", n, i, p)
			}
		}
		for name, q := range questionsOf(set) {
			if got, want := doc.permits(t, q), q.Want == model.Permit; got != want {
				t.Errorf("N=%d %s: permitted %v, want %v", n, name, got, want)
			}
		}
		// The match stands where the position says.
		for position, at := range map[model.Position]int{model.First: 0, model.Last: n - 1} {
			one := doc
			one.Policies = doc.Policies[at : at+1]
			if !one.permits(t, set.Ask(position)) {
				t.Errorf("N=%d: policy %d alone does not permit the question about the %s", n, at, position)
			}
		}
	}
}

func TestXACMLAttribute(t *testing.T) {
	for name, want := range map[string]string{"role": "urn:tare:attribute:role", "urn:example:dept": "urn:example:dept"} {
		if got := model.XACMLAttribute(name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

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
