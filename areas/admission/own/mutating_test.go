package own

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const changing = header + `kind: MutatingAdmissionPolicy
metadata: {name: m, annotations: {why: because}}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [pods]}]}
  variables: [{name: team, expression: "'a'"}]
  mutations:
    - patchType: ApplyConfiguration
      applyConfiguration: {expression: "Object{metadata: Object.metadata{labels: {'team': variables.team}}}"}
    - patchType: JSONPatch
      jsonPatch: {expression: "[JSONPatch{op: 'remove', path: '/spec/hostNetwork'}]"}
`

const changingBinding = header + "kind: MutatingAdmissionPolicyBinding\nmetadata: {name: b}\nspec: {policyName: m}\n"

// TestMutatingPoliciesAreTaken: as they stand, but for their names and for what narrows them.
func TestMutatingPoliciesAreTaken(t *testing.T) {
	s := read(t, map[string]string{
		"a.yaml": changing + "---\n" + strings.ReplaceAll(changingBinding, "/v1\n", "/v1beta1\n"),
		"b.yaml": policy("p", isTrue) + "---\n" + binding,
	})
	if err := s.Compile(); err != nil {
		t.Error(err)
	}
	in, err := s.Render(Where{Scope: scope, Ours: true})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range in.Objects {
		got = append(got, o.GetAPIVersion()+" "+o.GetKind()+" "+o.GetName())
	}
	const v1 = "admissionregistration.k8s.io/v1 "
	want := []string{
		v1 + "MutatingAdmissionPolicy tare-run-0.m", v1 + "ValidatingAdmissionPolicy tare-run-0.p",
		v1 + "MutatingAdmissionPolicyBinding tare-run-0.b", v1 + "ValidatingAdmissionPolicyBinding tare-run-0.b",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("objects (-want +got):\n%s", d)
	}
	if mutating := in.Mutating(); len(mutating) != 1 || mutating[0].Name != "m" || len(in.Untaken) > 0 {
		t.Errorf("%d mutate, %v left aside", len(mutating), in.Untaken)
	}
	acting := in.Acting(s.named("m"))
	if len(acting) != 1 || acting[0].GetName() != "tare-run-0.b" {
		t.Fatalf("without %v it does not act", acting)
	}
	rules, _, err := unstructured.NestedSlice(acting[0].Object, "spec", "matchResources", "resourceRules")
	if err != nil || len(rules) != 1 {
		t.Fatalf("%v, %v", rules, err)
	}
	rule := rules[0].(map[string]any)
	if d := cmp.Diff([]any{"CREATE", "UPDATE"}, rule["operations"]); d != "" || rule["scope"] != "Namespaced" {
		t.Errorf("scope %v, operations (-want +got):\n%s", rule["scope"], d)
	}
	if mutations, _, err := unstructured.NestedSlice(in.Objects[0].Object, "spec", "mutations"); err != nil ||
		len(mutations) != 2 || in.Objects[0].GetAnnotations()["why"] != "because" {
		t.Errorf("%v, %v", in.Objects[0].Object, err)
	}
}

// TestMutatingPoliciesWithoutABinding are not in force, or get one that is narrowed as well.
func TestMutatingPoliciesWithoutABinding(t *testing.T) {
	s := read(t, map[string]string{"a.yaml": changing})
	if _, err := s.Render(Where{Scope: scope, Ours: true}); err == nil || !strings.Contains(err.Error(), "bind_all") {
		t.Errorf("%v, want how to bind it", err)
	}
	in, err := s.Render(Where{Scope: scope, Ours: true, BindAll: true})
	if err != nil || len(in.Objects) != 2 || in.Objects[1].GetKind() != mutatingBindingKind {
		t.Errorf("%+v, %v", in, err)
	}
}

// TestMutatingPoliciesAreRefused with the place and the cause.
func TestMutatingPoliciesAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"another's binding": {
			changing + "---\n" + strings.ReplaceAll(binding, "policyName: p", "policyName: m"),
			`ValidatingAdmissionPolicyBinding b binds ValidatingAdmissionPolicy "m", which the bundle does not hold`,
		},
		"nobody's binding": {
			policy("p", isTrue) + "---\n" + binding + "---\n" + changingBinding,
			`MutatingAdmissionPolicyBinding b binds MutatingAdmissionPolicy "m", which the bundle does not hold`,
		},
		"one name": {
			changing + "---\n" + policy("m", isTrue),
			"ValidatingAdmissionPolicy m has the name of MutatingAdmissionPolicy m at ",
		},
		"an unknown field": {strings.ReplaceAll(changing, "mutations:", "mutation:"), `unknown field "spec.mutation"`},
		"a misspelt type": {
			strings.ReplaceAll(changing, "Object{metadata", "Objekt{metadata"), "a.yaml:11:47: undeclared reference to 'Objekt'",
		},
		"a change that is no list": {
			strings.ReplaceAll(changing, "[JSONPatch{op: 'remove', path: '/spec/hostNetwork'}]", "1"), "must evaluate to",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := Read(written(t, map[string]string{"a.yaml": c.text}), false)
			if err == nil {
				err = s.Compile()
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %s", err, c.want)
			}
		})
	}
}

