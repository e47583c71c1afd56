package identity

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"tare/area"
	"tare/areas/identity/reference"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/question"
	"tare/internal/unit"
)

func TestEveryKnobHasAField(t *testing.T) {
	file, knobs := reflect.TypeFor[Embedded](), reflect.TypeFor[reference.Knobs]()
	for _, f := range reflect.VisibleFields(knobs) {
		if f.Anonymous {
			continue
		}
		in, ok := file.FieldByName(f.Name)
		if !ok {
			t.Errorf("Embedded lacks %s", f.Name)
			continue
		}
		if !in.Type.Elem().ConvertibleTo(f.Type) {
			t.Errorf("%s: %s does not convert to %s", f.Name, in.Type.Elem(), f.Type)
		}
		name, _, _ := strings.Cut(in.Tag.Get("yaml"), ",")
		if other, _, _ := strings.Cut(in.Tag.Get("json"), ","); name != f.Tag.Get("json") || name != other {
			t.Errorf("%s is called %q, %q and %q", f.Name, name, other, f.Tag.Get("json"))
		}
		if in.Tag.Get("jsonschema_description") == "" {
			t.Errorf("%s has no description", f.Name)
		}
	}
	for f := range file.Fields() {
		if f.Name != "Preset" {
			if _, ok := knobs.FieldByName(f.Name); !ok {
				t.Errorf("%s of the file is no knob", f.Name)
			}
		}
	}
	enum := file.Field(0).Tag.Get("jsonschema")
	if want := "enum=" + strings.Join(reference.Presets(), ",enum="); enum != want {
		t.Errorf("presets in the schema: %s, want %s", enum, want)
	}
}

// TestLevelsSetKnobs sets every knob by a level and reads it back.
func TestLevelsSetKnobs(t *testing.T) {
	levels := map[string]string{
		"preset": "healthy", "cpu_quota": "250m", "cpu_per_request": "1ms", "procs": "2", "max_conns": "7", "backlog": "9",
		"idle_timeout": "3s",
		"cache":        "on", "singleflight": "false", "refresh_early": "2m", "jitter": "30s", "upstream_conns": "5",
		"unavailable_first": "4s", "drop": "10%",
		"liveness_period": "10s", "liveness_failures": "2", "signing": "ES256", "ttl": "10m", "upstream_latency": "20ms",
		"quota_rate": "30/s", "quota_burst": "11", "quota_mode": "queue",
	}
	if len(levels) != len(knobNames()) {
		t.Fatalf("%d levels for %d knobs", len(levels), len(knobNames()))
	}
	s := embedded("blog-2020")
	p, err := s.plan(design.Treatment{Levels: levels})
	if err != nil {
		t.Fatal(err)
	}
	want := reference.Knobs{
		EndpointKnobs: reference.EndpointKnobs{
			CPUQuota: 0.25, CPUPerRequest: time.Millisecond, Procs: 2, MaxConns: 7, Backlog: 9, IdleTimeout: 3 * time.Second,
			Cache:        true,
			RefreshEarly: 2 * time.Minute, Jitter: 30 * time.Second, UpstreamConns: 5, UnavailableFirst: 4 * time.Second,
			Drop:           0.1,
			LivenessPeriod: 10 * time.Second, LivenessFailures: 2, Signing: reference.ES256,
		},
		STSKnobs: reference.STSKnobs{
			TTL: 10 * time.Minute, UpstreamLatency: 20 * time.Millisecond, QuotaRate: 30, QuotaBurst: 11,
			QuotaMode: reference.Queue,
		},
	}
	if p.knobs != want || p.preset != "healthy" {
		t.Errorf("%s: %+v, want %+v", p.preset, p.knobs, want)
	}
	if len(levels) != 22 {
		t.Error("planning changed the treatment's levels")
	}
}

func TestPlanPrecedence(t *testing.T) {
	s := embedded("blog-2020")
	conns, idle := 0, unit.Duration(time.Second)
	s.Embedded.MaxConns, s.Embedded.IdleTimeout = &conns, &idle
	p, err := s.plan(design.Treatment{Levels: map[string]string{
		"idle_timeout": "5s", "identities": "4",
		"account": "email",
	}})
	if err != nil {
		t.Fatal(err)
	}
	if p.knobs.MaxConns != 0 || p.knobs.Backlog != 1024 || p.knobs.IdleTimeout != 5*time.Second {
		t.Errorf("zero of the file, preset, level: %d, %d, %v", p.knobs.MaxConns, p.knobs.Backlog, p.knobs.IdleTimeout)
	}
	if p.identities != 4 || p.as != accountEmail || p.operation != opToken {
		t.Errorf("%d identities as %s for %s", p.identities, p.as, p.operation)
	}
	bare := &Spec{Adapter: "gce-metadata"}
	if p, err := bare.plan(design.Treatment{}); err != nil || p.preset != "blog-2020" || p.identities != 1 {
		t.Errorf("without anything: %q, %d identities, %v", p.preset, p.identities, err)
	}
}

