package decision

import (
	"path/filepath"
	"strings"
	"testing"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/areas/decision/protocol"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/load"
)

// library of OpenFGA: who may read what, with a relation that nothing asks for.
const shelves = `name: shelves
model: |
  model
    schema 1.1
  type user
  type group
    relations
      define member: [user]
  type doc
    relations
      define owner: [user]
      define reader: [user, group#member with until] or owner
      define shredder: [user]
  condition until(now: timestamp, end: timestamp) {
    now < end
  }
tuples:
  - {user: user:ann, relation: owner, object: doc:a}
  - user: group:g#member
    relation: reader
    object: doc:a
    condition: {name: until, context: {end: 2030-01-01T00:00:00Z}}
tests:
  - name: readers
    tuples: [{user: user:bob, relation: member, object: group:g}]
    check:
      - {user: user:ann, object: doc:a, assertions: {reader: true}}
      - {user: user:bob, object: doc:a, context: {now: 2026-01-01T00:00:00Z}, assertions: {reader: true}}
      - {user: user:bob, object: doc:a, context: {now: 2031-01-01T00:00:00Z}, assertions: {reader: false}}
    list_users:
      - {object: doc:a, user_filter: [{type: user}], assertions: {owner: {users: [user:ann]}}}
      - object: doc:a
        context: {now: 2026-01-01T00:00:00Z}
        user_filter: [{type: user}]
        assertions: {reader: {users: [user:bob, user:ann]}}
      - {object: doc:a, user_filter: [{type: group, relation: member}], context: {now: 2026-01-01T00:00:00Z},
         assertions: {reader: {users: [group:g#member]}}}
    list_objects:
      - {user: user:ann, type: doc, context: {now: 2031-01-01T00:00:00Z}, assertions: {reader: [doc:a], owner: [doc:a]}}
      - {user: user:bob, type: doc, context: {now: 2031-01-01T00:00:00Z}, assertions: {reader: []}}
`

func storeSpec(t *testing.T, text string) *Spec {
	t.Helper()
	at := filepath.Join(written(t, tree{"shelves.fga.yaml": text}), "shelves.fga.yaml")
	return &Spec{Embedded: &Embedded{Engine: engine.OpenFGA, Bundle: at}}
}

// TestStoresAreComposed: two stores are compared by the checks of the first one, as the file says that stands for it.
func TestStoresAreComposed(t *testing.T) {
	first, second := storeSpec(t, shelves).Embedded.Bundle, storeSpec(t, shelves).Embedded.Bundle
	x, ok, err := comparePolicies([]string{filepath.Dir(first), second})
	if err != nil || !ok {
		t.Fatalf("%v, %v", ok, err)
	}
	for _, want := range []string{
		"question: compare\n", "embedded: {engine: openfga}\n  request_files: " + kit.Quote(first) + "\n",
		"baseline: {bundle: " + kit.Quote(filepath.Dir(first)) + "}\ntreatments:\n  - {bundle: " + kit.Quote(second) + "}\n",
	} {
		if !strings.Contains(x.Text, want) {
			t.Errorf("lacks %q:\n%s", want, x.Text)
		}
	}
	for want, bundles := range map[string][]string{
		"name two stores":                {first},
		"Rego and Cedar are compared by": {first, written(t, tree{"a.rego": "package a\n"})},
		"of XACML are compared by":       {xacmlFile(t, reading), xacmlFile(t, reading)},
	} {
		_, ok, err := comparePolicies(bundles)
		if ok != (bundles[0] == first) || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, %v, want %q", bundles, ok, err, want)
		}
	}
	if _, ok, err := comparePolicies([]string{written(t, tree{"a.yaml": "a: b\n", "a.xml": "<a/>"})}); ok ||
		err != nil {
		t.Errorf("what is no policy of these: %v, %v", ok, err)
	}
}

