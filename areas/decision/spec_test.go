package decision

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/areas/decision/protocol"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/question"
)

// TestSchemaEnumsMatchTheCode: the schema allows the values that the code knows.
func TestSchemaEnumsMatchTheCode(t *testing.T) {
	enum := func(in reflect.Type, field string) []string {
		f, ok := in.FieldByName(field)
		if !ok {
			t.Fatalf("%v has no field %s", in, field)
		}
		var out []string
		for rule := range strings.SplitSeq(f.Tag.Get("jsonschema"), ",") {
			if word, ok := strings.CutPrefix(rule, "enum="); ok {
				out = append(out, word)
			}
		}
		return slices.Sorted(slices.Values(out))
	}
	if got, want := enum(reflect.TypeFor[Planted](), "Answer"),
		slices.Sorted(slices.Values(plantedAnswers())); !slices.Equal(got, want) {
		t.Errorf("planted answers in the schema: %v, want %v", got, want)
	}
}

// TestEveryFieldIsDescribed: editors show the descriptions.
func TestEveryFieldIsDescribed(t *testing.T) {
	for _, of := range []reflect.Type{
		reflect.TypeFor[Spec](), reflect.TypeFor[Embedded](), reflect.TypeFor[Planted](), reflect.TypeFor[Process](),
		reflect.TypeFor[Metrics](),
		reflect.TypeFor[Request](), reflect.TypeFor[Entity](), reflect.TypeFor[protocol.OPA](),
		reflect.TypeFor[protocol.OpenFGA](), reflect.TypeFor[protocol.PDPX](),
	} {
		for f := range of.Fields() {
			y, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
			if j, _, _ := strings.Cut(f.Tag.Get("json"), ","); y == "" || y != j || f.Tag.Get("jsonschema_description") == "" {
				t.Errorf("%v.%s: %q and %q, described %q", of, f.Name, y, j, f.Tag.Get("jsonschema_description"))
			}
		}
	}
}

// TestAdapterGetsItsOwnOptions and no others.
func TestAdapterGetsItsOwnOptions(t *testing.T) {
	s := Spec{Path: "p"}
	of := map[string]any{"": nil} // by section
	for f := range reflect.TypeFor[Spec]().Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
		if slices.ContainsFunc(protocol.Adapters(), func(a protocol.Adapter) bool { return a.Section == name }) {
			section := reflect.New(f.Type.Elem())
			reflect.ValueOf(&s).Elem().FieldByIndex(f.Index).Set(section)
			of[name] = section.Interface()
		}
	}
	if of["opa"] != s.OPA || s.OPA == nil || len(of) < 4 {
		t.Fatalf("sections %v", of)
	}
	for _, a := range protocol.Adapters() {
		section, ok := of[a.Section]
		if got := s.options(a); !ok || got.Section != section || got.Path != "p" {
			t.Errorf("%s gets %+v of its section %q", a.Name, got, a.Section)
		}
		if got := (&Spec{}).options(a); got != (protocol.Options{}) {
			t.Errorf("%s gets %+v of no section", a.Name, got)
		}
	}
}

func testRequests() []Request {
	return []Request{{Name: "yes", Expect: "permit"}, {Name: "no", Expect: "deny"}}
}

// requestsWithSecret returns requests whose context contains a token.
func requestsWithSecret(token string) []Request {
	out := testRequests()
	out[0].Context = map[string]string{"token": token}
	return out
}