type m = map[string]string

// levels reads treatments, the first of them the baseline, from "cache=on ttl=2s | cache=off".
func levels(text string) (all []design.Treatment) {
	for one := range strings.SplitSeq(text, " | ") {
		l := m{}
		for pair := range strings.FieldsSeq(one) {
			factor, level, _ := strings.Cut(pair, "=")
			l[factor] = level
		}
		all = append(all, design.Treatment{ID: design.ID(l), Levels: l, Baseline: len(all) == 0})
	}
	return all
}

// specOf reads a section from the fields that it has in a file.
func specOf(t testing.TB, fields string) *Spec {
	t.Helper()
	s := &Spec{}
	d := yaml.NewDecoder(strings.NewReader("{" + fields + "}"))
	d.KnownFields(true)
	if err := d.Decode(s); err != nil {
		t.Fatalf("%s: %v", fields, err)
	}
	return s
}

// A validation is a section, the treatments that vary it, and the finding about it: its path, and a part of its
// message. Without either the section is valid.
type validation struct{ section, levels, path, says string }

// Sections that validations begin with.
const (
	gceFields   = "adapter: gce-metadata, "
	healthyOnes = gceFields + "embedded: {preset: healthy}"
	webFields   = "adapter: http-token, url: http://127.0.0.1:1, "
	oidcFields  = "adapter: oidc-token, url: https://localhost/token, "
	oidcClient  = "oidc: {client_id: a, client_secret: {env: X}}, "
	vaultFields = "adapter: vault-login, url: http://localhost, "
	imdsFields  = "adapter: imdsv2, url: http://127.0.0.1:9001, "
	k8sFields   = "adapter: k8s-tokenrequest, url: https://localhost, "
	stsFields   = "adapter: sts-web-identity, url: https://localhost, "
	eksFields   = "adapter: eks-pod-identity, url: http://127.0.0.1:1, "
	azureFields = "adapter: azure-imds, url: http://127.0.0.1:1, "
)

func wantFindings(t *testing.T, q design.Question, all []validation) {
	t.Helper()
	for _, c := range all {
		var treatments []design.Treatment
		if c.levels != "" {
			treatments = levels(c.levels)
		}
		name, severity := string(q)+" "+c.section+" "+c.levels, area.Error
		says, warns := strings.CutPrefix(c.says, "warning: ")
		if warns {
			severity = area.Warning
		}
		got := specOf(t, c.section).Validate(question.Of(q).Asked(), treatments)
		if strings.Contains(fmt.Sprint(got), planted) {
			t.Errorf("%s: the secret is repeated: %+v", name, got)
		}
		switch {
		case c.path == "" && says == "":
			if len(got) > 0 {
				t.Errorf("%s: got findings %+v, want none", name, got)
			}
		case len(got) == 0, len(got) > max(1, len(treatments)), got[0].Path != c.path, got[0].Severity != severity,
			!strings.Contains(got[0].Message, says):
			t.Errorf("%s: %+v, want %q at %q", name, got, says, c.path)
		}
	}
}

