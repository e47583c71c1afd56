package model_test

import (
	"strconv"
	"testing"

	"tare/areas/decision/model"
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
				c.q.Name != c.called ||
				c.q.Policy != model.PolicyKind {
				t.Errorf("N=%d %s: got question %+v", n, name, c.q)
			}
		}
	}
}
