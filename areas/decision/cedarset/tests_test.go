package cedarset

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// shopTest returns a test of the shop: bob sells the cup, whose boss may be another one.
func shopTest(boss, rest string) string {
	return fmt.Sprintf(`{"request": {"principal": "Shop::User::\"bob\"", "action": "Shop::Action::\"sell\"",
		"resource": "Shop::Good::\"cup\"", "context": {"at": "2025-06-01"}}, "entities": [
		{"uid": {"type": "Shop::User", "id": "bob"}, "attrs": {"boss": {"type": "Shop::User", "id": "%s"}},
		 "parents": [{"type": "Shop::Team", "id": "sellers"}]}], %s}`, boss, rest)
}

// TestOwnTestsAreRun: a test passes as `cedar run-tests` has it, about its own entities with the types of the schema,
// and what is wrong with one is said.
func TestOwnTestsAreRun(t *testing.T) {
	const bad = `{"decision": "deny", "entities": [], "request": {"principal": "User"}}`
	tests := []string{
		shopTest("ann", `"name": "sells", "decision": "allow", "reason": ["policy0"], "num_errors": 0`),
		shopTest("cid", `"decision": "deny", "reason": []`),
		shopTest("cid", `"decision": "allow"`),
		shopTest("ann", `"decision": "allow", "reason": ["ann-lends"]`),
		shopTest("ann", `"decision": "allow", "num_errors": 1`),
		strings.Replace(shopTest("ann", `"decision": "deny"`), `"attrs": {"boss"`, `"attrs": {"chef"`, 1),
		shopTest("ann", `"decision": "Allow"`),
		strings.Replace(shopTest("ann", `"decision": "allow"`), `"2025-06-01"`, `"soon"`, 1),
		strings.Replace(shopTest("ann", `"decision": "allow"`), `"attrs": {`, `"attrs": {"home": {"at": "here"}, `, 1),
		bad,
	}
	s, err := Read(written(t, shop("tests.json", "["+strings.Join(tests, ",\n")+"]", "list.json", `[{"request": {}}]`,
		"empty.json", "[]")))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, one := range s.Tests {
		deciders, err := s.Run(one)
		got = append(got, fmt.Sprintf("%s: %d, %v", one.Name, len(deciders), err))
	}
	want := []string{
		"sells: 1, <nil>",
		"tests.json#2: 0, <nil>",
		"tests.json#3: 0, the decision is deny",
		"tests.json#4: 0, policy ann-lends does not decide",
		"tests.json#5: 0, no error, and 1 expected",
		"tests.json#6: 0, 1 error, and 0 expected: ",
		`tests.json#7: 0, decision "Allow": want allow or deny`,
		`tests.json#8: 0, context: "at": `,
		`tests.json#9: 0, entity Shop::User::"bob": "home": `,
		`tests.json#10: 0, "User" is no entity`,
	}
	if len(got) != len(want) {
		t.Fatalf("%d tests: %q", len(got), got)
	}
	for i := range want {
		if !strings.HasPrefix(got[i], want[i]) {
			t.Errorf("%q, want %q", got[i], want[i])
		}
	}
	many := "[" + strings.Repeat(bad+",", mostTests) + bad + "]"
	if s, err = Read(written(t, shop("tests.json", many))); err != nil || len(s.Tests) != mostTests || !s.TestsCut {
		t.Errorf("%d tests, cut %t, %v", len(s.Tests), s.TestsCut, err)
	}
}