func TestValidate(t *testing.T) {
	const body, form = webFields + "http: {body: ", webFields + "http: {body: '{f}', "
	const guarded = "adapter: http-token, http: {bearer: {env: TOKEN}}, "
	const arn, x = "arn:aws:iam::123456789012:role/r", "{env: X}"
	wantFindings(t, design.Capacity, []validation{
		{"adapter: gce-metadata", "", "", ""},
		{gceFields + "url: http://169.254.169.254", "", "", ""},
		{gceFields + "url: http://127.0.0.1:988/", "", "", ""},
		{gceFields + "headers: {X-Test: a}", "", "", ""},
		{"", "", "adapter", "gce-metadata"},
		{gceFields + "embedded: {preset: blog}", "", "embedded.preset", "sts-quota-tarpit"},
		{gceFields + "embedded: {drop: 100%}", "", "embedded.drop", "below 1"},
		{gceFields + "url: https://169.254.169.254", "", "url", "plain HTTP"},
		{gceFields + "url: http://169.254.169.254/computeMetadata", "", "url", "must end with its host"},
		{gceFields + "url: http://a:b@169.254.169.254", "", "url", "credentials"},
		{gceFields + "url: 169.254.169.254", "", "url", "not a URL"},
		{gceFields + "url: http://169.254.169.254:99999", "", "url", "from 1 to 65535"},
		{gceFields + "url: http://127.0.0.1, embedded: {}", "", "embedded", "exclude"},
		{gceFields + "url: http://169.254.169.254, identities: 2", "", "identities", "loopback"},
		{gceFields + "operation: login", "", "operation", "token, identity"},
		{gceFields + "account: a/../b@c", "", "account", "e-mail address"},
		{gceFields + "headers: {Authorization: x}", "", "headers.Authorization", "secret"},
		{gceFields + "headers: {x-forwarded-for: x}", "", "headers.x-forwarded-for", "protocol"},
		{gceFields + `headers: {X: "a\r\nY: b"}`, "", "headers.X", "printable"},

		{guarded + "url: http://idp.example", "", "url", "expose_secrets: true"},
		{guarded + "url: http://idp.example, expose_secrets: true", "", "", ""},
		{guarded, "url=http://idp.example", "", "over http://"},
		{guarded, "url=https://idp.example", "", ""},
		{body + `'{"role": "x", "jwt": "` + planted + `"}'}`, "", "http.body", `"jwt" looks like a secret`},
		{body + "grant_type=x&client_secret=" + planted + "}", "", "http.body", "secrets: {client_secret: {env: NAME}}"},
		{body + `'{"password": "{pw}"}', secrets: {pw: {env: PW}}}`, "", "", ""},
		{body + `'{"p": "{a}"}', secrets: {a: {env: A}, b: {env: B}}}`, "", "http.secrets", "{b} does not stand in the body"},
		{body + `'{"p": "{n}"}', secrets: {n: {env: A}}}`, "", "http.secrets", "meaning of its own"},
		{body + `'{"p": "{a b}"}', secrets: {a b: {env: A}}}`, "", "http.secrets", "letters, digits"},

		{healthyOnes, "max_conns=8 identities=3", "", ""},
		{healthyOnes, "maxconns=8", "", `maxconns: there is no such factor; there are url, operation, identities, account, ` +
			"preset, cpu_quota"},
		{healthyOnes, "cache=maybe", "", "cache: "},
		{healthyOnes, "max_conns=many", "", "max_conns: "},
		{gceFields + "url: http://127.0.0.1:1", "cache=off", "", "not ours to turn"},
		{gceFields + "url: http://127.0.0.1:1", "identities=65000", "", "from 1 to 64000"},

		{oidcFields + oidcClient, "", "", ""},
		{oidcFields + "oidc: {client_id: a}, tls: {cert: c.pem, key: {file: c.key}}", "", "", ""},
		{oidcFields, "", "", "oidc.client_id: client_credentials needs"},
		{oidcFields + "oidc: {client_id: a}", "", "oidc.client_secret", "needs the client's secret"},
		{oidcFields + "oidc: {grant: token_exchange}", "", "oidc.subject_token", "needs the token to exchange"},
		{oidcFields + "oidc: {grant: token_exchange, subject_token: {env: X}}", "", "", ""},
		{
			oidcFields + "oidc: {grant: token_exchange, subject_token: {env: X}, auth: none, client_secret: {env: X}}", "",
			"oidc.client_secret", "no secret",
		},
		{
			oidcFields + "oidc: {client_id: a, client_secret: {env: X}, subject_token: {env: X}}", "", "oidc.subject_token",
			"only token_exchange",
		},
		{"adapter: oidc-token, " + oidcClient, "", "url", "no embedded endpoint"},
		{"adapter: oidc-token, url: 'https://localhost/t?client_secret=" + planted + "', " + oidcClient, "", "url", "query"},
		{"adapter: oidc-token, url: 'https://a:" + planted + "@localhost/t', " + oidcClient, "", "url", "credentials"},
		{"adapter: oidc-token, url: 'https://a:" + planted + "@local host/t%', " + oidcClient, "", "url", "not a URL"},
		{oidcFields + oidcClient + "vault: {}", "", "vault", "options of vault-login"},
		{oidcFields + oidcClient + "tls: {cert: x}", "", "tls.key", "private key"},
		{oidcFields + oidcClient + "tls: {key: {env: X}}", "", "tls.cert", "certificate"},
		{oidcFields + oidcClient + "tls: {ca: x, insecure: true}", "", "tls.insecure", "no effect"},
		{oidcFields + oidcClient + "identities: 2, callers: [{name: a}]", "", "identities", "exclude"},
		{oidcFields + oidcClient + "callers: [{address: x}]", "", "callers[0].address", "not an IP"},
		{
			oidcFields + oidcClient + "callers: [{headers: {X-Token: " + planted + "}}]", "", "callers[0].headers.X-Token",
			"secret_headers",
		},
		{oidcFields + oidcClient + "secret_headers: {Host: {env: X}}", "", "secret_headers.Host", "protocol"},

		{vaultFields + "vault: {role: r, jwt: {env: X}}, tls: {ca: x}", "", "tls", "not https"},
		{vaultFields + "vault: {jwt: {env: X}}", "", "vault.role", "needs one"},
		{vaultFields + "vault: {role: r}", "", "vault.jwt", "{file: /var/run"},
		{vaultFields + "vault: {role: r, jwt: {env: X}, password: {env: X}}", "", "vault.password", "no such field"},
		{vaultFields + "vault: {method: userpass, username: a/b, password: {env: X}}", "", "vault.username", "slashes"},
		{vaultFields + "vault: {mount: a b, role: r, jwt: {env: X}}", "", "vault.mount", "path"},

		{webFields, "", "", ""},
		{webFields + "http: {}", "", "", ""},
		{webFields + "http: {status_only: true}", "", "", ""},
		{webFields + "http: {status_only: true, token: a}", "", "http.status_only", "leave out http.token"},
		{webFields + "http: {method: GET, body: x}", "", "http.body", "GET has no body"},
		{webFields + "http: {body: 'a={f}', files: {f: x}}", "", "", ""},
		{webFields + "http: {body: a, files: {f: x}}", "", "http.files", "{f} does not stand"},
		{form + "files: {f: ''}}", "", "http.files", "path of a file"},
		{form + "files: {f: x}, secrets: {f: {env: X}}}", "", "http.files", "meaning of its own"},
		{webFields + "http: {path: x y}", "", "http.path", "blanks"},
		{webFields + "http: {path: '/t?api_key=" + planted + "'}", "", "http.path", "looks like a secret"},
		{webFields + "http: {path: '/t?token_type=x'}", "", "", ""},
		{webFields + "http: {token: a..b}", "", "http.token", "dots"},
		{webFields + "http: {body: '{token}'}", "", "http.body", "needs a token"},

		{imdsFields, "", "", ""},
		{imdsFields + "imds: {ttl: 6h, role: 'a+=,.@_-Z9'}", "", "", ""},
		{imdsFields + "imds: {ttl: 1s}", "", "", ""},
		{imdsFields + "imds: {ttl: 6h0m1s}", "", "imds.ttl", ""},
		{imdsFields + "imds: {ttl: 500ms}", "", "imds.ttl", ""},
		{imdsFields + "imds: {ttl: 1500ms}", "", "imds.ttl", ""},
		{imdsFields + "imds: {role: a b}", "", "imds.role", ""},
		{imdsFields + "imds: {role: ../x}", "", "imds.role", ""},
		{imdsFields + "imds: {role: " + strings.Repeat("x", 65) + "}", "", "imds.role", ""},

		{azureFields, "", "", ""},
		{azureFields + "azure: {resource: 'https://graph.microsoft.com/', client_id: 6c3d0a4e-0000-4000}", "", "", ""},
		{azureFields + "azure: {resource: a b}", "", "azure.resource", ""},
		{azureFields + `azure: {client_id: "a\nb"}`, "", "azure.client_id", ""},

		{k8sFields, "", "", ""},
		{k8sFields + "k8s: {namespace: kube-system, service_account: a.b-c, audiences: [x], expiration: 1h}", "", "", ""},
		{k8sFields + "k8s: {namespace: A}", "", "k8s.namespace", ""},
		{k8sFields + "k8s: {namespace: a/../b}", "", "k8s.namespace", ""},
		{k8sFields + "k8s: {service_account: -a}", "", "k8s.service_account", ""},
		{k8sFields + "k8s: {expiration: 599s}", "", "k8s.expiration", ""},
		{k8sFields + "k8s: {expiration: 8589934592s}", "", "k8s.expiration", ""},
		{k8sFields + "k8s: {expiration: 601s1ns}", "", "k8s.expiration", ""},
		{k8sFields + "k8s: {audiences: [x, '']}", "", "k8s.audiences", ""},
		{k8sFields + "callers: [{name: a/b}, {name: a/b/c}]", "", "callers", ""},
		{"adapter: k8s-tokenreview, url: https://localhost", "", "", "k8s.review_token: "},
		{"adapter: k8s-tokenreview, url: https://localhost, callers: [{audience: x}]", "", "callers", ""},

		{stsFields + "sts: {role_arn: " + arn + ", token: " + x + "}", "", "", ""},
		{stsFields + "sts: {role_arn: arn:aws-cn:iam::123456789012:role/r, token: " + x + "}", "", "", ""},
		{stsFields + "callers: [{name: " + arn + ", token: " + x + "}]", "", "", ""},
		{stsFields, "", "", "sts.role_arn: "},
		{stsFields + "sts: {role_arn: reader, token: " + x + "}", "", "sts.role_arn", ""},
		{stsFields + "sts: {role_arn: " + arn + "}", "", "sts.token", ""},
		{stsFields + "sts: {role_arn: " + arn + ", token: " + x + ", session_name: a b}", "", "sts.session_name", ""},
		{stsFields + "sts: {role_arn: " + arn + ", token: " + x + ", duration: 1m}", "", "sts.duration", ""},
		{stsFields + "sts: {role_arn: " + arn + ", token: " + x + ", duration: 13h}", "", "sts.duration", ""},
		{stsFields + "sts: {role_arn: " + arn + ", token: " + x + "}, callers: [{name: reader}]", "", "callers", ""},
		{eksFields + "eks: {token: " + x + "}", "", "", ""},
		{eksFields + "callers: [{token: " + x + "}]", "", "", ""},
		{eksFields, "", "", "eks.token: "},
	})
	for _, q := range []design.Question{design.Compare, design.Scale, design.Soak, design.Guard} {
		wantFindings(t, q, []validation{{healthyOnes, "", "", ""}})
	}
}

