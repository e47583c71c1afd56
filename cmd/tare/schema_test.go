package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonschema "github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"tare/internal/config"
	"tare/internal/design"
	"tare/internal/question"
	"tare/rigs/hosttest"
)

// schemaPath is the checked-in schema of experiment files, which is that of a binary with all areas.
var schemaPath = filepath.Join("..", "..", "schema", config.SchemaFile)

func checkedIn(t *testing.T) []byte {
	t.Helper()
	text, err := os.ReadFile(schemaPath)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestSchemaIsCurrent(t *testing.T) {
	needsAreas(t, allAreas...)
	want, err := config.Schema(config.List(areas()))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile(schemaPath, want, 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(string(want), string(checkedIn(t))); diff != "" {
		t.Errorf("%s is old; make schema (-want +checked in):\n%s", schemaPath, diff)
	}
}

// TestSchemaAndParseAgreeOnExamples has every example and template accepted by both, without so much as a warning.
func TestSchemaAndParseAgreeOnExamples(t *testing.T) {
	s := compiled(t)
	files := map[string][]byte{}
	t.Chdir(filepath.Join("..", "..")) // they name files from there
	paths, err := filepath.Glob("areas/*/examples/*.yaml")
	if err != nil || len(paths) < 4 {
		t.Fatalf("examples: %v, %v", paths, err)
	}
	for _, path := range paths {
		if files[path], err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
	}
	for _, ar := range areas() {
		for _, question := range config.Templates(ar) {
			if files["template "+ar.Name()+"-"+question], err = config.Template(ar, design.Question(question)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, data := range files {
		first, _, _ := strings.Cut(string(data), "\n")
		if !strings.HasPrefix(first, "# yaml-language-server: $schema=") || !strings.HasSuffix(first, config.SchemaFile) {
			t.Errorf("%s: the first line does not name the schema: %s", name, first)
		}
		if err := s.Validate(instance(t, data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if ar := areaOf(string(data)); !hasArea(ar) {
			hosttest.Untried(t, "this tare has no area "+ar, "build it with the area")
			continue
		}
		_, ds := config.Parse(name, data, config.List(areas()))
		for _, d := range ds {
			t.Error(d)
		}
	}
}

// TestTemplatesExist: what an area answers can be started from.
func TestTemplatesExist(t *testing.T) {
	for _, a := range areas() {
		for _, q := range question.All() {
			if q.Needs(a.Offers()).Given && !slices.Contains(config.Templates(a), string(q.Name)) {
				t.Errorf("no template for %s × %s", a.Name(), q.Name)
			}
		}
	}
}

// TestTemplateCommentsAreTrue turns on what a template has commented out, one field at a time.
func TestTemplateCommentsAreTrue(t *testing.T) {
	needsAreas(t, "identity")
	identity, _ := config.List(areas()).Find("identity")
	data, err := config.Template(identity, design.Capacity)
	if err != nil {
		t.Fatal(err)
	}
	s := compiled(t)
	tried := 0
	for _, swap := range [][2]string{
		{"  embedded: {preset: sts-quota-reject}", "  url: http://169.254.169.254"},
		{"  # operation:", "  operation:"},
		{"  # identities:", "  identities:"},
		{"# treatments:", "treatments:"},
		{"  # rate:", "  rate:"},
		{"  # slo:", "  slo:"},
		{"  # max_time:", "  max_time:"},
		{"  # rates: [10/s, 100/s, 1000/s]\n  # duration:", "  rates: [10/s, 100/s, 1000/s]\n  duration:"},
		{"  # - response", "  - response"},
		{"# seed:", "seed:"},
		{"# pin:", "pin:"},
	} {
		text := strings.Replace(string(data), swap[0], swap[1], 1)
		if strings.Contains(swap[1], "rates:") { // a ladder finds no capacity that could be limited
			text = strings.Replace(text, "  - capacity >= 50/s", "  - response.p99 <= 500ms at 100/s", 1)
		}
		if text == string(data) {
			t.Errorf("the template lacks %q", swap[0])
			continue
		}
		tried++
		if _, ds := config.Parse("template", []byte(text), config.List(areas())); len(ds) > 0 {
			t.Errorf("with %q: %v", swap[1], ds)
		}
		if err := s.Validate(instance(t, []byte(text))); err != nil {
			t.Errorf("with %q: %v", swap[1], err)
		}
	}
	if tried < 8 {
		t.Errorf("tried %d only", tried)
	}
}

// TestBothRefuse changes one thing in a good file at a time.
func TestBothRefuse(t *testing.T) {
	needsAreas(t, "identity")
	good, err := os.ReadFile("../../areas/identity/examples/gke-2020-ladder.yaml")
	if err != nil {
		t.Fatal(err)
	}
	s := compiled(t)
	for _, swap := range [][2]string{
		{"area: identity", "area: identities"},
		{"question: capacity", "question: speed"},
		{"question: capacity", "question: compare"},
		{"preset: blog-2020", "preset: blog-2021"},
		{"preset: blog-2020", "backlog: many"},
		{"embedded:", "imbedded:"},
		{"adapter: gce-metadata, ", ""},
		{"gce-metadata", "imdsv3"},
		{"duration: 5s", "duration: 5"},
		{"timeout: 30s", "timeout: 30s later"},
		{"  duration: 5s\n", ""},
		{"max_connections: 4096", "max_connections: 0"},
		{"arrivals: constant", "closed: {workers: 3}"},
		{"10/s, 100/s", "10, 100/s"},
		{"name: gke-2020-ladder", "name: a/b"},
		{"name: gke-2020-ladder\n", ""},
		{"load:", "lood:"},
	} {
		text := strings.Replace(string(good), swap[0], swap[1], 1)
		if text == string(good) {
			t.Fatalf("the example lacks %q", swap[0])
		}
		if _, ds := config.Parse("x.yaml", []byte(text), config.List(areas())); !config.HasErrors(ds) {
			t.Errorf("Parse accepts %q", swap[1])
		}
		if s.Validate(instance(t, []byte(text))) == nil {
			t.Errorf("the schema accepts %q", swap[1])
		}
	}
}

func compiled(t *testing.T) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(checkedIn(t)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	if err := c.AddResource(config.SchemaFile, doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile(config.SchemaFile)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func instance(t *testing.T, data []byte) any {
	t.Helper()
	var v any
	if err := yaml.Load(data, &v); err != nil {
		t.Fatal(err)
	}
	return v
}