// TestStoreIsAskedItsTests: a store of somebody's decides about what its own tests ask, in a real OpenFGA; relations
// that nothing asks for are named, nobody else is answered, and a test that does not hold is found.
func TestStoreIsAskedItsTests(t *testing.T) {
	env, _ := requireEngine(t, engine.OpenFGA)
	for name, c := range map[string]struct{ text, want string }{
		"right":                     {shelves, ""},
		"a test that does not hold": {strings.Replace(shelves, "2031", "2027", 1), "user-bob-reader-doc-a-2"},
		"a list that lacks one":     {strings.Replace(shelves, ", user:ann]", "]", 1), "holds what does not belong"},
		"a list with one too many":  {strings.Replace(shelves, "[group:g#m", "[group:h#member, group:g#m", 1), "lacks"},
		"no such type":              {strings.Replace(shelves, "object: doc:a}\n", "object: book:a}\n", 1), "'book'"},
	} {
		t.Run(name, func(t *testing.T) {
			tg, err := tried(t, storeSpec(t, c.text), env)
			if !said(err, c.want) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			if err != nil {
				return
			}
			notes := strings.Join(tg.Notes(), "\n")
			for _, want := range []string{
				"of 4 relations, 2 are asked for", "1 relation is not asked for, but stands in the definitions of those that " +
					"are; whether each of them decides is not shown: group#member",
				"1 relation is without a proof", "guard is not shown: doc#shredder",
			} {
				if !strings.Contains(notes, want) {
					t.Errorf("notes lack %q:\n%s", want, notes)
				}
			}
			p := tg.arm(standard.ID)
			stranger := *p.session
			stranger.Token = "" // every user of the host can connect
			a, err := p.adapter.Ask(t.Context(), &stranger, p.questions[0])
			if err != nil || a.Outcome == load.OK || a.Status != 401 {
				t.Errorf("without the token: %+v, %v", a, err)
			}
		})
	}
}

// TestOpenFGAOfTares: OpenFGA is started with tare's own policies, too.
func TestOpenFGAOfTares(t *testing.T) {
	env, _ := requireEngine(t, engine.OpenFGA)
	tg, _ := verifiedIn(t, specOf(t, "embedded: {engine: openfga}, policies: 120"), env) // more than one write takes
	p := tg.arm(standard.ID)
	before := p.session.Options.Section.(*protocol.OpenFGA).Store
	if err := p.renew(t.Context()); err != nil {
		t.Fatal(err)
	}
	if after := p.session.Options.Section.(*protocol.OpenFGA).Store; after == before {
		t.Error("a new process has the store of the one before")
	}
	if err := tg.Verify(t.Context(), standard); err != nil {
		t.Errorf("after it was replaced: %v", err)
	}
	for _, c := range tg.Conditions(standard) {
		if c.Name == area.Restart || c.Name == area.ColdStart {
			t.Errorf("%s is offered, and the store does not outlive the process", c.Name)
		}
	}
	if err := p.kill(); err != nil {
		t.Fatal(err)
	}
	for tries := 0; p.failed() == nil; tries++ {
		if err := env.Clock.Sleep(t.Context(), pause/10); err != nil || tries > 2000 {
			t.Fatalf("the end of the process is not noticed: %v", err)
		}
	}
}

// TestStoresAreCompiled: what OpenFGA does not take is reported before a run, with the place in the user's file.
func TestStoresAreCompiled(t *testing.T) {
	env, _ := requireEngine(t, engine.OpenFGA)
	env.Treatments = []design.Treatment{standard}
	for name, c := range map[string]struct{ from, to, want string }{
		"right":       {"", "", ""},
		"no language": {"define owner:", "define owner", "shelves.fga.yaml:11:20: missing ':'"},
		"a relation that is not": {
			"or owner", "or ownr", "shelves.fga.yaml:12:57: 'doc#ownr' relation is undefined\n   12 | ",
		},
		"a condition that is wrong": {"now < end", "now < nd", "until"},
		"a relationship of no type": {"object: doc:a}\n", "object: book:a}\n", "shelves.fga.yaml:18: Invalid tuple"},
	} {
		t.Run(name, func(t *testing.T) {
			s := storeSpec(t, strings.Replace(shelves, c.from, c.to, 1))
			var said []string
			for _, f := range (Area{}).Preflight(t.Context(), s, env) {
				said = append(said, f.Message)
			}
			if all := strings.Join(said, "\n"); (all != "") != (c.want != "") || !strings.Contains(all, c.want) {
				t.Errorf("%q, want %q", all, c.want)
			}
		})
	}
}

