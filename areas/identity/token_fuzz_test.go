package identity

import (
	"bytes"
	"encoding/json"
	"testing"

	"tare/internal/jsonscan"
	"tare/rigs/memtest"
)

// FuzzClaims compares what claims accepts with encoding/json.
func FuzzClaims(f *testing.F) {
	const now = 1_800_000_000
	for _, s := range []string{
		`{"sub":"robot","aud":"vault","exp":1800000001,"iss":"i"}`, `{"sub":"robot","aud":["x","vault"],"exp":1800000001.5,"iss":"i"}`,
		`{"sub":"robot","aud":[],"exp":1}`, `{"aud":{"a":"vault"}}`, `{"aud":["vault"`, `[]`, `{"sub":"\u0072obot"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		defer memtest.Bound(t, len(payload))()
		want := wanted{subject: "robot", audience: []byte("vault"), issuer: "i", now: now}
		if readClaims(payload, want, false) != noCause {
			return
		}
		var c struct {
			Sub, Iss string
			Aud      any
			Exp      float64
		}
		if err := json.Unmarshal(payload, &c); err != nil {
			t.Fatalf("%q: accepted, and encoding/json says %v", payload, err)
		}
	})
}

// FuzzMember: member finds whole values only, and nothing in invalid JSON.
func FuzzMember(f *testing.F) {
	for _, s := range []string{`{"a":{"b":"x"}}`, `{"a":{"b":["x"]}}`, `{"a":1}`, `{"a":{"b":"x"}`, `{"a":{"b":1},"a":{"b":2}}`} {
		f.Add([]byte(s))
	}
	path := []string{"a", "b"}
	f.Fuzz(func(t *testing.T, body []byte) {
		defer memtest.Bound(t, len(body))()
		value, whole := member(body, path)
		if !whole {
			return
		}
		if len(value) > 0 && !json.Valid(value) {
			// Invalid UTF-8 is accepted, as in all values of the walker.
			if !jsonscan.IsValue(value) {
				t.Fatalf("%q: found %q", body, value)
			}
		}
	})
}

// FuzzLifetime: no value counts as both alive and long expired.
func FuzzLifetime(f *testing.F) {
	for _, s := range []string{"300", `"2027-01-15T08:00:01Z"`, `"300"`, "1e9", "-0", `"`, "1.5", "999999999999999999"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		defer memtest.Bound(t, len(value))()
		const now = 1_800_000_000
		if v := lifetime(value, now); v == noCause && lifetime(value, now+(1<<60)) == noCause {
			// Only lifetimes in seconds from now never expire.
			n, ok := seconds(value)
			if inner := jsonscan.Text(value); inner != nil {
				n, ok = seconds(inner)
			}
			if !ok || n <= 0 || n >= sinceEpoch {
				t.Fatalf("%q is alive at any time", value)
			}
		} else if v != noCause && v != hasExpired && v != noLifetime {
			t.Fatalf("%q: verdict %d", value, v)
		}
	})
}

// FuzzReadOAuth: neither readOAuth nor readLogin reads a token from invalid JSON.
func FuzzReadOAuth(f *testing.F) {
	for _, s := range []string{goodToken, `{"auth":{"client_token":"x","lease_duration":1}}`, `{"auth":null}`, `{"error":"slow_down"}`, `{`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		defer memtest.Bound(t, len(body))()
		_, oauth := readOAuth(body)
		_, login := readLogin(body)
		if (oauth || login) && !json.Valid(body) && !jsonscan.IsValue(bytes.TrimSpace(body)) {
			t.Fatalf("%q is whole", body)
		}
		o, v := oauthRefusal(400, body)
		if o.String() == "" || v < noCause || int(v) >= len(causes()) {
			t.Fatalf("%q: got outcome %v, unknown cause %d", body, o, v)
		}
	})
}
