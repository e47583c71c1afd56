package mechanism

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	registrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files anew")

// goldens are small populations that have every kind of policy.
var goldens = map[string]struct {
	kind Kind
	p    Population
}{
	"none": {None, Population{}},
	"psa":  {PSA, Default(PSA, 0)},
	"psp-one": {PSP, Population{
		Total: 3, Bound: 2, Useable: 1, Position: Last, Bindings: One,
		Irrelevant: Rejects,
	}},
	"psp-all-bound": {PSP, Default(PSP, 2)},
	"psp-each-first": {PSP, Population{
		Total: 3, Bound: 2, Useable: 1, Position: First, Bindings: Each,
		Irrelevant: Unauthorized,
	}},
	"vap":                    {VAP, Population{Total: 3, Bound: 2, Useable: 1, Irrelevant: NamespaceSelector}},
	"vap-params":             {VAP, Population{Total: 3, Bound: 2, Useable: 1, Irrelevant: NamespaceSelector, Params: 2}},
	"vap-match-conditions":   {VAP, Population{Total: 2, Bound: 2, Useable: 1, Irrelevant: MatchConditions}},
	"vap-resource-rule":      {VAP, Population{Total: 2, Bound: 2, Useable: 1, Irrelevant: ResourceRule}},
	"map":                    {MAP, Population{Total: 3, Bound: 2, Useable: 1, Irrelevant: NamespaceSelector}},
	"webhook":                {Webhook, Population{Total: 3, Bound: 2, Useable: 1, Irrelevant: MatchConditions}},
	"mutating-webhook":       {MutatingWebhook, Population{Total: 2, Bound: 2, Useable: 1, Irrelevant: ResourceRule}},
	"webhook-all-irrelevant": {Webhook, Population{Total: 1, Bound: 1, Irrelevant: NamespaceSelector}},
}

func TestRenderedObjectsAreThoseOfTheGoldens(t *testing.T) {
	for name, c := range goldens {
		r, err := Render(c.kind, c.p, testScope())
		if err != nil {
			t.Errorf("render %s: %v", name, err)
			continue
		}
		var got bytes.Buffer
		if r.NamespaceLabels != nil {
			writeYAML(t, &got, map[string]any{"namespaceLabels": r.NamespaceLabels})
		}
		for _, o := range r.Objects {
			writeYAML(t, &got, o.Object)
		}
		file := filepath.Join("testdata", name+".yaml")
		if *update {
			if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func writeYAML(t *testing.T, out *bytes.Buffer, v any) {
	t.Helper()
	text, err := yaml.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	out.WriteString("---\n")
	out.Write(text)
}

// TestRenderedObjectsAreOfTheAPI decodes strictly: a field that the API does not have would be dropped by a server,
// without a word.
func TestRenderedObjectsAreOfTheAPI(t *testing.T) {
	types := map[string]func() any{
		"ValidatingAdmissionPolicy":        func() any { return new(registrationv1.ValidatingAdmissionPolicy) },
		"ValidatingAdmissionPolicyBinding": func() any { return new(registrationv1.ValidatingAdmissionPolicyBinding) },
		"MutatingAdmissionPolicy":          func() any { return new(registrationv1.MutatingAdmissionPolicy) },
		"MutatingAdmissionPolicyBinding":   func() any { return new(registrationv1.MutatingAdmissionPolicyBinding) },
		"ValidatingWebhookConfiguration":   func() any { return new(registrationv1.ValidatingWebhookConfiguration) },
		"MutatingWebhookConfiguration":     func() any { return new(registrationv1.MutatingWebhookConfiguration) },
		"ConfigMap":                        func() any { return new(corev1.ConfigMap) },
		"Role":                             func() any { return new(rbacv1.Role) },
		"RoleBinding":                      func() any { return new(rbacv1.RoleBinding) },
	}
	seen := map[string]bool{}
	for name, c := range goldens {
		r, err := Render(c.kind, c.p, testScope())
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range r.Objects {
			fresh, ok := types[o.GetKind()]
			if !ok && o.GetKind() == "PodSecurityPolicy" {
				continue // not in this version of the API; a 1.24 server judges it in the test of planes
			}
			if !ok {
				t.Fatalf("%s: no type for %s", name, o.GetKind())
			}
			seen[o.GetKind()] = true
			text, err := json.Marshal(o.Object)
			if err != nil {
				t.Fatal(err)
			}
			d := json.NewDecoder(bytes.NewReader(text))
			d.DisallowUnknownFields()
			if err := d.Decode(fresh()); err != nil {
				t.Errorf("decode strictly: %s: %s %s: %v", name, o.GetKind(), o.GetName(), err)
			}
		}
	}
	for kind := range types {
		if !seen[kind] {
			t.Errorf("no golden has a %s", kind)
		}
	}
}

// drawPopulation draws a kind and a geometry that makes sense.
func drawPopulation(t *rapid.T) (Kind, Population) {
	k := rapid.SampledFrom([]Kind{VAP, MAP, Webhook, MutatingWebhook, PSP}).Draw(t, "kind")
	p := Default(k, rapid.IntRange(1, 300).Draw(t, "total"))
	p.Bound = rapid.IntRange(0, p.Total).Draw(t, "bound")
	p.Useable = rapid.IntRange(0, p.Bound).Draw(t, "useable")
	if k == PSP {
		p.Bound = max(p.Bound, 1)
		p.Useable = max(p.Useable, 1)
		p.Position = rapid.SampledFrom([]Position{First, Last}).Draw(t, "position")
		p.Bindings = rapid.SampledFrom([]Bindings{One, Each}).Draw(t, "bindings")
		if p.Bound < p.Total {
			p.Irrelevant = rapid.SampledFrom([]Irrelevance{Rejects, Unauthorized}).Draw(t, "irrelevant")
		}
		return k, p
	}
	p.Irrelevant = rapid.SampledFrom([]Irrelevance{NamespaceSelector, MatchConditions, ResourceRule}).Draw(t, "irrelevant")
	return k, p
}

func TestPopulationsHaveTheirGeometry(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, p := drawPopulation(t)
		r, err := Render(k, p, testScope())
		if err != nil {
			t.Fatal(err)
		}
		byKind := map[string]int{}
		var last string
		for i, o := range r.Objects {
			if i == 0 || r.Objects[i-1].GetKind() != o.GetKind() {
				last = ""
			}
			if o.GetName() <= last {
				t.Fatalf("%s %s comes after %s", o.GetKind(), o.GetName(), last)
			}
			last = o.GetName()
			byKind[o.GetKind()]++
		}
		want := wantedCounts(k, p)
		if diff := cmp.Diff(want, byKind); diff != "" {
			t.Fatalf("%s %+v (-want +got):\n%s", k, p, diff)
		}
	})
}

func wantedCounts(k Kind, p Population) map[string]int {
	want := map[string]int{}
	switch k {
	case VAP:
		want = map[string]int{"ValidatingAdmissionPolicy": p.Total, "ValidatingAdmissionPolicyBinding": p.Bound}
	case MAP:
		want = map[string]int{"MutatingAdmissionPolicy": p.Total, "MutatingAdmissionPolicyBinding": p.Bound}
	case Webhook:
		want = map[string]int{"ValidatingWebhookConfiguration": p.Total}
	case MutatingWebhook:
		want = map[string]int{"MutatingWebhookConfiguration": p.Total}
	case PSP:
		roles := 1
		if p.Bindings == Each {
			roles = p.Bound
		}
		want = map[string]int{"PodSecurityPolicy": p.Total, "Role": roles, "RoleBinding": roles}
	case None, PSA, Manifests, Own:
	}
	for kind, n := range want {
		if n == 0 {
			delete(want, kind)
		}
	}
	return want
}

// TestNothingActsOutsideOfTheNamespace is about somebody's real cluster.
func TestNothingActsOutsideOfTheNamespace(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		k, p := drawPopulation(t)
		s := testScope()
		r, err := Render(k, p, s)
		if err != nil {
			t.Fatal(err)
		}
		here := 0
		for _, o := range r.Objects {
			o = o.DeepCopy() // panics on a type that JSON does not have
			if !Confined(o, s.Namespace) {
				t.Fatalf("%s %s is not confined to %s", o.GetKind(), o.GetName(), s.Namespace)
			}
			if o.GetLabels()[RunLabel] != s.Run || o.GetLabels()[OwnerLabel] != Owner {
				t.Fatalf("%s %s has labels %v", o.GetKind(), o.GetName(), o.GetLabels())
			}
			text, err := json.Marshal(o.Object)
			if err != nil {
				t.Fatal(err)
			}
			if bytes.Contains(text, []byte(`"values":["`+s.Namespace+`"]`)) {
				here++
			}
		}
		want := p.Bound
		if p.Irrelevant == NamespaceSelector {
			want = p.Useable
		}
		if k != PSP && here != want {
			t.Fatalf("%s %+v: %d objects select our namespace, want %d", k, p, here, want)
		}
	})
}

