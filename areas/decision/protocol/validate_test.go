package protocol

import (
	"encoding/json"
	"strings"
	"testing"

	"tare/areas/decision/model"
)

func TestValidate(t *testing.T) {
	all := []model.Question{questions[model.Permit], questions[model.Deny]}
	with := func(q model.Question) []model.Question { return append(all[:2:2], q) }
	for _, c := range []struct {
		adapter string
		o       Options
		q       []model.Question
		want    string // beginning of the error; empty: none
	}{
		{"authzen", Options{}, all, ""},
		{"authzen", Options{Path: "/stores/x/access/v1/evaluation"}, all, ""},
		{"authzen", Options{Path: "a?b=c"}, all, "path: "},
		{"authzen", Options{Path: "ä"}, all, "path: "},
		{"authzen", Options{Path: "a b"}, all, "path: "},
		{"authzen", Options{Path: "http://x/y"}, all, "path: "},
		{"authzen", Options{}, with(questions[model.NotApplicable]), "requests: "},
		{"opa", Options{Section: &OPA{Path: "authz/allow"}}, with(questions[model.NotApplicable]), ""},
		{"opa", Options{Section: &OPA{Path: "a\r\nX: y"}}, all, "opa.path: "},
		{"opa", Options{}, with(model.Question{Name: "own", Want: model.Permit, Body: json.RawMessage(`{"input":1}`)}), ""},
		{"opa", Options{}, with(model.Question{Name: "own", Want: model.Permit, Body: json.RawMessage(`[1]`)}), "requests: "},
		{"opa", Options{}, with(model.Question{Name: "own", Want: model.Permit, Body: json.RawMessage(`null`)}), "requests: "},
		{"opa", Options{}, with(model.Question{Name: "own", Want: model.Permit, Body: json.RawMessage(`{`)}), "requests: "},
		{"xacml", Options{}, with(questions[model.NotApplicable]), ""},
		{"xacml", Options{}, with(model.Question{Name: "x", Want: model.Indeterminate}), "requests: "},
		{"xacml", Options{Path: "x#y"}, all, "path: "},
		{"openfga", Options{Section: &OpenFGA{Store: store, Model: store}}, all, ""},
		{"openfga", Options{}, all, ""},
		{"openfga", Options{Section: &OpenFGA{Store: "shop"}}, all, "openfga.store: "},
		{"openfga", Options{Section: &OpenFGA{Store: store, Model: strings.ToLower(store)}}, all, "openfga.model: "},
		{"openfga", Options{Section: &OpenFGA{Store: store}}, with(questions[model.NotApplicable]), "requests: "},
		{"k8s-sar", Options{Path: "authorize"}, with(questions[model.NotApplicable]), ""},
		{"k8s-sar", Options{Path: "\x00"}, all, "path: "},
	} {
		err := findAdapter(t, c.adapter).Validate(c.o, c.q)
		if c.want == "" && err != nil {
			t.Errorf("%s %+v: got %v, want no error", c.adapter, c.o, err)
		}
		if c.want != "" && (err == nil || !strings.HasPrefix(err.Error(), c.want)) {
			t.Errorf("%s %+v: %v, want an error about %s", c.adapter, c.o, err, c.want)
		}
	}
}
