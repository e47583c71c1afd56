package identity

import (
	"strings"
	"testing"

	"tare/area"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/question"
)

func TestValidateTokens(t *testing.T) {
	x := area.Secret{Env: "X"}
	oidc := func(o OIDC) *Spec { return &Spec{Adapter: "oidc-token", URL: "https://localhost/token", OIDC: &o} }
	vault := func(o Vault) *Spec { return &Spec{Adapter: "vault-login", URL: "http://localhost", Vault: &o} }
	web := func(o HTTP) *Spec { return &Spec{Adapter: "http-token", URL: "http://localhost", HTTP: &o} }
	good := OIDC{ClientID: "a", ClientSecret: x}
	certified := oidc(OIDC{ClientID: "a"})
	certified.TLS = &kit.TLS{Cert: "c.pem", Key: area.Secret{File: "c.key"}}
	change := func(s *Spec, f func(*Spec)) *Spec { f(s); return s }
	for _, c := range []struct {
		name       string
		spec       *Spec
		path, want string // nothing: valid
	}{
		{"good", oidc(good), "", ""},
		{"status alone", web(HTTP{StatusOnly: true}), "", ""},
		{"status alone, and a token", web(HTTP{StatusOnly: true, Token: "a"}), "http.status_only", "leave out http.token"},
		{"certificate for a secret", certified, "", ""},
		{
			"no options", &Spec{Adapter: "oidc-token", URL: "https://localhost/token"}, "",
			"oidc.client_id: client_credentials needs",
		},
		{"no secret", oidc(OIDC{ClientID: "a"}), "oidc.client_secret", "needs the client's secret"},
		{"nothing to exchange", oidc(OIDC{Grant: grantExchange}), "oidc.subject_token", "needs the token to exchange"},
		{"public exchange", oidc(OIDC{Grant: grantExchange, SubjectToken: x}), "", ""},
		{
			"secret of a public client", oidc(OIDC{Grant: grantExchange, SubjectToken: x, Auth: authNone, ClientSecret: x}),
			"oidc.client_secret", "no secret",
		},
		{
			"stray subject", oidc(OIDC{ClientID: "a", ClientSecret: x, SubjectToken: x}), "oidc.subject_token",
			"only token_exchange",
		},
		{"embedded", &Spec{Adapter: "oidc-token", OIDC: &good}, "url", "no embedded endpoint"},
		{
			"query", &Spec{Adapter: "oidc-token", URL: "https://localhost/t?client_secret=" + planted, OIDC: &good}, "url",
			"query",
		},
		{
			"userinfo", &Spec{Adapter: "oidc-token", URL: "https://a:" + planted + "@localhost/t", OIDC: &good}, "url",
			"credentials",
		},
		{
			"bad URL", &Spec{Adapter: "oidc-token", URL: "https://a:" + planted + "@local host/t%", OIDC: &good}, "url",
			"not a URL",
		},
		{"another's section", change(oidc(good), func(s *Spec) { s.Vault = &Vault{} }), "vault", "options of vault-login"},
		{
			"tls without https", change(vault(Vault{Role: "r", JWT: x}), func(s *Spec) { s.TLS = &kit.TLS{CA: "x"} }), "tls",
			"not https",
		},
		{"cert without key", change(oidc(good), func(s *Spec) { s.TLS = &kit.TLS{Cert: "x"} }), "tls.key", "private key"},
		{"key without cert", change(oidc(good), func(s *Spec) { s.TLS = &kit.TLS{Key: x} }), "tls.cert", "certificate"},
		{
			"insecure and ca", change(oidc(good), func(s *Spec) { s.TLS = &kit.TLS{CA: "x", Insecure: true} }), "tls.insecure",
			"no effect",
		},
		{
			"callers and identities", change(oidc(good), func(s *Spec) { s.Identities, s.Callers = 2, []Caller{{Name: "a"}} }),
			"identities", "exclude",
		},
		{
			"caller's address", change(oidc(good), func(s *Spec) { s.Callers = []Caller{{Address: "x"}} }), "callers[0].address",
			"not an IP",
		},
		{
			"caller's secret header", change(oidc(good),
				func(s *Spec) { s.Callers = []Caller{{Headers: map[string]string{"X-Token": planted}}} }),
			"callers[0].headers.X-Token", "secret_headers",
		},
		{"protocol's secret header", change(oidc(good),
			func(s *Spec) { s.SecretHeaders = map[string]area.Secret{"Host": x} }), "secret_headers.Host", "protocol"},
		{"vault role", vault(Vault{JWT: x}), "vault.role", "needs one"},
		{"vault jwt", vault(Vault{Role: "r"}), "vault.jwt", "{file: /var/run"},
		{"vault foreign field", vault(Vault{Role: "r", JWT: x, Password: x}), "vault.password", "no such field"},
		{"vault user", vault(Vault{Method: "userpass", Username: "a/b", Password: x}), "vault.username", "slashes"},
		{"vault mount", vault(Vault{Mount: "a b", Role: "r", JWT: x}), "vault.mount", "path"},
		{"http", web(HTTP{}), "", ""},
		{"http body of GET", web(HTTP{Method: "GET", Body: "x"}), "http.body", "GET has no body"},
		{"http file", web(HTTP{Body: "a={f}", Files: map[string]string{"f": "x"}}), "", ""},
		{"http file, no place", web(HTTP{Body: "a", Files: map[string]string{"f": "x"}}), "http.files", "{f} does not stand"},
		{"http file, no path", web(HTTP{Body: "{f}", Files: map[string]string{"f": ""}}), "http.files", "path of a file"},
		{
			"http file and secret of one name",
			web(HTTP{Body: "{f}", Files: map[string]string{"f": "x"}, Secrets: map[string]area.Secret{"f": x}}), "http.files",
			"meaning of its own",
		},
		{"http path", web(HTTP{Path: "x y"}), "http.path", "blanks"},
		{"http query", web(HTTP{Path: "/t?api_key=" + planted}), "http.path", "looks like a secret"},
		{"http token type", web(HTTP{Path: "/t?token_type=x"}), "", ""},
		{"http member", web(HTTP{Token: "a..b"}), "http.token", "dots"},
		{"http token", web(HTTP{Body: "{token}"}), "http.body", "needs a token"},
	} {
		got := c.spec.Validate(question.Of(design.Capacity).Asked(), nil)
		for _, f := range got {
			if strings.Contains(f.Message+f.Hint, planted) {
				t.Errorf("%s: the finding quotes the secret", c.name)
			}
		}
		if c.want == "" {
			if len(got) > 0 {
				t.Errorf("%s: got findings %+v, want none", c.name, got)
			}
			continue
		}
		if len(got) != 1 || got[0].Path != c.path || got[0].Severity != area.Error ||
			!strings.Contains(got[0].Message, c.want) {
			t.Errorf("%s: %+v, want %q at %q", c.name, got, c.want, c.path)
		}
	}
}
