package identity

import (
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/internal/design"
	"tare/internal/kit"
	"tare/internal/question"
	"tare/internal/unit"
)

// levels makes treatments, the first of them the baseline.
func levels(all ...map[string]string) []design.Treatment {
	var out []design.Treatment
	for i, l := range all {
		out = append(out, design.Treatment{ID: design.ID(l), Levels: l, Baseline: i == 0})
	}
	return out
}

type m = map[string]string

// TestTreatments checks what a comparison may vary: each rejection names the treatment and the reason.
func TestTreatments(t *testing.T) {
	const near, other, far = "http://127.0.0.1:9001", "http://127.0.0.1:9002", "http://192.0.2.1"
	gce := func() *Spec { return &Spec{Adapter: "gce-metadata"} }
	imds := func() *Spec { return &Spec{Adapter: "imdsv2", URL: near} }
	for _, c := range []struct {
		name       string
		spec       *Spec
		treatments []design.Treatment
		severity   area.Severity
		path, want string // empty: no finding
	}{
		{"cache", embedded("healthy"), levels(m{"cache": "on"}, m{"cache": "off"}), 0, "", ""},
		{"identities", embedded("healthy"), levels(m{"identities": "1"}, m{"identities": "1000"}), 0, "", ""},
		{"two endpoints", gce(), levels(m{"url": near}, m{"url": other}), 0, "", ""},
		{
			"identities behind a URL", gce(), levels(m{"url": near, "identities": "2"}, m{"url": near, "identities": "3"}), 0,
			"", "",
		},
		{
			"operations of one URL", &Spec{Adapter: "gce-metadata", URL: near},
			levels(m{"operation": "token"}, m{"operation": "identity"}), 0, "", "",
		},
		{"an option", imds(), levels(m{"imds.ttl": "1h"}, m{"imds.ttl": "2h"}), 0, "", ""},
		{
			"url twice", &Spec{Adapter: "gce-metadata", URL: near}, levels(m{"url": near}, m{"url": other}), area.Error, "url",
			"varied by the treatments already",
		},
		{"url and embedded", embedded("healthy"), levels(m{"url": near}, m{"url": other}), area.Error, "", `treatment "url=` + near + `": url and embedded exclude`},
		{"one of them embedded", gce(), levels(m{"url": near}, m{"cache": "off"}), area.Error, "", `treatment "cache=off" is embedded`},
		{
			"knob behind a URL", gce(), levels(m{"url": near}, m{"url": other, "cache": "off"}), area.Error, "",
			"give each setting an address of its own",
		},
		{"no URL", gce(), levels(m{"url": near}, m{"url": "nonsense"}), area.Error, "", `treatment "url=nonsense": this is not a URL`},
		{
			"a secret in a URL", gce(), levels(m{"url": near}, m{"url": "http://a:b@127.0.0.1"}), area.Error, "",
			"must not hold credentials",
		},
		{"identities afar", gce(), levels(m{"url": far, "identities": "1"}, m{"url": far, "identities": "2"}), area.Error, "", `treatment "identities=2 url=` + far},
		{
			"identities and callers", &Spec{Adapter: "gce-metadata", Callers: []Caller{{Name: "a"}}},
			levels(m{"identities": "1"}, m{"identities": "2"}), area.Error, "", "callers are as many",
		},
		{
			"too many", embedded("healthy"), levels(m{"identities": "1"}, m{"identities": "64001"}), area.Error, "",
			"from 1 to 64000",
		},
		{
			"no number", embedded("healthy"), levels(m{"identities": "1"}, m{"identities": "1e3"}), area.Error, "",
			"from 1 to 64000",
		},
		{"another adapter's option", imds(), levels(m{"oidc.scope": "a"}, m{"oidc.scope": "b"}), area.Error, "", `oidc.scope: there is no such factor; there are url, operation, identities, account, imds.role, imds.ttl`},
		{"no such option", imds(), levels(m{"imds.size": "1"}, m{"imds.size": "2"}), area.Error, "", "no such option"},
		{
			"an option out of range", imds(), levels(m{"imds.ttl": "1h"}, m{"imds.ttl": "7h"}), area.Error, "",
			"imds.ttl: 7h0m0s is not from",
		},
		{"a word out of the schema", &Spec{Adapter: "http-token", URL: near}, levels(m{"http.method": "GET"}, m{"http.method": "TRACE"}), area.Error, "", `"TRACE" is not one of GET`},
		{
			"a number out of the schema", &Spec{Adapter: "http-token", URL: near},
			levels(m{"http.status": "200"}, m{"http.status": "404"}), area.Error, "", "404 is more than 299",
		},
		{
			"a secret as a level", &Spec{Adapter: "http-token", URL: near}, levels(m{"http.bearer": "x"}, m{"http.bearer": "y"}),
			area.Error, "", "a secret or a list",
		},
		{"the same again", embedded("healthy"), levels(m{"cache": "on"}, m{"cache": "true"}), area.Warning, "", `treatment "cache=true" is "cache=on" under another name`},
		{
			"nothing to share", embedded("healthy"), levels(m{"singleflight": "on"}, m{"singleflight": "off"}), area.Warning, "",
			"hardly ever does",
		},
		{"something to share", embedded("healthy"), levels(m{"singleflight": "on", "cache": "off"},
			m{"singleflight": "off", "cache": "off"}), 0, "", ""},
		{
			"tokens that expire", embedded("healthy"),
			levels(m{"singleflight": "on", "ttl": "2s", "refresh_early": "0s", "jitter": "0s"},
				m{"singleflight": "off", "ttl": "2s", "refresh_early": "0s", "jitter": "0s"}), 0, "", "",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := c.spec.Validate(question.Of(design.Compare).Asked(), c.treatments)
			if c.want == "" {
				if len(got) > 0 {
					t.Fatalf("got findings %+v, want none", got)
				}
				return
			}
			if len(got) == 0 || got[0].Severity != c.severity || got[0].Path != c.path ||
				!strings.Contains(got[0].Message, c.want) {
				t.Errorf("%+v, want %q", got, c.want)
			}
		})
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
			all = append(all, levels(m{"url": u})...)
		}
		if got := kit.Loopback(s, all); got != c.want {
			t.Errorf("%v: %v, want %v", c.urls, got, c.want)
		}
	}
	keys := map[string]bool{}
	for _, u := range kit.Specs(s, levels(m{"url": "http://127.0.0.1:1"}, m{"url": "http://127.0.0.1:2"})) {
		if x, ok := u.(*Spec); ok {
			keys[x.LockKey()] = true
		}
	}
	if !keys["127.0.0.1:1"] || !keys["127.0.0.1:2"] || len(keys) != 2 {
		t.Errorf("locks %v", keys)
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
		s.Validate(question.Of(design.Compare).Asked(), levels(m{name: level}, m{name: level + "0"})) // must not panic
		again, err := s.under(m{name: level})
		if err != nil || u.URL != again.URL || u.Identities != again.Identities || s.URL != "" || s.Identities != 0 {
			t.Errorf("%q=%q: %+v, then %+v, %v", name, level, u, again, err)
		}
	})
}
