package decision

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/areas/decision/protocol"
	"tare/internal/design"
	"tare/rigs/areatest"
)

// TestRulings: what a treatment permits and the baseline refuses is a finding, and no reason to measure nothing; what
// no request shows is named; order, comments and layout are no difference.
func TestRulings(t *testing.T) {
	const all = "permit (principal, action == Action::\"read\", resource);\n"
	for name, c := range map[string]struct {
		is      string
		refused []string
		unasked string // in it; empty: nothing is named
	}{
		"the same": {forbidden + "// first\n" + strings.ReplaceAll(departments, " ", "  "), []string{"it", "secret"}, ""},
		"an owner": {
			departments + forbidden + "permit (principal == user::\"b\", action, resource);\n",
			[]string{"it", "secret"},
			"no request shows what that permits: a.cedar:4",
		},
		"all read": {
			all + forbidden,
			[]string{"secret"},
			"requests may not show all that it permits: a.cedar:1",
		},
		"all": {all, nil, "requests may not show all that it permits: a.cedar:1, a.cedar:3"},
	} {
		t.Run(name, func(t *testing.T) {
			spec := ownSpec(engine.Cedar, "")
			tg, j := opened(t, spec, testEnv(t))
			arms := mainAndPR("bundle", written(t, tree{"a.cedar": departments + forbidden}), written(t, tree{"a.cedar": c.is}))
			got := rulings(t, tg, j, arms)
			var refused []string
			for _, r := range got["pr"].Of {
				if r.Refused {
					refused = append(refused, r.Request)
				}
			}
			if said := strings.Join(got["pr"].Unasked, "; "); !slices.Equal(refused, c.refused) ||
				!strings.Contains(said, c.unasked) || (said == "") != (c.unasked == "") {
				t.Errorf("refused %q, want %q; unasked %q, want %q", refused, c.refused, said, c.unasked)
			}
			for _, tr := range arms {
				if err := tg.Verify(t.Context(), tr); err != nil {
					t.Error(err)
				}
			}
			if said := tg.Unproved(arms[1]); strings.Contains(said, "permits all that was asked") != (name == "all") {
				t.Errorf("unproved: %q", said)
			}
		})
	}
}

// mainAndPR are two treatments that differ in one level.
func mainAndPR(factor, was, is string) []design.Treatment {
	return []design.Treatment{
		{ID: "main", Baseline: true, Levels: tree{factor: was}}, {ID: "pr", Levels: tree{factor: is}},
	}
}

