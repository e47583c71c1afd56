package decision

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/areas/decision/protocol"
	"tare/areas/decision/replica"
	"tare/internal/design"
	"tare/rigs/hosttest"
)

// TestDataThatGrow: the decision point has the copies, decides about them as about the originals, and answers what is
// asked of the originals as before.
func TestDataThatGrow(t *testing.T) {
	hosttest.SkipIfShort(t)
	env := testEnv(t)
	env.Getenv = os.LookupEnv
	body := func(text string) string { return `{"input": ` + text + `}` }
	staff := func(name, who, expect string) Request {
		return Request{
			Name: name, Subject: Entity{Type: "User", ID: who}, Action: "read", Resource: Entity{Type: "doc", ID: "plan"},
			Expect: expect,
		}
	}
	check := func(user, doc string) string {
		return `{"tuple_key": {"user": "user:` + user + `", "relation": "owner", "object": "doc:` + doc + `"}}`
	}
	for k, s := range map[engine.Kind]*Spec{
		engine.OPA: {
			Embedded: &Embedded{Bundle: written(t, map[string]string{
				"a.rego": "package a\nimport rego.v1\ndefault allow := false\nallow if {\n" +
					"\tcount(data.staff) == input.n\n\tsome b in data.roles\n\tb.user == input.user\n}\n",
				"data.json": `{"staff": {"ann": {}, "bob": {}}, "roles": [{"user": "ann"}]}`,
			}), Data: &replica.Data{Of: []string{"staff", "roles[].user"}}},
			OPA: &protocol.OPA{Path: "a/allow"},
			Requests: []Request{
				{Name: "original", Body: body(`{"n": 40, "user": "ann"}`), Expect: "permit"},
				{Name: "copy", Body: body(`{"n": 40, "user": "ann~20"}`), Expect: "permit"},
				{Name: "beyond", Body: body(`{"n": 40, "user": "ann~21"}`), Expect: "deny"},
				{Name: "no-role", Body: body(`{"n": 40, "user": "bob~20"}`), Expect: "deny"},
			},
		},
		engine.Cedar: {
			Embedded: &Embedded{Bundle: written(t, map[string]string{
				"a.cedar": `permit (principal in Team::"staff", action, resource) when { principal.boss == User::"eve" };`,
				"entities.json": `[{"uid": {"type": "User", "id": "ann"}, "attrs": {"boss": {"__entity": {"type": "User", ` +
					`"id": "eve"}}}, "parents": [{"type": "Team", "id": "staff"}]}]`,
			}), Data: &replica.Data{Of: []string{"User"}}},
			Requests: []Request{
				staff("original", "ann", "permit"), staff("copy", "ann~20", "permit"), staff("beyond", "ann~21", "deny"),
			},
		},
		engine.OpenFGA: {
			Embedded: &Embedded{Bundle: storeSpec(t, shelves).Embedded.Bundle},
			Requests: []Request{
				{Name: "original", Body: check("ann", "a"), Expect: "permit"},
				{Name: "copy", Body: check("ann~20", "a~20"), Expect: "permit"},
				{Name: "another", Body: check("ann~20", "a"), Expect: "deny"},
			},
		},
	} {
		t.Run(string(k), func(t *testing.T) {
			requireEngine(t, k, env)
			s.Embedded.Engine = k
			twenty := design.Treatment{ID: "data.times=20", Levels: map[string]string{"data.times": "20"}}
			if f := s.Validate(area.Asked{}, []design.Treatment{twenty}); len(f) > 0 {
				t.Fatal(f)
			}
			tg, j := opened(t, s, env)
			if err := tg.Prepare(t.Context(), twenty, j); err != nil {
				t.Fatal(err)
			}
			if err := tg.Verify(t.Context(), twenty); err != nil {
				t.Error(err)
			}
			if notes := strings.Join(tg.Notes(), "\n"); !strings.Contains(notes, "the data are there 20 times, ") {
				t.Errorf("notes:\n%s", notes)
			}
		})
	}
}

// TestDataThatCannotGrow: what a file says of data that are not there is said at its place.
func TestDataThatCannotGrow(t *testing.T) {
	opa, cedar := ownSpec(engine.OPA, written(t, map[string]string{"a.rego": salaries, "data.json": managers})),
		ownSpec(engine.Cedar, filepath.Join(written(t, map[string]string{"a.cedar": departments}), "a.cedar"))
	for want, c := range map[string]struct {
		spec *Spec
		data replica.Data
	}{
		"embedded.data: data: of: say what grows":        {opa, replica.Data{}},
		"embedded.data: data: of: bosses: the bundle's":  {opa, replica.Data{Of: []string{"bosses"}}},
		"embedded.data: data: there is nothing":          {cedar, replica.Data{}},
		"embedded.data: data: it is about the data of a": {embedded(engine.Cedar, Planted{}), replica.Data{}},
		"embedded.data.times: data.times is varied":      {opa, replica.Data{Of: []string{"managers"}, Times: 5}},
	} {
		s := *c.spec
		e := *s.Embedded
		e.Data = &c.data
		s.Embedded = &e
		var got []string
		twice := design.Treatment{ID: "data.times=2", Levels: map[string]string{"data.times": "2"}}
		for _, f := range s.Validate(area.Asked{}, []design.Treatment{twice}) {
			got = append(got, f.Path+": "+f.Message)
		}
		if !strings.Contains(strings.Join(got, "\n"), want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
}
