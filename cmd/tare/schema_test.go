package main

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	jsonschema "github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"

	"tare/internal/budget"
	"tare/internal/config"
	"tare/internal/design"
	"tare/internal/metric"
	"tare/internal/question"
	"tare/rigs/hosttest"
)

// schemaPath is the checked-in schema of experiment files, which is that of a binary with all areas.
var schemaPath = filepath.Join("..", "..", "schema", config.SchemaFile)

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
	if diff := cmp.Diff(string(want), fileText(t, schemaPath)); diff != "" {
		t.Errorf("%s is old; make schema (-want +checked in):\n%s", schemaPath, diff)
	}
}

// TestSchemaAndParseAgreeOnExamples has every example and template accepted by both, without so much as a warning.
func TestSchemaAndParseAgreeOnExamples(t *testing.T) {
	s := compiled(t)
	for name, text := range exampleFiles(t) {
		first, _, _ := strings.Cut(text, "\n")
		if !strings.HasPrefix(first, "# yaml-language-server: $schema=") || !strings.HasSuffix(first, config.SchemaFile) {
			t.Errorf("%s: the first line does not name the schema: %s", name, first)
		}
		if err := s.Validate(instance(t, []byte(text))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		parsedExample(t, name, text)
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
	good, s := fileText(t, "../../areas/identity/examples/gke-2020-ladder.yaml"), compiled(t)
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
		text := strings.Replace(good, swap[0], swap[1], 1)
		if text == good {
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
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(fileText(t, schemaPath)))
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

// exampleFiles returns all examples and templates by name, and changes to the folder from which they name files.
func exampleFiles(t *testing.T) map[string]string {
	t.Helper()
	t.Chdir(filepath.Join("..", ".."))
	files, err := filepath.Glob(filepath.Join("areas", "*", "examples", "*.yaml"))
	if err != nil || len(files) < 4 {
		t.Fatalf("%d examples, %v", len(files), err)
	}
	out := map[string]string{}
	for _, file := range files {
		out[file] = fileText(t, file)
	}
	for _, ar := range areas() {
		for _, question := range config.Templates(ar) {
			text, err := config.Template(ar, design.Question(question))
			if err != nil {
				t.Fatal(err)
			}
			out["template "+ar.Name()+"-"+question] = string(text)
		}
	}
	return out
}

// parsedExample reads an example as `tare validate` does, and wants no finding, not even a warning. It returns nil for
// one of an area that this tare has not.
func parsedExample(t *testing.T, name, text string) *config.Experiment {
	t.Helper()
	if ar := areaOf(text); !hasArea(ar) {
		hosttest.Untried(t, "this tare has no area "+ar, "build it with the area")
		return nil
	}
	e, found := config.Parse(name, []byte(text), config.List(areas()))
	if len(found) > 0 {
		t.Errorf("%s: got findings %v, want none", name, found)
	}
	return e
}

// TestRejectedBudgetsSuggestAcceptedOnes crosses every example and template with every budget. A budget that a
// rejection suggests is accepted, or rejected for another reason; every metric that an area forecasts is one that
// budgets know.
func TestRejectedBudgetsSuggestAcceptedOnes(t *testing.T) {
	hosttest.SkipIfShort(t)
	needsAreas(t, allAreas...)
	metrics := []string{"capacity", "slo_capacity", "permitted", "revoke", "pool_wait", "nothing"}
	for _, m := range metric.Known() {
		metrics = append(metrics, m.Name)
	}
	for _, m := range budget.ProbedMetrics() {
		metrics = append(metrics, m.Name)
	}
	suggestion := regexp.MustCompile(`^write (".*")$`)
	cells := map[string][2]int{} // accepted and refused, by area and question
	for name, text := range exampleFiles(t) {
		e := parsedExample(t, name, text)
		if e == nil {
			continue
		}
		scope := e.Scope()
		arms, forecast := map[string]budget.Arm{}, scope.Of // which takes longer than to judge a budget
		scope.Of = func(x *design.Treatment) budget.Arm {
			if _, known := arms[x.ID]; !known {
				arms[x.ID] = forecast(x)
			}
			return arms[x.ID]
		}
		cell := e.Area + " " + string(e.Question)
		for _, x := range scope.Treatments {
			arm := scope.Of(&x)
			if len(arm.Operations) == 0 && e.Area != "exec" || len(arm.Metrics) == 0 && arm.Unread == "" && !arm.Open {
				t.Errorf("%s: no forecast for %s: %+v", name, x.ID, arm)
			}
			for _, m := range arm.Metrics {
				if !slices.Contains(metrics, m) {
					t.Errorf("%s: no budget knows the metric %q", name, m)
				}
			}
		}
		for _, m := range metrics {
			for _, rest := range []string{
				" <= 1", " <= 1ms", " <= 5%", " <= +5%", " >= 10/s", " <= 1MiB", ".p99 <= 1ms",
				" drift <= 1ms/h", " <= 1ms at 20/s",
			} {
				b, err := budget.Parse(m + rest)
				if err != nil {
					t.Fatal(err)
				}
				r, n := scope.Refuse(b), cells[cell]
				if r == nil {
					cells[cell] = [2]int{n[0] + 1, n[1]}
					continue
				}
				cells[cell] = [2]int{n[0], n[1] + 1}
				if column := budget.Column(b.Text, r.Part); column < 1 || column > len(b.Text) || r.Reason == "" {
					t.Errorf("%s: %s: rejected at column %d: %v", name, b.Text, column, r)
				}
				if s := suggestion.FindStringSubmatch(r.Write); s != nil {
					text, err := strconv.Unquote(s[1])
					if err != nil {
						t.Fatal(err)
					}
					again, err := budget.Parse(text)
					if err != nil {
						t.Errorf("%s: %s: the suggestion cannot be parsed: %v", name, b.Text, err)
					} else if r2 := scope.Refuse(again); r2 != nil && r2.Part == r.Part && r2.Reason == r.Reason {
						t.Errorf("%s: %s: the suggestion %q is rejected: %v", name, b.Text, text, r2)
					}
				}
			}
		}
	}
	if len(cells) < 12 {
		t.Errorf("got only %v", cells)
	}
	for cell, n := range cells {
		if n[0] == 0 || n[1] == 0 {
			t.Errorf("%s: %d budgets are accepted, %d rejected", cell, n[0], n[1])
		}
	}
}
