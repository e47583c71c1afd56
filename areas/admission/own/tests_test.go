package own

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTested takes the objects that tests name, wherever these stand, and nothing else.
func TestTested(t *testing.T) {
	const pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: NAME, namespace: team, uid: x}\n"
	named := func(names ...string) string {
		var out []string
		for _, n := range names {
			out = append(out, strings.Replace(pod, "NAME", n, 1))
		}
		return strings.Join(out, "---\n")
	}
	dir := written(t, map[string]string{
		"a/p.yaml": clusterPolicy,
		"a/.kyverno-test/kyverno-test.yaml": "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\n" +
			"policies: [../p.yaml]\nresources: [resource.yaml, ../../b/more.yaml, ../../../outside.yaml, https://x/y.yaml]\n",
		"a/.kyverno-test/resource.yaml": named("good", "bad", "good"),
		"b/more.yaml":                   named("bad", "more") + "---\n{{ template }}\n",
		"b/other.yaml":                  named("other"),
		"c/suite.yaml": "apiVersion: test.gatekeeper.sh/v1alpha1\nkind: Suite\nmetadata: {name: s}\ntests:\n" +
			"- {name: a, template: t.yaml, constraint: c.yaml, cases: [{name: no, object: samples/no.yaml}, {name: yes}]}\n",
		"c/samples/no.yaml": named("refused"),
		"d/broken.yaml":     "kind: [",
		"d/chainsaw.yaml":   "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nresources: [../b/other.yaml]\n",
	})
	objects, more, err := Tested(dir)
	if err != nil || more {
		t.Fatal(err, more)
	}
	var got []string
	for _, o := range objects {
		got = append(got, o.File+" "+o.GetName())
		if o.GetNamespace() != "" || o.GetUID() != "" {
			t.Errorf("%s keeps what a cluster gave it: %v", o.GetName(), o.Object["metadata"])
		}
	}
	want := []string{
		"a/.kyverno-test/resource.yaml good", "a/.kyverno-test/resource.yaml bad", "b/more.yaml bad", "b/more.yaml more",
		"c/samples/no.yaml refused",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("objects (-want +got):\n%s", d)
	}
}
