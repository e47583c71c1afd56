package mask

import (
	"strings"
	"testing"
)

// TestMaskSecrets: whichever secret of several stands there, as it is or as a JSON encoder may write it.
func TestMaskSecrets(t *testing.T) {
	const slashes = `a\u002f\b`
	m := Of(8, "hunter22", "short", `quo"ted&<secret`, "hunter22 and more", "more of it", "dG9rZW4/Zm9vYg==", slashes,
		"pässwörd🔑", "line\nfeed\x00", "bad \xff\xfe utf8")
	for in, want := range map[string]string{
		"a hunter22 hunter22b":                     "a ******** ********b",
		"hunter2":                                  "hunter2",
		"hunter22 and more":                        strings.Repeat("*", 17),
		"hunter22 and more of it, or more of it":   strings.Repeat("*", 23) + ", or " + strings.Repeat("*", 10),
		"short words stay":                         "short words stay",
		`{"error":"quo\"ted&<secret"}`:             `{"error":"` + strings.Repeat("*", 16) + `"}`,
		`{"error":"quo\"ted\u0026\u003csecret"}`:   `{"error":"` + strings.Repeat("*", 26) + `"}`,
		`{"error":"quo\"ted\u0026\u003Csecret"}`:   `{"error":"` + strings.Repeat("*", 26) + `"}`,
		`quo"ted&<secret`:                          strings.Repeat("*", 15),
		`"dG9rZW4\/Zm9vYg\u003d\u003d"`:            `"` + strings.Repeat("*", 27) + `"`,
		slashes + ` a\\u002f\\b`:                   strings.Repeat("*", 9) + " " + strings.Repeat("*", 11),
		`p\u00e4ssw\u00F6rd\ud83d\udd11 pässwörd🔑`: strings.Repeat("*", 30) + " " + strings.Repeat("*", 14),
		`p\u00e4ssw\u00F6rd\ud83d\u0041`:           `p\u00e4ssw\u00F6rd\ud83d\u0041`,
		`line\nfeed\u0000 line\nfeed\`:             strings.Repeat("*", 16) + ` line\nfeed\`,
		`line\nfeed\u00`:                           `line\nfeed\u00`,
		"bad \xff\xfe utf8":                        strings.Repeat("*", 11),
		`bad \ufffd\ufffd utf8`:                    strings.Repeat("*", 21),
		`bad \ufffd\ud800`:                         `bad \ufffd\ud800`,
		"":                                         "",
	} {
		if got := string(m.Fill([]byte(in))); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
		if got := m.Replace(in, "…"); (got == in) != (in == want) || strings.Count(got, "*") > 0 {
			t.Errorf("%s: replaced: %s", in, got)
		}
	}
	if got := m.Replace("a hunter22 and hunter22 and more", "…"); got != "a … and …" {
		t.Error(got)
	}
}

// TestMaskParts: what a server repeats of a header is masked without the scheme, the name and the encoding.
func TestMaskParts(t *testing.T) {
	m := Of(4, "Bearer eyJhbGciOi", "Basic Ym9iOmh1bnRlcjIyPQ==", "sid=0123456789; theme=dark",
		`AWS4-HMAC-SHA256 Credential=AKIA/20, Signature="fe5f80f77d"`)
	for in, secret := range map[string]string{
		"token eyJhbGciOi is over":        "eyJhbGciOi",
		"bob:hunter22= may not":           "bob:hunter22=",
		"the password hunter22= is wrong": "hunter22=",
		"no session 0123456789":           "0123456789",
		"signature fe5f80f77d":            "fe5f80f77d",
		"Bearer tokens, a dark night":     "",
	} {
		want := in
		if secret != "" {
			want = strings.Replace(in, secret, strings.Repeat("*", len(secret)), 1)
		}
		if got := string(m.Fill([]byte(in))); got != want {
			t.Errorf("%s: %s, want %s", in, got, want)
		}
	}
}