// TestFailures finds in refusals, as Kubernetes 1.36 and Kyverno 1.19 word them, which policies failed, and none that
// objected.
func TestFailures(t *testing.T) {
	const about = "matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], " +
		"resources: [deployments]}]}"
	mutates := strings.Replace(clusterPolicy, "patterns", "mutates", 1)
	s := read(t, map[string]string{
		"vap.yaml": policy("vap", isTrue), "pattern.yaml": clusterPolicy, "mutates.yaml": mutates,
		"vpol.yaml": "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: vpol}\nspec:\n  " + about +
			"\n  validations: [{expression: 'true'}]\n",
		"mpol.yaml": "apiVersion: policies.kyverno.io/v1\nkind: MutatingPolicy\nmetadata: {name: mpol}\nspec:\n  " + about +
			"\n  mutations: [{patchType: JSONPatch, jsonPatch: {expression: '[]'}}]\n",
		"map.yaml": strings.Replace(changing, "name: m,", "name: map,", 1),
	})
	const webhook, blocked = `admission webhook "x" denied the request: `, "\n\nresource Pod/n/p was blocked due to the " +
		"following policies \n\n"
	for said, want := range map[string]string{
		`policy 'tare-run-0.map' with binding 'b' denied request: expression 'a' resulted in error: c`:                        "map: c",
		`ValidatingAdmissionPolicy 'tare-run-0.vap' with binding 'b' denied request: expression 'a' resulted in error: c`:     "vap: c",
		`ValidatingAdmissionPolicy 'tare-run-0.vap' with binding 'b' denied request: not so, as it resulted in error: c`:      "",
		`ValidatingAdmissionPolicy 'tare-run-0.other' with binding 'b' denied request: expression 'a' resulted in error: c`:   "",
		`ValidatingAdmissionPolicy 'vpol-vpol' with binding 'b' denied request: expression 'a' resulted in error: c`:          "vpol: c",
		`ValidatingAdmissionPolicy 'cpol-patterns' with binding 'b' denied request: [expression 'a' resulted in error: c, d]`: "patterns: c, d]",
		webhook + `Resource: n/p, Kind: StatefulSet, Errors: [Policy mpol: failed to evaluate policy: no such key: b]`:        "mpol: no such key: b]",
		webhook + `Policy vpol error: error: no such key: b`:                                                                  "vpol: error: no such key: b",
		webhook + `Policy vpol failed: not so`:                                                 "",
		webhook + `mutation policy mutates error: failed to apply policy mutates rules [x: n]`: `mutates: failed to apply policy mutates rules [x: n]`,
		webhook + blocked + "patterns:\n  pods: 'failed to check: no'\n\n":                     `patterns: pods: 'failed to check: no' (perhaps)`,
		webhook + blocked + "patterns:\n  pods: 'failed to check: no'\n  ingresses: 'no'\n\n":  ``,
		webhook + blocked + "patterns:\n  pods: 'validation error: failed to be so'\n\n":       ``,
		`deployments.apps "x" already exists`:                                                  "",
	} {
		got := ""
		for i := range s.Policies {
			if why, ok, sure := s.Policies[i].Failure(scope, said); ok {
				got += s.Policies[i].Name + ": " + why
				if !sure {
					got += " (perhaps)"
				}
			}
		}
		if got != want {
			t.Errorf("%q:\n%q, want %q", said, got, want)
		}
	}
}

// TestDenied: a policy denied that is named where its engine names policies. Where another one could have written the
// name there, that is not sure, and words within what policies say name none.
func TestDenied(t *testing.T) {
	s := read(t, map[string]string{
		"pattern.yaml": clusterPolicy, "ban.yaml": banTemplate + "---\n" + constraintOf("ban-a", "{}"),
		"vpol.yaml": "apiVersion: policies.kyverno.io/v1\nkind: ValidatingPolicy\nmetadata: {name: vpol}\nspec: " +
			"{matchConstraints: {resourceRules: [{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], " +
			"resources: [deployments]}]}, validations: [{expression: 'true'}]}\n",
	})
	const webhook, blocked = `admission webhook "x" denied the request: `, "\n\nresource Pod/n/p was blocked due to the " +
		"following policies \n\n"
	const vap = `pods "x" is forbidden: ValidatingAdmissionPolicy '%s' with binding '%s' denied request: `
	for said, want := range map[string]string{
		webhook + "[ban-a] no":                                       "ban-a",
		webhook + "[other] no\n[ban-a] no":                           "ban-a (perhaps)",
		webhook + "[other] as [ban-a] says":                          "",
		webhook + "[other] ValidatingAdmissionPolicy 'vpol-vpol'":    "",
		webhook + "Policy vpol failed: no":                           "vpol",
		webhook + "Policy x failed: no; Policy vpol failed: no":      "vpol (perhaps)",
		webhook + "Policy x failed: as Policy vpol failed: no":       "",
		webhook + blocked + "patterns:\n  pods: no\n":                "patterns",
		webhook + blocked + "x:\n  pods: |-\n    a\n    patterns:\n": "",

		fmt.Sprintf(vap, "gatekeeper-ban", "gatekeeper-ban-ban-a") + "no":                      "ban-a",
		fmt.Sprintf(vap, "x", "x") + "with binding 'gatekeeper-ban-ban-a' denied, [ban-a] no":  "",
		fmt.Sprintf(vap, "vpol-vpol", "b") + "no":                                              "vpol",
		fmt.Sprintf(vap, "x", "b") + "ValidatingAdmissionPolicy 'cpol-patterns' request: says": "",
	} {
		got := ""
		for i := range s.Policies {
			switch denied, sure := s.Policies[i].Denied(scope, said); {
			case sure && denied:
				got += s.Policies[i].Name
			case denied:
				got += s.Policies[i].Name + " (perhaps)"
			}
		}
		if got != want {
			t.Errorf("%q: %q, want %q", said, got, want)
		}
	}
}
