package own

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestListing: policies that ask for other objects of the cluster are named, and others are not.
func TestListing(t *testing.T) {
	asking := strings.NewReplacer("name: patterns", "name: asking", "    - name: pods\n",
		"    - name: pods\n      context: [{name: all, apiCall: {urlPath: /api/v1/pods}}]\n").Replace(clusterPolicy)
	s := read(t, map[string]string{"a.yaml": clusterPolicy + "---\n" + asking + "---\n" + policy("p", isTrue)})
	if got := s.Listing(); !slices.Equal(got, []string{"asking"}) {
		t.Errorf("%q ask for other objects, want asking", got)
	}
	if got := read(t, map[string]string{"a.yaml": guarding}).Listing(); len(got) > 0 {
		t.Errorf("%q ask for other objects, want none", got)
	}
	for rego, want := range map[string]bool{
		"x := data.inventory.cluster":           true,
		`x := data["inventory"]`:                true,
		"x := data\n    .inventory":             true,
		"import data.lib.y":                     false,
		"x := input.review.object.data.y":       false,
		"x := 1 # data.inventory":               false,
		`x := "data.inventory"`:                 false,
		`x := object.get(data, "inventory", 1)`: true,
	} {
		template := &unstructured.Unstructured{Object: tree{
			"apiVersion": "templates.gatekeeper.sh/v1", "kind": "ConstraintTemplate",
			"spec": tree{"targets": []any{tree{"rego": "package a\n", "libs": []any{"package lib.y\n" + rego}}}},
		}}
		if some, lists := asks(template); some != want || lists != want {
			t.Errorf("%s: %t, %t", rego, some, lists)
		}
	}
	for expression, want := range map[string][2]bool{
		"resource.Get('v1', 'services', 'a', 'b') != null": {true, false},
		"resource\n  .Get('v1', 'services', 'a', 'b')":     {true, false},
		"resource // x\n .List('v1', 'services', 'a')":     {true, true},
		"globalContext.Get('a', 'b') == 1":                 {true, true},
		"object.resource == 'resource.Get'":                {false, false},
	} {
		policy := &unstructured.Unstructured{Object: tree{
			"apiVersion": "policies.kyverno.io/v1", "kind": "ValidatingPolicy",
			"spec": tree{"validations": []any{tree{"expression": expression}}},
		}}
		if some, lists := asks(policy); some != want[0] || lists != want[1] {
			t.Errorf("%s: %t, %t", expression, some, lists)
		}
	}
}
