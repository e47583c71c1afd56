package cedarset

import (
	"fmt"
	"math"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/cedar-policy/cedar-go"

	"tare/areas/bundle"
)

// TestNestedPoliciesEnd: a stranger's policy neither fills the stack nor is refused for being long.
func TestNestedPoliciesEnd(t *testing.T) {
	const often = 200_000
	repeat := strings.Repeat
	for name, of := range map[string]func(n int) string{
		"brackets": func(n int) string { return repeat("(", n) + "true" + repeat(")", n) },
		"sets":     func(n int) string { return repeat("[", n) + repeat("]", n) + " == []" },
		"records":  func(n int) string { return repeat("{a: ", n) + "1" + repeat("}", n) + " == {}" },
		"not":      func(n int) string { return repeat("!", n) + "true" },
		"minus":    func(n int) string { return repeat("-", n) + "1 == 1" },
		"and":      func(n int) string { return "true" + repeat(" && true", n/2) },
		"or":       func(n int) string { return "true" + repeat(" || true", n/2) },
		"plus":     func(n int) string { return "1" + repeat("+1", n) + " == 1" },
		"members":  func(n int) string { return "principal" + repeat(".a", n) },
		"has": func(n int) string { // what is made of a path is the square of its length
			return "principal has a" + repeat(".a", int(math.Sqrt(2*float64(n)))-2)
		},
		"indices": func(n int) string { return "principal" + repeat(`["a"]`, n) },
		"if":      func(n int) string { return repeat("if true then true else ", n) + "true" },
		"quoted":  func(n int) string { return `"\"" == "a" && ` + repeat("(", n) + "true" + repeat(")", n) },
	} {
		t.Run(name, func(t *testing.T) {
			nested := func(n int) error {
				_, err := Read(written(t, tree{"a.cedar": "// ((\nforbid (principal, action, resource);\n\n" +
					"permit (principal, action, resource) when { " + of(n) + " };\n"}))
				return err
			}
			if err := nested(often); err == nil || !strings.Contains(err.Error(), "a.cedar:4: more than 20000 brackets") {
				t.Errorf("%v", err)
			}
			if err := nested(mostNested - 10); err != nil && strings.Contains(err.Error(), "more than") { // or Cedar refuses it
				t.Errorf("what is nested less: %v", err)
			}
		})
	}
	file := filepath.Join(written(t, tree{"a.cedar": "permit (principal, action, resource) when { [" +
		repeat(`User::"a;((", User::"\"((", `, 50_000) + repeat("resource.hash.iffy, resource.has_a.b.xif, ", 3_500) +
		`User::"b"].contains(principal) };`}), "a.cedar")
	if s, err := Read(file); err != nil || s.Policies.Get(cedar.PolicyID(file+"#policy0")) == nil {
		t.Errorf("a long list: %v", err)
	}
}

// TestNestedSchemasEnd: nor does a schema.
func TestNestedSchemasEnd(t *testing.T) {
	_, err := Read(written(t, tree{
		"a.cedar": "permit (principal, action, resource);",
		"a.cedarschema": "entity User = {a: " + strings.Repeat("Set<", 200_000) + "Long" +
			strings.Repeat(">", 200_000) + "};\n",
	}))
	if err == nil || !strings.Contains(err.Error(), "a.cedarschema:1: more than 20000 brackets") {
		t.Error(err)
	}
}

