package model_test

import (
	"encoding/xml"
	"slices"
	"testing"

	"tare/areas/decision/model"
)

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