// TestTreatments checks what a comparison may vary: each rejection names the treatment and the reason.
func TestTreatments(t *testing.T) {
	const near, other, far = "http://127.0.0.1:9001", "http://127.0.0.1:9002", "http://192.0.2.1"
	const at, both = "url: " + near, "url=" + near + " | url=" + other
	const expiring = " ttl=2s refresh_early=0s jitter=0s"
	wantFindings(t, design.Compare, []validation{
		{healthyOnes, "cache=on | cache=off", "", ""},
		{healthyOnes, "identities=1 | identities=1000", "", ""},
		{gceFields, both, "", ""},
		{gceFields, "url=" + near + " identities=2 | url=" + near + " identities=3", "", ""},
		{gceFields + at, "operation=token | operation=identity", "", ""},
		{imdsFields, "imds.ttl=1h | imds.ttl=2h", "", ""},
		{gceFields + at, both, "url", "varied by the treatments already"},
		{healthyOnes, both, "", `treatment "url=` + near + `": url and embedded exclude`},
		{gceFields, "url=" + near + " | cache=off", "", `treatment "cache=off" is embedded`},
		{gceFields, "url=" + near + " | url=" + other + " cache=off", "", "give each setting an address of its own"},
		{gceFields, "url=" + near + " | url=nonsense", "", `treatment "url=nonsense": this is not a URL`},
		{gceFields, "url=" + near + " | url=http://a:b@127.0.0.1", "", "must not hold credentials"},
		{gceFields, "url=" + far + " identities=1 | url=" + far + " identities=2", "", `treatment "identities=2 url=` + far},
		{gceFields + "callers: [{name: a}]", "identities=1 | identities=2", "", "callers are as many"},
		{healthyOnes, "identities=1 | identities=64001", "", "from 1 to 64000"},
		{healthyOnes, "identities=1 | identities=1e3", "", "from 1 to 64000"},
		{imdsFields, "oidc.scope=a | oidc.scope=b", "", "oidc.scope: there is no such factor; there are url, operation, " +
			"identities, account, imds.role, imds.ttl"},
		{imdsFields, "imds.size=1 | imds.size=2", "", "no such option"},
		{imdsFields, "imds.ttl=1h | imds.ttl=7h", "", "imds.ttl: 7h0m0s is not from"},
		{webFields, "http.method=GET | http.method=TRACE", "", `"TRACE" is not one of GET`},
		{webFields, "http.status=200 | http.status=404", "", "404 is more than 299"},
		{webFields, "http.bearer=x | http.bearer=y", "", "a secret or a list"},
		{healthyOnes, "cache=on | cache=true", "", `warning: treatment "cache=true" is "cache=on" under another name`},
		{healthyOnes, "singleflight=on | singleflight=off", "", "warning: hardly ever does"},
		{healthyOnes, "singleflight=on cache=off | singleflight=off cache=off", "", ""},
		{healthyOnes, "singleflight=on" + expiring + " | singleflight=off" + expiring, "", ""},
	})
}

