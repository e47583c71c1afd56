package own

import (
	"maps"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestUnaskedBeside: what stands beside policies that ask for no objects is compared unless it is known to say nothing
// about them: a deployer may leave policies out, or change them, and take values of what stands there.
func TestUnaskedBeside(t *testing.T) {
	type files = map[string]string
	const (
		flux   = "kind: Kustomization\napiVersion: kustomize.toolkit.fluxcd.io/v1\nmetadata: {name: z, namespace: f}\n"
		source = `{"kind": "GitRepository", "apiVersion": "source.toolkit.fluxcd.io/v1", "metadata": {"name": "z"}}`
		values = "kind: ConfigMap\napiVersion: v1\nmetadata: {name: values, namespace: f}\ndata: "
		object = "apiVersion: v1\nmetadata: {name: p}\n"
		test   = "kind: Test\napiVersion: cli.kyverno.io/v1alpha1\nmetadata: {name: t}\n"
	)
	for name, c := range map[string]struct {
		was, is files
		want    string
	}{
		"where Flux finds what it deploys": {
			files{"z.yaml": flux + "spec: {path: ./a}\n"}, files{"z.yaml": flux + "spec: {path: ./b}\n"}, "Kustomization f/z",
		},
		"where Flux gets it": {nil, files{"z.json": source}, "GitRepository z"},
		"in a hidden file":   {nil, files{".z.json": source}, "GitRepository z"},
		"values that a deployer puts in": {
			files{"z.yaml": values + "{a: b}\n"}, files{"z.yaml": values + "{}\n"}, "ConfigMap f/values",
		},
		"the same in another file": {
			files{"z.yaml": values + "{a: b}\n"}, files{"y.yaml": "# x\n" + values + "{ a: b}\n"}, "",
		},
		"a Secret": {nil, files{"z.yaml": object + "kind: Secret\n"}, "Secret p"},
		"a pod":    {nil, files{"z.yaml": object + "kind: Pod\n"}, ""},
		"a chart's values": {
			files{"values.yaml": "a: b\n"}, files{"values.yaml": "a: c\n"}, "file values.yaml",
		},
		"in another layout": {
			files{"values.yaml": "{a: b, c: d}\n"}, files{"values.yaml": "# x\n---\nc: d\na: b\n"}, "",
		},
		"in a hidden folder":    {nil, files{".github/values.yaml": "a: b\n"}, ""},
		"Rego":                  {files{"src/a.rego": "package a\n"}, nil, "file src/a.rego"},
		"what Argo CD renders":  {nil, files{"x.jsonnet": "{}"}, "file x.jsonnet"},
		"what makes it a chart": {nil, files{"Chart.yaml": "name: x\n"}, "file Chart.yaml"},
		"what Fleet leaves out": {nil, files{"x/.fleetignore": "*\n"}, "file x/.fleetignore"},
		"a module's bytes":      {files{"a.wasm": "\xff"}, files{"a.wasm": "\xfe"}, "file a.wasm"},
		"what describes": {
			files{"artifacthub-pkg.yml": "a: b\n"}, files{"artifacthub-pkg.yml": "a: c\n"}, "",
		},
		"a test":          {nil, files{"kyverno-test.yaml": test}, ""},
		"a kustomization": {nil, files{"kustomization.yaml": "resources: [a.yaml]\n"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			with := func(more files) *Set {
				out := files{"a.yaml": policy("p", isTrue)}
				maps.Copy(out, more)
				return read(t, out)
			}
			want := c.want
			if want != "" {
				want = "what tare leaves aside differs: " + want
			}
			if d := cmp.Diff(want, unasked(with(c.is), with(c.was))); d != "" {
				t.Errorf("differences (-want +got):\n%s", d)
			}
		})
	}
}

// TestUnaskedDeploying: what tells Flux or Argo CD to leave out or to change what is deployed is compared in a folder
// that is built, in those that are built for it, and above all of them.
func TestUnaskedDeploying(t *testing.T) {
	const argo = "kustomize: {patches: [{target: {kind: ValidatingAdmissionPolicyBinding}, patch: '[]'}]}\n"
	for name, c := range map[string]struct{ file, in, want string }{
		"what Argo CD patches":         {"team/prod/.argocd-source.yaml", argo, "file .argocd-source.yaml"},
		"how Fleet deploys it":         {"team/prod/fleet.yaml", "kustomize: {dir: other}\n", "file fleet.yaml"},
		"what Flux leaves out":         {"team/prod/.sourceignore", "/*\n", "file .sourceignore"},
		"of a base":                    {"base/.sourceignore", "/*\n", "file ../../base/.sourceignore"},
		"at the top of the repository": {".sourceignore", "base\n", "file ../../.sourceignore"},
		"beside it":                    {"other/.sourceignore", "/*\n", ""},
	} {
		for _, kustomization := range []string{"resources: [../../base]\n", ""} {
			if kustomization == "" && name == "of a base" {
				continue
			}
			with := func(file string) *Set {
				files := map[string]string{
					".git/HEAD": "", "base/kustomization.yaml": "resources: [p.yaml]\n", "base/p.yaml": policy("p", isTrue),
					"team/prod/kustomization.yaml": kustomization,
				}
				if kustomization == "" {
					delete(files, "team/prod/kustomization.yaml")
					files["team/prod/p.yaml"] = policy("p", isTrue)
				}
				if file != "" {
					files[file] = c.in
				}
				s, err := Read(filepath.Join(written(t, files), "team", "prod"), false)
				if err != nil {
					t.Fatal(err)
				}
				return s
			}
			want := c.want
			if want != "" {
				want = "what tare leaves aside differs: " + want
			}
			if d := cmp.Diff(want, unasked(with(c.file), with(""))); d != "" {
				t.Errorf("%s, %q (-want +got):\n%s", name, kustomization, d)
			}
		}
	}
}
