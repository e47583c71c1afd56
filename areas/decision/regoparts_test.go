package decision

import (
	"strings"
	"testing"

	"tare/areas/decision/engine"
)

// regoDifference names in what two bundles of one file of Rego differ.
func regoDifference(t *testing.T, name, was, is string) string {
	t.Helper()
	before, err := partsOf(engine.OPA, written(t, map[string]string{name: was}))
	after, e := partsOf(engine.OPA, written(t, map[string]string{name: is}))
	if err != nil || e != nil {
		t.Fatal(err, e)
	}
	return strings.Join(differing(before, after), " ")
}

// TestRegoIsCutWhereOPACutsIt: what OPA reads as one rule stays one, wherever its lines end, and a file that leaves a
// doubt is compared as a whole.
func TestRegoIsCutWhereOPACutsIt(t *testing.T) {
	const file = "p_test.rego" // of tests, too: no rule is taken for one
	for name, c := range map[string]struct{ was, is, want string }{
		"a body more of another rule": {
			"deny if { a }\n{ b }\nallow if { c }\n", "deny if { a }\nallow if { c }\n{ b }\n", "a.allow a.deny",
		},
		"bodies on lines of their own": {
			"deny[m]\n{\n a\n}\nnoted[m]\n{\n b\n}\n", "deny[m]\n{\n b\n}\nnoted[m]\n{\n a\n}\n", "a.deny a.noted",
		},
		"the same bodies, laid out otherwise": {"deny[m]\n{\n a\n}\n{ b\n c }\n", "deny[m] {\n a } {\n\n b; c\n}\n", ""},
		"an index on a line of its own":       {"x\n[1] { a }\ny\n[2] { b }\n", "x\n[2] { b }\ny\n[1] { a }\n", "a.x a.y"},
		"else on a line of its own":           {"x if a\nelse if b\ny if c\n", "x if a\ny if c\nelse if b\n", "a.x a.y"},
		"with on a line of its own": {
			"x if a\nwith input as 1\ny if c\n", "x if a\ny if c\nwith input as 1\n", "a.x a.y",
		},
		"and": {"x if a and\nb\ny if c\nand d\n", "x if a and\nd\ny if c\nand b\n", "a.x a.y"},
		"rules on one line": {
			"x if true y if false\nz if false w if true\n", "x if true y if true\nz if false w if false\n", "a.x a.z",
		},
		"a rule beside the package":      {" x := 1\n", " x := 2\n", file},
		"a rule beside a test":           {"test_x if true y if false\n", "test_x if true y if true\n", file},
		"a rule beside a test's body":    {"test_x { a } y { b }\n", "test_x { a } y { c }\n", file},
		"in, of older versions":          {"test_x { a }\nin { b }\n", "test_x { a }\nin { c }\n", file},
		"if, of older versions":          {"test_x(y) if := 1\n", "test_x(y) if := 2\n", file},
		"a literal behind a test's body": {"test_x { a }(b) := 1\n", "test_x { a }(b) := 2\n", file},
		"a test with a name behind it":   {"test_x.y if { a }\n", "test_x.y if { b }\n", file},
		"contains, of older versions":    {"test_x if b contains { a }\n", "test_x if b contains { c }\n", file},
		"one keyword": {
			"import future.keywords.if\ntest_x if b in { a }\n", "import future.keywords.if\ntest_x if b in { c }\n", file,
		},
		"a rule behind a test, by a word": {"test_x if a\nelse.y := 1\n", "test_x if a\nelse.y := 2\n", file},
		"a semicolon":                     {"x := 1; y := 2\n", "x := 1; y := 3\n", file},
		"a bracket too many":              {"x if a }\ny if b\n", "x if b }\ny if a\n", file},
		"a bracket that is not closed":    {"x if { a\ny if b\n", "x if { b\ny if a\n", file},
		"a package more":                  {"x := 1\npackage b\nx := 2\n", "x := 2\npackage b\nx := 1\n", file},
		"the package alone":               {"", ".b\n", "a a.b"},
		"a literal, and an index":         {"x { contains\n[y] }\n", "x { contains[y] }\n", "a.x"},
		"the strings of a raw text":       {"x := `\ny := 1\n`\nz := 2\n", "x := `\nz := 2\n`\ny := 1\n", "a.x a.y a.z"},
		"a comment in a string":           {"x := \"# a\"\n", "x := \"# b\"\n", "a.x"},
		"tests": {
			"test_x if {\n a\n}\ntest_y if b in c with d as e\n", "test_x if b\nelse := 1\n", "",
		},
	} {
		if got := regoDifference(t, file, "package a"+after(c.was), "package a"+after(c.is)); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
	const was = "\ufeffpackage a\nallow if x\n"
	if got := regoDifference(t, "p.rego", was, strings.Replace(was, "package a", "package b", 1)); got != "p.rego" {
		t.Errorf("another package behind a mark of the byte order: %q", got)
	}
}

// TestImportsOfRego: what an import stands for is part of the rules that use it, in whichever form it is written.
func TestImportsOfRego(t *testing.T) {
	for name, c := range map[string]struct{ was, is, want string }{
		"a name":            {"import data.strict.rules\n", "import data.lax.rules\n", "a.allow"},
		"a name of its own": {"import data.strict as rules\n", "import data.lax as rules\n", "a.allow"},
		"a name for data":   {"import data as rules\n", "import input as rules\n", "a.allow"},
		"on two lines":      {"import data.strict\nas rules\n", "import data.lax\nas rules\n", "a.allow"},
		"brackets":          {`import data["strict"]["rules"]` + "\n", `import data["lax"]["rules"]` + "\n", "p.rego"},
		"a bracket":         {`import data.strict["rules"]` + "\n", `import data.lax["rules"]` + "\n", "p.rego"},
		"a raw text":        {"import data[`strict`].rules\n", "import data[`lax`].rules\n", "p.rego"},
		"an order": {
			"import data.b.rules\nimport data.c.rules\n", "import data.c.rules\nimport data.b.rules\n", "p.rego",
		},
		"a rule on its line": {"import data.rules rules := 1\n", "import data.rules rules := 2\n", "p.rego"},
		"a rule of its name": {"import.rules := 1\n", "import.rules := 2\n", "p.rego"},
		"a version":          {"import future.keywords\n", "import future.keywords.if\n", "a.allow a.ok"},
		"a rule behind it": {
			"import future.keywords.in\nrules := 1\n", "import future.keywords.in\nrules := 2\n", "a.rules",
		},
		"one behind a rule": {
			"import future.keywords\nf(x) := 1 if { x } else := 2\n",
			"f(x) := 1 if { x } else := 2\nimport future.keywords\n",
			"a.allow a.f a.ok p.rego",
		},
		"one not used": {"import data.rules\n", "import data.rules\nimport data.others\n", ""},
	} {
		const rules = "ok if true\nallow if rules.guest\n"
		if got := regoDifference(t, "p.rego", "package a\n"+c.was+rules, "package a\n"+c.is+rules); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestAnnotationsOfRego: comments that rules read are part of what decides, and others are not.
func TestAnnotationsOfRego(t *testing.T) {
	const annotated = "package b\n# METADATA\n# scope: subpackages\n# custom: {roles: [reader]}\nok if true\n"
	for name, c := range map[string]struct{ rule, want string }{
		"its own":             {"allow if input.role in rego.metadata.rule().custom.roles", "b.rego"},
		"those on the way":    {"allow if rego.metadata.chain()[1].annotations.custom.roles[_] == input.role", "b.rego"},
		"by a name":           {"allow if input.role in rego[\"meta\\u0064ata\"].rule().custom.roles", "b.rego"},
		"a file in doubt":     {"x := 1; allow if rego.metadata.rule().custom.roles", "b.rego"},
		"none":                {"allow if input.role == \"reader\"", ""},
		"none, but a version": {"import rego.v1\nallow if input.role == \"reader\"", ""},
	} {
		of := func(annotated string) []part {
			out, err := partsOf(engine.OPA, written(t, map[string]string{"a.rego": "package a\n" + c.rule, "b.rego": annotated}))
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		got := strings.Join(differing(of(annotated), of(strings.Replace(annotated, "reader", "reader, guest", 1))), " ")
		if got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// TestVersionsOfFiles: where a manifest says by their places in which version of Rego files are, a place decides.
func TestVersionsOfFiles(t *testing.T) {
	for manifest, want := range map[string]string{
		`{"rego_version": 1, "file_rego_versions": {"/old/*.rego": 0}}`: "new/p.rego old/p.rego",
		`{"File_Rego_Versions": {"/old/*.rego": 0}}`:                    "new/p.rego old/p.rego",
		`{"revision": "1", "roots": [""], "rego_version": 1}`:           "",
	} {
		of := func(folder string) []part {
			out, err := partsOf(engine.OPA, written(t, map[string]string{
				".manifest": manifest, folder + "/p.rego": "package a\nallow { x } { y }\n",
			}))
			if err != nil {
				t.Fatal(err)
			}
			return out
		}
		if got := strings.Join(differing(of("old"), of("new")), " "); got != want {
			t.Errorf("%s: %q, want %q", manifest, got, want)
		}
	}
}

// after is what stands behind a package: what goes on with its line begins with something else than a name.
func after(text string) string {
	if text == "" || strings.ContainsAny(text[:1], " .") {
		return text
	}
	return "\n" + text
}