// TestNoTrespass: what could lock somebody out is not offered, nor is a guard without anything to refuse.
func TestNoTrespass(t *testing.T) {
	const approle = vaultFields + "vault: {method: approle, role_id: r, secret_id: {env: X}}, "
	const entry = webFields + "trespass: [{name: a, "
	wantFindings(t, design.Guard, []validation{
		{approle, "", "", "no_lockout"},
		{vaultFields + "vault: {method: userpass, username: u, password: {env: X}}", "", "", "no_lockout"},
		{approle + "no_lockout: true", "", "", ""},
		{vaultFields + "vault: {method: jwt, role: r, jwt: {env: X}}", "", "", ""},
		{imdsFields + "operation: session", "", "", "operation: credentials"},
		{webFields, "", "", "say what must be"},
		{webFields + "http: {bearer: {env: X}}", "", "", ""},
		{webFields + "http: {body: 'u=me&p={p}', secrets: {p: {env: X}}}", "", "", "no_lockout"},
		{entry + "path: /admin}]", "", "", ""},
		{webFields + "trespass: [{name: admin}]", "", "trespass[0]", "it changes nothing"},
		{webFields + "trespass: [{path: /a}]", "", "trespass[0].name", "say what it is"},
		{entry + "path: /a, refused: [200]}]", "", "trespass[0].refused", "200"},
		{gceFields + "url: http://127.0.0.1:1, trespass: [{name: a, path: /a}]", "", "trespass[0].path", "only http-token"},
		{oidcFields + oidcClient, "", "", ""},
	})
	s := session{spec: specOf(t, oidcFields+oidcClient), emails: make([]string, 1)}
	for _, c := range oidcCanaries(s) {
		if wrong := c.name == "a client with a wrong secret"; wrong != (c.alone != "") {
			t.Errorf("%s: %q", c.name, c.alone)
		}
	}
}

