package own

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"tare/areas/bundle"
)

// expressions are of all shapes that CEL has.
var expressions = []string{
	"!has(object.spec.hostNetwork) || object.spec.hostNetwork == false",
	"object.spec.containers.all(c, !(c.image.matches('^a b//c$')) && c.name in ['x', \"y z\", '''a ' b'''])",
	"object.?metadata[?'labels'].orValue({'a': 1, 'b': -2.5e3}) != {} ? 1u : -(3 - 2) * 4 % 5",
	"variables.x - -1 > 0x1F && r'a\\b // c' != b\"\\x00 '\" && Object{spec: Object.spec{a: null}}.spec.a == null",
	"[1, 2, 3].exists_one(i, i > 1 && !(i == 2 || i<=-1)) // a comment\n&& true",
}

// TestCompactCEL: an expression that is laid out otherwise is the same, and shorter; whatever else is changed in one is
// not, unless it is parsed to the same.
func TestCompactCEL(t *testing.T) {
	for was, is := range map[string]string{
		"!variables.hn": "! variables.hn", "a && b": "a  // c\n  &&b", "x in y": "x\tin  y", "'a  b'": " 'a  b' ",
	} {
		if compactCEL(was) != compactCEL(is) {
			t.Errorf("%q and %q differ: %q, %q", was, is, compactCEL(was), compactCEL(is))
		}
	}
	for was, is := range map[string]string{
		"'a  b'": "'a b'", "1 + 2": "1 +", "(-a).b": "-(a.b)", "r'\\'": "r'\\ '", "a - b": "a-b // '\n+ '", "'//x'": "'//y'",
		"a.b": "a b", "inx": "in x", "a && b || c": "a && (b || c)", "1.0": "1 .0", "'''a\n'''": "'''a \n'''",
	} {
		if compactCEL(was) == compactCEL(is) {
			t.Errorf("%q and %q are the same: %q", was, is, compactCEL(is))
		}
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	same := 0
	for range 5_000 {
		was := expressions[random.IntN(len(expressions))]
		is := edited(random, was)
		if was == is || compactCEL(was) != compactCEL(is) {
			continue
		}
		same++
		if parsed(was) == "" || parsed(was) != parsed(is) {
			t.Fatalf("%q and %q are the same: %q", was, is, compactCEL(is))
		}
	}
	if same < 100 {
		t.Errorf("%d of the changed expressions are the same", same)
	}
}

// edited is a text in which some characters are gone, others, or more.
func edited(random *rand.Rand, text string) string {
	const others = " \n\t/'\"\\#`.-!()xr0"
	for range 1 + random.IntN(3) {
		i := random.IntN(len(text))
		c := string(others[random.IntN(len(others))])
		text = text[:i] + []string{"", c, c + text[i:i+1]}[random.IntN(3)] + text[i+1:]
	}
	return text
}

// TestCompactRego: Rego with other comments, blank lines and indentation is the same. What is not white space is kept
// in its order, and so are the ends of lines and what stands apart.
func TestCompactRego(t *testing.T) {
	const rego = "package a\n\nviolation[{\"msg\": msg}] {\n  # c\n\tx := input.a [0]  ; y := `b\n  # c`\n  msg := \"# d\"\n}\n"
	for name, is := range map[string]string{
		"comments":    strings.Replace(rego, "  # c\n\t", "  # other\n\n  # more\n\t", 1),
		"indentation": strings.Replace(strings.Replace(rego, "\tx", "     x", 1), "  msg", "\r\n msg", 1),
		"blanks":      strings.Replace(rego, "]  ;", "] ;", 1), "the end": strings.TrimSpace(rego) + " # x",
	} {
		if d := cmp.Diff(compactRego(rego), compactRego(is)); d != "" {
			t.Errorf("%s (-was +is):\n%s", name, d)
		}
	}
	for name, is := range map[string]string{
		"a string": strings.Replace(rego, "# d", "# e", 1), "a raw string": strings.Replace(rego, "b\n  # c", "b\n # c", 1),
		"a line": strings.Replace(rego, "msg := ", "msg :=\n", 1), "apart": strings.Replace(rego, "a [0]", "a[0]", 1),
		"a word": strings.Replace(rego, "input.a", "input.b", 1), "metadata": strings.Replace(rego, "# c", "# METADATA", 1),
		"commented out": strings.Replace(rego, "\tx", "#\tx", 1),
	} {
		if compactRego(rego) == compactRego(is) {
			t.Errorf("%s: the same", name)
		}
	}
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // repeatable
	words := func(text string) []string {
		return slices.DeleteFunc(bundle.RegoWords(text), func(w string) bool {
			return strings.TrimSpace(w) == "" || w[0] == '#'
		})
	}
	same := 0
	for range 5_000 {
		is := edited(random, rego)
		if is == rego || compactRego(is) != compactRego(rego) {
			continue
		}
		same++
		if d := cmp.Diff(words(rego), words(is)); d != "" {
			t.Fatalf("%q is the same (-was +is):\n%s", is, d)
		}
	}
	if same < 100 {
		t.Errorf("%d of the changed texts are the same", same)
	}
}

// TestUnaskedLayout: layout, comments, descriptions and the order of alternatives are not named. A field that is called
// description, and one within a default, are.
func TestUnaskedLayout(t *testing.T) {
	full := strings.NewReplacer(
		"crd: {spec: {names: {kind: Ban}}}", `crd: {spec: {names: {kind: Ban}, validation: {openAPIV3Schema: {type: object,
    description: d1, properties: {description: {type: string, description: d2},
    a: {type: object, default: {description: d3}, items: {description: d4}}}}}}}`,
		"rego: package ban", "rego: \"package ban\\n# c\\nx { true }\"",
		"matchConditions: [", "matchConditions: [{name: d, expression: 'a == b'}, ",
		"      any:\n", "      any:\n      - resources: {kinds: [Service], operations: [UPDATE]}\n",
		"metadata: {name: k}", "metadata: {name: k, annotations: {"+autogen+": 'Job,CronJob'}}",
		"expression: 'true'", "expression: '!object.a'",
	).Replace(guarding)
	const (
		silent   = ""
		services = "      - resources: {kinds: [Service], operations: [UPDATE]}\n"
		pods     = "      - resources: {kinds: [Pod, apps/v1/Deployment], namespaces: [a, b]}\n" +
			"        subjects: [{kind: User, name: x}]\n"
	)
	for name, c := range map[string]struct{ was, is, want string }{
		"a description":            {"d1", "e1", silent},
		"a description of a field": {"d2", "e2", silent},
		"a description of items":   {"d4", "e4", silent},
		"a default":                {"d3", "e3", "ConstraintTemplate ban (spec.crd)"},
		"a field named so": {
			"{description: {type: string", "{description: {type: integer", "ConstraintTemplate ban (spec.crd)",
		},
		"a comment":                  {"# c", "# d", silent},
		"Rego":                       {"{ true }", "{ false }", "(spec.targets[0].rego)"},
		"white space in CEL":         {"'!object.a'", "'! object.a '", silent},
		"CEL":                        {"'!object.a'", "'! object.b '", `(spec.validations: "!object.a")`},
		"white space in a condition": {"'a == b'", "'a==b'", silent},
		"conditions in another order": {
			`{name: d, expression: 'a == b'}, {name: c, expression: "request.userInfo.username != 'root'"}`,
			`{name: c, expression: "request.userInfo.username != 'root'"}, {name: d, expression: 'a == b'}`, silent,
		},
		"alternatives in another order": {services + pods, pods + services, silent},
		"controllers in another order":  {"Job,CronJob", "CronJob,Job", silent},
		"other controllers":             {"Job,CronJob", "CronJob", "autogen-controllers"},
		"a binding's name":              {"{name: b}", "{name: d}", silent},
		"a constraint's name":           {"metadata: {name: c}", "metadata: {name: d}", silent},
	} {
		if !strings.Contains(full, c.was) {
			t.Fatalf("%s: nothing has %q", name, c.was)
		}
		base := read(t, map[string]string{"a.yaml": full})
		is := read(t, map[string]string{"a.yaml": strings.Replace(full, c.was, c.is, 1)})
		if got := fmt.Sprint(unasked(is, base)); (c.want == silent) != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