// TestSchemaInBothForms: a schema may stand there as text and as JSON, which need not have the same order.
func TestSchemaInBothForms(t *testing.T) {
	text := `@doc("about") entity User in [Team, Club]; entity Team, Club; entity Good = { price: Long };
		action sell, lend appliesTo { principal: [User, Club], resource: Good, context: {} };`
	const inJSON = `{"": {"entityTypes": {"Good": {"shape": {"type": "Record", "attributes": {"price": {"type": "Long"}}}},
		"Team": {"shape": {"type": "Record", "attributes": {}}}, "Club": {},
		"User": {"memberOfTypes": ["Club", "Team"]}}, "actions": {
		"lend": {"appliesTo": {"principalTypes": ["Club", "User"], "resourceTypes": ["Good"]}},
		"sell": {"appliesTo": {"principalTypes": ["User", "Club"], "resourceTypes": ["Good"],
			"context": {"type": "Record", "attributes": {}}}}}}}`
	for name, c := range map[string]struct {
		json string
		same bool
	}{
		"the same":          {inJSON, true},
		"another attribute": {strings.Replace(inJSON, `"Long"`, `"String"`, 1), false},
		"an optional one":   {strings.Replace(inJSON, `"type": "Long"`, `"type": "Long", "required": false`, 1), false},
		"another parent":    {strings.Replace(inJSON, `["Club", "Team"]`, `["Team"]`, 1), false},
		"another principal": {strings.Replace(inJSON, `["User", "Club"]`, `["User"]`, 1), false},
	} {
		_, err := Read(written(t, map[string]string{
			"a.cedar": "permit (principal, action, resource);", "a.cedarschema": text, "a.cedarschema.json": c.json,
		}))
		if (err == nil) != c.same || err != nil && !strings.Contains(err.Error(), "two schemas, and not the same in both") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTemplatesInFilesOfTheirOwn: a template that stands alone has its file's name, too, and one without a link is
// named.
func TestTemplatesInFilesOfTheirOwn(t *testing.T) {
	const text = "permit (principal == ?principal, action, resource);"
	link := func(template string) string {
		return `[{"template_id": "` + template + `", "link_id": "x", "args": {"?principal": "U::\"ann\""}}]`
	}
	for template, c := range map[string]struct {
		files    map[string]string
		unlinked []string
		want     string
	}{
		"a.template": {map[string]string{"a.template.cedar": text, "b.cedar": text}, []string{"b"}, ""},
		"policy0":    {map[string]string{"a.cedar": text}, nil, ""},
		"policy1":    {map[string]string{"a.cedar": text, "b.cedar": text + text}, []string{"a", "policy0"}, ""},
		"policy00":   {map[string]string{"a.cedar": text, "b.cedar": text}, nil, `no template "policy00"; there are a, b`},
		"a":          {map[string]string{"a.cedar": text, "x/a.cedar": text}, nil, `a template "a" in`},
	} {
		c.files["cedartemplatelinks.json"] = link(template)
		s, err := Read(written(t, c.files))
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", template, err, c.want)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", template, err)
			continue
		}
		if d := cmp.Diff(c.unlinked, s.Unlinked); d != "" {
			t.Errorf("%s: without a link (-want +got):\n%s", template, d)
		}
	}
	_, err := Read(written(t, map[string]string{"a.cedar": text, "b.cedar": text, "linked": link("policy0")}))
	if err == nil || !strings.Contains(err.Error(), `no template "policy0"; there are a, b`) {
		t.Errorf("%v: which one is not known", err)
	}
}

// TestPoliciesInJSON: policies that are not taken are never silently absent.
func TestPoliciesInJSON(t *testing.T) {
	s, err := Read(written(t, shop("more/b.cedar.json", "{}")))
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]string{"more/b.cedar.json"}, s.Untaken); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	const want = ": b.cedar.json: policies in Cedar's JSON are not taken"
	_, err = Read(written(t, map[string]string{"b.cedar.json": "{}"}))
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// FuzzTests: any file is a list of tests, each of which passes or fails, or none.
func FuzzTests(f *testing.F) {
	f.Add("[" + shopTest("ann", `"decision": "allow", "reason": ["policy0"]`) + "]")
	f.Add(`[{"request": {}, "decision": "deny"}]`)
	f.Add(`[{"request": {"principal": {"type": "A", "id": ""}}, "decision": 1, "entities": "file"}]`)
	of := found{
		policies: []file{{path: "a.cedar", text: []byte(shopPolicies)}},
		schemas:  []file{{path: "a.cedarschema", text: []byte(shopSchema)}},
	}
	s, err := of.read()
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s.Tests = nil
		s.readTests(file{path: "tests.json", text: []byte(text)})
		for _, one := range s.Tests {
			if deciders, err := s.Run(one); err != nil && deciders != nil {
				t.Errorf("a test of %q fails and has deciders", text)
			}
		}
	})
}