// TestUnderDoesNotChangeTheSection: treatments share the section.
func TestUnderDoesNotChangeTheSection(t *testing.T) {
	s := &Spec{Adapter: "imdsv2", URL: "http://127.0.0.1:1", IMDS: &IMDS{Role: "reader", TTL: unit.Duration(time.Hour)}}
	u, err := s.under(m{"imds.ttl": "2h", "identities": "7"})
	if err != nil {
		t.Fatal(err)
	}
	if s.IMDS.TTL != unit.Duration(time.Hour) || s.Identities != 0 || u.IMDS.TTL != unit.Duration(2*time.Hour) ||
		u.IMDS.Role != "reader" || u.Identities != 7 {
		t.Errorf("the file has %+v and %d identities, the treatment %+v and %d", s.IMDS, s.Identities, u.IMDS, u.Identities)
	}
	e := embedded("healthy")
	if _, err := e.under(m{"cache": "off", "preset": "cpu-only"}); err != nil || e.Embedded.Cache != nil ||
		*e.Embedded.Preset != "healthy" {
		t.Errorf("levels give %+v, %v; want preset healthy without a cache section", e.Embedded, err)
	}
}

// TestEveryFactorCanBeALevel: setLevel accepts every factor in the list of factors, for every adapter.
func TestEveryFactorCanBeALevel(t *testing.T) {
	for _, a := range adapters() {
		s := &Spec{Adapter: AdapterName(a.name), URL: "http://127.0.0.1:1"}
		for _, name := range s.factors() {
			_, err := s.under(m{name: "1h"}) // a text or a wrong number, but no unknown factor
			if err != nil && (strings.Contains(err.Error(), "unknown") || strings.Contains(err.Error(), "no such") ||
				strings.Contains(err.Error(), errNoLevel.Error())) {
				t.Errorf("factor of %s is no level: %v", a.name, err)
			}
		}
	}
}

