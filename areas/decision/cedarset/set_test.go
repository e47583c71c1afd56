package cedarset

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cedar-policy/cedar-go"
	"github.com/google/go-cmp/cmp"

	"tare/areas/decision/replica"
	"tare/rigs/hosttest"
)

// The files of a shop, as people keep them.
const (
	shopPolicies = `// A string with two lines, and a ?principal in it.
@note("is a
?principal; for all")
permit (principal in Shop::Team::"sellers", action == Shop::Action::"sell", resource) // ?resource
when { context.at < datetime("2026-01-01") && principal.boss == Shop::User::"ann" };

@id("lend") // {
@why("{ as ever }")
permit (
  principal == ?principal,
  action == Shop::Action::"lend",
  resource in ?resource
);
`
	shopSchema = `namespace Shop {
  entity Team, Shelf;
  entity User in [Team] = { boss: User, limits: Set<decimal>, home: { at: ipaddr } } tags duration;
  entity Good in [Shelf];
  action sell, lend appliesTo { principal: User, resource: Good, context: { at: datetime } };
}
`
	shopEntities = `[
  {"uid": {"type": "Shop::User", "id": "bob"},
   "attrs": {"boss": {"type": "Shop::User", "id": "ann"}, "limits": ["1.5"], "home": {"at": "127.0.0.1"}},
   "tags": {"break": {"fn": "duration", "arg": "1h"}},
   "parents": [{"type": "Shop::Team", "id": "sellers"}]},
  {"uid": {"type": "Shop::Good", "id": "cup"}, "attrs": {}, "parents": [{"type": "Shop::Shelf", "id": "low"}]}
]`
	shopLinks = `[{"template_id": "lend", "link_id": "ann-lends",
  "args": {"?principal": "Shop::User::\"ann\"", "?resource": "Shop::Shelf::\"low\""}}]`
)

// shop returns the files of the shop by name, with changes: a name and its text. An empty text leaves the file out.
func shop(change ...string) tree {
	out := tree{
		"a.cedar": shopPolicies, "shop.cedarschema": shopSchema, "more/entities.json": shopEntities, "linked": shopLinks,
		"README.md": "?principal", "other.json": "{",
	}
	for i := 0; i < len(change); i += 2 {
		out[change[i]] = change[i+1]
	}
	return out
}

// A tree is texts by path; empty ones are left out.
type tree = map[string]string

