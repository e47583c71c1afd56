package identity

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"tare/internal/jsonscan"
	"tare/internal/kit"
	"tare/internal/load"
)

// httpToken asks any URL for a token: what no other adapter speaks.
//
//	identity selector  source address, bearer token or headers (callers: token is the bearer token, or {token} in the
//	                   body)
//	cache key          unknown
//	cold path          {n} in path, body or audience makes each request one that nobody has made before
//	success            the status, a token at the path given, made of visible characters; not expired where the answer or
//	                   a JWT says when
//	error classes      429, 503 Refused · 5xx Failed · others Wrong
func httpToken() adapter {
	return adapter{
		name: "http-token", help: "any URL that answers with a token: method, path, headers and body, and where the " +
			"answer holds it",
		section: "http", reach: reach{tls: true, path: true},
		operations: []operation{{
			name: opToken, expect: "the status that is given, with a token of visible characters that has not expired as far " +
				"as can be told; with status_only any body", request: httpAsk, wire: httpWire,
		}},
		validate: httpValidate, canaries: httpCanaries,
	}
}

// wholeBody is the path that means the whole answer.
const wholeBody = "-"

// tokenPlace stands for the caller's token in a body.
const tokenPlace = "{token}"

// httpOptions fills in defaults.
func httpOptions(s *Spec) HTTP {
	o := optionsOf(s, func(s *Spec) *HTTP { return s.HTTP })
	if o.Method == "" {
		o.Method = http.MethodGet
		if o.Body != "" {
			o.Method = http.MethodPost
		}
	}
	o.Token = cmp.Or(o.Token, "access_token")
	o.Status = cmp.Or(o.Status, http.StatusOK)
	return o
}

func httpValidate(s *Spec, _ string) error {
	o := httpOptions(s)
	name, literal := bodySecret(o.Body)
	switch {
	case o.Body != "" && o.Method == http.MethodGet:
		return errors.New("http.body: GET has no body: method: POST")
	case o.Path != "" && !plainPath(o.Path):
		return errors.New("http.path: want a path such as /token?scope=x, without blanks")
	case querySecret(o.Path):
		return errors.New("http.path: a parameter of the query looks like a secret, and secrets must not stand in the " +
			"file; use secret_headers")
	case literal:
		return fmt.Errorf("http.body: the value of %q looks like a secret, which would be copied into the record: write "+
			"{%[1]s} in its place, and secrets: {%[1]s: {env: NAME}}", name)
	case strings.Contains(o.Body, tokenPlace) && o.Bearer.IsZero() && !s.everyCaller(hasToken):
		return errors.New("http.body: {token} needs a token: callers: [{token: {file: path}}]")
	case o.StatusOnly && (s.HTTP.Token != "" || o.Expires != "" || s.Expect != nil):
		return errors.New("http.status_only: answers are judged by their status alone, so leave out http.token, " +
			"http.expires and expect")
	case o.Expires != "" && o.Token == wholeBody:
		return errors.New("http.expires: an answer that is nothing but a token does not say more")
	}
	if err := kit.CheckPlaces(o.Secrets, []string{o.Body}, "n", "token"); err != nil {
		return fmt.Errorf("http.secrets: %w", err)
	}
	if err := checkBodyFiles(o); err != nil {
		return fmt.Errorf("http.files: %w", err)
	}
	for field, path := range map[string]string{"token": o.Token, "expires": o.Expires} {
		if path != "" && path != wholeBody && !memberPath(path) {
			return fmt.Errorf("http.%s: want names joined by dots, such as auth.client_token", field)
		}
	}
	return nil
}

// querySecret reports whether a parameter's name in the query is usually a secret's.
func querySecret(path string) bool {
	_, query, _ := strings.Cut(path, "?")
	for pair := range strings.SplitSeq(query, "&") {
		name, value, _ := strings.Cut(strings.ToLower(pair), "=")
		for _, s := range []string{"secret", "password", "token", "api_key", "apikey", "credential", "signature"} {
			if value != "" && strings.Contains(name, s) && !strings.Contains(name, "type") {
				return true
			}
		}
	}
	return false
}

