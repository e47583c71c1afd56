package own

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestTested takes the objects that tests name, wherever these stand, each once, and nothing else.
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
		"d/.a/kyverno-test.yaml": "apiVersion: cli.kyverno.io/v1alpha1\nkind: Test\nresources: [../../b/other.yaml]\n" +
			longBomb,
		"d/chainsaw.yaml": "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nresources: [../b/other.yaml]\n",
		"e/chainsaw-test.yaml": chainsawTest("{apply: {file: ../a/p.yaml}}, {assert: {file: asserted.yaml}}, " +
			"{apply: {file: applied.yaml, expect: [{check: {($error != null): true}}]}}, {create: {resource: {kind: Pod}}}"),
		"e/asserted.yaml": named("asserted"),
		"e/applied.yaml":  named("applied"),
	})
	objects, more, err := Tested(dir)
	if err != nil || more {
		t.Fatal(err, more)
	}
	var got []string
	for _, o := range objects {
		got = append(got, strings.TrimPrefix(o.At, dir+"/")+" "+o.GetName())
		if o.GetNamespace() != "" || o.GetUID() != "" {
			t.Errorf("%s keeps what a cluster gave it: %v", o.GetName(), o.Object["metadata"])
		}
	}
	want := []string{
		"a/.kyverno-test/resource.yaml:1 good", "a/.kyverno-test/resource.yaml:5 bad", "b/more.yaml:5 more",
		"c/samples/no.yaml:1 refused", "e/applied.yaml:1 applied",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("objects (-want +got):\n%s", d)
	}
}

// chainsawTest is a test of Chainsaw's with such steps.
func chainsawTest(try string) string {
	return "apiVersion: chainsaw.kyverno.io/v1alpha1\nkind: Test\nmetadata: {name: t}\n" +
		"spec: {steps: [{try: [" + try + "]}]}\n"
}

// TestAssertionsAreNoPolicies: what a test compares a policy with, or changes it by, is a part of one, and no second
// policy. What it applies as well is one.
func TestAssertionsAreNoPolicies(t *testing.T) {
	part := "apiVersion: kyverno.io/v1\nkind: ClusterPolicy\nmetadata: {name: patterns}\nstatus: {ready: true}\n"
	other := strings.Replace(clusterPolicy, "patterns", "applied", 1)
	s := read(t, map[string]string{
		"p.yaml": clusterPolicy,
		"e2e/chainsaw-test.yaml": chainsawTest("{apply: {file: ../p.yaml}}, {assert: {file: ready.yaml}}, " +
			"{error: {file: 'never-*.yaml'}}, {patch: {file: enforce.yaml}}, {apply: {file: both.yaml}}, " +
			"{assert: {file: both.yaml}}"),
		"e2e/ready.yaml": part, "e2e/never-1.yaml": part, "e2e/never-2.yaml": part, "e2e/enforce.yaml": part,
		"e2e/both.yaml":        other,
		"kuttl/01-assert.yaml": part, "kuttl/02-errors.yml": part,
	})
	var names []string
	for _, p := range s.Policies {
		names = append(names, p.Name)
	}
	if len(s.Untaken) != 6 { // the parts, by name, and no tests
		t.Errorf("left aside: %q", s.Untaken)
	}
	for _, one := range s.Untaken {
		if !strings.HasPrefix(one, "ClusterPolicy patterns of ") || !strings.HasSuffix(one, ", with which tests compare") {
			t.Errorf("left aside: %q", one)
		}
	}
	if d := cmp.Diff([]string{"applied", "patterns"}, names); d != "" {
		t.Errorf("policies (-want +got):\n%s", d)
	}
}

// TestKeysTwice: of a key that stands twice in a map the last value counts, as for kubectl, and the place is named.
func TestKeysTwice(t *testing.T) {
	text := strings.Replace(clusterPolicy, "metadata: {name: patterns}",
		"metadata: {name: first, name: patterns}", 1)
	if text == clusterPolicy {
		t.Fatal("the policy's name is written otherwise")
	}
	s := read(t, map[string]string{"p.yaml": text})
	if len(s.Policies) != 1 || s.Policies[0].Name != "patterns" {
		t.Errorf("policies: %+v", s.Policies)
	}
	if len(s.Repeated) != 1 || !strings.HasSuffix(s.Repeated[0], `p.yaml:3: key "name" already set in map`) {
		t.Errorf("repeated: %q", s.Repeated)
	}
}