// TestValidate checks the findings of Validate and their paths.
func TestValidate(t *testing.T) {
	const local = "http://127.0.0.1:8080"
	for name, c := range map[string]struct {
		spec Spec
		path string
		says string // empty: valid
	}{
		"the default":             {Spec{}, "", ""},
		"an embedded pdpx":        {Spec{Embedded: &Embedded{Engine: engine.PDPX}, Policies: 7}, "", ""},
		"adapter with its engine": {Spec{Adapter: "opa"}, "", ""},
		"a real pdpx": {Spec{
			Adapter: "pdpx", URL: "https://pdp:6969", Username: "u",
			Password: area.Secret{Env: "P"},
		}, "", ""},
		"requests": {Spec{Adapter: "authzen", URL: local, Requests: testRequests()}, "", ""},
		"loaded":   {Spec{Adapter: "opa", URL: local, Load: true, Policies: 5, Position: model.First}, "", ""},

		"secrets in the clear": {Spec{
			Adapter: "pdpx", URL: "http://pdp:6969", Username: "u",
			Password: area.Secret{Env: "P"},
		}, "url", "expose_secrets: true"},
		"secrets over plain gRPC": {Spec{
			Adapter: "ext-authz", URL: "grpc://pdp:9191", Token: area.Secret{Env: "P"},
			Requests: testRequests(),
		}, "url", "over grpc://"},
		"secrets to anybody": {
			Spec{
				Adapter: "opa", URL: "https://pdp", Load: true, SecretHeaders: map[string]area.Secret{"X": {Env: "P"}},
				TLS: &kit.TLS{Insecure: true},
			}, "url", "is not verified",
		},
		"secrets that may be exposed": {Spec{
			Adapter: "pdpx", URL: "http://pdp:6969", Username: "u",
			Password: area.Secret{Env: "P"}, ExposeSecrets: true,
		}, "", ""},

		"secrets in requests": {Spec{
			Adapter: "opa", URL: local, Requests: requestsWithSecret("{jwt}"),
			Secrets: map[string]area.Secret{"jwt": {File: "t"}},
		}, "", ""},
		"secrets of nothing": {Spec{
			Adapter: "opa", URL: local, Requests: testRequests(),
			Secrets: map[string]area.Secret{"jwt": {File: "t"}},
		}, "secrets", "does not stand in the body"},
		"secrets of ext-authz": {Spec{
			Adapter: "ext-authz", URL: "grpc://127.0.0.1:1", Requests: requestsWithSecret("{jwt}"),
			Secrets: map[string]area.Secret{"jwt": {File: "t"}},
		}, "secrets", "no JSON"},
		"secrets of embedded ones": {Spec{Secrets: map[string]area.Secret{"jwt": {File: "t"}}}, "secrets", "leave it out"},

		"url and embedded":    {Spec{URL: local, Adapter: "opa", Embedded: &Embedded{}}, "url", "exclude each other"},
		"url without adapter": {Spec{URL: local}, "adapter", "which protocol"},
		"unknown adapter":     {Spec{Adapter: "ldap"}, "adapter", "ldap"},
		"engine and adapter": {
			Spec{Adapter: "opa", Embedded: &Embedded{Engine: engine.Cedar}},
			"adapter",
			"speaks authzen, not opa",
		},
		"no embedded ext-authz": {Spec{Adapter: "ext-authz"}, "url", "no embedded decision point that speaks ext-authz"},
		"credentials in url": {
			Spec{Adapter: "opa", URL: "http://me:pass@127.0.0.1", Load: true},
			"url",
			"must not hold credentials",
		},
		"a query":        {Spec{Adapter: "opa", URL: local + "?x=1", Load: true}, "url", "query"},
		"another scheme": {Spec{Adapter: "opa", URL: "ftp://127.0.0.1", Load: true}, "url", "ftp"},
		"tls without https": {
			Spec{Adapter: "opa", URL: local, Load: true, TLS: &kit.TLS{Insecure: true}},
			"tls",
			"not https",
		},
		"nothing known":  {Spec{Adapter: "authzen", URL: local}, "requests", "questions whose answers are known"},
		"nothing loaded": {Spec{Adapter: "opa", URL: local}, "requests", "load: true"},
		"no deny": {
			Spec{Adapter: "authzen", URL: local, Requests: testRequests()[:1]},
			"requests",
			"would not be found out",
		},
		"twice": {
			Spec{Adapter: "authzen", URL: local, Requests: append(testRequests(), testRequests()...)},
			"requests[2].name", "twice",
		},
		"no JSON": {Spec{
			Adapter: "authzen", URL: local,
			Requests: append(testRequests(), Request{Name: "x", Body: "{", Expect: "deny"}),
		}, "requests[2].body", "JSON"},
		"load and requests": {
			Spec{Adapter: "opa", URL: local, Load: true, Requests: testRequests()},
			"requests",
			"leave out one",
		},
		"load of authzen": {
			Spec{Adapter: "authzen", URL: local, Load: true, Requests: testRequests()},
			"load",
			"no way to put policies",
		},
		"policies of others": {
			Spec{Adapter: "authzen", URL: local, Requests: testRequests(), Policies: 4},
			"policies",
			"not ours to say",
		},
		"embedded with load": {Spec{Load: true}, "load", "leave it out"},
		"embedded with user": {Spec{Username: "u"}, "username", "credentials of its own"},
		"embedded process":   {Spec{Process: &Process{PID: 1}}, "process", "leave it out"},
		"two ways to process": {
			Spec{Adapter: "opa", URL: local, Load: true, Process: &Process{PID: 1, Port: 2}},
			"process",
			"one way",
		},
		"metrics elsewhere": {
			Spec{Adapter: "opa", URL: local, Load: true, Metrics: &Metrics{URL: "127.0.0.1"}},
			"metrics.url", "want a URL",
		},
		"a password alone": {
			Spec{Adapter: "pdpx", URL: local, Password: area.Secret{Env: "P"}},
			"username",
			"needs its username",
		},
		"user and token": {
			Spec{Adapter: "pdpx", URL: local, Username: "u", Token: area.Secret{Env: "P"}},
			"token",
			"exclude each other",
		},
		"batches of opa":  {Spec{Adapter: "opa", Batch: 4}, "batch", "one question in a request"},
		"a secret header": {Spec{Headers: map[string]string{"X-Api-Key": "k"}}, "headers.X-Api-Key", "secret_headers"},
		"a protocol's header": {
			Spec{SecretHeaders: map[string]area.Secret{"Host": {Env: "H"}}},
			"secret_headers.Host",
			"belongs to the protocol",
		},
		"faults in java": {
			Spec{Embedded: &Embedded{Engine: engine.ATT, Planted: &Planted{Leak: 1}}},
			"embedded.planted", "not into att",
		},
		"a late fault in cedar": {
			Spec{Embedded: &Embedded{Planted: &Planted{Answer: "always-permit", AnswerAfter: 5e9}}},
			"embedded.planted.answer_after", "from its start",
		},
		"no fault to come later": {
			Spec{Embedded: &Embedded{Engine: engine.PDPX, Planted: &Planted{AnswerAfter: 5e9}}},
			"embedded.planted.answer_after", "no planted answer",
		},
		"another's options": {Spec{OPA: &protocol.OPA{Path: "x"}}, "opa", "options of opa, not of authzen"},
		"the rule of opa as path": {
			Spec{Adapter: "opa", URL: local, Path: "authz/allow", Requests: testRequests()},
			"path",
			"write opa: {path: authz/allow}",
		},
		"a path of openfga": {Spec{Adapter: "openfga", URL: local, Load: true, Path: "x"}, "path", "leave it out"},
		"an unknown operation": {
			Spec{Adapter: "pdpx", PDPX: &protocol.PDPX{Operations: []string{"monitor"}}},
			"pdpx.operations", "is not one of",
		},
		"a client certificate": {
			Spec{Adapter: "opa", URL: "https://127.0.0.1", Load: true, TLS: &kit.TLS{Cert: "c"}},
			"tls.key", "private key",
		},
	} {
		t.Run(name, func(t *testing.T) {
			found := c.spec.Validate(question.Of(design.Soak).Asked(), nil)
			if c.says == "" {
				if len(found) > 0 {
					t.Errorf("findings %v", found)
				}
				return
			}
			if len(found) != 1 || found[0].Path != c.path || !strings.Contains(found[0].Message, c.says) ||
				found[0].Severity != area.Error {
				t.Errorf("findings %+v, want %q at %q", found, c.says, c.path)
			}
		})
	}
}

