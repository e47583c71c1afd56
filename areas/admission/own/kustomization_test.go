package own

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"

	"tare/areas/bundle"
	"tare/rigs/hosttest"
)

// overlay has all that is carried out, and a base outside its folder.
var overlay = map[string]string{
	".git/HEAD":               "",
	"base/kustomization.yaml": "resources: [p.yaml, b.yaml]\n",
	"base/p.yaml":             policy("p", isTrue),
	"base/b.yaml":             binding,
	"base/unlisted.yaml":      policy("unlisted", isTrue),
	"part/kustomization.yaml": "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n" +
		"commonAnnotations: {owner: us}\n",
	"prod/settings.txt": "size=3\n",
	"prod/merge.yaml": header + "kind: ValidatingAdmissionPolicyBinding\nmetadata: {name: b}\nspec: " +
		"{validationActions: [Warn]}\n",
	"prod/old.yaml": header + "kind: ValidatingAdmissionPolicyBinding\nmetadata: {name: b}\nspec: " +
		"{matchResources: {objectSelector: {matchLabels: {a: b}}}}\n",
	"prod/ops.yaml": "- {op: add, path: /spec/failurePolicy, value: Ignore}\n",
	"prod/kustomization.yaml": `
resources: [../base]
components: [../part]
namePrefix: prod-
labels: [{pairs: {tier: prod}}]
patchesStrategicMerge: [old.yaml]
patches:
  - path: merge.yaml
  - path: ops.yaml
    target: {kind: ValidatingAdmissionPolicy}
  - target: {kind: ValidatingAdmissionPolicy}
    patch: |-
      - {op: replace, path: /spec/validations/0/expression, value: "1 == 1"}
configMapGenerator: [{name: settings, files: [all=settings.txt], envs: [settings.txt]}]
replacements:
  - source: {kind: ConfigMap, name: settings, fieldPath: data.size}
    targets:
      - {select: {kind: ValidatingAdmissionPolicy}, fieldPaths: [metadata.annotations.size], options: {create: true}}
`,
}

// TestKustomizationsAreBuilt: what tare reads is what kustomize builds of the same files on disk.
func TestKustomizationsAreBuilt(t *testing.T) {
	at := filepath.Join(written(t, overlay), "prod")
	options := krusty.MakeDefaultOptions()
	options.Reorder = krusty.ReorderOptionUnspecified // as kubectl has it
	want, err := krusty.MakeKustomizer(options).Run(filesys.MakeFsOnDisk(), at)
	if err != nil {
		t.Fatal(err)
	}
	text, err := want.AsYaml()
	if err != nil {
		t.Fatal(err)
	}
	got, err := build(at)
	if d := cmp.Diff(string(text), string(got)); d != "" || err != nil {
		t.Errorf("built (-kustomize +tare): %v\n%s", err, d)
	}
	for _, from := range []string{at, filepath.Join(at, "kustomization.yaml")} {
		s, err := Read(from, false)
		if err != nil {
			t.Fatal(err)
		}
		p, b := s.Policies[0], s.Bindings[0]
		if len(s.Policies) != 1 || p.Name != "prod-p" || p.Spec.Validations[0].Expression != "1 == 1" ||
			*p.Spec.FailurePolicy != "Ignore" || p.Annotations["size"] != "3" || p.Labels["tier"] != "prod" ||
			p.Annotations["owner"] != "us" {
			t.Errorf("%s: policies %+v", from, s.Policies)
		}
		if b.Spec.PolicyName != "prod-p" || b.Spec.ValidationActions[0] != "Warn" || b.Spec.MatchResources == nil {
			t.Errorf("%s: binding %+v", from, b)
		}
		if where := p.At().File; where != from+" (built)" {
			t.Errorf("the policy stands in %s", where)
		}
	}
}

// TestFoldersThatOnlyListAreReadWhole: a kustomization that changes nothing does not hide files, unless it is named.
func TestFoldersThatOnlyListAreReadWhole(t *testing.T) {
	at := filepath.Join(written(t, overlay), "base")
	for from, want := range map[string]int{at: 2, filepath.Join(at, "kustomization.yaml"): 1} {
		if s, err := Read(from, false); err != nil || len(s.Policies) != want {
			t.Errorf("%s: %v, %v, want %d policies", from, s, err, want)
		}
	}
}

// exception is one that exempts all.
const exception = "apiVersion: kyverno.io/v2\nkind: PolicyException\nmetadata: {name: e}\nspec: {exceptions: []}\n"

