package cli

import (
	"crypto/tls"
	"crypto/x509"
	"reflect"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/internal/kit"
)

// TestServerFlags: what the flags of curl become in the target section, and what is refused. No error quotes a value.
func TestServerFlags(t *testing.T) {
	const secret = "hunter2"
	headers := func(texts ...string) serverFlags { return serverFlags{headers: texts} }
	data := func(texts ...string) serverFlags { return serverFlags{data: texts} }
	for name, c := range map[string]struct {
		flags serverFlags
		lines string // what is written
		want  string // part of the error; empty: it is valid
	}{
		"nothing": {serverFlags{}, "", ""},
		"header":  {headers("Accept:text/html"), "  headers: {\"Accept\": \"text/html\"}\n", ""},
		"file":    {headers("X-Key: @a b"), "  secret_headers: {\"X-Key\": {file: \"a b\"}}\n", ""},
		"variable": {
			headers("X-Key: env:A", "Cookie: $B", "X: ${C}"),
			"  secret_headers: {\"Cookie\": {env: \"B\"}, \"X\": {env: \"C\"}, \"X-Key\": {env: \"A\"}}\n", "",
		},
		"type of a body": {data("x"), "  headers: {\"Content-Type\": \"application/x-www-form-urlencoded\"}\n", ""},
		"own type of a body": {
			serverFlags{data: []string{"x"}, headers: []string{"content-type: a/b"}},
			"  headers: {\"content-type\": \"a/b\"}\n", "",
		},
		"insecure":    {serverFlags{insecure: true}, "  tls: {insecure: true}\n", ""},
		"authority":   {serverFlags{ca: "ca.pem"}, "  tls: {ca: \"ca.pem\"}\n", ""},
		"certificate": {serverFlags{cert: "c", key: "k"}, "  tls: {cert: \"c\", key: {file: \"k\"}}\n", ""},
		"one file":    {serverFlags{cert: "c", ca: "a"}, "  tls: {ca: \"a\", cert: \"c\", key: {file: \"c\"}}\n", ""},

		"literal bearer":  {headers("Authorization: Bearer " + secret), "", "Bearer @FILE"},
		"lost variable":   {headers("Authorization: Bearer "), "", "Bearer @FILE"},
		"literal basic":   {headers("Authorization: Basic " + secret), "", "Authorization: @FILE"},
		"literal key":     {headers("X-Api-Key: " + secret), "", "X-Api-Key: env:VARIABLE"},
		"literal cookie":  {headers("Cookie: a=" + secret), "", "Cookie: @FILE"},
		"hidden bearer":   {headers("X-Forward: bearer " + secret), "", "X-Forward: @FILE"},
		"place after":     {headers("Authorization: Basic @f"), "", "hold \"Basic\", too"},
		"no colon":        {headers("Authorization " + secret), "", "NAME: VALUE"},
		"no name":         {headers(": " + secret), "", "NAME: VALUE"},
		"bad name":        {headers(secret + " x: y"), "", "NAME: VALUE"},
		"file of headers": {headers("@headers"), "", "NAME: VALUE"},
		"no value":        {headers("Accept:"), "", "the value is empty"},
		"no file":         {headers("X-Key: @"), "", "X-Key: @FILE"},
		"standard input":  {headers("X-Key: @-"), "", "X-Key: @FILE"},
		"twice":           {headers("A: 1", "a: 2"), "", "given twice"},
		"bearer twice":    {headers("Authorization: Bearer @f", "authorization: @g"), "", "given twice"},
		"of HTTP itself":  {headers("Content-Length: 5"), "", "belongs to the protocol"},
		"control":         {headers("A: \x01" + secret), "", "printable ASCII"},
		"data on stdin":   {data("@-"), "", "name a file"},
		"data of nobody":  {data("@"), "", "name a file"},
		"data in Latin-1": {data("\xff" + secret), "", "not UTF-8"},
		"key alone":       {serverFlags{key: "k"}, "", "--cert FILE"},
		"both trusts":     {serverFlags{insecure: true, ca: "a"}, "", "leave out one"},
	} {
		err := c.flags.parse()
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
			continue
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error quotes the value: %v", name, err)
		}
		if got := c.flags.sent.lines(); err == nil && got != c.lines {
			t.Errorf("%s: got\n%swant\n%s", name, got, c.lines)
		}
	}
	f := serverFlags{headers: []string{"authorization: BEARER  env:T"}, data: []string{"a=1", "@f"}, method: "put"}
	if err := f.parse(); err != nil {
		t.Fatal(err)
	}
	want := area.Request{
		Method: "PUT", Bearer: area.Secret{Env: "T"}, Body: []area.BodyPart{{Text: "a=1"}, {File: "f"}},
	}
	if got := f.sent.Request; !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

// TestHintsAboutTLSNameFlags: what is wrong with a certificate is put right by a flag, not by a field of a file.
func TestHintsAboutTLSNameFlags(t *testing.T) {
	for flag, err := range map[string]error{
		"--cacert":                   x509.UnknownAuthorityError{},
		"target.tls.server_name":     x509.HostnameError{Certificate: &x509.Certificate{}, Host: "a"},
		"--cert client.pem":          tls.AlertError(116), // certificate required
		"target.tls.server_name=NAM": tls.AlertError(112), // unrecognized name
	} {
		f, ok := kit.ExplainTLS(err)
		hint := asFlags.Replace(f.Hint)
		if !ok || !strings.Contains(hint, flag) || strings.Contains(hint, "tls: {") {
			t.Errorf("%v: %q, want %s", err, hint, flag)
		}
	}
}

// TestFastServersAreCalledMoreOften, and slow ones less, within bounds; where nothing was timed the usual rate stays.
func TestFastServersAreCalledMoreOften(t *testing.T) {
	for _, c := range []struct {
		arms int
		took []time.Duration
		want float64
	}{
		{3, []time.Duration{0}, 600},
		{3, []time.Duration{20 * time.Microsecond}, 2000},
		{3, []time.Duration{300 * time.Microsecond}, 1000},
		{3, []time.Duration{500 * time.Microsecond}, 600},
		{3, []time.Duration{5 * time.Millisecond}, 200},
		{3, []time.Duration{21 * time.Millisecond}, 100},
		{3, []time.Duration{time.Second}, 100},
		{6, []time.Duration{300 * time.Microsecond}, 1200},
		{20, []time.Duration{100 * time.Microsecond}, 4000},
		{3, []time.Duration{20 * time.Microsecond, 300 * time.Microsecond}, 1000}, // the slowest counts
		{3, []time.Duration{20 * time.Microsecond, 0}, 600},                       // one was not timed
	} {
		if got := rateInTurns(c.arms, c.took); got != c.want {
			t.Errorf("%d arms of %v are called at %v/s, want %v/s", c.arms, c.took, got, c.want)
		}
	}
}
