package config

import (
	"bytes"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonschema "github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

// onlyParse lists the bad files that the schema cannot refuse: their errors depend on other fields, on the area, or on
// what JSON does not have.
var onlyParse = []string{
	"compare-no-load", "factor-conflict", "factor-product", "ladder-above-max", "max-rate-off-loopback",
	"max-rate-without-load", "merge-key",
	"percentages", "preset", "budget-baseline", "budget-scope-compare", "budget-scope-ladder", "budget-scope-search",
	"budget-scope-soak", "budget-treatment", "rate-above-max", "scale-points", "secret-in-url", "secret-token-anywhere",
	"slo-over-timeout", "soak",
	"spec-finding-on-target", "spin", "treatment-factor", "utf16", "workloads-elsewhere", "workloads-max-rate",
}

func TestSchemaRejectsWhatParseRejects(t *testing.T) {
	schema := compileSchema(t, testAreas())
	compared := 0
	for _, file := range glob(t, "testdata/bad/*.yaml") {
		name := filepath.Base(file[:len(file)-len(".yaml")])
		instance, ok := plainValue(read(t, file))
		if !ok {
			continue // not YAML, or no single document: nothing that a schema sees
		}
		compared++
		err := schema.Validate(instance)
		if listed := slices.Contains(onlyParse, name); listed == (err != nil) {
			t.Errorf("%s: listed as refused by Parse only: %v; the schema says: %v", name, listed, err)
		}
	}
	if compared < 40 {
		t.Errorf("only %d bad files could be compared", compared)
	}
}

func TestSchemaAcceptsGoodFiles(t *testing.T) {
	schema := compileSchema(t, testAreas())
	for _, file := range glob(t, "testdata/good/*.yaml") {
		instance, ok := plainValue(read(t, file))
		if !ok {
			t.Errorf("%s is not YAML", file)
			continue
		}
		if err := schema.Validate(instance); err != nil {
			t.Errorf("the schema rejects %s: %v", file, err)
		}
	}
}

// TestSchemaHasTheFieldsOfParse compares the names in the reflected schema with those that the parser walks.
func TestSchemaHasTheFieldsOfParse(t *testing.T) {
	for _, v := range []any{Experiment{}, Load{}, Pin{}, fakeSpec{}, fakeEmbedded{}, Workload{}} {
		typ := typeOf(v)
		schema, _, err := reflectSchema(typ, "")
		if err != nil {
			t.Fatal(err)
		}
		var got, want []string
		for p := schema.Properties.Oldest(); p != nil; p = p.Next() {
			got = append(got, p.Key)
		}
		for _, f := range fieldsOf(typ) {
			want = append(want, f.name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-walker +schema):\n%s", typ, diff)
		}
	}
}

func TestSchemaOfImpossibleType(t *testing.T) {
	if _, _, err := reflectSchema(typeOf(struct{ C chan int }{}), ""); err == nil {
		t.Error("a channel has a schema")
	}
}

func compileSchema(t *testing.T, areas Areas) *jsonschema.Schema {
	t.Helper()
	data, err := Schema(areas)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource(SchemaFile, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(SchemaFile)
	if err != nil {
		t.Fatalf("the schema is invalid: %v", err)
	}
	return s
}

// plainValue reads a file as a YAML library does, without tare's checks.
func plainValue(data []byte) (v any, ok bool) {
	if err := yaml.Load(data, &v); err != nil || v == nil {
		return nil, false
	}
	return jsonValue(v), true
}

// jsonValue converts YAML's maps and times to JSON's values.
func jsonValue(v any) any {
	switch x := v.(type) {
	case map[string]any:
		for k := range x {
			x[k] = jsonValue(x[k])
		}
	case []any:
		for i := range x {
			x[i] = jsonValue(x[i])
		}
	case nil, bool, string, int, int64, uint64, float64:
	default:
		return "x" // a time or the like: text to a JSON Schema
	}
	return v
}

// TestUnitPatternsAgree compares the schema's patterns with what package unit reads, and with what the file may
// contain.
func TestUnitPatternsAgree(t *testing.T) {
	numbers := []string{"", "0", "1", "10", "1.5", "1.", ".5", "1.2.3", "-1", "+1", "1e3", "1 ", "x", "²"}
	suffixes := []string{
		"", "s", "ms", "us", "µs", "μs", "ns", "m", "h", "d", "S", "sec", "m30s", "h5m2.5s", "d5h", "m 30s", "m30", "s later",
		"/s", "/sec", "/second", "/min", "/m", "/minute", "/h", "/hour", "/d", "/day", "k/s", "M/s", "G/s", "K/s", " k/s",
		"/ s", "k /s", "/week", "/", "/s/s",
		"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", "kB", "KB", "MB", "GB", "TB", "PB", "K", "kiB", "b", "%", " %",
		"%%", "percent",
	}
	for typ, form := range unitSchemas {
		pattern := regexp.MustCompile(form.pattern)
		for _, number := range numbers {
			for _, suffix := range suffixes {
				s := number + suffix
				w := &walker{bad: map[string]bool{}, within: map[string]bool{}, at: map[string]place{}}
				w.text("x", &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s}, reflect.New(typ).Elem())
				if read := len(w.diags) == 0; read != pattern.MatchString(s) {
					t.Errorf("%s: %q is read: %v, matches the pattern: %v", typ, s, read, !read)
				}
			}
		}
		for _, x := range form.examples {
			if text, ok := x.(string); !ok || !pattern.MatchString(text) {
				t.Errorf("%s: the example %v does not match", typ, x)
			}
		}
	}
}
