package decision

import (
	"strings"
	"testing"

	"tare/areas/decision/engine"
)

// TestModelsAreCutWhereOpenFGACutsThem: no line of a condition is taken for one of the model, and a model with lines
// that are not understood is compared as a whole.
func TestModelsAreCutWhereOpenFGACutsThem(t *testing.T) {
	const model = `model
  schema 1.1
type user
type doc
  relations
    define owner: [user]
    define reader: [
      user,
      user with trusted
    ] or owner
condition trusted(model: string, schema: int) {
  schema < 3 &&
  model in ["laptop"] ||
  type != "x}"
}
condition other(os: string) { os == "linux" }
`
	const all = "condition other condition trusted doc#owner doc#reader the model type doc type user"
	for _, c := range []struct{ from, to, want string }{
		{`model in ["laptop"]`, `model in ["laptop", "stolen"]`, "condition trusted"},
		{"schema < 3", "schema < 4", "condition trusted"},
		{`type != "x}"`, `type != "y}"`, "condition trusted"},
		{`"linux"`, `"mac"`, "condition other"},
		{"user with trusted\n", "user with other\n", "doc#reader"},
		{"user,\n", "user:*,\n", "doc#reader"},
		{"define owner: [user]", "define owner: [user:*]", "doc#owner"},
		{"    define owner: [user]", "# none\n    define owner:  [ user ] # one", ""},
		{"schema 1.1", "schema 1.2", ""},
		{"define owner: [user]", "define owner: [user]\n or reader", all},
		{"define owner: [user]", "define owner: [user]\rdefine x: [user]", all},
		{"type doc\n", "type doc type x\n", all},
		{`"x}"`, "\"\"\"x}\ntype doc\n\"\"\"", all},
	} {
		got := strings.Join(differing(modelParts(model), modelParts(strings.Replace(model, c.from, c.to, 1))), " ")
		if got != c.want {
			t.Errorf("%q: %q, want %q", c.to, got, c.want)
		}
	}
}

// TestModelsInJSON: a model whose fields have other names, which OpenFGA knows as well, is compared as a whole.
func TestModelsInJSON(t *testing.T) {
	const model = `{"schema_version": "1.1", "type_definitions": [{"type": "user"}, {"type": "doc", "relations":
		{"reader": {"this": {}}}, "metadata": {"relations": {"reader": {"directly_related_user_types": [{"type": "user"}]}}}}]}`
	of := func(model string) []part {
		out, err := partsOf(engine.OpenFGA, written(t, map[string]string{
			"store.fga.yaml": "model_file: model.json\n", "model.json": model,
		}))
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	const from, to = `[{"type": "user"}]}`, `[{"type": "user", "wildcard": {}}]}`
	for other, want := range map[string]string{"type_definitions": "doc#reader", "typeDefinitions": "the model"} {
		was := strings.Replace(model, "type_definitions", other, 1)
		if got := strings.Join(differing(of(was), of(strings.Replace(was, from, to, 1))), " "); got != want {
			t.Errorf("%s: %q, want %q", other, got, want)
		}
	}
}