// TestUnaskedKustomizations: what one side's kustomization lists and the other's does not is named, and a folder that
// names one that changes something is built.
func TestUnaskedKustomizations(t *testing.T) {
	const both, bound = "resources: [p.yaml, b.yaml]", "ValidatingAdmissionPolicyBinding b"
	const lists = "what kustomizations list differs: "
	const patching = "resources: [p.yaml, b.yaml]\npatches: [{target: {kind: ValidatingAdmissionPolicyBinding}, patch: " +
		`'[{"op": "replace", "path": "/spec/validationActions", "value": ["Audit"]}]'}]`
	for name, c := range map[string]struct{ was, is, in, want string }{
		"a file less":       {both, "resources: [./p.yaml]", "", lists + bound},
		"the same":          {both, "resources: [b.yaml, ./p.yaml]", "", ""},
		"one that lists":    {"", "resources: [b.yaml]", "", lists + "ValidatingAdmissionPolicy p"},
		"one below":         {both, "resources: [in]", both, ""},
		"a file less below": {both, "resources: [in, in, .]", "resources: [p.yaml]", lists + bound},
		"a file of another name": {
			both, "resources: [p.yaml, b.yaml, more.txt]", "", "what tare leaves aside differs: PolicyException e",
		},
		"changes below": {
			both, "resources: [in]", patching,
			"what policies do about what they object to differs: " + bound + " (spec.validationActions)",
		},
	} {
		t.Run(name, func(t *testing.T) {
			files := func(says, at string) map[string]string {
				out := map[string]string{at + "p.yaml": policy("p", isTrue), at + "b.yaml": binding}
				if says != "" {
					out["kustomization.yaml"] = says
				}
				return out
			}
			base, is := files(c.was, ""), files(c.is, "")
			base["more.txt"], is["more.txt"] = exception, exception
			if c.in != "" {
				is = files(c.is, "in/")
				is["in/kustomization.yaml"] = c.in
			}
			if d := cmp.Diff(c.want, unasked(read(t, is), read(t, base))); d != "" {
				t.Errorf("differences (-want +got):\n%s", d)
			}
		})
	}
}

// TestUnaskedOverlays: a kustomization below a folder that is read as it stands may be what a cluster is given.
func TestUnaskedOverlays(t *testing.T) {
	files := func(lists string) map[string]string {
		return map[string]string{
			"base/p.yaml": policy("p", isTrue), "base/b.yaml": binding, "base/kustomization.yaml": lists,
			"prod/kustomization.yml": "resources: [../base]\n",
		}
	}
	base := read(t, files("resources: [p.yaml, b.yaml]"))
	if got := unasked(read(t, files("resources: [p.yaml, b.yaml]")), base); got != "" {
		t.Errorf("of equal ones differs %q", got)
	}
	const want = "what tare leaves aside differs: file base/kustomization.yaml"
	if got := unasked(read(t, files("resources: [p.yaml]")), base); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	listing := files("resources: [p.yaml, b.yaml, more.txt]")
	listing["base/more.txt"] = ""
	base, listing["base/more.txt"] = read(t, listing), exception
	if got := unasked(read(t, listing), base); got != "what tare leaves aside differs: file base/more.txt" {
		t.Errorf("%q, where a file differs that the kustomization below names", got)
	}
	listing["base/Kustomization"] = listing["base/kustomization.yaml"]
	delete(listing, "base/kustomization.yaml")
	base = read(t, listing)
	listing["base/Kustomization"] = "resources: [p.yaml]\n"
	got := unasked(read(t, listing), base)
	if got != "what tare leaves aside differs: file base/Kustomization, file base/more.txt" {
		t.Errorf("%q, where a kustomization without an extension differs", got)
	}
}

// TestKustomizationsAreCopiedAsBuilt: a record holds what was measured, whatever becomes of the base.
func TestKustomizationsAreCopiedAsBuilt(t *testing.T) {
	dir, to := written(t, overlay), t.TempDir()
	at := filepath.Join(dir, "prod")
	before, err := bundle.Sums([]string{at, filepath.Join(dir, "base")}, Sum)
	if err != nil || len(before) != 2 {
		t.Fatal(before, err)
	}
	if err := Copy(to, "copy"+Ext(at), at); err != nil {
		t.Fatal(err)
	}
	other := []byte(policy("p", "  auditAnnotations: []\n"+isTrue))
	if err := os.WriteFile(filepath.Join(dir, "base/p.yaml"), other, 0o600); err != nil {
		t.Fatal(err)
	}
	if after, err := bundle.Sums([]string{at}, Sum); err != nil || after[at] == before[at] {
		t.Errorf("with another base the sum is %v, %v", after, err)
	}
	s, err := Read(filepath.Join(to, "copy.yaml"), false)
	if err != nil || len(s.Policies) != 1 || s.Policies[0].Name != "prod-p" {
		t.Errorf("the copy holds %+v, %v", s, err)
	}
}