func TestUnconfinedPoliciesAreFound(t *testing.T) {
	for name, text := range map[string]string{
		"binding of everything":   `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"a"},"spec":{"policyName":"a"}}`,
		"binding of two":          `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingAdmissionPolicyBinding","metadata":{"name":"a"},"spec":{"matchResources":{"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"In","values":["tare-r7f3a-1","kube-system"]}]}}}}`,
		"binding of all others":   `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingAdmissionPolicyBinding","metadata":{"name":"a"},"spec":{"matchResources":{"namespaceSelector":{"matchExpressions":[{"key":"kubernetes.io/metadata.name","operator":"NotIn","values":["tare-r7f3a-1"]}]}}}}`,
		"webhook of everything":   `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"a"},"webhooks":[{"name":"a.b.c"}]}`,
		"one webhook of two":      `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration","metadata":{"name":"a"},"webhooks":[{"name":"a.b.c","namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"tare-r7f3a-1"}}},{"name":"b.b.c","namespaceSelector":{"matchLabels":{"team":"a"}}}]}`,
		"another namespace":       `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a","namespace":"kube-system"}}`,
		"no namespace":            `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"a"}}`,
		"selector that is no map": `{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingAdmissionPolicyBinding","metadata":{"name":"a"},"spec":{"matchResources":"all"}}`,
	} {
		o := &unstructured.Unstructured{}
		if err := o.UnmarshalJSON([]byte(text)); err != nil {
			t.Fatal(err)
		}
		if Confined(o, testScope().Namespace) {
			t.Errorf("%s: taken for confined", name)
		}
	}
}

func TestDecidingPolicyIsAtItsPosition(t *testing.T) {
	for _, position := range []Position{First, Last} {
		all := Policies(Population{Total: 9, Bound: 6, Useable: 2, Position: position}, testScope())
		want := Unbound
		if position == First {
			want = Relevant
		}
		if len(all) != 9 || all[0].Role != want || all[len(all)-1].Role == want {
			t.Errorf("%s: from %v to %v", position, all[0], all[len(all)-1])
		}
		for i, one := range all {
			if one.Number != numberBase+i+1 {
				t.Errorf("%s has number %d", one.Name, one.Number)
			}
		}
	}
}
