package own

import (
	"log/slog"
	"os"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"tare/areas/admission/engine"
	"tare/rigs/hosttest"
)

// TestFieldsOfKyvernoAreKnown: each field that the definitions of Kyverno's policies in YAML have is known to ask
// nobody, or to ask somebody.
func TestFieldsOfKyvernoAreKnown(t *testing.T) {
	host := engine.Host{Log: slog.New(slog.DiscardHandler), Getenv: os.LookupEnv}
	program, there, err := engine.Kyverno.Seek(t.Context(), engine.Kyverno.Default, host)
	if !there || err != nil {
		hosttest.Missing(t, "Kyverno "+engine.Kyverno.Default+" is not built", hosttest.Plane)
	}
	definitions, err := ReadObjects(program.Definitions)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	var walk func(p part, schema tree, at string)
	walk = func(p part, schema tree, at string) {
		if items, ok := schema["items"].(tree); ok {
			schema = items
		}
		fields, _ := schema["properties"].(tree)
		for name, in := range fields {
			parts, known := p[name]
			if seen++; !known && asking[name] == "" {
				t.Errorf("nobody knows whether %s.%s asks another server", at, name)
			}
			if field, _ := in.(tree); parts != nil {
				walk(parts, field, at+"."+name)
			}
		}
	}
	for _, o := range definitions {
		if k := definedBy(o); k.Group != kyvernoGroup || k.Kind != "ClusterPolicy" && k.Kind != "Policy" {
			continue
		}
		versions, _, _ := unstructured.NestedSlice(o.Object, "spec", "versions")
		for _, v := range versions {
			version, _ := v.(tree)
			spec, ok, err := unstructured.NestedMap(version, "schema", "openAPIV3Schema", "properties", "spec")
			if !ok || err != nil {
				t.Fatalf("%s: %v, %v", o.GetName(), ok, err)
			}
			name, _ := version["name"].(string)
			walk(quiet, spec, strings.Join([]string{o.GetName(), name, "spec"}, " "))
		}
	}
	if seen < 300 {
		t.Errorf("%d fields were seen", seen)
	}
}