// TestLevels: each factor changes the section, within its limits, and leaves the original unchanged.
func TestLevels(t *testing.T) {
	s := &Spec{Embedded: &Embedded{Planted: &Planted{}}}
	out, err := s.under(map[string]string{
		"engine": "pdpx", "adapter": "pdpx", "policies": "7", "position": "first", "batch": "2",
		"planted.answer": "always-permit", "planted.leak_per_minute": "2MiB",
	})
	if err != nil {
		t.Fatal(err)
	}
	if out.Embedded.Engine != engine.PDPX || out.Adapter != "pdpx" || out.Policies != 7 || out.Position != model.First ||
		out.Batch != 2 ||
		out.Embedded.Planted.Answer != "always-permit" || out.Embedded.Planted.Leak != 2<<20 {
		t.Errorf("levels give %+v, %+v", out, out.Embedded)
	}
	if !reflect.DeepEqual(s, &Spec{Embedded: &Embedded{Planted: &Planted{}}}) {
		t.Errorf("the levels changed the section itself: %+v", s)
	}
	for _, levels := range []map[string]string{
		{"engine": "opal"},
		{"policies": "0"},
		{"policies": "many"},
		{"batch": "100000"},
		{"planted.leak_per_minute": "1"},
		{"colour": "red"},
	} {
		if _, err := s.under(levels); err == nil {
			t.Errorf("%v is taken", levels)
		}
	}
	for _, levels := range []map[string]string{
		{"position": "middle"},
		{"planted.answer": "maybe"},
		{"engine": "opa", "batch": "3"},
	} {
		found := (&Spec{}).Validate(question.Of(design.Compare).Asked(), []design.Treatment{{
			ID:     design.ID(levels),
			Levels: levels,
		}})
		if len(found) != 1 || found[0].Path != "" || !strings.Contains(found[0].Message, "treatment") {
			t.Errorf("levels %v: got %+v, want one finding about the treatment", levels, found)
		}
	}
	varied := []design.Treatment{
		{ID: "a", Levels: map[string]string{"policies": "1"}},
		{ID: "b", Levels: map[string]string{"policies": "2"}},
	}
	if found := (&Spec{Policies: 3}).Validate(question.Of(design.Scale).Asked(), varied); len(found) != 1 ||
		found[0].Path != "policies" {
		t.Errorf("said twice: %+v", found)
	}
}