// TestSmallFilesThatMeanMuch: a few lines that stand for more than any memory, or for hours, are refused.
func TestSmallFilesThatMeanMuch(t *testing.T) {
	const all, tooMuch = "permit (principal, action, resource);", "a.cedarschema: more than 200000 types"
	many := func(n int, of func(i int) string) string {
		var out strings.Builder
		for i := range n {
			out.WriteString(of(i))
		}
		return out.String()
	}
	doubled := "type T0 = {a: String, b: String};\n" +
		many(25, func(i int) string { return fmt.Sprintf("type T%[2]d = {a: T%[1]d, b: T%[1]d};\n", i, i+1) })
	using := func(name string) string {
		return "entity U; action x appliesTo {principal: U, resource: U, context: " + name + "};"
	}
	name := "N" + strings.Repeat("n", 100_000)
	entities := "E" + many(500, func(i int) string { return fmt.Sprintf(", E%d", i) })
	actions := "action a" + many(2500, func(i int) string { return fmt.Sprintf(", a%d", i) }) + ";"
	long := "permit (principal == ?principal, action, resource) when { 1 == 1" + strings.Repeat(" && 1 == 1", 5000) + " };"
	link := func(i int) string {
		return fmt.Sprintf(`{"template_id": "a", "link_id": "%d", "args": {"?principal": "U::\"ann\""}},`, i)
	}
	for name, c := range map[string]struct{ policies, schema, links, want string }{
		"names of names":   {all, doubled + using("T25"), "", tooMuch},
		"in a namespace":   {all, "namespace A {" + doubled + using("T25") + "}", "", tooMuch},
		"in another":       {all, "namespace A {" + doubled + "}" + using("A::T25"), "", tooMuch},
		"of an entity":     {all, doubled + "entity E = {a: T25};", "", tooMuch},
		"tags":             {all, doubled + "entity E tags Set<T25>;", "", tooMuch},
		"a name of itself": {all, "type T = {a: T};" + using("T"), "", "cycle detected"},
		"fewer":            {all, doubled + using("T15"), "", ""},
		"pairs": {
			all, "entity " + entities + "; action x appliesTo {principal: [" + entities + "], resource: [" + entities + "]};",
			"", tooMuch,
		},
		"a long namespace": {all, "namespace " + name + " {" + many(300, func(i int) string {
			return fmt.Sprintf("entity E%d;", i)
		}) + "}", "", tooMuch},
		"a long namespace of types": {all, "namespace " + name + " {" + many(300, func(i int) string {
			return fmt.Sprintf("type T%d = Long;", i)
		}) + "}", "", tooMuch},
		"a long name": {all, "entity " + name + "; entity E = {" + many(300, func(i int) string {
			return fmt.Sprintf("a%d: U::E, ", i)
		}) + "}; namespace U { entity E" + many(300, func(i int) string { return fmt.Sprintf(", E%d", i) }) + " in [" +
			name + "]; }", "", tooMuch},
		"values of a long name": {all, "entity " + name + ` enum ["a"` + many(300, func(i int) string {
			return fmt.Sprintf(`, "%d"`, i)
		}) + "];", "", tooMuch},
		"an attribute of a long name": {all, `type T = {"` + name + `": Long};` + many(300, func(i int) string {
			return fmt.Sprintf("entity E%d tags T;", i)
		}), "", tooMuch},
		"names in a type of a long namespace": {all, "entity U; namespace " + name + " { type T = {" + many(300,
			func(i int) string { return fmt.Sprintf("a%d: U, ", i) }) + "}; }", "", tooMuch},
		"names in an entity of a long namespace": {all, "entity U; namespace " + name + " { entity E = {" + many(300,
			func(i int) string { return fmt.Sprintf("a%d: U, ", i) }) + "}; }", "", tooMuch},
		"names of usual lengths": {all, "namespace " + name[:60] + " {" + many(3000, func(i int) string {
			return fmt.Sprintf("entity Entity%d in [Entity0] = {owner: Entity0, name: String};", i)
		}) + "}", "", ""},
		"lists of actions": {
			`permit (principal, action in [Action::"a"` + strings.Repeat(`, Action::"a"`, 2500) + "], resource);", actions, "",
			"lists too many actions",
		},
		"many templates": {many(20_000, func(i int) string {
			return fmt.Sprintf("@id(\"%d\") permit (principal == ?principal, action, resource);\n", i)
		}), "", "", ""},
		"links of a long one": {
			long, "", "[" + strings.TrimSuffix(many(100, link), ",") + "]", "links make more than 4 MiB",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Read(written(t, tree{"a.cedar": c.policies, "a.cedarschema": c.schema, "linked": c.links}))
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%.300v, want %q", err, c.want)
			}
		})
	}
	chain := "entity E0;" + many(1000, func(i int) string { return fmt.Sprintf("entity E%d in E%d;", i+1, i) }) +
		"action x appliesTo {principal: E0, resource: E0};"
	s := read(t, tree{"a.cedar": all, "a.cedarschema": chain})
	s.Policies = read(t, tree{"a.cedar": `permit (principal in E0::"", action, resource);`}).Policies
	for name, err := range map[string]error{
		"time":   s.validate(bundle.Limit{Within: time.Microsecond, Most: math.MaxUint64}),
		"memory": s.validate(bundle.Limit{Within: time.Minute}),
	} {
		if err == nil || !strings.Contains(err.Error(), "whether the policies are valid by the schema takes more than") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