func written(t *testing.T, texts tree) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range texts {
		if text == "" {
			continue
		}
		at := filepath.Join(dir, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(at), 0o700), os.WriteFile(at, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// asked decides about a request in the form of the command line.
func asked(t *testing.T, s *Set, principal, action, resource string, context cedar.RecordMap) bool {
	t.Helper()
	var uids [3]cedar.EntityUID
	for i, text := range []string{principal, action, resource} {
		if err := uids[i].UnmarshalCedar([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	typed, err := s.Context(uids[1], cedar.NewRecord(context))
	if err != nil {
		t.Fatal(err)
	}
	request := cedar.Request{Principal: uids[0], Action: uids[1], Resource: uids[2], Context: typed}
	d, why := cedar.Authorize(s.Policies, s.Entities, request)
	if len(why.Errors) > 0 {
		t.Errorf("%v", why.Errors)
	}
	return bool(d)
}

// TestRead: policies, entities with the types of the schema, and policies made of a template decide.
func TestRead(t *testing.T) {
	s := read(t, shop())
	var names []string
	for id := range s.Policies.All() {
		names = append(names, s.Name(id))
	}
	if len(names) != 2 || !strings.Contains(strings.Join(names, " "), "ann-lends") ||
		!strings.Contains(strings.Join(names, " "), "a.cedar:2") {
		t.Errorf("policies %v", names)
	}
	const ann, bob, cup = `Shop::User::"ann"`, `Shop::User::"bob"`, `Shop::Good::"cup"`
	for _, c := range []struct {
		principal, action, resource, at string
		want                            bool
	}{
		{bob, "sell", cup, "2025-06-01", true},
		{bob, "sell", cup, "2027-06-01", false},
		{ann, "sell", cup, "2025-06-01", false},
		{ann, "lend", cup, "2025-06-01", true},
		{bob, "lend", cup, "2025-06-01", false},
		{ann, "lend", `Shop::Good::"pan"`, "2025-06-01", false},
	} {
		got := asked(t, s, c.principal, `Shop::Action::"`+c.action+`"`, c.resource,
			cedar.RecordMap{"at": cedar.String(c.at)})
		if got != c.want {
			t.Errorf("%+v: %t", c, got)
		}
	}
	said := string(s.Entities[cedar.NewEntityUID("Shop::User", "bob")].Attributes.MarshalCedar())
	const want = `{"boss":Shop::User::"ann", "home":{"at":ip("127.0.0.1")}, "limits":[decimal("1.5")]}`
	if d := cmp.Diff(want, said); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

// TestReadRefuses: what cannot be meant is named with its file, and where that is known with line and caret.
func TestReadRefuses(t *testing.T) {
	for want, files := range map[string]tree{
		"there is no .cedar file in":          shop("a.cedar", ""),
		".b/more.cedar is hidden":             shop(".b/more.cedar", "permit (principal, action, resource);"),
		"two schemas":                         shop("b.cedarschema.json", "{}"),
		"shop.cedarschema: the schema cannot": shop("shop.cedarschema", "entity"),
		"a.cedar:4:1: the policy is not valid by the schema": shop("a.cedar",
			"\n\n\npermit (principal, action == Shop::Action::\"buy\", resource);", "linked", ""),
		"a.cedar:2:99: the policy is not valid by the schema": shop("a.cedar",
			"@a(\"é\")\nforbid (principal, action, resource); @id(\"é\") permit (principal == ?principal, action, resource);"+
				"@id(\"lend\") permit (principal == ?principal, action == Shop::Action::\"buy\", resource in ?resource);"),
		"a.cedar:3:11: at": shop("a.cedar", "@a(\"\n\")\npermit (1 +);"),
		"a.cedar:4:6: at": shop(
			"a.cedar", "\npermit (\nprincipal == ?principal, action, resource)\nwhen;"),
		"a.cedar: ?principal in a condition": shop(
			"a.cedar", "permit (principal, action, resource) when { ?principal };"),
		`a template "lend" in`:                            shop("b.cedar", "@id(\"lend\") permit (principal == ?principal, action, resource);"),
		`linked: link "x": there is no template "borrow"`: shop("linked", `[{"template_id": "borrow", "link_id": "x"}]`),
		"args: ?resource is missing": shop("linked",
			`[{"template_id": "lend", "link_id": "x", "args": {"?principal": "A::\"b\""}}]`),
		"args: the template has no ?action": shop("linked",
			strings.Replace(shopLinks, `"args": {`, `"args": {"?action": "A::\"b\"", `, 1)),
		"is no entity": shop("linked",
			`[{"template_id": "lend", "link_id": "x", "args": {"?principal": "a, action, resource); permit(principal"}}]`),
		"is there twice":             shop("entities.json", shopEntities),
		"entities are a list":        shop("entities.json", `{"uid": 1}`),
		"invalid character":          shop("entities.json", `[{]`),
		"links of templates are":     shop("linked", `{}`),
		`duplicate field "[0].args"`: shop("linked", strings.Replace(shopLinks, `"args"`, `"args": {}, "args"`, 1)),
		"duplicate field":            shop("linked", strings.Replace(shopLinks, `"?re`, `"?principal": "A::\"b\"", "?re`, 1)),
		"?principal is missing":      shop("linked", strings.Replace(shopLinks, `"args"`, `"Args"`, 1)),
		`"limits": `:                 shop("more/entities.json", strings.Replace(shopEntities, "1.5", "much", 1)),
	} {
		if _, err := Read(written(t, files)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("nothing was read")
	}
}

// TestKeysOfLinksHaveTheirCase: Cedar ignores a key that differs from one of its own in case.
func TestKeysOfLinksHaveTheirCase(t *testing.T) {
	const other = `"ARGS": {"?principal": "Shop::User::\"eve\"", "?resource": "Shop::Shelf::\"low\""}}]`
	s := read(t, shop("linked", strings.TrimSuffix(shopLinks, "}]")+", "+other))
	for id, policy := range s.Policies.All() {
		if s.Name(id) == "ann-lends" && !strings.Contains(string(policy.MarshalCedar()), `"ann"`) {
			t.Errorf("%s", policy.MarshalCedar())
		}
	}
}

// FuzzPolicies: any text of policies is read or refused, and one that cedar-go reads as it is has the same policies.
func FuzzPolicies(f *testing.F) {
	f.Add(shopPolicies)
	f.Add("permit (principal == ?principal, action, resource);")
	f.Add("@id(\"\\\"\n;\") forbid (principal, action, resource); // \"")
	f.Fuzz(func(t *testing.T, text string) {
		of := found{policies: []file{{path: "a.cedar", text: []byte(text)}}}
		plain, err := cedar.NewPolicySetFromBytes("a.cedar", []byte(text))
		s, got := of.read()
		of.links = []file{{path: "linked", text: []byte(shopLinks)}}
		_, _ = of.read()
		if err != nil {
			return
		}
		if got != nil {
			t.Fatal(got)
		}
		for id, p := range plain.All() {
			is := s.Policies.Get("a.cedar#" + id)
			if is == nil || string(is.MarshalCedar()) != string(p.MarshalCedar()) {
				t.Fatalf("policy %s of %q is another", id, text)
			}
		}
	})
}

// TestAuthZEN: requests of the command line are those of AuthZEN, and names of actions come back.
func TestAuthZEN(t *testing.T) {
	got, err := AuthZEN([]byte(`{"principal": "User::\"a\"", "action": {"type": "Shop::Action", "id": "sell"},
		"resource": {"__entity": {"type": "Good", "id": "cup"}}, "context": {"x": 1}}`))
	const want = `{"action":{"name":"Shop::Action::\"sell\""},"context":{"x":1},"resource":{"id":"cup","type":"Good"},` +
		`"subject":{"id":"a","type":"User"}}`
	if d := cmp.Diff(want, string(got)); d != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, d)
	}
	for _, uid := range []cedar.EntityUID{
		cedar.NewEntityUID("Action", "read"), cedar.NewEntityUID("Action", `X::Action::"read"`),
		cedar.NewEntityUID("A::Action", `"`), cedar.NewEntityUID("Action", ""),
	} {
		if got := Action(actionName(uid)); got != uid {
			t.Errorf("%v comes back as %v", uid, got)
		}
	}
	for _, bad := range []string{
		``, `{`, `[]`, `{}`, `{"principal": "User", "action": "Action::\"a\"", "resource": "R::\"r\""}`,
		`{"principal": "U::\"u\"", "Action": "Action::\"a\"", "resource": "R::\"r\""}`, `{"principal": 1}`,
		`{"principal": "U::\"u\"", "principal": "U::\"v\"", "action": "Action::\"a\"", "resource": "R::\"r\""}`,
		`{"principal": "U::\"u\"", "action": "Action::\"a\""}`,
	} {
		if got, err := AuthZEN([]byte(bad)); err == nil {
			t.Errorf("%s is %s", bad, got)
		}
	}
}

func TestMain(m *testing.M) { hosttest.Main(m) }

// TestReplicate: a copy names the other copies where the original names what was copied, and nothing else differs.
func TestReplicate(t *testing.T) {
	const entities = `[
  {"uid": {"type": "Shop::User", "id": "ann"}, "attrs": {"boss": {"type": "Shop::User", "id": "ann"}, "limits": [],
    "home": {"at": "127.0.0.1"}}, "parents": []},
  {"uid": {"type": "Shop::User", "id": "bob"}, "attrs": {"boss": {"type": "Shop::User", "id": "ann"}, "limits": ["1.5"],
    "home": {"at": "127.0.0.1"}}, "tags": {"break": "1h"}, "parents": [{"type": "Shop::Team", "id": "sellers"}]},
  {"uid": {"type": "Shop::Team", "id": "sellers"}, "attrs": {}, "parents": []}
]`
	copied := strings.ReplaceAll(strings.ReplaceAll(entities, `"ann"`, `"ann~2"`), `"bob"`, `"bob~2"`)
	for name, c := range map[string]struct {
		of   []string
		want string
	}{
		"all":   {nil, strings.ReplaceAll(copied, `"sellers"`, `"sellers~2"`)},
		"users": {[]string{"Shop::User"}, copied},
	} {
		set := read(t, shop("more/entities.json", entities))
		was := len(set.Entities)
		want := read(t, shop("more/entities.json", c.want)).Entities
		maps.Copy(want, set.Entities)
		if err := set.Replicate(&replica.Data{Of: c.of, Times: 2}); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, set.Entities, cmp.Comparer(cedar.Entity.Equal)); diff != "" || len(set.Entities) <= was {
			t.Errorf("%s: -want +got:\n%s", name, diff)
		}
	}
}

// TestReplicateRefuses: what cannot be copied is said.
func TestReplicateRefuses(t *testing.T) {
	set := read(t, shop("more/entities.json", `[{"uid": {"type": "Shop::Good", "id": "cup"}, "attrs": {}, "parents": []},
  {"uid": {"type": "Shop::Good", "id": "cup~2"}, "attrs": {}, "parents": []}]`))
	for want, d := range map[string]replica.Data{
		"of: Shop::User: there is no entity":   {Of: []string{"Shop::User"}, Times: 2},
		"of: Shop::Action: there is no":        {Of: []string{"Shop::Action"}, Times: 2},
		"2 entries 1000000 times are more":     {Times: 1_000_000},
		`cup~2" is there, and a copy would be`: {Times: 2},
	} {
		if err := set.Replicate(&d); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func read(t *testing.T, files tree) *Set {
	t.Helper()
	set, err := Read(written(t, files))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

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
		shopTest("cid", `"decision": "allow", "DECISION": "deny"`),
		shopTest("ann", `"decision": "deny", "decision": "allow"`),
	}
	s := read(t, shop("tests.json", "["+strings.Join(tests, ",\n")+"]", "list.json", `[{"request": {}}]`, "empty.json", "[]"))
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
		"tests.json#11: 0, the decision is deny",
		`tests.json#12: 0, duplicate field "decision"`,
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
	if s = read(t, shop("tests.json", many)); len(s.Tests) != mostTests || !s.TestsCut {
		t.Errorf("%d tests, cut %t", len(s.Tests), s.TestsCut)
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
		_, err := Read(written(t, tree{
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
		files    tree
		unlinked []string
		want     string
	}{
		"policy0, which one?": {tree{"a.cedar": text, "b.cedar": text}, nil, `no template "policy0"; there are a, b`},
		"a.template":          {tree{"a.template.cedar": text, "b.cedar": text}, []string{"b"}, ""},
		"policy0":             {tree{"a.cedar": text}, nil, ""},
		"policy1":             {tree{"a.cedar": text, "b.cedar": text + text}, []string{"a", "policy0"}, ""},
		"policy00":            {tree{"a.cedar": text, "b.cedar": text}, nil, `no template "policy00"; there are a, b`},
		"a":                   {tree{"a.cedar": text, "x/a.cedar": text}, nil, `a template "a" in`},
	} {
		c.files["cedartemplatelinks.json"] = link(strings.TrimSuffix(template, ", which one?"))
		s, err := Read(written(t, c.files))
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", template, err, c.want)
		}
		if err != nil {
			continue
		}
		if d := cmp.Diff(c.unlinked, s.Unlinked); d != "" {
			t.Errorf("%s: without a link (-want +got):\n%s", template, d)
		}
	}
}

// TestPoliciesInJSON: policies that are not taken are never silently absent.
func TestPoliciesInJSON(t *testing.T) {
	if d := cmp.Diff([]string{"more/b.cedar.json"}, read(t, shop("more/b.cedar.json", "{}")).Untaken); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	const fields = `"principal": {}, "action": {}, "resource": {}`
	for text, want := range map[string]bool{
		`{"effect": "permit", ` + fields + `}`:                                  true,
		`[1, {"a": {}, "b": [{"\u0065ffect": "x", ` + fields + `, "z": 1}]}, 2`: true,
		`{` + fields + `, "context": {"effect": "permit"}}`:                     false,
		`{"a": "effect", ` + fields + `}`:                                       false,
		strings.Repeat("[", 1<<20) + `{"effect": 1, ` + fields + `}`:            false,
		`{`: false,
		``:  false,
	} {
		if got := len(read(t, shop("p.json", text)).Untaken) == 1; got != want {
			t.Errorf("%.80s: %v", text, got)
		}
	}
	const want = ": b.cedar.json: policies in Cedar's JSON are not taken"
	_, err := Read(written(t, tree{"b.cedar.json": "{}"}))
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