// memberPath reports whether path names members of objects.
func memberPath(path string) bool {
	for part := range strings.SplitSeq(path, ".") {
		if part == "" || strings.ContainsAny(part, `"\`) {
			return false
		}
	}
	return strings.Count(path, ".") < jsonscan.MaxDepth
}

// httpCanaries returns requests without the caller's credential, if each has one, and with a wrong one.
func httpCanaries(s session) []canary {
	o := httpOptions(s.spec)
	bearing := s.hasToken(o.Bearer)
	if !bearing && len(s.spec.SecretHeaders) == 0 && len(o.Secrets) == 0 &&
		!s.spec.everyCaller(func(c Caller) bool { return len(c.SecretHeaders) > 0 }) {
		return nil // nothing that we send proves who we are
	}
	statuses := []int{http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound}
	bare, spec := s, *s.spec
	spec.SecretHeaders, spec.Callers = nil, slices.Clone(spec.Callers)
	for i := range spec.Callers {
		spec.Callers[i].SecretHeaders = nil
	}
	bare.creds, bare.spec = nil, &spec
	guess := ""
	if len(o.Secrets) > 0 { // a body without its secret may still name an account
		guess = s.guessing("a server may lock an account out after some requests with a wrong secret in their body")
	}
	out := []canary{{
		name: "a request without the caller's credential", statuses: statuses, alone: guess,
		request: func(key int) []byte { return httpRequest(bare, key, "") },
	}}
	if bearing {
		out = append(out, canary{
			name: "a request with a credential that nobody has issued", statuses: statuses,
			request: func(key int) []byte { return httpRequest(s, key, forgedSecret(s.token(key, o.Bearer))) },
		})
	}
	return out
}

// httpAsk renders the request of one identity.
func httpAsk(s session, key int) []byte {
	return httpRequest(s, key, s.token(key, httpOptions(s.spec).Bearer))
}

func httpRequest(s session, key int, token string) []byte {
	o := httpOptions(s.spec)
	var headers []string
	body := []byte(nil)
	if o.Body != "" {
		body = s.fill(o, token)
		if !s.says("Content-Type", key) {
			headers = append(headers, "Content-Type: "+s.bodyType(o))
		}
	}
	if token != "" && !strings.Contains(o.Body, tokenPlace) {
		headers = append(headers, "Authorization: Bearer "+token)
	}
	return s.request(key, o.Method, cmp.Or(s.base+s.unique(o.Path), "/"), body, headers...)
}

// fill replaces the placeholders in the body by the caller's token, the secrets and the files, in one pass:
// placeholders within a secret or a file are left alone.
func (s session) fill(o HTTP, token string) []byte {
	form := s.bodyType(o)
	places := append(s.filePlaces(o), tokenPlace, quoted(form, token))
	for name, x := range o.Secrets {
		places = append(places, "{"+name+"}", quoted(form, s.secret(x)))
	}
	return []byte(strings.NewReplacer(places...).Replace(s.unique(o.Body)))
}

// bodyType returns the media type of the body, as its files make it.
func (s session) bodyType(o HTTP) string {
	return contentType(strings.NewReplacer(s.filePlaces(o)...).Replace(o.Body))
}

// says reports whether the file sets a header.
func (s session) says(name string, key int) bool {
	for _, line := range s.headerLines(key) {
		if given, _, _ := strings.Cut(line, ":"); strings.EqualFold(given, name) {
			return true
		}
	}
	return false
}

// contentType returns the media type of a body: JSON if it begins like an object, and else a form.
func contentType(body string) string {
	if strings.HasPrefix(strings.TrimSpace(body), "{") {
		return "application/json"
	}
	return "application/x-www-form-urlencoded"
}

// quoted returns a token as escaped for a string or form value of a body of that media type.
func quoted(form, token string) string {
	if form != "application/json" {
		return url.QueryEscape(token)
	}
	return kit.JSONText(token)
}

func httpWire(s session) load.Wire {
	j, x, o := newJudge(s), newExpected(s), httpOptions(s.spec)
	token, expires := strings.Split(o.Token, "."), strings.Split(o.Expires, ".")
	signed := s.spec != nil && s.spec.Expect != nil
	return &tokenWire{
		requests: s.requests(func(key int) []byte { return httpAsk(s, key) }),
		look: func(i uint64, key, status int, body []byte) (load.Outcome, verdict) {
			if status != o.Status {
				if status/100 == 2 {
					return load.Wrong, noCause
				}
				return refusal(status)
			}
			if o.StatusOnly {
				return load.OK, noCause
			}
			want := x.of(i, key)
			want.signed = signed
			if o.Token == wholeBody {
				return wrong(j.token(key, bytes.TrimSpace(body), want, true))
			}
			value, ok := member(body, token)
			if !ok {
				return wrong(malformed(body))
			}
			if o.Expires != "" {
				at, ok := member(body, expires)
				if v := lifetime(at, want.now); !ok || v != noCause {
					return wrong(max(v, noLifetime))
				}
			}
			return wrong(j.token(key, jsonscan.Text(value), want, true))
		},
		who: func(body []byte) string {
			if o.StatusOnly {
				return ""
			}
			if o.Token == wholeBody {
				return subjectOf(bytes.TrimSpace(body))
			}
			value, _ := member(body, token)
			return subjectOf(jsonscan.Text(value))
		},
	}
}

// member finds a member of a well-formed object by its path; nil if it is missing. It does not allocate.
func member(body []byte, path []string) (value []byte, whole bool) {
	value, whole = jsonscan.Member(body, path[0])
	switch {
	case len(path) == 1 || !whole:
		return value, whole
	case len(value) == 0 || value[0] != '{':
		return nil, true
	}
	return member(value, path[1:])
}

// sinceEpoch separates dates from lifetimes, both in seconds: no token lives for 30 years.
const sinceEpoch = 1_000_000_000

// lifetime judges when an answer says that its token expires: seconds from now, seconds since 1970, or RFC 3339.
func lifetime(value []byte, now int64) verdict {
	bare := value
	if t := jsonscan.Text(value); t != nil {
		if at, err := time.Parse(time.RFC3339, string(t)); err == nil {
			return alive(at.Unix() > now)
		}
		bare = t
	}
	n, ok := seconds(bare)
	switch {
	case !ok:
		return noLifetime
	case n >= sinceEpoch:
		return alive(n > now)
	}
	return alive(n > 0)
}

func alive(yes bool) verdict {
	if yes {
		return noCause
	}
	return hasExpired
}
