package own

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"tare/areas/admission/mechanism"
)

// aboutCustom returns a policy of Kyverno's about a kind.
func aboutCustom(kinds, rest string) string {
	return fmt.Sprintf("apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: p}\nspec:\n  rules: "+
		"[{name: r, match: {any: [{resources: {kinds: [%s]}}]}, %s}]\n", kinds, rest)
}

const (
	allDenied = "validate: {message: no, deny: {}}"
	someCRD   = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com}
spec:
  group: example.com
  scope: Cluster
  names: {kind: Box, plural: boxes}
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]
`
)

// TestCustomKindsAreDefined: kinds that policies of Kyverno's are about, generate or change come with the bundle or are
// made up, and no others.
func TestCustomKindsAreDefined(t *testing.T) {
	const box = "apiVersion: example.com/v1\nkind: Box\nmetadata: {name: a}\n"
	for name, c := range map[string]struct {
		files   []string
		defined string // by tare
		objects int    // definitions in force
	}{
		"a kind with its group":    {[]string{aboutCustom("example.com/v1/Box", allDenied)}, "Box", 1},
		"with a subresource":       {[]string{aboutCustom("example.com/v1/Box/status", allDenied)}, "Box", 1},
		"a kind by its name":       {[]string{aboutCustom("Box", allDenied), box}, "Box", 1},
		"any group":                {[]string{aboutCustom(`"*/v1/Box"`, allDenied), box}, "Box", 1},
		"another version":          {[]string{aboutCustom("v2/Box", allDenied), box}, "", 0},
		"a kind that nobody knows": {[]string{aboutCustom("Box", allDenied)}, "", 0},
		"the bundle's definition":  {[]string{aboutCustom("Box", allDenied), someCRD}, "", 1},
		"one that others convert": {[]string{aboutCustom("Box", allDenied), strings.Replace(someCRD, "  scope: Cluster",
			"  scope: Cluster\n  conversion: {strategy: Webhook}", 1)}, "Box", 1},
		"a definition of no use": {[]string{aboutCustom("Pod", allDenied), someCRD, box}, "", 0},
		"an engine's own": {[]string{
			aboutCustom("kyverno.io/v2/PolicyException, wgpolicyk8s.io/v1alpha2/PolicyReport", allDenied),
		}, "", 0},
		"the server's own": {[]string{
			aboutCustom("networking.k8s.io/v1/Ingress, metrics.k8s.io/v1beta1/NodeMetrics", allDenied),
		}, "", 0},
		"no words for a kind": {[]string{aboutCustom(`"{{ x }}", "a.b/v1/*", "A B/v1/Box"`, allDenied)}, "", 0},
		"generated": {[]string{
			aboutCustom("Pod",
				"generate: {apiVersion: autoscaling.k8s.io/v1, kind: VerticalPodAutoscaler, name: a, data: {}}"),
		}, "VerticalPodAutoscaler", 1},
		"generated from a list": {[]string{
			aboutCustom("Pod",
				"generate: {cloneList: {kinds: [example.com/v1/Box, v1/Secret]}, "+
					"foreach: [{apiVersion: example.com/v1, kind: Lid}]}"),
		}, "Box Lid", 2},
		"changed": {[]string{aboutCustom("Pod", "mutate: {targets: [{apiVersion: example.com/v1, kind: Box}]}")}, "Box", 1},
		"in CEL": {[]string{strings.NewReplacer(`apiGroups: [""]`, `apiGroups: [example.com]`, "services", "boxes").
			Replace(validatingPolicy), someCRD}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			for ours, want := range map[bool]string{true: c.defined, false: ""} {
				s := read(t, map[string]string{"a.yaml": strings.Join(c.files, "---\n")})
				in, err := s.Render(Where{Scope: scope, Ours: ours})
				if err != nil {
					t.Fatal(err)
				}
				if d := cmp.Diff(want, strings.Join(in.Defined, " ")); d != "" {
					t.Errorf("ours: %t (-want +got):\n%s", ours, d)
				}
				if n := len(mechanism.Defined(in.Objects)); ours && n != c.objects || !ours && n != 0 {
					t.Errorf("ours: %t: %d definitions, want %d", ours, n, c.objects)
				}
			}
		})
	}
}

// TestKindsOfOtherBundlesAreDefined: what is asked where another bundle is in force can be asked here, too; of a kind
// that both define, versions are added, and none is lost.
func TestKindsOfOtherBundlesAreDefined(t *testing.T) {
	other, err := read(t, map[string]string{"a.yaml": aboutCustom("example.com/v1/Box, example.com/v2/Lid", allDenied)}).
		Render(Where{Scope: scope, Ours: true})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ kinds, want string }{
		"none of its own":   {"Pod", "Box/v1 Lid/v2"},
		"the same":          {"example.com/v1/Box", "Box/v1 Lid/v2"},
		"an earlier one":    {"example.com/v1beta1/Box", "Box/v1 Box/v1beta1 Lid/v2"},
		"another and these": {"example.com/v1/Tin", "Box/v1 Lid/v2 Tin/v1"},
	} {
		t.Run(name, func(t *testing.T) {
			in, err := read(t, map[string]string{"a.yaml": aboutCustom(c.kinds, allDenied)}).
				Render(Where{Scope: scope, Ours: true, Others: append(other.Definitions(), other.Definitions()...)})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for k := range mechanism.Defined(in.Definitions()) {
				got = append(got, k.Kind+"/"+k.Version)
			}
			slices.Sort(got)
			if d := cmp.Diff(c.want, strings.Join(got, " ")); d != "" {
				t.Errorf("kinds (-want +got):\n%s", d)
			}
			for _, o := range in.Definitions() {
				stored := 0
				versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
				for _, v := range versions {
					if version, _ := v.(tree); version["storage"] == true {
						stored++
					}
				}
				if stored != 1 || o.GetLabels()[mechanism.RunLabel] != scope.Run {
					t.Errorf("%s: %d versions are stored; labels %v", o.GetName(), stored, o.GetLabels())
				}
			}
		})
	}
}

// TestCustomKindsAreBounded: a bundle cannot have tare define any number of kinds.
func TestCustomKindsAreBounded(t *testing.T) {
	var kinds []string
	for i := range mostCustom + 5 {
		kinds = append(kinds, fmt.Sprintf("example.com/v1/Box%d", i))
	}
	s := read(t, map[string]string{"a.yaml": aboutCustom(strings.Join(kinds, ", "), allDenied)})
	in, err := s.Render(Where{Scope: scope, Ours: true})
	if err != nil || len(in.Defined) != mostCustom {
		t.Errorf("%d kinds are defined, %v", len(in.Defined), err)
	}
	made := define(schema.GroupVersionKind{Group: "a.k8s.io", Version: "v1", Kind: "X"}, true)
	if len(made.GetAnnotations()) == 0 {
		t.Error("a group of the Kubernetes project's is not said to be unapproved")
	}
}