// TestBasesAreInTheRepository: without one, or in one that any user could have made, a base is in the folder itself.
func TestBasesAreInTheRepository(t *testing.T) {
	plain := maps.Clone(overlay)
	delete(plain, ".git/HEAD")
	open := written(t, overlay)
	if err := os.Chmod(open, 0o777); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]bool{written(t, overlay): true, written(t, plain): false, open: false} {
		if _, err := gather(filepath.Join(dir, "prod")); (err == nil) != want {
			t.Errorf("%v, want it taken: %v", err, want)
		}
	}
}

func TestKustomizationsAreRefused(t *testing.T) {
	asked := 0
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked++ }))
	defer server.Close()
	const notLocal = "is not a path of this host"
	for name, c := range map[string]struct{ says, want string }{
		"a server":               {"resources: [" + server.URL + "/p.yaml]", notLocal},
		"a server's patch":       {"resources: [p.yaml]\npatches: [{path: '" + server.URL + "'}]", notLocal},
		"a server's old patch":   {"resources: [p.yaml]\npatchesStrategicMerge: ['" + server.URL + "']", notLocal},
		"a server's setting":     {"configMapGenerator: [{name: c, envs: ['" + server.URL + "']}]", notLocal},
		"a server's file":        {"configMapGenerator: [{name: c, files: ['a=" + server.URL + "']}]", notLocal},
		"a server's schema":      {"resources: [p.yaml]\nopenapi: {path: '" + server.URL + "'}", notLocal},
		"a server's replacement": {"resources: [p.yaml]\nreplacements: [{path: '" + server.URL + "'}]", notLocal},
		"a repository":           {"bases: ['git@example.com:a/b.git']", notLocal},
		"one on GitHub":          {"components: [GitHub.com/a/b]", notLocal}, // a folder of that name is there
		"a file of the host's":   {"resources: [/etc/passwd]\nnamePrefix: a", "/etc/passwd"},
		"a file outside":         {"resources: [../outside.yaml]\nnamePrefix: a", "outside.yaml"},
		"a link to one":          {"resources: [link.yaml]\nnamePrefix: a", "link.yaml"},
		"a folder outside":       {"resources: [../priv/app]", "tare reads bases in the same repository"},
		"a folder behind a link": {"resources: [./lp/app]\nnamePrefix: a", "in/lp is a link out of its folder"},
		"a file behind a link":   {"resources: [lp/app/p.yaml]\nnamePrefix: a", "in/lp is a link out of its folder"},
		"git's own files":        {"configMapGenerator: [{name: c, files: [its/config]}]", "its/config is git's own"},
		"what is hidden":         {"configMapGenerator: [{name: c, envs: [./.env]}]", "in/.env is hidden, and the record"},
		"a link to it":           {"configMapGenerator: [{name: c, files: [a=env]}]", "in/env is a link to what is hidden"},
		"a pipe":                 {"resources: [pipe]\nnamePrefix: a", "pipe: want a regular file"},
		"nothing there":          {"resources: [p.yaml]\npatches: [{path: missing.yaml}]", "missing.yaml: no such file"},
		"a generator":            {"generators: [p.yaml]", "it has generators, which tare does not carry out"},
		"Helm":                   {"helmCharts: [{name: a}]", "it has helmCharts"},
		"itself":                 {"resources: [../in]\nnamePrefix: a", "names itself"},
		"very much":              {"resources: [twice9]\nnamePrefix: a", "more than 1000 folders would be built"},
		"an unknown field":       {"resourcs: [p.yaml]", `unknown field "resourcs"`},
		"a patch of nothing": {
			"resources: [p.yaml]\npatches: [{patch: '- {op: remove, path: /x/y}', target: {name: p}}]", "/x/y",
		},
		"aliases of aliases": {"resources: [bomb.yaml]\nnamePrefix: a", "bomb.yaml:1: its aliases stand for more"},
		"those of a patch": {
			"resources: [p.yaml]\npatches:\n- patch: |\n    " + strings.ReplaceAll(bomb, "\n", "\n    "),
			"aliases stand for more",
		},
		"a folder without one": {"resources: [empty]\nnamePrefix: a", "a folder without a kustomization.yaml"},
	} {
		t.Run(name, func(t *testing.T) {
			content := map[string]string{
				"in/p.yaml": policy("p", isTrue), "outside.yaml": policy("q", isTrue), "in/kustomization.yaml": c.says,
				"in/GitHub.com/a/b/kustomization.yaml": "resources: []", "in/empty/x": "",
				"in/bomb.yaml":                policy("p", isTrue) + bomb,
				"priv/app/kustomization.yaml": "resources: [p.yaml]", "priv/app/p.yaml": policy("p", isTrue),
				"in/.git/config":               "token",
				"in/.env":                      "KEY=token",
				"in/twice0/kustomization.yaml": "resources: [p.yaml]", "in/twice0/p.yaml": policy("p", isTrue),
			}
			for i := range 10 {
				content[fmt.Sprintf("in/twice%d/kustomization.yaml", i+1)] = "resources: [a, b]\n"
				for _, half := range []string{"a", "b"} {
					content[fmt.Sprintf("in/twice%d/%s/kustomization.yaml", i+1, half)] = fmt.Sprintf(
						"namePrefix: %s\nresources: [../../twice%d]\n", half, i)
				}
			}
			dir := filepath.Join(written(t, content), "in")
			for link, to := range map[string]string{
				"link.yaml": "../outside.yaml", "lp": "../priv", "its": ".git", "env": ".env",
			} {
				if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
					t.Fatal(err)
				}
			}
			if err := unix.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
				t.Fatal(err)
			}
			_, err := Read(filepath.Join(dir, "kustomization.yaml"), false)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	if asked > 0 {
		t.Errorf("the server was asked %d times", asked)
	}
}

