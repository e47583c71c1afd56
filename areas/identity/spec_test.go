package identity

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/areas/identity/reference"
	"tare/internal/design"
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

func TestValidate(t *testing.T) {
	drop := unit.Percent(1)
	body := func(text string, places ...string) *Spec {
		s := &Spec{
			Adapter: "http-token", URL: "http://127.0.0.1:1",
			HTTP: &HTTP{Body: text, Secrets: map[string]area.Secret{}},
		}
		for _, name := range places {
			s.HTTP.Secrets[name] = area.Secret{Env: "PW"}
		}
		return s
	}
	guarded := func(u string, expose bool) *Spec {
		return &Spec{Adapter: "http-token", URL: u, ExposeSecrets: expose, HTTP: &HTTP{Bearer: area.Secret{Env: "TOKEN"}}}
	}
	url := func(u string) *Spec { return &Spec{Adapter: "gce-metadata", URL: u} }
	with := func(levels map[string]string) []design.Treatment {
		return []design.Treatment{{ID: design.ID(levels), Levels: levels}}
	}
	for _, c := range []struct {
		name       string
		spec       *Spec
		question   design.Question
		treatments []design.Treatment
		path, want string // nothing: valid
	}{
		{"bare", &Spec{Adapter: "gce-metadata"}, design.Capacity, nil, "", ""},
		{"url", url("http://169.254.169.254"), design.Capacity, nil, "", ""},
		{"url with port and slash", url("http://127.0.0.1:988/"), design.Capacity, nil, "", ""},
		{"compare", embedded("healthy"), design.Compare, nil, "", ""},
		{"scale", embedded("healthy"), design.Scale, nil, "", ""},
		{"soak", embedded("healthy"), design.Soak, nil, "", ""},
		{"secrets in the clear", guarded("http://idp.example", false), design.Capacity, nil, "url", "expose_secrets: true"},
		{"secrets that may be exposed", guarded("http://idp.example", true), design.Capacity, nil, "", ""},
		{
			"secrets of a treatment", guarded("", false), design.Capacity, with(map[string]string{"url": "http://idp.example"}),
			"", "over http://",
		},
		{
			"a treatment over TLS", guarded("", false), design.Capacity, with(map[string]string{"url": "https://idp.example"}),
			"", "",
		},
		{"a secret in a body", body(`{"role": "x", "jwt": "hunter2"}`), design.Capacity, nil, "http.body", `"jwt" looks like a secret`},
		{
			"a secret in a form", body("grant_type=x&client_secret=hunter2"), design.Capacity, nil, "http.body",
			"secrets: {client_secret: {env: NAME}}",
		},
		{"a place for a secret", body(`{"password": "{pw}"}`, "pw"), design.Capacity, nil, "", ""},
		{"a place that is not there", body(`{"password": "{pw}"}`, "pw", "other"), design.Capacity, nil, "http.secrets", "{other} does not stand in the body"},
		{"a place that is taken", body(`{"password": "{n}"}`, "n"), design.Capacity, nil, "http.secrets", "meaning of its own"},
		{"a bad place", body(`{"password": "{a b}"}`, "a b"), design.Capacity, nil, "http.secrets", "letters, digits"},
		{"no adapter", &Spec{}, design.Capacity, nil, "adapter", "gce-metadata"},
		{"preset", embedded("blog"), design.Capacity, nil, "embedded.preset", "sts-quota-tarpit"},
		{
			"knob", &Spec{Adapter: "gce-metadata", Embedded: &Embedded{Drop: &drop}}, design.Capacity, nil, "embedded.drop",
			"below 1",
		},
		{"https", url("https://169.254.169.254"), design.Capacity, nil, "url", "plain HTTP"},
		{"path", url("http://169.254.169.254/computeMetadata"), design.Capacity, nil, "url", "must end with its host"},
		{"password", url("http://a:b@169.254.169.254"), design.Capacity, nil, "url", "credentials"},
		{"no host", url("169.254.169.254"), design.Capacity, nil, "url", "not a URL"},
		{
			"both", &Spec{Adapter: "gce-metadata", URL: "http://127.0.0.1", Embedded: &Embedded{}}, design.Capacity, nil,
			"embedded", "exclude",
		},
		{
			"identities afar", &Spec{Adapter: "gce-metadata", URL: "http://169.254.169.254", Identities: 2}, design.Capacity,
			nil, "identities", "loopback",
		},
		{
			"operation", &Spec{Adapter: "gce-metadata", Operation: "login"}, design.Capacity, nil, "operation",
			"token, identity",
		},
		{"account", &Spec{Adapter: "gce-metadata", Account: "a/../b@c"}, design.Capacity, nil, "account", "e-mail address"},
		{
			"secret header", &Spec{Adapter: "gce-metadata", Headers: map[string]string{"Authorization": "x"}}, design.Capacity,
			nil, "headers.Authorization", "secret",
		},
		{
			"protocol header", &Spec{Adapter: "gce-metadata", Headers: map[string]string{"x-forwarded-for": "x"}},
			design.Capacity, nil, "headers.x-forwarded-for", "protocol",
		},
		{
			"split header", &Spec{Adapter: "gce-metadata", Headers: map[string]string{"X": "a\r\nY: b"}}, design.Capacity, nil,
			"headers.X", "printable",
		},
		{"header", &Spec{Adapter: "gce-metadata", Headers: map[string]string{"X-Test": "a"}}, design.Capacity, nil, "", ""},
		{
			"good levels", embedded("healthy"), design.Capacity, with(map[string]string{"max_conns": "8", "identities": "3"}),
			"", "",
		},
		{"unknown factor", embedded("healthy"), design.Capacity, with(map[string]string{"maxconns": "8"}), "", `maxconns: there is no such factor; there are url, operation, identities, account, preset, cpu_quota`},
		{"bad level", embedded("healthy"), design.Capacity, with(map[string]string{"cache": "maybe"}), "", "cache: "},
		{"bad number", embedded("healthy"), design.Capacity, with(map[string]string{"max_conns": "many"}), "", "max_conns: "},
		{
			"knob behind a URL", url("http://127.0.0.1:1"), design.Capacity, with(map[string]string{"cache": "off"}), "",
			"not ours to turn",
		},
		{
			"identities of a treatment", url("http://127.0.0.1:1"), design.Capacity,
			with(map[string]string{"identities": "65000"}), "", "from 1 to 64000",
		},
	} {
		got := c.spec.Validate(question.Of(c.question).Asked(), c.treatments)
		if c.want == "" {
			if len(got) > 0 {
				t.Errorf("%s: got findings %+v, want none", c.name, got)
			}
			continue
		}
		if strings.Contains(fmt.Sprint(got), "hunter2") {
			t.Errorf("%s: a secret is repeated: %+v", c.name, got)
		}
		if len(got) != 1 || got[0].Path != c.path || got[0].Severity != area.Error ||
			!strings.Contains(got[0].Message, c.want) {
			t.Errorf("%s: %+v, want %q at %q", c.name, got, c.want, c.path)
		}
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
