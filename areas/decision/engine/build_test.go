package engine

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/internal/build"
)

func TestJavaVersion(t *testing.T) {
	for out, want := range map[string]struct {
		version string
		major   int
	}{
		"openjdk version \"17.0.15\" 2025-04-15\nOpenJDK Runtime":                 {"17.0.15", 17},
		"openjdk version \"21\" 2023-09-19":                                       {"21", 21},
		"java version \"1.8.0_392\"":                                              {"1.8.0_392", 8},
		"openjdk version \"25-ea\" 2025-09-16":                                    {"25-ea", 25},
		"Picked up JAVA_TOOL_OPTIONS: -Dx\nopenjdk version \"17.0.1\" 2021-10-19": {"17.0.1", 17},
		"": {"", 0}, "version \"x\"": {"", 0},
	} {
		if version, major := javaVersion(out); version != want.version || major != want.major {
			t.Errorf("version of %q: got %q, %d", out, version, major)
		}
	}
}

// TestVersionsMatchTheBuildFiles: a launch reports the versions in the build files.
func TestVersionsMatchTheBuildFiles(t *testing.T) {
	for file, want := range map[string]string{
		"_opa/go.mod.txt":         "github.com/open-policy-agent/opa v" + opa.version + "\n",
		"_openfga/go.mod.txt":     "github.com/openfga/openfga v" + openFGA.version + "\n",
		"xacml/att.sha256":        "/xacml-pdp-" + lastWord(xacmlVersions[ATT]) + ".jar\n",
		"xacml/authzforce.sha256": "/authzforce-ce-core-pdp-engine-" + lastWord(xacmlVersions[AuthzForce]) + ".jar\n",
	} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %q", file, want)
		}
	}
}

func lastWord(words string) string {
	f := strings.Fields(words)
	return f[len(f)-1]
}

// TestCurrentBuilds: Find uses exactly the builds that count as current.
func TestCurrentBuilds(t *testing.T) {
	h := Host{Cache: t.TempDir(), Getenv: func(string) (string, bool) { return "", false }}
	_, name, err := opa.module()
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(h.Cache, name), 0o700); err != nil {
		t.Fatal(err)
	}
	l, err := Find(t.Context(), OPA, h)
	if err != nil {
		t.Fatal(err)
	}
	current, err := h.Current()
	if err != nil {
		t.Fatal(err)
	}
	if folder := filepath.Base(filepath.Dir(l.Path)); !current(folder) || current("opa-1.0.0-0123456789ab") ||
		current("xacml-att-0123456789ab") {
		t.Errorf("%s is not current, or something else is", folder)
	}
	for _, k := range []Kind{ATT, AuthzForce} {
		if r, err := xacmlRecipe(k, h); err != nil || !current(r.Name) {
			t.Errorf("%s is not current: %v", r.Name, err)
		}
	}
	items, err := h.Built().Items(build.Survey{Wanted: current})
	if err != nil || len(items) != 1 || items[0].State != build.Current {
		t.Errorf("got builds %+v, %v; want one that is current", items, err)
	}
}
