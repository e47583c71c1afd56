package identity

import (
	"bytes"
	"errors"
	"net/http"
	"strings"

	"tare/internal/load"
)

// gceMetadata speaks the metadata protocol of GCE and GKE
// (https://cloud.google.com/compute/docs/metadata/querying-metadata, …/metadata/predefined-metadata-keys).
//
//	identity selector  source address
//	cache key          identity and account, for identity tokens also the audience
//	cold path          an identity token for an audience that nobody has asked for
//	success            200 and a token response that is good, or an identity token for the audience and the account
func gceMetadata() adapter {
	return adapter{
		name: "gce-metadata", help: "the metadata server of GCE and GKE: GET …/service-accounts/<account>/token",
		reach: reach{embedded: true, node: true},
		operations: []operation{
			{
				name: opToken, expect: "200, a token response with a non-empty token of type Bearer that has not expired",
				request: gceAsk, reader: gceTokens,
			},
			{
				name: opIdentity, request: gceAsk, wire: gceIdentities,
				expect: "200, a signed JWT for the audience that was asked for and the caller's account, that has not expired",
			},
		},
		canaries: gceCanaries, whoami: gceWhoami, account: gceAccount,
	}
}

const (
	gceRoot     = "/computeMetadata/v1"
	gceAccounts = gceRoot + "/instance/service-accounts/"
	gceHeader   = gceHeaderName + ": Google"

	gceHeaderName = "Metadata-Flavor"
)

// gceCanaries: the header proves that a program asks on purpose, and X-Forwarded-For that a proxy was tricked into
// asking.
func gceCanaries(s session) []canary {
	refused := []int{http.StatusForbidden}
	return []canary{
		{
			name: "a request without the header Metadata-Flavor", statuses: refused,
			request: func(key int) []byte { return gceRequest(s, key, gcePath(s, key)) },
		},
		{
			name: "a request with X-Forwarded-For", statuses: refused,
			request: func(key int) []byte {
				return gceRequest(s, key, gcePath(s, key), gceHeader, "X-Forwarded-For: 192.0.2.1")
			},
		},
	}
}

func gceWhoami(s session) []byte {
	return gceRequest(s, 0, gceAccounts+accountDefault+"/email", gceHeader)
}

func gceAccount(body []byte) (string, error) {
	email := strings.TrimSpace(string(body))
	if email == "" || len(email) > 320 || strings.ContainsFunc(email, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", errors.New("the answer is no account name")
	}
	return email, nil
}

func gceIdentities(s session) load.Wire {
	return &gceIdentity{
		s: s, requests: s.requests(func(key int) []byte { return gceAsk(s, key) }),
		audience: load.NewTemplate([]byte(gceAudience(s))),
	}
}

func gceTokens(s session) reader {
	j := newJudge(s)
	return func(_ uint64, key int, body []byte) verdict {
		token, v := accessToken(body)
		if v != noCause {
			return v
		}
		return j.owns(key, token)
	}
}

// gceAsk renders the request of one identity.
func gceAsk(s session, key int) []byte { return gceRequest(s, key, gcePath(s, key), gceHeader) }

// gceAudience is what an identity token is asked for: each call names one of its own.
func gceAudience(s session) string { return "https://tare.invalid/" + s.nonce + "/" + load.CallMark }

// gcePath returns the path of the operation for an identity's account.
func gcePath(s session, key int) string {
	account := s.account
	if account == accountEmail {
		account = s.emails[key]
	}
	if s.operation == opIdentity {
		return gceAccounts + account + "/identity?audience=" + gceAudience(s)
	}
	return gceAccounts + account + "/token"
}

// gceRequest renders a whole GET.
func gceRequest(s session, key int, path string, headers ...string) []byte {
	return s.request(key, http.MethodGet, path, nil, headers...)
}

// explain leaves the outcome out.
func explain(_ load.Outcome, v verdict) int { return int(v) }

// gceIdentity asks for identity tokens, each call for an audience of its own.
type gceIdentity struct {
	*requests
	s        session
	audience *load.Template
}

// ConnKey implements load.Wire.
func (w *gceIdentity) ConnKey(i uint64) int { return w.key(i) }

// Render implements load.Wire.
func (w *gceIdentity) Render(dst []byte, i uint64) []byte { return w.appendTo(dst, i) }

// Check implements load.Wire.
func (w *gceIdentity) Check(i uint64, status int, body []byte) load.Outcome {
	if status != http.StatusOK {
		return outcomeOf(status)
	}
	var buf [128]byte
	if claims(bytes.TrimSpace(body), w.want(buf[:0], i), false) != noCause {
		return load.Wrong
	}
	w.s.tally.saw(w.ConnKey(i), body)
	return load.OK
}

// want returns what the token of call i has to say; the audience is appended to buf.
func (w *gceIdentity) want(buf []byte, i uint64) wanted {
	return wanted{
		audience: w.audience.AppendTo(buf, i), email: w.email(i), named: true, signed: true, now: w.s.clock.Now().Unix(),
	}
}

// Explain implements load.Wire.
func (w *gceIdentity) Explain(i uint64, status int, body []byte) int {
	if status != http.StatusOK {
		return explain(refusal(status))
	}
	token := bytes.TrimSpace(body)
	if len(token) == 0 {
		return int(noToken)
	}
	return int(claims(token, w.want(nil, i), false))
}

// email returns the account whose token call i has to get.
func (w *gceIdentity) email(i uint64) string {
	if w.s.account != accountDefault && w.s.account != accountEmail {
		return w.s.account
	}
	return w.s.emails[w.ConnKey(i)]
}
