package kit

import (
	"net/url"
	"strings"
	"testing"

	"tare/area"
)

// TestSecretsAreNotExposed over a network, unless the file says so; and then the report does.
func TestSecretsAreNotExposed(t *testing.T) {
	with := &secretSpec{A: area.Secret{Env: "TOKEN"}}
	insecure := &TLS{Insecure: true}
	for name, c := range map[string]struct {
		url     string
		tls     *TLS
		section *secretSpec
		says    string // empty: nothing is exposed
	}{
		"http":                     {"http://idp.example:8080", nil, with, "over http://"},
		"gRPC":                     {"grpc://pdp.example", nil, with, "over grpc://"},
		"another machine":          {"http://10.0.0.1", nil, with, "over http://"},
		"another IPv6 machine":     {"http://[2001:db8::1]", nil, with, "over http://"},
		"https that is unverified": {"https://idp.example", insecure, with, "to whoever answers"},
		"https":                    {"https://idp.example", nil, with, ""},
		"https with an authority":  {"https://idp.example", &TLS{CA: "ca.pem"}, with, ""},
		"gRPC over TLS":            {"grpcs://pdp.example", nil, with, ""},
		"loopback":                 {"http://127.0.0.1:8080", nil, with, ""},
		"loopback by name":         {"http://localhost:8080", nil, with, ""},
		"unverified loopback":      {"https://[::1]:8443", insecure, with, ""},
		"no secret":                {"http://idp.example", nil, &secretSpec{}, ""},
		"a private key stays here": {
			"https://idp.example", insecure, &secretSpec{B: &TLS{Key: area.Secret{File: "key.pem"}}},
			"",
		},
		"a secret among several": {
			"http://idp.example", nil,
			&secretSpec{C: map[string]area.Secret{"X-Api-Key": {File: "key"}}}, "over http://",
		},
		"a name like that of local": {"http://localhost.example", nil, with, "over http://"},
	} {
		u, err := url.Parse(c.url)
		must(t, err)
		err = CheckExposure(u, c.tls, c.section, false)
		note := noteExposure(u, c.tls, c.section)
		switch {
		case CheckExposure(u, c.tls, c.section, true) != nil:
			t.Errorf("%s: refused although the file allows it", name)
		case c.says == "" && (err != nil || note != ""):
			t.Errorf("%s: got %v, note %q; want neither", name, err, note)
		case c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) ||
			!strings.Contains(err.Error(), "expose_secrets: true") || !strings.Contains(note, c.says)):
			t.Errorf("%s: got %v, note %q; want %q in both", name, err, note, c.says)
		}
	}
}