// TestLevelsChooseTheEndpoint: one URL against another, or against an embedded engine.
func TestLevelsChooseTheEndpoint(t *testing.T) {
	s := &Spec{Requests: nil}
	here := design.Treatment{ID: "here", Levels: map[string]string{"engine": "opa"}}
	there := design.Treatment{ID: "there", Levels: map[string]string{"adapter": "opa", "url": "https://opa:8181"}}
	if !kit.Loopback(s, []design.Treatment{here}) || kit.Loopback(s, []design.Treatment{here, there}) {
		t.Error("a treatment elsewhere is not seen")
	}
	for url, want := range map[string]bool{
		"": true, "http://localhost:1": true, "http://[::1]:1": true, "http://127.9.9.9": true, "http://pdp:1": false,
		"http://10.0.0.1": false, ":": false,
	} {
		if got := (&Spec{URL: url}).Says().Loopback; got != want {
			t.Errorf("%q on loopback: %v, want %v", url, got, want)
		}
	}
}

// TestDenyQuestionsAreAlwaysAsked, even if operations leave them out.
func TestDenyQuestionsAreAlwaysAsked(t *testing.T) {
	names := func(list []model.Question) string {
		var out []string
		for _, q := range list {
			out = append(out, q.Name)
		}
		return strings.Join(out, " ")
	}
	s := Spec{Adapter: "pdpx", PDPX: &protocol.PDPX{Operations: []string{"healthcheck", "guard-minmax"}}}
	p, err := s.plan(design.Treatment{})
	if err != nil {
		t.Fatal(err)
	}
	if names(p.questions) != "healthcheck guard-minmax" || names(p.refusals) != "guard-minmax-deny" {
		t.Errorf("asked %q, refused %q", names(p.questions), names(p.refusals))
	}
	two := []Request{
		{Name: "a", Expect: "permit", Policy: "x"},
		{Name: "b", Expect: "deny", Policy: "x"},
		{Name: "c", Expect: "permit", Policy: "y"},
	}
	s = Spec{Adapter: "authzen", URL: "http://127.0.0.1", Requests: two}
	if _, err := s.plan(design.Treatment{}); err == nil ||
		!strings.Contains(err.Error(), "of policy y none is expected to be denied") {
		t.Errorf("a kind without a known deny: %v", err)
	}
}

// TestSectionSurvivesTheJournal: undo reads the section back from JSON.
func TestSectionSurvivesTheJournal(t *testing.T) {
	s := Spec{
		Adapter: "opa", URL: "https://opa:8181", Load: true, Policies: 9, Position: model.First,
		Token:         area.Secret{File: "/t"},
		SecretHeaders: map[string]area.Secret{"X-A": {Env: "A"}}, TLS: &kit.TLS{CA: "ca.pem"}, OPA: &protocol.OPA{Path: "x"},
		Embedded: &Embedded{Planted: &Planted{Leak: 1 << 20, NotReady: 5e9}},
	}
	b, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	var got Spec
	if err := json.Unmarshal(b, &got); err != nil || !reflect.DeepEqual(got, s) {
		t.Errorf("%s\nbecame %+v, %v", b, got, err)
	}
}

// TestPlanListsChanges and locks.
func TestPlanListsChanges(t *testing.T) {
	arms := []design.Treatment{
		{Levels: map[string]string{"engine": "cedar"}},
		{Levels: map[string]string{"engine": "cedar"}},
		{Levels: map[string]string{"engine": "opa"}},
	}
	if got := strings.Join((&Spec{}).Creates(arms),
		"; "); got != "2 processes on loopback: cedar; 1 process on loopback: opa" {
		t.Error(got)
	}
	url := &Spec{Adapter: "opa", URL: "https://opa", Load: true}
	if got := strings.Join(url.Creates([]design.Treatment{{}}), "; "); !strings.Contains(got,
		"policies in the decision point at opa") {
		t.Error(got)
	}
	if url.LockKey() != "opa:https" || (&Spec{}).LockKey() != "" {
		t.Errorf("locks %q, %q", url.LockKey(), (&Spec{}).LockKey())
	}
}