// TestKustomizationsAreBounded: what a few lines would make of very little ends with an error that says so.
func TestKustomizationsAreBounded(t *testing.T) {
	hosttest.SkipIfShort(t)
	const inMemory = "its patches, replacements or folders make so much that it takes more than 1024 MiB of memory"
	large := strings.Repeat("x", 1<<20) // so that few steps fill the memory
	for name, c := range map[string]struct{ each, says, want string }{
		"copies": {
			"patches: [{target: {kind: ConfigMap}, patch: '[%s]'}]", `{"op":"copy","from":"/data","path":"/data/x%d"},`, inMemory,
		},
		"replacements": {
			"replacements: [%s]", "{source: {kind: ConfigMap, fieldPath: data}, targets: [{select: {kind: ConfigMap}, " +
				"fieldPaths: [data.x%d], options: {create: true}}]},", inMemory,
		},
		"a large file in many": {
			"configMapGenerator: [%s]", "{name: g%d, files: [large]},", "what is built has more than 16 MiB",
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := strings.Builder{}
			for i := range 30 {
				fmt.Fprintf(&b, c.says, i)
			}
			at := written(t, map[string]string{
				"large": large, "c.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {a: " + large + "}",
				"kustomization.yaml": "resources: [c.yaml]\n" + fmt.Sprintf(c.each, strings.TrimSuffix(b.String(), ",")),
			})
			if _, err := Read(at, false); err == nil || !strings.Contains(err.Error(), "build "+at+": "+c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
		})
	}
	g, err := gather(written(t, map[string]string{
		"pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [" +
			strings.Repeat("{image: b},", 2000) + "]}",
		"kustomization.yaml": "resources: [pod.yaml]\nimages: [" + strings.Repeat("{name: b, newName: b},", 2000) + "]",
	}))
	if err != nil {
		t.Fatal(err)
	}
	g.Seconds = 1
	if _, err := g.build(); err == nil || !strings.Contains(err.Error(), "it takes more than 1 s of processor time") {
		t.Errorf("in a second: %v", err)
	}
	at := written(t, map[string]string{"kustomization.yaml": "resources: [big.yaml]", "big.yaml": ""})
	if err := os.Truncate(filepath.Join(at, "big.yaml"), 16<<20); err != nil {
		t.Fatal(err)
	}
	_, err = Read(filepath.Join(at, "kustomization.yaml"), false)
	if err == nil || !strings.Contains(err.Error(), "what the kustomization names has more than 16 MiB") {
		t.Errorf("a large file: %v", err)
	}
}

// FuzzKustomization: whatever a kustomization says, it is built or refused.
func FuzzKustomization(f *testing.F) {
	f.Add(overlay["prod/kustomization.yaml"])
	f.Add("resources: [p.yaml]\nvars: [{name: A, objref: {kind: X, name: p}}]\nreplicas: [{name: p, count: 2}]\n")
	f.Fuzz(func(t *testing.T, says string) {
		at := written(t, map[string]string{"kustomization.yaml": says, "p.yaml": policy("p", isTrue), "settings.txt": "a=b"})
		_, _ = Read(filepath.Join(at, "kustomization.yaml"), false) // an error is an answer
	})
}

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
