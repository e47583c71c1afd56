package own

import (
	"strings"
	"testing"
)

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