// TestLoopbackOfTreatments: one treatment with a remote address makes max_rate necessary.
func TestLoopbackOfTreatments(t *testing.T) {
	s := &Spec{Adapter: "gce-metadata"}
	for _, c := range []struct {
		urls []string
		want bool
	}{
		{nil, true},
		{[]string{"http://127.0.0.1:1", "http://127.0.0.1:2"}, true},
		{[]string{"http://127.0.0.1:1", "http://169.254.169.254"}, false},
		{[]string{"http://metadata.google.internal", "http://localhost"}, false},
	} {
		var all []design.Treatment
		for _, u := range c.urls {
			all = append(all, levels("url="+u)...)
		}
		if got := kit.Loopback(s, all); got != c.want {
			t.Errorf("%v: %v, want %v", c.urls, got, c.want)
		}
	}
	keys := map[string]bool{}
	for _, u := range kit.Specs(s, levels("url=http://127.0.0.1:1 | url=http://127.0.0.1:2")) {
		if x, ok := u.(*Spec); ok {
			keys[x.LockKey()] = true
		}
	}
	if !keys["127.0.0.1:1"] || !keys["127.0.0.1:2"] || len(keys) != 2 {
		t.Errorf("locks %v", keys)
	}
}

func TestLoopback(t *testing.T) {
	for u, want := range map[string]bool{
		"": true, "http://127.0.0.1:80": true, "http://127.3.2.1": true, "http://[::1]": true, "http://LOCALHOST:1": true,
		"http://169.254.169.254": false, "http://metadata.google.internal": false, "http://localhost.example.com": false,
		"http://10.0.0.1": false, "http://[::ffff:127.0.0.1]": true,
	} {
		if got := (&Spec{URL: u}).Says().Loopback; got != want {
			t.Errorf("Loopback of %q is %v, want the opposite", u, got)
		}
	}
}

func FuzzLevels(f *testing.F) {
	for _, x := range [][3]string{
		{"gce-metadata", "cache", "off"},
		{"gce-metadata", "url", "http://127.0.0.1:1"},
		{"imdsv2", "imds.ttl", "1h"},
		{"http-token", "http.bearer", "x"},
		{"oidc-token", "oidc.", ""},
		{"gce-metadata", "identities", "-1"},
		{"", "", ""},
		{"vault-login", "vault.method", "jwt"},
		{"azure-imds", ".resource", "x"},
	} {
		f.Add(x[0], x[1], x[2])
	}
	f.Fuzz(func(t *testing.T, adapter, name, level string) {
		s := &Spec{Adapter: AdapterName(adapter)}
		u, err := s.under(m{name: level})
		if err != nil {
			return
		}
		s.Validate(question.Of(design.Compare).Asked(), []design.Treatment{
			{ID: "a", Levels: m{name: level}}, {ID: "b", Levels: m{name: level + "0"}},
		}) // must not panic
		again, err := s.under(m{name: level})
		if err != nil || u.URL != again.URL || u.Identities != again.Identities || s.URL != "" || s.Identities != 0 {
			t.Errorf("%q=%q: %+v, then %+v, %v", name, level, u, again, err)
		}
	})
}

func FuzzCPU(f *testing.F) {
	for _, s := range []string{"100m", "0.1", "2", "", "m", "-1", "1e9", "NaN", "0x1p-2", "+Inf"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var c CPU
		if c.UnmarshalText([]byte(s)) != nil {
			return
		}
		if !(c >= 0 && c < 1e6) {
			t.Fatalf("%q is %v CPUs", s, float64(c))
		}
		b, err := c.MarshalText()
		var again CPU
		if err != nil || again.UnmarshalText(b) != nil || float64(again) < float64(c)*0.999999 ||
			float64(again) > float64(c)*1.000001 {
			t.Fatalf("%q is written as %s, which is read as %v", s, b, float64(again))
		}
	})
}

func TestSourceAddresses(t *testing.T) {
	seen := map[string]bool{}
	for key := range maxIdentities {
		a := sourceOf(key)
		if !a.IsLoopback() || seen[a.String()] {
			t.Fatalf("identity %d has address %v", key, a)
		}
		seen[a.String()] = true
	}
}
