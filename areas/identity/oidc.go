package identity

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"tare/internal/jsonscan"
	"tare/internal/load"
)

// oidcToken speaks the token endpoint of OAuth 2.0 and OpenID Connect: client_credentials (RFC 6749, section 4.4) and
// token exchange (RFC 8693).
//
//	identity selector  client, subject token (callers: name is the client, token its secret or the subject token),
//	                   audience
//	cache key          the server's own affair: most make a token for each request
//	cold path          every request; where a proxy caches, an audience or scope with {n}, which no request had before
//	success            200, access_token, token_type, expires_in above 0 where it is given; a JWT that has not expired
//	                   and says what is expected
//	error classes      429, 503, slow_down, temporarily_unavailable Refused · 5xx Failed · other 4xx Wrong, by their
//	                   OAuth error
func oidcToken() adapter {
	return adapter{
		name: "oidc-token", help: "the token endpoint of OAuth 2.0 and OpenID Connect: client credentials, or token " +
			"exchange (RFC 8693)",
		section: "oidc", reach: reach{tls: true, path: true},
		operations: []operation{{
			name: opToken, expect: "200, an access token that has not expired, and that says what is expected if it is a JWT",
			request: func(s session, key int) []byte { return oidcRequest(s, key, oidcSecretsOf(s, key)) },
			reader: func(s session) reader {
				j, x := newJudge(s), newExpected(s)
				return func(i uint64, key int, body []byte) verdict { return oauthToken(j, key, body, x.of(i, key)) }
			},
			subject: func(body []byte) string {
				r, _ := readOAuth(body)
				return subjectOf(r.token)
			},
		}},
		validate: oidcValidate, canaries: oidcCanaries, refused: oauthRefusal,
	}
}

// The grants.
const (
	grantClient   = "client_credentials"
	grantExchange = "token_exchange"
)

// The ways in which a client authenticates (OpenID Connect Core 1.0, section 9).
const (
	authBasic = "basic"
	authPost  = "post"
	authNone  = "none"
)

const formType = "Content-Type: application/x-www-form-urlencoded"

func oidcOptions(s *Spec) OIDC { return optionsOf(s, func(s *Spec) *OIDC { return s.OIDC }) }

func oidcValidate(s *Spec, _ string) error {
	o := oidcOptions(s)
	exchanges := o.Grant == grantExchange
	for _, x := range []struct {
		wrong bool
		text  string
	}{
		{
			o.ClientID == "" && !exchanges && !s.everyCaller(func(c Caller) bool { return c.Name != "" }),
			"oidc.client_id: client_credentials needs a client",
		},
		{
			o.Auth == authNone && !exchanges && !s.certified(),
			"oidc.auth: client_credentials is for clients that authenticate (RFC 6749, section 4.4)",
		},
		{o.Auth == authNone && !o.ClientSecret.IsZero(), "oidc.client_secret: a client with auth: none has no secret"},
		{
			!exchanges && o.ClientSecret.IsZero() && !s.everyCaller(hasToken) && !s.certified(),
			"oidc.client_secret: client_credentials needs the client's secret, {env: NAME} or {file: path}, or a client " +
				"certificate: tls: {cert: …}",
		},
		{o.Auth != "" && o.Auth != authNone && o.ClientSecret.IsZero() && exchanges, "oidc.client_secret: auth: " + o.Auth +
			" needs the client's secret: {env: NAME} or {file: path}"},
		{!exchanges && !o.SubjectToken.IsZero(), "oidc.subject_token: only token_exchange takes one: grant: token_exchange"},
		{
			exchanges && o.SubjectToken.IsZero() && !s.everyCaller(hasToken),
			"oidc.subject_token: token_exchange needs the token to exchange: {env: NAME} or {file: path}",
		},
		{o.TokenPath != "" && !plainPath(o.TokenPath), "oidc.token_path: want a path such as /oauth2/token"},
	} {
		if x.wrong {
			return errors.New(x.text)
		}
	}
	return nil
}

// certified reports whether the caller shows a client certificate, which may stand for a client's secret (RFC 8705).
func (s *Spec) certified() bool { return s.TLS != nil && s.TLS.Cert != "" }

func hasToken(c Caller) bool { return !c.Token.IsZero() }

// everyCaller reports whether there are callers and have is true for all of them.
func (s *Spec) everyCaller(have func(Caller) bool) bool {
	for _, c := range s.Callers {
		if !have(c) {
			return false
		}
	}
	return len(s.Callers) > 0
}

// plainPath reports whether p can stand in a request line as it is, after a host.
func plainPath(p string) bool {
	return strings.HasPrefix(p, "/") && visible([]byte(p)) && !strings.Contains(p, "#")
}

// tokenTypes are the short names of RFC 8693, section 3.
func tokenType(name string) string {
	switch name {
	case "":
		return ""
	case "access_token", "refresh_token", "id_token", "saml1", "saml2", "jwt":
		return "urn:ietf:params:oauth:token-type:" + name
	}
	return name
}

