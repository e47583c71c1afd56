package report

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	generate "github.com/invopop/jsonschema"
	validate "github.com/santhosh-tekuri/jsonschema/v6"

	"tare/internal/design"
	"tare/internal/limit"
	"tare/internal/signature"
)

const schemaFile = "../../schema/report.v1.json"

// definitionName tells the two types of the name Verdict apart.
func definitionName(t reflect.Type) string {
	if t == reflect.TypeFor[limit.Verdict]() {
		return "Limit"
	}
	return t.Name()
}

// closedWords are the closed sets of values. Limits and failures stay open: kinds and classes may be added within v1.
func closedWords(t reflect.Type) *generate.Schema {
	if t.Kind() == reflect.Uint64 {
		return &generate.Schema{Type: "integer", Minimum: json.Number("0")}
	}
	var all []any
	switch t {
	case reflect.TypeFor[Verdict]():
		for _, v := range Verdicts() {
			all = append(all, v)
		}
	case reflect.TypeFor[EffectVerdict]():
		for _, v := range EffectVerdicts() {
			all = append(all, v)
		}
	case reflect.TypeFor[ChangeVerdict]():
		all = []any{ShownHigher, ShownLower, NotShown, NotCompared}
	case reflect.TypeFor[Formula]():
		for _, f := range Formulas() {
			all = append(all, f)
		}
	case reflect.TypeFor[signature.Certainty]():
		all = []any{signature.Shown, signature.Likely, signature.NotKnown}
	case reflect.TypeFor[Status]():
		all = []any{Complete, Interrupted, Killed, Errored}
	case reflect.TypeFor[design.Question]():
		all = []any{design.Compare, design.Scale, design.Capacity, design.Soak, design.Guard}
	default:
		return nil
	}
	return &generate.Schema{Type: "string", Enum: all}
}

func generated(t *testing.T) []byte {
	t.Helper()
	// Fields may be added within v1, so a reader must put up with names that it does not know.
	r := generate.Reflector{AllowAdditionalProperties: true, Mapper: closedWords, Anonymous: true, Namer: definitionName}
	for pkg, dir := range map[string]string{
		"tare/internal/report": "./", "tare/internal/limit": "../limit", "tare/internal/signature": "../signature",
	} {
		if err := r.AddGoComments(pkg, dir); err != nil {
			t.Fatal(err)
		}
	}
	// Comments are keyed by package path and the folder that was read.
	comments := map[string]string{}
	for k, v := range r.CommentMap {
		comments[filepath.ToSlash(filepath.Clean(k))] = v
	}
	r.CommentMap = comments
	s := r.Reflect(&Report{})
	s.ID = "urn:tare:schema:report:v1"
	s.Title = "tare report"
	def, ok := s.Definitions["Report"]
	if !ok {
		t.Fatal("the schema has no definition of Report")
	}
	name, ok := def.Properties.Get("schema")
	if !ok {
		t.Fatal("the schema has no property schema")
	}
	name.Const = Schema
	// Series have null where nothing was measured, which a pointer's type does not show.
	for _, f := range [][2]string{{"BlockValues", "values"}, {"Timeline", "p50"}, {"Timeline", "p99"}} {
		field, ok := s.Definitions[f[0]].Properties.Get(f[1])
		if !ok || field.Items == nil {
			t.Fatalf("the schema has no series %s of %s", f[1], f[0])
		}
		field.Items = &generate.Schema{OneOf: []*generate.Schema{{Type: "number"}, {Type: "null"}}}
	}
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return append(b, '\n')
}

func TestSchemaIsCurrent(t *testing.T) {
	want := generated(t)
	if *update {
		if err := os.WriteFile(schemaFile, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(string(want), string(got)); d != "" {
		t.Errorf("%s is old; make schema (-want +checked in):\n%s", schemaFile, d)
	}
}

func compiled(t *testing.T) *validate.Schema {
	t.Helper()
	raw, err := os.ReadFile(schemaFile)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := validate.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := validate.NewCompiler()
	if err := c.AddResource("report.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("report.json")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestSchemaRefusesWhatIsWrong(t *testing.T) {
	s := compiled(t)
	for name, spoil := range map[string]func(map[string]any){
		"another version":  func(m map[string]any) { m["schema"] = "tare.report/v2" },
		"no verdict":       func(m map[string]any) { delete(m, "verdict") },
		"an unknown word":  func(m map[string]any) { m["verdict"] = "good" },
		"a number as text": func(m map[string]any) { m["seconds"] = "47" },
		"null for unknown": func(m map[string]any) { m["capacity"].([]any)[0].(map[string]any)["rate"] = nil },
		"no treatments":    func(m map[string]any) { delete(m, "treatments") },
		"negative count": func(m map[string]any) {
			m["operations"].([]any)[0].(map[string]any)["outcomes"].(map[string]any)["ok"] = -1
		},
		"outcomes left out": func(m map[string]any) {
			delete(m["operations"].([]any)[0].(map[string]any)["outcomes"].(map[string]any), "refused")
		},
	} {
		var m map[string]any
		if err := json.Unmarshal(encode(t, JSON, stored("accept-queue")), &m); err != nil {
			t.Fatal(err)
		}
		spoil(m)
		if s.Validate(m) == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}