func rulings(t *testing.T, tg *target, j *areatest.Journal, arms []design.Treatment) map[string]area.Rulings {
	t.Helper()
	for _, tr := range arms {
		if err := tg.Prepare(t.Context(), tr, j); err != nil {
			t.Fatal(err)
		}
	}
	got, err := tg.Rulings(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestListRulings: what only the treatment's list holds, it permits and the baseline refuses; what it lacks is no
// answer that is expected, and the sentence says which.
func TestListRulings(t *testing.T) {
	for list, c := range map[string]struct{ permits, refuses, wrong string }{
		`["doc:a"]`:          {},
		`["doc:b", "doc:a"]`: {permits: "x with doc:b"},
		`[]`:                 {refuses: "x with doc:a", wrong: "the list lacks doc:a: see"},
		`["doc:c"]`: {
			permits: "x with doc:c", refuses: "x with doc:a",
			wrong: "the list holds what does not belong into it: doc:c, and lacks doc:a: see",
		},
	} {
		tg, j := opened(t, &Spec{
			Adapter: "openfga", OpenFGA: &protocol.OpenFGA{Store: strings.Repeat("A", 26)}, Requests: []Request{
				{Name: "no", Body: `{"tuple_key": {}}`, Expect: "deny"},
				{Name: "x", Body: `{"type": "doc", "relation": "reader", "user": "user:ann"}`, Expect: "list", List: []string{"doc:a"}},
			},
		}, testEnv(t))
		arms := mainAndPR("url", startLists(t, `["doc:a"]`), startLists(t, list))
		got := rulings(t, tg, j, arms)
		var permits, refuses []string
		for i, was := range got["main"].Of {
			switch is := got["pr"].Of[i]; {
			case is.Request != was.Request:
				t.Errorf("%s: %q is compared with %q", list, is.Request, was.Request)
			case was.Refused && !is.Refused:
				permits = append(permits, is.Request)
			case is.Refused && !was.Refused:
				refuses = append(refuses, is.Request)
			}
		}
		if p, r := strings.Join(permits, ", "), strings.Join(refuses, ", "); p != c.permits || r != c.refuses {
			t.Errorf("%s: permits %q and refuses %q, want %q and %q", list, p, r, c.permits, c.refuses)
		}
		if err := tg.Verify(t.Context(), arms[0]); err != nil {
			t.Error(err)
		}
		if err := tg.Verify(t.Context(), arms[1]); !said(err, c.wrong) {
			t.Errorf("%s: %v, want %q", list, err, c.wrong)
		}
	}
}

// startLists starts an OpenFGA that refuses each check, and always lists the same.
func startLists(t *testing.T, list string) (url string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		answer := `{"allowed":false}`
		if strings.HasSuffix(r.URL.Path, "list-objects") {
			answer = `{"objects":` + list + `}`
		}
		fmt.Fprint(w, answer) //nolint:errcheck // the client sees it
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestDifferences: each engine's policies are compared rule by rule, without what makes no difference.
func TestDifferences(t *testing.T) {
	const rules = salaries + "\nallow if {\n\tinput.user == data.boss; input.method in [\"GET\", \"PUT\"]\n} " +
		"else := false\n"
	const reads = "package a.b\nimport data.a.c\nallow if { c.d; data.roles[input.x]; data.a[_].deny }"
	rego := func(text string) tree {
		return tree{"p.rego": text, "data.json": managers}
	}
	typed := func(context string) map[string]string {
		return tree{"a.cedar": departments, "a.cedarschema": "entity user = {department: String};\nentity D;\n" +
			"action read appliesTo { principal: [user], resource: [D], context: {" + context + "} };"}
	}
	const slotted = `@id("t") permit (principal == ?principal, action == Action::"read", resource);`
	const inJSON = `{"effect": "permit", "principal": {"op": "All"}, "action": {"op": "All"}, "resource": {"op": "All"},
		"conditions": []}`
	aside := func(template, json string) tree {
		return tree{"a.cedar": departments, "t.cedar": template, "x.cedar.json": json}
	}
	store := func(from, to string) tree {
		return tree{"store.fga.yaml": strings.Replace(shelves, from, to, 1)}
	}
	for name, c := range map[string]struct {
		kind    engine.Kind
		was, is tree
		want    string
	}{
		"rego, laid out otherwise": {engine.OPA, rego(rules), tree{
			"q.rego": "# of authz\npackage httpapi.authz\nimport rego.v1\nallow if { input.user == data.boss\n\n" +
				"input.method in [\n\"GET\",\n\"PUT\"] }\nelse := false\nallow if {\n\tinput.method == \"GET\" # only\n" +
				"\tsome m in data.managers[input.user]; input.path == [\"salary\", m] }\ndefault allow :=false",
			"q_test.rego": "package httpapi.authz\nimport rego.v1\ntest_it if not allow\n", "data.json": " " + managers,
		}, ""},
		"rego, a method":  {engine.OPA, rego(rules), rego(strings.Replace(rules, `["GET"`, `["GET", "POST"`, 1)), "httpapi.authz.allow"},
		"rego, a default": {engine.OPA, rego(rules), rego(strings.Replace(rules, "false", "true", 1)), "httpapi.authz.allow"},
		"rego, an import": {
			engine.OPA, rego("package a\nimport data.x.y\nallow if y\nok if true"),
			rego("package a\nimport data.z.y\nallow if y\nok if true"), "a.allow",
		},
		"rego, a semicolon": {
			engine.OPA, rego("package a\nb if { f(1); -1 == 2 }"), rego("package a\nb if { f(1) -1 == 2 }"), "a.b",
		},
		"rego, data": {engine.OPA, rego(rules), tree{
			"p.rego": rules, "data.json": `{"managers": {"bob": ["alice", "eve"]}}`,
		}, "data.json"},
		"rego, tests that rules do not read": {
			engine.OPA, rego(reads),
			tree{
				"p.rego":      reads,
				"q_test.rego": "package a.b\ntest_it if test_too\ntest_too if data.a.b == 1 with data as {}", "data.json": managers,
			},
			"",
		},
		"cedar, entities": {
			engine.Cedar,
			tree{"a.cedar": departments, "entities.json": `[
				{"uid": {"type": "U", "id": "a"}, "attrs": {"s": [1, 2]}, "parents": []}]`},
			tree{"a.cedar": "@id(\"x\")\n" + departments, "entities.json": `[
				{"uid": {"type": "U", "id": "b"}, "parents": [], "attrs": {}},
				{"uid": {"type": "U", "id": "a"}, "parents": [], "attrs": {"s": [2, 1]}}]`},
			`U::"b"`,
		},
		"cedar, a context without types": {
			engine.Cedar, typed("from?: {ip: ipaddr}"), typed(""), "the schema",
		},
		"cedar, a schema more": {engine.Cedar, tree{"a.cedar": departments}, typed(""), `Action::"read" the schema`},
		"cedar, a schema laid out otherwise": {
			engine.Cedar, typed("at: Long, from?: {ip: Set<{a: ipaddr}>}"),
			typed("// who\nfrom?: {@doc(\"one\") ip: Set<{@doc(\"it\") a: ipaddr}>},\n\n@doc(\"when\") at: Long"), "",
		},
		"cedar, a template without a link": {
			engine.Cedar, aside(slotted, "{}"), aside(strings.Replace(slotted, `== Action::"read"`, "", 1), "{}"),
			"template t",
		},
		"cedar, a slot less": {
			engine.Cedar, aside(slotted, "{}"), aside(strings.Replace(slotted, "?principal", `Example::""`, 1), "{}"),
			"t template t",
		},
		"cedar, a template laid out otherwise": {
			engine.Cedar, aside(slotted, "{}"), aside("// who\n@doc(\"x\")\n"+strings.ReplaceAll(slotted, ",", ",\n"), "{}"), "",
		},
		"cedar, entities of another name": {
			engine.Cedar,
			tree{"a.cedar": departments},
			tree{"a.cedar": departments, "users.json": `[{"uid": {"type": "User", "id": "eve"}, "parents": []}]`},
			"users.json",
		},
		"cedar, policies as texts": {
			engine.Cedar,
			tree{"a.cedar": departments, "p.json": `[{"id": "a", "content": "permit(principal, action, resource);"}]`},
			tree{"a.cedar": departments},
			"p.json",
		},
		"cedar, a request": {
			engine.Cedar,
			tree{"a.cedar": departments},
			tree{"a.cedar": departments, "r.json": `{"principal": "A::\"a\"", "action": "B::\"b\"", "resource": "C::\"c\""}`},
			"",
		},
		"cedar, JSON": {engine.Cedar, aside(slotted, "{}"), aside(slotted, inJSON), "x.cedar.json"},
		"cedar, JSON with a key twice": {
			engine.Cedar, aside(slotted, inJSON), aside(slotted, `{"effect": "forbid", `+inJSON[1:]), "x.cedar.json",
		},
		"cedar, JSON laid out otherwise": {
			engine.Cedar, aside(slotted, inJSON), aside(slotted, strings.ReplaceAll(inJSON, ",", " ,\n")), "",
		},
		"cedar, JSON of another name": {
			engine.Cedar,
			tree{"a.cedar": departments},
			tree{"a.cedar": departments, "p.json": `{"staticPolicies": {"a": ` + inJSON + "}}", "q.json": `{"effect": "permit"}`},
			"p.json q.json",
		},
		"data that only opa run loads": {
			engine.OPA, tree{"more.json": `{"blocked": ["eve"]}`}, tree{"more.json": `{"blocked": []}`}, "more.json",
		},
		"data that only opa run loads, laid out otherwise": {
			engine.OPA, tree{"more.yaml": "{a: 1, b: 2}"}, tree{"more.yaml": "b: 2\na: 1\n"}, "",
		},
		"a store, laid out otherwise": {engine.OpenFGA, store("", ""), store(
			"      define owner: [user]\n      define reader: [user, group#member with until] or owner\n",
			"      # who\n      define reader:  [user,group#member with until] or owner # all\n\n      define owner: [ user ]\n",
		), ""},
		"a store, a relation": {
			engine.OpenFGA, store("", ""), store("until] or owner", "until] or owner or shredder"), "doc#reader",
		},
		"a store, a condition": {engine.OpenFGA, store("", ""), store("now < end", "now <= end"), "condition until"},
		"a store, a tuple": {
			engine.OpenFGA, store("", ""), store("user: user:ann, r", "user: user:eve, r"),
			"user:ann owner doc:a user:eve owner doc:a",
		},
		"xacml, laid out otherwise": {engine.ATT, tree{"p.xml": inSet(reading)}, map[string]string{
			"p.xml": inSet(strings.NewReplacer(
				`PolicyId="a&amp;b" Version="1.0"`, `Version="1.0" PolicyId='a&#38;b'`, "<Rule ", "\n<!-- a rule -->\n <Rule ",
			).Replace(reading)),
		}, ""},
		"xacml, a value": {engine.ATT, tree{"p.xml": inSet(reading)}, map[string]string{
			"p.xml": inSet(strings.Replace(reading, ">hr<", "> hr<", 1)),
		}, "a&b"},
	} {
		is, was := written(t, c.is), written(t, c.was)
		if c.kind == engine.ATT {
			is, was = is+"/p.xml", was+"/p.xml"
		}
		after, err := partsOf(c.kind, is)
		before, e := partsOf(c.kind, was)
		if got := strings.Join(differing(before, after), " "); err != nil || e != nil || got != c.want {
			t.Errorf("%s: %q, %v, %v, want %q", name, got, err, e, c.want)
		}
	}
	for _, by := range []string{
		"test_it", "data.a.b.test_it", `data.a["b"]["test_it"]`, "import data.a.b.test_it as x\nallow if x", "data.a.b[input.x]",
		`data["a"][input.x].test_it`, "import data.a.b\nallow if b[input.x[0]]", "walk(data, x)", "x := data.a.b", "data[_].b",
		"data.a[input.x[`b`]][input.y]", `data.a.b["test\u005fit"]`, "import data.a as c\nallow if c[_][_]", "$\"{test_it}\"",
		"test_other",
	} {
		of := func(test string) string {
			return written(t, tree{
				"p.rego":      "package a.c\n" + strings.Replace("allow if "+by, "allow if import", "import", 1),
				"q_test.rego": "package a.b\ntest_it if " + test + "\ntest_none if true\ntest_other if test_it",
			})
		}
		was, err := partsOf(engine.OPA, of("input.user == 1"))
		is, e := partsOf(engine.OPA, of("true"))
		if got := strings.Join(differing(was, is), " "); err != nil || e != nil || got != "a.b.test_it" {
			t.Errorf("a test that is read by %s: %q, %v, %v", by, got, err, e)
		}
	}
	packed := archived(t, tree{"p.rego": rules, "data.json": managers, ".signatures.json": "{}"})
	parts, err := partsOf(engine.OPA, packed)
	folder, e := partsOf(engine.OPA, written(t, rego(rules)))
	if got := differing(parts, folder); err != nil || e != nil || len(got) > 0 || len(folder) != 4 {
		t.Errorf("an archive: %q, %v, %v, of %d", got, err, e, len(folder))
	}
}