// TestChecksAreRequests: the checks of a store are what it is asked, unless the experiment names requests; stores that
// are compared need those.
func TestChecksAreRequests(t *testing.T) {
	untested, _, _ := strings.Cut(shelves, "tests:")
	permits := strings.Replace(shelves, "reader: false", "reader: true", 1)
	store := storeSpec(t, shelves).Embedded.Bundle
	for name, c := range map[string]struct {
		text   string
		change func(s *Spec)
		levels map[string]string
		want   string
	}{
		"its tests":   {shelves, func(*Spec) {}, nil, ""},
		"all permit":  {permits, func(*Spec) {}, nil, "none of them is expected to be denied"},
		"no test":     {untested, func(*Spec) {}, nil, "has no test with a check"},
		"compared":    {shelves, func(*Spec) {}, map[string]string{"bundle": store}, "that are compared are asked the same"},
		"asked alike": {shelves, func(s *Spec) { s.RequestFiles = store }, map[string]string{"bundle": store}, ""},
		"of its own": {shelves, func(s *Spec) {
			s.Requests = []Request{{Name: "x", Body: `{"tuple_key": {"user": "u:a", "relation": "r", "object": "o:b"}}`, Expect: "deny"}}
		}, nil, ""},
		"its own store": {shelves, func(s *Spec) {
			s.OpenFGA = &protocol.OpenFGA{Store: strings.Repeat("A", 26)}
		}, nil, "openfga: an embedded"},
		"no store": {"name: x\n", func(*Spec) {}, nil, "it has no model"},
	} {
		t.Run(name, func(t *testing.T) {
			s := storeSpec(t, c.text)
			c.change(s)
			p, err := s.plan(design.Treatment{ID: "x", Levels: c.levels})
			if !said(err, c.want) {
				t.Fatalf("%v, want %q", err, c.want)
			}
			if err == nil && len(s.Requests) == 0 && (len(p.questions) != 9 || p.questions[2].Want != model.Deny ||
				p.questions[2].Name != "user-bob-reader-doc-a-2") {
				t.Errorf("%d questions, the third %+v", len(p.questions), p.questions[2])
			}
		})
	}
	got, err := readRequests(written(t, tree{
		"ALLOW/a.json": `{"tuple_key": {"user": "u:a", "relation": "r", "object": "o:b"}}`,
	}), "openfga")
	if err != nil || len(got) != 1 || got[0].Expect != "permit" {
		t.Errorf("%+v, %v", got, err)
	}
	if _, err := readRequests(written(t, tree{"DENY/a.json": `{"tuple_key": {}}`}), "openfga"); err == nil ||
		!strings.Contains(err.Error(), "no check of OpenFGA") {
		t.Errorf("%v", err)
	}
}

// TestListsAreRequests: an experiment asks an OpenFGA behind a URL for lists, too, and what is wrong about one is said.
func TestListsAreRequests(t *testing.T) {
	const body = `{"type": "doc", "relation": "reader", "user": "user:ann"}`
	for want, r := range map[string]Request{
		"":                              {Body: body, Expect: "list", List: []string{"doc:a"}},
		"requests[1].body: a list is":   {Expect: "list"},
		"requests[1].list: it is for":   {Body: body, Expect: "permit", List: []string{"doc:a"}},
		`the body of "x" asks for no`:   {Body: `{"tuple_key": {}}`, Expect: "list"},
		`the body of "x" wants a list`:  {Body: body, Expect: "list", List: make([]string, 1025)},
		"requests[1].expect: \"lists\"": {Body: body, Expect: "lists"},
	} {
		r.Name = "x"
		s := &Spec{
			URL: "http://127.0.0.1:1", Adapter: "openfga", OpenFGA: &protocol.OpenFGA{Store: strings.Repeat("A", 26)},
			Requests: []Request{{Name: "no", Body: `{"tuple_key": {}}`, Expect: "deny"}, r},
		}
		if _, err := s.plan(standard); !said(err, want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	s := ownSpec(engine.OPA, written(t, tree{"a.rego": salaries, "data.json": managers}))
	s.Requests = append(s.Requests, Request{Name: "x", Body: body, Expect: "list"})
	if _, err := s.plan(standard); err == nil || !strings.Contains(err.Error(), `"x" expects a list, which OPA does not`) {
		t.Errorf("%v", err)
	}
}
