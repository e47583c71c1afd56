package decision

import (
	"runtime"
	"strconv"
	"strings"
	"testing"

	"tare/areas/decision/engine"
	"tare/rigs/hosttest"
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
		{"schema < 3 &&", "schema < 3 && # three", ""},
		{"schema < 3 &&", "schema < 3 &&\n\t# three", "condition trusted"},
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
		{"reader": {"this": {}}}, "metadata": {"relations":
		{"reader": {"directly_related_user_types": [{"type": "user"}]}}}}]}`
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

// TestPoliciesOfOneName: the order of two decides, although a set names both in the same way, and so does a value that
// is called as what describes a policy is.
func TestPoliciesOfOneName(t *testing.T) {
	policy := func(id, effect string) string {
		return `<Policy PolicyId="` + id + `"><Description>one</Description><Rule Effect="` + effect + `"/></Policy>`
	}
	value := func(is string) string {
		return "<Policy PolicyId='p'><AttributeValue><a/><Description>" + is + "</Description></AttributeValue></Policy>"
	}
	for _, c := range []struct{ was, is, want string }{
		{policy("p", "Permit") + policy("p", "Deny"), policy("p", "Deny") + policy("p", "Permit"), "s"},
		{
			policy("p", "Permit") + "<PolicySet PolicySetId='t'>" + policy("p", "Deny") + "</PolicySet>",
			policy("p", "Deny") + "<PolicySet PolicySetId='t'>" + policy("p", "Permit") + "</PolicySet>", "t",
		},
		{policy("p", "Permit"), strings.Replace(policy("p", "Permit"), "one", "other", 1), ""},
		{value("a"), value("b"), "p"},
	} {
		of := func(text string) []part {
			out, err := xacmlParts([]byte("<PolicySet PolicySetId='s'>" + text + "</PolicySet>"))
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		if got := strings.Join(differing(of(c.was), of(c.is)), " "); got != c.want {
			t.Errorf("%s: %q, want %q", c.is, got, c.want)
		}
	}
}

// TestLongNamesTakeLittleMemory: a name that stands for something in many parts is not written out in each of them.
func TestLongNamesTakeLittleMemory(t *testing.T) {
	hosttest.SkipIfShort(t) // under the race detector, too, where regular expressions keep no memory to use again
	const fgaStore = "store.fga.yaml"
	long := strings.Repeat("n", 900_000)
	many := func(of string) string {
		var out strings.Builder
		for i := range 3000 {
			out.WriteString(strings.ReplaceAll(of, "%d", strconv.Itoa(i)))
		}
		return out.String()
	}
	for name, c := range map[string]struct {
		kind       engine.Kind
		file, text string
	}{
		"an import": {engine.OPA, "p.rego", "package a\nimport data." + long + " as x\n" + many("r%d if x.a%d\n")},
		"versions":  {engine.OPA, "p.rego", "package a\n" + many("import rego.a%d\n") + many("r%d if x\n")},
		"a package": {engine.OPA, "p.rego", "package " + long + "\n" + many("r%d if x\n")},
		"rules":     {engine.OPA, "p.rego", "package a\n" + strings.Repeat("a\n", 900_000)},
		"a type":    {engine.OpenFGA, fgaStore, "model: |\n  type " + long + "\n" + many("    define r%d: [user]\n")},
		"a type's": {
			engine.OpenFGA, "m.json",
			`{"type_definitions": [{"type": "` + long + `", "relations": {` + many(`"r%d": {},`) + `"r": {}}}]}`,
		},
		"attributes": {engine.ATT, "p.xml", `<Policy xmlns:x="` + long + `">` + many(`<Rule x:a="%d"/>`) + "</Policy>"},
	} {
		files := map[string]string{c.file: c.text}
		if c.file == "m.json" {
			files[fgaStore] = "model_file: m.json\n"
		}
		at := written(t, files)
		if c.kind == engine.ATT {
			at += "/" + c.file
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		parts, err := partsOf(c.kind, at)
		runtime.ReadMemStats(&after)
		if took := (after.TotalAlloc - before.TotalAlloc) >> 20; err != nil || took > 512 || len(parts) == 0 {
			t.Errorf("%s: %d MiB, %d parts, %v", name, took, len(parts), err)
		}
	}
}
