package config

import (
	"strings"
	"testing"

	"tare/area"
)

// TestCommentsHoldNoCredentials: the source is recorded with its comments.
func TestCommentsHoldNoCredentials(t *testing.T) {
	head := "name: x\narea: turnpike\nquestion: capacity\n"
	for _, secret := range []string{
		"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJ4In0.c2ln", "ghp_" + strings.Repeat("a1B2", 9), "glpat-" + strings.Repeat("xY3_", 5),
		"hvs." + strings.Repeat("Ab-9", 6),
		"-----BEGIN RSA PRIVATE KEY-----",
	} {
		data := []byte(head + "# token: " + secret + "\ntarget: {}\n")
		_, ds := Parse("x.yaml", data, testAreas())
		out := written(t, ds, data)
		if !strings.Contains(out, "x.yaml:4:1  this line holds a token or a private key") ||
			strings.Contains(out, secret[5:15]) {
			t.Errorf("%s is not reported, or printed:\n%s", secret, out)
		}
	}
	if _, ds := Parse("x.yaml", []byte(head+"# token: {file: token}, such as eyJ… or ghp_…\ntarget: {}\n"),
		testAreas()); HasErrors(ds) {
		t.Errorf("a comment about tokens has findings %v", ds)
	}
}

// TestLiteralSecretsAreRejected in every text, and never printed.
func TestLiteralSecretsAreRejected(t *testing.T) {
	head := "name: x\narea: turnpike\nquestion: capacity\ntarget: "
	for target, says := range map[string]string{
		`{url: '{"user": "a", "password": "hunter2"}'}`:                           `looks like the value of "password"`,
		`{url: 'http://127.0.0.1/?a=b&api_key=hunter2'}`:                          `looks like the value of "api_key"`,
		`{workloads: ["curl -H 'Authorization: Bearer hunter2hunter2'"]}`:         "looks like an Authorization header",
		"{workloads: [a, --client-secret=hunter2]}":                               `looks like the value of "client-secret"`,
		"\n  workloads:\n    - |\n      {\n      \"id_token\": \"hunter2\"}":      `looks like the value of "id_token"`,
		`{url: '{"token": "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJodW50ZXIyIn0.c2ln"}'}`: "looks like a token",
	} {
		data := []byte(head + target + "\n")
		_, ds := Parse("x.yaml", data, testAreas())
		out := written(t, ds, data)
		if !strings.Contains(out, says) || strings.Contains(out, "hunter2") || strings.Contains(out, "eyJ") {
			t.Errorf("%s is not reported, or printed:\n%s", target, out)
		}
	}
	for _, target := range []string{
		`{workloads: ['{"password": "{pw}"}']}`,
		"{workloads: ['--password-file=/x', 'PASSWORD=$PW run']}",
	} {
		if _, ds := Parse("x.yaml", []byte(head+target+"\n"), testAreas()); HasErrors(ds) {
			t.Errorf("%s: got findings %v, want none", target, ds)
		}
	}
}

type namedSpec struct {
	Context map[string]string `yaml:"context"`
	fakeSpec
}

type namedArea struct{ fakeArea }

func (namedArea) NewSpec() area.Spec { return &namedSpec{} }

// hushedSpec finds secrets itself.
type hushedSpec struct{ fakeSpec }

func (h *hushedSpec) Under(area.Treatment) (area.Spec, error) { return h, nil }

func (*hushedSpec) Validate(area.Asked, []area.Treatment) []area.Finding {
	return []area.Finding{{Path: "url", Severity: area.Error, Message: "not here", Secret: true}}
}

type hushedArea struct{ fakeArea }

func (hushedArea) NewSpec() area.Spec { return &hushedSpec{} }

// TestNamesOfSecrets: an attribute whose name says that it is a secret cannot have a literal value; what an area calls
// a secret is not printed.
func TestNamesOfSecrets(t *testing.T) {
	offers := area.Offers{AnyRate: area.Yes}
	areas := fakeAreas{namedArea{fakeArea{"named", offers}}, hushedArea{fakeArea{"hushed", offers}}}
	for target, says := range map[string]string{
		"named\ntarget: {context: {Password: hunter2}}":             "the name of a secret",
		"named\ntarget:\n  context:\n    api-key: >\n      hunter2": "the name of a secret",
		"named\ntarget: {}\nfixed: {password: hunter2}":             "the name of a secret",
		"hushed\ntarget: {url: hunter2}":                            "not here",
	} {
		data := []byte("name: x\nquestion: capacity\narea: " + target + "\n")
		_, ds := Parse("x.yaml", data, areas)
		if out := written(t, ds, data); !strings.Contains(out, says) || strings.Contains(out, "hunter2") {
			t.Errorf("%s is not reported, or printed:\n%s", target, out)
		}
	}
	fine := "name: x\nquestion: capacity\narea: named\ntarget: {context: {password: \"{pw}\", role: token}}\n"
	if _, ds := Parse("x.yaml", []byte(fine), areas); HasErrors(ds) {
		t.Errorf("got findings %v, want none", ds)
	}
}