// oidcCanaries returns a request with a wrong client secret and one without any credential, or one with a forged token
// to exchange. The client exists: one wrong secret does not lock it out, thousands may. If a client certificate
// replaces the secret, the canary names a client that does not exist.
func oidcCanaries(s session) []canary {
	o := oidcOptions(s.spec)
	refused := func(name string, secrets func(key int) oidcSecrets) canary {
		return canary{
			name: name, statuses: []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden},
			request: func(key int) []byte { return oidcRequest(s, key, secrets(key)) },
		}
	}
	if o.Grant == grantExchange {
		return []canary{refused("an exchange of a token that nobody has issued", func(key int) oidcSecrets {
			x := oidcSecretsOf(s, key)
			x.subject = forgedSecret(x.subject)
			return x
		})}
	}
	wrong := refused("a client with a wrong secret", func(key int) oidcSecrets {
		return oidcSecrets{client: forgedSecret(oidcSecretsOf(s, key).client)}
	})
	if o.ClientSecret.IsZero() && s.spec.certified() {
		s.spec = &Spec{OIDC: &OIDC{
			Grant: grantClient, TokenPath: o.TokenPath, ClientID: "tare-canary-nobody",
			Auth: authPost,
		}}
		return []canary{wrong}
	}
	wrong.alone = s.guessing("a server may lock a client out after some wrong secrets")
	return []canary{wrong, refused("a request without the client's credential", func(int) oidcSecrets {
		return oidcSecrets{nobody: true}
	})}
}

// oidcSecrets are the credentials in a request.
type oidcSecrets struct {
	client, subject string
	nobody          bool // the request says nothing of the client
}

// oidcSecretsOf returns the secrets of one identity. A caller's token is the subject token in an exchange, and the
// client's secret otherwise.
func oidcSecretsOf(s session, key int) oidcSecrets {
	o := oidcOptions(s.spec)
	if o.Grant == grantExchange {
		return oidcSecrets{client: s.secret(o.ClientSecret), subject: s.token(key, o.SubjectToken)}
	}
	return oidcSecrets{client: s.token(key, o.ClientSecret)}
}

// oidcRequest returns the request of one identity.
func oidcRequest(s session, key int, secrets oidcSecrets) []byte {
	o, c := oidcOptions(s.spec), s.caller(key)
	form := url.Values{"grant_type": {grantClient}}
	set := func(name, value string) {
		if value != "" {
			form.Set(name, value)
		}
	}
	if o.Grant == grantExchange {
		form.Set("grant_type", "urn:ietf:params:oauth:grant-type:token-exchange")
		form.Set("subject_token", secrets.subject)
		form.Set("subject_token_type", cmp.Or(tokenType(o.SubjectType), tokenType("access_token")))
		set("requested_token_type", tokenType(o.RequestType))
	}
	set("audience", s.unique(cmp.Or(c.Audience, o.Audience)))
	set("scope", s.unique(o.Scope))
	set("resource", s.unique(o.Resource))
	headers := []string{"Accept: application/json", formType}
	client := cmp.Or(c.Name, o.ClientID)
	switch auth := o.authOf(secrets.client); {
	case secrets.nobody:
	case auth == authBasic:
		// RFC 6749, section 2.3.1: both are form-encoded first.
		pair := url.QueryEscape(client) + ":" + url.QueryEscape(secrets.client)
		headers = append(headers, "Authorization: Basic "+base64.StdEncoding.EncodeToString([]byte(pair)))
	case auth == authPost:
		set("client_id", client)
		set("client_secret", secrets.client)
	default:
		set("client_id", client)
	}
	return s.request(key, http.MethodPost, cmp.Or(s.base+o.TokenPath, "/"), []byte(form.Encode()), headers...)
}

// authOf returns how the client authenticates.
func (o OIDC) authOf(secret string) string {
	switch {
	case o.Auth != "":
		return o.Auth
	case secret != "":
		return authBasic
	}
	return authNone
}

// An oauthAnswer is a token response (RFC 6749, section 5.1; RFC 8693, section 2.2.1).
type oauthAnswer struct {
	token, kind []byte
	expires     int64
	promises    bool // there is an expires_in other than null
	quoted      bool // and it is a text
	dated       bool // and it is a number, or the text of one
}

func readOAuth(body []byte) (a oauthAnswer, ok bool) {
	var f [3][]byte
	ok = jsonscan.Pick(body, f[:], "access_token", "token_type", "expires_in")
	a.token, a.kind = jsonscan.Text(f[0]), jsonscan.Text(f[1])
	a.promises, a.quoted = f[2] != nil && string(f[2]) != "null", jsonscan.Text(f[2]) != nil
	a.expires, a.dated = eitherNumber(f[2])
	return a, ok
}

// oauthToken judges a token response. expires_in is recommended only, so that a JWT may tell its life instead;
// token_type is N_A for exchanged tokens that are no access tokens.
func oauthToken(j *judge, key int, body []byte, want wanted) verdict {
	a, ok := readOAuth(body)
	switch {
	case !ok:
		return malformed(body)
	case len(a.token) == 0:
		return noToken
	case !bytes.EqualFold(a.kind, []byte("Bearer")) && !bytes.EqualFold(a.kind, []byte("N_A")):
		return notBearer
	case a.promises && !a.dated:
		return noLifetime
	case a.promises && a.expires <= 0:
		return hasExpired
	}
	return j.token(key, a.token, want, a.promises)
}

// oauthRefusal classifies an error response by its code (RFC 6749, section 5.2; RFC 8628, section 3.5; RFC 8693,
// section 2.2.2).
func oauthRefusal(status int, body []byte) (load.Outcome, verdict) {
	switch code := oauthError(body); string(code) {
	case "slow_down":
		return load.Refused, slowDown
	case "temporarily_unavailable":
		return load.Refused, temporarilyUnavailable
	case "invalid_client", "unauthorized_client", "invalid_grant", "access_denied":
		return load.Wrong, credentialRefused
	case "invalid_request", "invalid_scope", "invalid_target", "unsupported_grant_type":
		return load.Wrong, requestRefused
	case "server_error":
		return load.Failed, noCause
	}
	return refusal(status)
}

// oauthError returns the member error of an error response, nil if it has none.
func oauthError(body []byte) []byte {
	code, _ := jsonscan.Member(body, "error")
	return jsonscan.Text(code)
}
