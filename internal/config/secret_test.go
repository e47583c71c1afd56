package config

import (
	"errors"
	"strings"
	"testing"

	"tare/area"
)

// shyWord accepts "good" only. Anything else may be a secret.
type shyWord string

func (shyWord) MayBeSecret() bool { return true }

func (s *shyWord) UnmarshalText(b []byte) error {
	if *s = shyWord(b); *s != "good" {
		return errors.New("want another word")
	}
	return nil
}

type shySpec struct {
	Words   []shyWord         `yaml:"words"`
	Context map[string]string `yaml:"context"`
	fakeSpec
}

type shyArea struct{ fakeArea }

func (shyArea) NewSpec() area.Spec { return &shySpec{} }

// hushedSpec finds secrets itself.
type hushedSpec struct{ fakeSpec }

func (h *hushedSpec) Under(area.Treatment) (area.Spec, error) { return h, nil }

func (*hushedSpec) Validate(area.Asked, []area.Treatment) []area.Finding {
	return []area.Finding{{Path: "url", Severity: area.Error, Message: "not here", Secret: true}}
}

type hushedArea struct{ fakeArea }

func (hushedArea) NewSpec() area.Spec { return &hushedSpec{} }

// TestSecretsAreNeverPrinted: a secret in any place, comments too, is an error, and is neither in its message nor in
// the quoted source line.
func TestSecretsAreNeverPrinted(t *testing.T) {
	offers := area.Offers{AnyRate: area.Yes}
	areas := fakeAreas{
		fakeArea{"turnpike", offers}, shyArea{fakeArea{"shy", offers}}, hushedArea{fakeArea{"hushed", offers}},
	}
	found := func(rest string) (ds []Diagnostic, printed string) {
		data := []byte("name: x\nquestion: capacity\narea: " + rest + "\n")
		_, ds = Parse("x.yaml", data, areas)
		return ds, written(t, ds, data)
	}
	const comment, key = "x.yaml:4:1  this line holds a token or a private key", "-----BEGIN RSA PRIVATE KEY-----"
	for says, sources := range map[string][]string{
		comment: {
			"turnpike\n# token: eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln\ntarget: {}",
			"turnpike\n# token: ghp_" + strings.Repeat("a1B2", 9) + "\ntarget: {}",
			"turnpike\n# token: glpat-" + strings.Repeat("xY3_", 5) + "\ntarget: {}",
			"turnpike\n# token: hvs." + strings.Repeat("Ab-9", 6) + "\ntarget: {}",
			"turnpike\n# token: " + key + "\ntarget: {}",
		},
		"want another word": {
			"shy\ntarget:\n  words: [good, KEY=hunter2]", "shy\ntarget:\n  words: [hunter2, good]",
			"shy\ntarget:\n  words: \n    - KEY=hunter2\n    - good", "shy\ntarget:\n  words: [\"hun\\\n  ter2\"]",
		},
		"want a list": {
			"shy\ntarget:\n  words: {KEY: hunter2}", "shy\ntarget:\n  words: hunter2",
			"shy\ntarget:\n  words: \n    KEY: hunter2\n    ANOTHER: hunter2",
		},
		"want text, not fields": {
			"shy\ntarget:\n  words: [{KEY: hunter2}]", "shy\ntarget:\n  words: \n    - KEY: hunter2",
		},
		"want text, not a list": {"shy\ntarget:\n  words: [[hunter2]]"},
		"the name of a secret": {
			"shy\ntarget: {context: {Password: hunter2}}", "shy\ntarget:\n  context:\n    api-key: >\n      hunter2",
			"shy\ntarget: {}\nfixed: {password: hunter2}",
		},
		"not here": {"hushed\ntarget: {url: hunter2}"},
		`looks like the value of "password"`: {
			"turnpike\ntarget: " + `{url: '{"user": "a", "password": "hunter2"}'}`,
		},
		`looks like the value of "api_key"`:       {"turnpike\ntarget: {url: 'http://127.0.0.1/?a=b&api_key=hunter2'}"},
		"looks like an Authorization header":      {"turnpike\ntarget: " + `{workloads: ["curl -H 'Authorization: Bearer hunter2hunter2'"]}`},
		`looks like the value of "client-secret"`: {"turnpike\ntarget: {workloads: [a, --client-secret=hunter2]}"},
		`looks like the value of "id_token"`: {
			"turnpike\ntarget: \n  workloads:\n    - |\n      {\n      \"id_token\": \"hunter2\"}",
		},
		"looks like a token": {
			"turnpike\ntarget: " + `{url: '{"token": "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJodW50ZXIyIn0.c2ln"}'}`,
		},
		"": {
			"turnpike\ntarget: {password: hunter2}", "turnpike\ntarget: {password: 'hunter2', x: 1}",
			"turnpike\ntarget: {x: 1, password: {hunter2}}", "turnpike\ntarget: {password: {hunter2, hunter2}}",
			"turnpike\ntarget: {password: [hunter2]}", "turnpike\ntarget: {password: {env: hunter2 z}}",
			"turnpike\ntarget: {password: {env: [hunter2]}}", "turnpike\ntarget: {password: {key: hunter2}}",
			"turnpike\ntarget:\n  password: >\n    hunter2\n  x: 1",
			"turnpike\ntarget:\n  password: hunter2\n  password: hunter2",
			"turnpike\ntarget: {passwrd: hunter2}", "turnpike\ntarget: {headers: {X: hunter2, Y: {env: A, file: hunter2}}}",
			"turnpike\ntarget: {headers: hunter2}", "turnpike\ntarget: {password: \"a\n\n  hunter2\", z: 1}",
			"turnpike\ntarget: &a {password: &b hunter2, headers: {X: *b}}", "turnpike\nx: &a hunter2\ntarget: {password: *a}",
			"turnpike\ntarget: {password: !!str hunter2}", "turnpike\ntoken: hunter2", "turnpike\npassword: hunter2\nfoo: [",
			"turnpike\ntarget: {password: hunter2", "turnpike\ntarget:\n  api_key: hunter2\n  ? [",
			"turnpike\nfixed: {client_secret: ''}", "turnpike\ntarget: {url: 'http://u:hunter2@h/', z: 1}",
			"turnpike\ntarget: {password: \"hun\\\n  ter2 hunter2\", z: 1}", "turnpike\nAWS_SECRET_ACCESS_KEY: hunter2",
		},
	} {
		for _, source := range sources {
			ds, out := found(source)
			if !HasErrors(ds) || !strings.Contains(out, says) {
				t.Errorf("%s: want an error with %q:\n%s", source, says, out)
			}
			for _, d := range ds {
				out += d.Path + d.Message
			}
			for _, secret := range []string{"ter2", "eyJ", "a1B2", "xY3_", "Ab-9", key[5:15]} {
				if strings.Contains(out, secret) {
					t.Errorf("%s is repeated:\n%s", source, out)
				}
			}
		}
	}
	for _, fine := range []string{
		"turnpike\n# token: {file: token}, such as eyJ… or ghp_…\ntarget: {}", "shy\ntarget: {words: [good]}",
		"turnpike\ntarget: " + `{workloads: ['{"password": "{pw}"}']}`,
		"turnpike\ntarget: {workloads: ['--password-file=/x', 'PASSWORD=$PW run']}",
		"shy\ntarget: {context: {password: \"{pw}\", role: token}}",
	} {
		if ds, out := found(fine); HasErrors(ds) {
			t.Errorf("%s: got findings, want none:\n%s", fine, out)
		}
	}
}
