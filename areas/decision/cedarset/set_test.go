package cedarset

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/cedar-policy/cedar-go"
	"github.com/google/go-cmp/cmp"
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
func shop(change ...string) map[string]string {
	out := map[string]string{
		"a.cedar": shopPolicies, "shop.cedarschema": shopSchema, "more/entities.json": shopEntities, "linked": shopLinks,
		"README.md": "?principal", "other.json": "{",
	}
	for i := 0; i < len(change); i += 2 {
		out[change[i]] = change[i+1]
	}
	return out
}

func written(t *testing.T, texts map[string]string) string {
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
	s, err := Read(written(t, shop()))
	if err != nil {
		t.Fatal(err)
	}
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
	for want, files := range map[string]map[string]string{
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
		"is there twice":         shop("entities.json", shopEntities),
		"entities are a list":    shop("entities.json", `{"uid": 1}`),
		"invalid character":      shop("entities.json", `[{]`),
		"links of templates are": shop("linked", `{}`),
		`"limits": `:             shop("more/entities.json", strings.Replace(shopEntities, "1.5", "much", 1)),
	} {
		dir := written(t, files)
		_, err := Read(dir)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	if _, err := Read(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("nothing was read")
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
		`{"principal": 1}`, `{"principal": "U::\"u\"", "action": "Action::\"a\""}`,
	} {
		if got, err := AuthZEN([]byte(bad)); err == nil {
			t.Errorf("%s is %s", bad, got)
		}
	}
}
