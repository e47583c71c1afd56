package own

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/areas/bundle"
)

// TestSecretsStayBehind: a record has no Secret of the bundle's, and the policies beside it keep their places.
func TestSecretsStayBehind(t *testing.T) {
	const secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData:\n  a: hidden\n"
	first, second := policy("p", isTrue), policy("q", isTrue)
	list := `{"apiVersion": "v1", "kind": "List", "items": [` +
		`{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "l"}, "data": {"a": "hidden"}},` +
		`{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}]}` + "\n"
	content := map[string]string{
		"several.yaml": "# Secret\n" + first + "---\n" + secret + "---\n" + second + "---\n" + list,
		"only.yml":     secret, "a/list.json": list, "a/.env": "hidden", "a/key.pem": "hidden", ".git/config": "hidden",
		"policy-about-secrets.yaml": policy("r", "  validations: [{expression: \"object.kind != 'Secret'\"}]\n"),
	}
	from := written(t, content)
	build := written(t, map[string]string{
		"p.yaml": first, "kustomization.yaml": "resources: [p.yaml]\nsecretGenerator: [{name: g, literals: [a=hidden]}]\n",
	})
	for _, bundled := range []string{from, filepath.Join(from, "several.yaml"), build} {
		to := t.TempDir()
		if err := Copy(to, "copy"+Ext(bundled), bundled); err != nil {
			t.Fatal(err)
		}
		err := bundle.Each(to, func(name string, text []byte) error {
			if strings.Contains(string(text), "hidden") || strings.Contains(string(text), "aGlkZGVu") {
				t.Errorf("%s of %s holds the secret:\n%s", name, bundled, text)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		was, err := Read(bundled, false)
		if err != nil {
			t.Fatal(err)
		}
		is, err := Read(filepath.Join(to, "copy"+Ext(bundled)), false)
		if err != nil || len(is.Policies) != len(was.Policies) || is.Left["ConfigMap"] != was.Left["ConfigMap"] {
			t.Fatalf("%+v, %v, want %+v", is, err, was)
		}
		for i := range is.Policies {
			if a, b := is.Policies[i].At(), was.Policies[i].At(); a.Line != b.Line && bundled != build {
				t.Errorf("%s stands at %v, and stood at %v", is.Policies[i].Name, a, b)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(from, "a/key.pem")); err != nil {
		t.Error(err)
	}
}
