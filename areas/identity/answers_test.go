package identity

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/areas/identity/reference"
	"tare/internal/clock"
	"tare/internal/jsonscan"
	"tare/internal/load"
	"tare/rigs/memtest"
)

// A wireCase is an operation with answers that it must accept and answers that it must not.
type wireCase struct {
	adapter, operation string
	spec               *Spec
	subject            string // the subject of the token; empty: unknown
	status             int    // of good answers
	// answer renders one from parts.
	answer func(p answerParts) string
	// claims are those of a good token; nil: its tokens are opaque.
	claims map[string]any
	// dates are expiry values in the past, or without a meaning; nil: the answer has no expiry.
	dates []string
	// date is the value of a good expiry.
	date string
	// opaque tokens may be anything, so that the claims of a JWT are not checked.
	opaque bool
	// raw answers are no JSON objects.
	raw bool
	// outcomes are those of statuses with a special meaning for this adapter.
	outcomes map[int]load.Outcome
}

// answerParts are the raw JSON values of an answer; empty ones are left out.
type answerParts struct{ token, date, extra string }

const (
	past     = 1_800_000_000 // the session's time
	future   = past + 3600
	rsHeader = `{"alg":"RS256","kid":"1","typ":"JWT"}`
)

// object joins members whose values are not empty.
func object(members ...string) string {
	var b []string
	for i := 0; i+1 < len(members); i += 2 {
		if members[i+1] != "" {
			b = append(b, fmt.Sprintf("%q:%s", members[i], members[i+1]))
		}
	}
	return strings.Join(b, ",")
}

// wrap puts members and what is added into braces.
func wrap(inner, extra string) string {
	if extra != "" {
		inner += "," + extra
	}
	return "{" + inner + "}"
}

func secondsDates() []string {
	return []string{"0", "-1", "-9223372036854775808", `"soon"`, "null", "[]", "{}", "1e999", `""`, "true"}
}

func stampDates() []string {
	return []string{`"2027-01-15T08:00:00Z"`, `"1970-01-01T00:00:00Z"`, `"soon"`, `"2099-99-99T99:99:99Z"`, "null", "0", "9999999999", `""`, "{}"}
}

func jwtClaims(more map[string]any) map[string]any {
	c := map[string]any{"iss": "issuer", "sub": "robot", "aud": "https://aud.invalid/", "exp": future, "iat": past}
	maps.Copy(c, more)
	return c
}

// wireSecret is each secret of a wire case.
var wireSecret = area.Secret{Env: "X"}

// wireCases returns one case for each adapter's operation.
func wireCases() []wireCase {
	bearer := func(extra ...string) func(p answerParts) string {
		return func(p answerParts) string {
			return wrap(object(append([]string{"access_token", p.token, "expires_in", p.date, "token_type", `"Bearer"`}, extra...)...), p.extra)
		}
	}
	expect := &Expect{Audience: "https://aud.invalid/", Issuer: "issuer"}
	review := func(p answerParts) string {
		return `{"kind":"TokenReview","status":` + wrap(object("authenticated", p.date, "user", `{"username":`+cmp.Or(p.token, `""`)+`}`, "audiences", `["vault"]`), p.extra) + `}`
	}
	return []wireCase{
		{
			adapter: "gce-metadata", operation: opToken, status: 200, answer: bearer(), dates: secondsDates(), date: "3599",
			opaque: true,
		},
		{
			adapter: "gce-metadata", operation: opIdentity, status: 200, raw: true, subject: "robot",
			answer: func(p answerParts) string { return strings.Trim(p.token, `"`) },
			claims: jwtClaims(map[string]any{"aud": gceFirst + "0", "email": fakeSession("", 1).emails[0]}),
		},
		{
			adapter: "imdsv2", operation: opCredentials, status: 200, opaque: true, dates: stampDates(), date: `"2027-01-15T08:00:01Z"`,
			answer: func(p answerParts) string {
				return wrap(object("Code", `"Success"`, "Type", `"AWS-HMAC"`, "AccessKeyId", `"ASIA1"`, "SecretAccessKey", `"x"`, "Token", p.token, "Expiration", p.date), p.extra)
			},
		},
		{
			adapter: "imdsv2", operation: opSession, status: 200, opaque: true, raw: true,
			answer: func(p answerParts) string {
				return strings.NewReplacer(`"`, "", ".", "").Replace(p.token)
			},
		},
		{
			adapter: "eks-pod-identity", operation: opCredentials, status: 200, opaque: true, dates: stampDates(), date: `"2027-01-15T08:00:01Z"`,
			spec: &Spec{EKS: &EKS{Token: wireSecret}},
			answer: func(p answerParts) string {
				return wrap(object("AccessKeyId", `"ASIA1"`, "SecretAccessKey", `"x"`, "Token", p.token, "AccountId", `"1"`, "Expiration", p.date), p.extra)
			},
		},
		{ // TestMalformedXMLIsNoSuccess has its tokens and dates
			adapter: "sts-web-identity", operation: opCredentials, status: 200, opaque: true, raw: true, subject: "robot",
			answer: func(p answerParts) string { return stsAnswer(strings.Trim(p.token, `"`), "2027-01-15T08:00:01Z", "") },
			spec:   &Spec{STS: &STS{RoleARN: testRole, Token: wireSecret}},
		},
		{
			adapter: "azure-imds", operation: opToken, status: 200, date: `"3599"`, dates: append(secondsDates(), `"0"`, `"-1"`),
			answer: bearer("resource", `"https://management.azure.com/"`, "expires_on", `"1800003600"`),
			spec:   &Spec{Expect: expect}, subject: "robot", claims: jwtClaims(nil),
			outcomes: map[int]load.Outcome{404: load.Failed, 410: load.Failed},
		},
		{
			adapter: "k8s-tokenrequest", operation: opToken, status: 201, dates: stampDates(), date: `"2027-01-15T09:00:00Z"`,
			answer: func(p answerParts) string {
				return `{"kind":"TokenRequest","apiVersion":"authentication.k8s.io/v1","status":` + wrap(object("token", p.token, "expirationTimestamp", p.date), p.extra) + `}`
			},
			spec: &Spec{
				K8s:    &K8s{Namespace: "team", ServiceAccount: "robot", Audiences: []string{"vault"}, Token: wireSecret},
				Expect: &Expect{Issuer: "issuer"},
			},
			claims: jwtClaims(map[string]any{"aud": []string{"x", "vault"}, "sub": "system:serviceaccount:team:robot"}),
		},
		{ // the user's name stands for the token, and authenticated for its date
			adapter: "k8s-tokenreview", operation: opReview, status: 201, opaque: true, answer: review,
			spec: &Spec{K8s: &K8s{Namespace: "team", ServiceAccount: "robot", Audiences: []string{"vault"}, Token: wireSecret}},
			date: "true", dates: []string{"false", "null", `"true"`, "1", "[]", "{}"},
		},
		{
			adapter: "oidc-token", operation: opToken, status: 200, dates: []string{"0", "-1", `"-1"`}, date: "300", answer: bearer(),
			spec:    &Spec{OIDC: &OIDC{ClientID: "robot", ClientSecret: wireSecret}, Expect: expect},
			subject: "robot", claims: jwtClaims(nil),
		},
		{
			adapter: "vault-login", operation: "login", status: 200, dates: []string{"0", "-1"}, date: "3600", opaque: true,
			answer: func(p answerParts) string {
				return `{"request_id":"x","auth":` + wrap(object("client_token", p.token, "lease_duration", p.date, "renewable", "true"), p.extra) + `}`
			},
			spec: &Spec{Vault: &Vault{Method: "approle", RoleID: "robot", SecretID: wireSecret}},
		},
		{
			adapter: "http-token", operation: opToken, status: 200, dates: []string{"0", "-1", `"soon"`, "null", `"1970-01-01T00:00:00Z"`}, date: "300",
			answer: func(p answerParts) string {
				return wrap(object("data", "{"+object("jwt", p.token, "lives", p.date)+"}"), p.extra)
			},
			spec: &Spec{
				HTTP: &HTTP{Path: "/t", Token: "data.jwt", Expires: "data.lives", Bearer: wireSecret}, Expect: expect,
			},
			subject: "robot", claims: jwtClaims(nil),
		},
	}
}

// session returns the session under which the case is tested, with what canaries need to be rendered.
func (v wireCase) session() session {
	s := fakeSession(v.operation, 1)
	spec := Spec{}
	if v.spec != nil {
		spec = *v.spec
	}
	spec.Adapter, spec.NoLockout = AdapterName(v.adapter), true
	spec.SecretHeaders = map[string]area.Secret{"X-Key": wireSecret}
	s.spec, s.subjects = &spec, []string{v.subject}
	s.creds = &credentials{values: map[area.Secret]string{wireSecret: forgedJWT}, leases: make([]lease, 1)}
	return s
}

// token returns a good token as raw JSON, with some claims changed; nil ones are left out.
func (v wireCase) token(t testing.TB, header string, change map[string]any) string {
	t.Helper()
	switch {
	case v.adapter == "k8s-tokenreview":
		return `"system:serviceaccount:team:robot"`
	case v.claims == nil:
		return `"` + strings.Repeat("opaque0", 8) + `"`
	}
	claims := maps.Clone(v.claims)
	for k, x := range change {
		if claims[k] = x; x == nil {
			delete(claims, k)
		}
	}
	return `"` + unsignedJWT(t, header, claims) + `"`
}

func (v wireCase) goodParts(t testing.TB) answerParts {
	t.Helper()
	return answerParts{token: v.token(t, rsHeader, nil), date: v.date}
}

// eachWireCase runs do for every case whose adapter is available.
func eachWireCase(t *testing.T, do func(t *testing.T, v wireCase, w load.Wire)) {
	t.Helper()
	for _, v := range wireCases() {
		a, err := findAdapter(v.adapter)
		if err != nil {
			continue // TestEveryAdapterHasAWireCase knows which are there
		}
		t.Run(v.adapter+"/"+v.operation, func(t *testing.T) { do(t, v, a.wire(v.session())) })
	}
}

// TestEveryAdapterHasAWireCase: every adapter is tested with hostile answers.
func TestEveryAdapterHasAWireCase(t *testing.T) {
	listed := map[string]bool{}
	for _, v := range wireCases() {
		listed[v.adapter+"/"+v.operation] = true
	}
	listed["azure-imds/fresh"] = true // the same answers as token's
	for _, a := range adapters() {
		for _, operation := range a.offers() {
			if !listed[a.name+"/"+operation] {
				t.Errorf("%s/%s has no hostile answers", a.name, operation)
			}
		}
	}
}

// wantOutcome fails the test unless the answer has that outcome and, if it is not good, the wire explains why.
func wantOutcome(t *testing.T, w load.Wire, name string, status int, body string, want load.Outcome) {
	t.Helper()
	short := body
	if len(short) > 300 {
		short = short[:300] + "…"
	}
	if got := w.Check(0, status, []byte(body)); got != want {
		t.Errorf("%s: %v, want %v: %d %s", name, got, want, status, short)
	}
	if want == load.OK {
		return // Explain is only asked about other outcomes
	}
	cause := w.Explain(0, status, []byte(body))
	if cause >= len(causes()) || cause < int(noCause) || (cause >= 0 && causes()[cause] == "") {
		t.Errorf("%s: cause %d has no words", name, cause)
	}
	if cause == int(noCause) && status/100 == 2 && status != 204 && want == load.Wrong && len(body) > 0 && status == 200 &&
		name != "another good status" {
		t.Errorf("%s: no cause, and the status %d does not say it: %s", name, status, short)
	}
}

// TestOnlyGoodBodiesSucceed: a good status with a bad body is no success.
func TestOnlyGoodBodiesSucceed(t *testing.T) {
	eachWireCase(t, func(t *testing.T, v wireCase, w load.Wire) {
		good := v.answer(v.goodParts(t))
		wantOutcome(t, w, "good", v.status, good, load.OK)
		wantOutcome(t, w, "good with blanks around", v.status, " \n"+good+"\r\n", load.OK)
		for name, body := range map[string]string{
			"nothing": "", "blanks": " \r\n\t", "null": "null", "true": "true", "number": "1", "text": `"x"`, "array": "[]", "array of objects": "[" + good + "]",
			"empty object": "{}", "page": "<html><head><title>Log in</title></head><body>Log in</body></html>",
			"doctype": "<!DOCTYPE html>",
			"error":   `{"error":"invalid_grant","error_description":"no"}`, "errors": `{"errors":["permission denied"]}`,
			"deep objects": strings.Repeat(`{"a":`, 1e5), "deep arrays": strings.Repeat(`[`, 1e5),
			"deep and closed": `{"x":` + strings.Repeat(`[`, 1e4) + strings.Repeat(`]`, 1e4) + `}`,
			"huge":            strings.Repeat("a", 1<<20), "huge object": `{"x":"` + strings.Repeat("a", 1<<20) + `"}`, "many members": `{` + strings.Repeat(`"a":1,`, 1e5) + `"b":1}`,
			"zeros": strings.Repeat("\x00", 64), "not UTF-8": "\xff\xfe\xfd", "byte order mark": "\ufeff" + good,
			"two answers": good + "\n" + good + "x y",
			"status":      `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"Forbidden","code":403}`,
			"code":        `{"Code":"AssumeRoleUnauthorizedAccess","Message":"no","LastUpdated":"2027-01-15T08:00:00Z"}`,
		} {
			wantOutcome(t, w, name, v.status, body, load.Wrong)
		}
		if v.raw {
			return
		}
		for n := range len(good) - 1 {
			wantOutcome(t, w, fmt.Sprintf("cut off after %d", n), v.status, good[:n], load.Wrong)
		}
		wantOutcome(t, w, "a comma more", v.status, good[:len(good)-1]+",}", load.Wrong)
		wantOutcome(t, w, "a brace more", v.status, good+"}", load.Wrong)
	})
}

// TestNumbersHaveManyForms: the lifetime of a good answer may have a fraction, an exponent, or many digits.
func TestNumbersHaveManyForms(t *testing.T) {
	eachWireCase(t, func(t *testing.T, v wireCase, w load.Wire) {
		if _, ok := seconds([]byte(strings.Trim(v.date, `"`))); !ok {
			return
		}
		for _, x := range []string{"3599.5", "3.6e3", "36E+2", "0.5", "99999999999999999999", "1e30"} {
			p := v.goodParts(t)
			p.date = x
			if strings.HasPrefix(v.date, `"`) {
				p.date = `"` + x + `"`
			}
			wantOutcome(t, w, "a lifetime of "+p.date, v.status, v.answer(p), load.OK)
			body := []byte(v.answer(p))
			if n := testing.AllocsPerRun(20, func() { _ = w.Check(0, v.status, body) }); n != 0 {
				t.Errorf("%s: %v allocations a call", p.date, n)
			}
		}
	})
}

// TestBadTokensFail: a well-formed answer with a bad token is no success.
func TestBadTokensFail(t *testing.T) {
	eachWireCase(t, func(t *testing.T, v wireCase, w load.Wire) {
		with := func(name string, change func(p *answerParts)) {
			p := v.goodParts(t)
			change(&p)
			wantOutcome(t, w, name, v.status, v.answer(p), load.Wrong)
		}
		with("no token", func(p *answerParts) { p.token = "" })
		with("an empty token", func(p *answerParts) { p.token = `""` })
		if v.raw {
			return
		}
		for _, x := range []string{"null", "1", "true", "{}", "[]", `["x"]`} {
			with("a token that is "+x, func(p *answerParts) { p.token = x })
		}
		for _, x := range []string{`"a b"`, "\"a\\u0000b\"", "\"t\u00f6ken\"", "\"a\\nb\"", "\"a\nb\""} {
			with("a token with "+x, func(p *answerParts) { p.token = x })
		}
		for _, d := range v.dates {
			with("an expiry of "+d, func(p *answerParts) { p.date = d })
		}
	})
}

// TestForeignClaimsFail: a JWT for somebody else, for another audience, from another issuer, expired or unsigned is no
// success.
func TestForeignClaimsFail(t *testing.T) {
	eachWireCase(t, func(t *testing.T, v wireCase, w load.Wire) {
		if v.claims == nil {
			return
		}
		enc := base64.RawURLEncoding.EncodeToString
		good := v.goodParts(t)
		other := "sub"
		if _, ok := v.claims["email"]; ok {
			other = "email"
		}
		for name, change := range map[string]map[string]any{
			"somebody else": {other: "mallory"}, "nobody": {other: nil}, "a list of owners": {other: []string{"robot"}},
			"another audience": {"aud": "https://other.invalid/"}, "no audience": {"aud": nil},
			"audiences without ours":        {"aud": []string{"x", "y"}},
			"audiences in a list in a list": {"aud": [][]string{{"vault", "https://aud.invalid/"}}},
			"expired":                       {"exp": past}, "long expired": {"exp": 0}, "expired before time": {"exp": -1},
			"an expiry in words": {"exp": "tomorrow"}, "an expiry as text": {"exp": "1800003600"},
			"an expiry of many": {"exp": []int{1800003600}},
		} {
			p := good
			p.token = v.token(t, rsHeader, change)
			wantOutcome(t, w, name, v.status, v.answer(p), load.Wrong)
		}
		claims, err := json.Marshal(v.claims)
		if err != nil {
			t.Fatal(err)
		}
		for name, token := range map[string]string{
			"alg none":                  strings.Trim(v.token(t, `{"alg":"none"}`, nil), `"`),
			"alg NoNe":                  strings.Trim(v.token(t, `{"alg":"NoNe","typ":"JWT"}`, nil), `"`),
			"alg none, no signature":    enc([]byte(`{"alg":"none"}`)) + "." + enc(claims) + ".",
			"no algorithm":              strings.Trim(v.token(t, `{}`, nil), `"`),
			"no signature":              enc([]byte(rsHeader)) + "." + enc(claims) + ".",
			"two parts":                 enc([]byte(rsHeader)) + "." + enc(claims),
			"claims that are no object": enc([]byte(rsHeader)) + "." + enc([]byte("[]")) + "." + enc([]byte("x")),
			"claims that are no base64": enc([]byte(rsHeader)) + ".!!!." + enc([]byte("x")),
			"claims too large":          enc([]byte(rsHeader)) + "." + enc([]byte(`{"sub":"robot","x":"`+strings.Repeat("x", 1<<16)+`"}`)) + "." + enc([]byte("x")),
			"dots":                      "..", "four parts": strings.Trim(good.token, `"`) + ".x",
		} {
			p := good
			p.token = `"` + token + `"`
			wantOutcome(t, w, name, v.status, v.answer(p), load.Wrong)
		}
	})
}

// TestDuplicateMembersFail: readers differ in which of two members of one name they use, so an answer with two is no
// success.
func TestDuplicateMembersFail(t *testing.T) {
	eachWireCase(t, func(t *testing.T, v wireCase, w load.Wire) {
		if v.raw {
			return
		}
		name := map[string]string{
			"imdsv2": "Token", "eks-pod-identity": "Token", "k8s-tokenrequest": "token", "k8s-tokenreview": "authenticated",
			"vault-login": "client_token", "http-token": "data",
		}[v.adapter]
		name = cmp.Or(name, "access_token")
		for _, second := range []string{`""`, "null", "{}", v.goodParts(t).token} {
			for _, key := range []string{name, fmt.Sprintf(`\u%04x`, name[0]) + name[1:]} {
				p := v.goodParts(t)
				p.extra = `"` + key + `":` + second
				wantOutcome(t, w, "a second "+key+" is "+second, v.status, v.answer(p), load.Wrong)
			}
		}
	})
}

// TestOtherStatusesFail: an answer with another status is no success, whatever its body, and each status has its class.
func TestOtherStatusesFail(t *testing.T) {
	eachWireCase(t, func(t *testing.T, v wireCase, w load.Wire) {
		good := v.answer(v.goodParts(t))
		want := map[int]load.Outcome{
			100: load.Failed, 200: load.Wrong, 201: load.Wrong, 202: load.Wrong, 204: load.Wrong, 206: load.Wrong,
			300: load.Wrong, 301: load.Wrong, 302: load.Wrong, 303: load.Wrong, 304: load.Wrong, 307: load.Wrong,
			308: load.Wrong,
			400: load.Wrong, 401: load.Wrong, 403: load.Wrong, 404: load.Wrong, 405: load.Wrong, 410: load.Wrong,
			418: load.Wrong, 422: load.Wrong,
			429: load.Refused, 500: load.Failed, 501: load.Failed, 502: load.Failed, 503: load.Refused, 504: load.Failed,
			599: load.Failed,
		}
		maps.Copy(want, v.outcomes)
		delete(want, v.status)
		for status, o := range want {
			for _, body := range []string{good, "", "<html>", `{"message":"no"}`} {
				name := fmt.Sprintf("status %d", status)
				if status/100 == 2 {
					name = "another good status"
				}
				wantOutcome(t, w, name, status, body, o)
			}
		}
	})
}

// TestCheckingAnswersDoesNotAllocate: every call of the load checks an answer.
func TestCheckingAnswersDoesNotAllocate(t *testing.T) {
	eachWireCase(t, func(t *testing.T, v wireCase, w load.Wire) {
		body, buf := []byte(v.answer(v.goodParts(t))), make([]byte, 0, 4096)
		n := testing.AllocsPerRun(200, func() {
			buf = w.Render(buf[:0], 0)
			if w.Check(0, v.status, body) != load.OK {
				t.Fatal("a good answer is refused")
			}
		})
		if n != 0 {
			t.Errorf("%v allocations a call", n)
		}
	})
}

// FuzzAnswers: no answer makes a wire panic, every cause has a text, and an accepted answer is JSON, or the token
// itself.
func FuzzAnswers(f *testing.F) {
	for _, v := range wireCases() {
		f.Add(v.status, []byte(v.answer(v.goodParts(f))))
	}
	f.Add(200, []byte(`{"access_token":"x","expires_in":"1","resource":"https:\/\/management.azure.com\/","token_type":"bearer"}`))
	f.Add(201, []byte(`{"status":{"authenticated":true,"user":{"username":"x"}}}`))
	type subject struct {
		v wireCase
		w load.Wire
	}
	var all []subject
	for _, v := range wireCases() {
		if a, err := findAdapter(v.adapter); err == nil {
			all = append(all, subject{v, a.wire(v.session())})
		}
	}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		defer memtest.Bound(t, len(body))()
		for _, s := range all {
			o := s.w.Check(0, status, body)
			if o == load.OK && status != s.v.status {
				t.Errorf("%s/%s: %d is OK", s.v.adapter, s.v.operation, status)
			}
			if o != load.OK {
				if cause := s.w.Explain(0, status, body); cause < int(noCause) || cause >= len(causes()) {
					t.Errorf("%s/%s: %v with cause %d", s.v.adapter, s.v.operation, o, cause)
				}
			}
			if o == load.OK && !s.v.raw && !json.Valid(body) {
				// Invalid UTF-8 is accepted within strings only.
				if json.Valid([]byte(strings.ToValidUTF8(string(body), "?"))) {
					continue
				}
				t.Errorf("%s/%s: accepted %q", s.v.adapter, s.v.operation, body)
			}
		}
	})
}

var update = flag.Bool("update", false, "rewrite the golden files")

const goodToken = `{"access_token":"ya29.c.abc-DEF_123","expires_in":3599,"token_type":"Bearer"}`

// gceFirst is the audience of the first calls, without its last digit.
const gceFirst = "https://tare.invalid/n1/000000000000000"

func fakeSession(operation string, n int) session {
	emails := make([]string, n)
	for i := range emails {
		emails[i] = reference.WorkloadOf(sourceOf(i)).Email
	}
	return session{
		host: "metadata.google.internal", operation: operation, account: accountDefault, emails: emails, nonce: "n1",
		distinct: true,
		clock:    clock.NewFake(time.Unix(1_800_000_000, 0)),
	}
}

// TestCheckToken: order, blanks and further members make no difference, and a bad token has its own cause, rather than
// that it is another identity's. TestOnlyGoodBodiesSucceed and those after it have more.
func TestCheckToken(t *testing.T) {
	w := gceMetadata().wire(fakeSession(opToken, 2))
	const good = "{ \"token_type\" : \"bearer\",\n\"x\":[{}], \"expires_in\":1, \"access_token\":\"a\" }\n"
	wantOutcome(t, w, "another order", 200, good, load.OK)
	for body, want := range map[string]verdict{
		`{"access_token":"a","expires_in":"3599","token_type":"Bearer"}`:   noLifetime,
		`{"access_token":"a","expires_in":null,"token_type":"Bearer"}`:     noLifetime,
		`{"access_token":"a","expires_in":[3599],"token_type":"Bearer"}`:   noLifetime,
		`{"access_token":"a","expires_in":1e999,"token_type":"Bearer"}`:    noLifetime,
		`{"access_token":"a","token_type":"Bearer"}`:                       noLifetime,
		`{"access_token":"a","expires_in":-3599.5,"token_type":"Bearer"}`:  hasExpired,
		`{"access_token":"a b","expires_in":3599.5,"token_type":"Bearer"}`: notVisible,
		`{"access_token":"a","expires_in":3599.5,"token_type":"mac"}`:      notBearer,
		`{"expires_in":3599.5,"token_type":"Bearer"}`:                      noToken,
		`{"access_token":"a"`: notJSON,
	} {
		wantOutcome(t, w, body, 200, body, load.Wrong)
		if got := w.Explain(0, 200, []byte(body)); got != int(want) {
			t.Errorf("%s: %q, want %q", body, causes()[got], causes()[want])
		}
	}
}

// TestCheckForeignToken: a caller with an identity of its own must not get another's token.
func TestCheckForeignToken(t *testing.T) {
	body := func(token string) []byte {
		return []byte(`{"access_token":"` + token + `","expires_in":9,"token_type":"Bearer"}`)
	}
	w := gceMetadata().wire(fakeSession(opToken, 3))
	for n, c := range []struct {
		i     uint64
		token string
		want  load.Outcome
	}{
		{0, "a", load.OK},
		{1, "b", load.OK},
		{3, "a", load.OK}, // identity 0 again
		{2, "a", load.Wrong},
		{2, "c", load.OK},
		{4, "c", load.Wrong},
		{0, "d", load.OK}, // renewed
		{1, "a", load.OK}, // of no identity any more
	} {
		if got := w.Check(c.i, 200, body(c.token)); got != c.want {
			t.Errorf("answer %d: %v, want %v", n, got, c.want)
		}
	}
	s := fakeSession(opToken, 2)
	s.distinct = false // behind a URL identities may share an account
	w = gceMetadata().wire(s)
	if w.Check(0, 200, body("a")) != load.OK || w.Check(1, 200, body("a")) != load.OK {
		t.Error("a shared account is refused")
	}
}

// unsignedJWT returns a JWT with a signature that nobody checks.
func unsignedJWT(t testing.TB, header string, claims map[string]any) string {
	t.Helper()
	b, err := json.Marshal(claims)
	if err != nil {
		t.Fatal(err)
	}
	enc := base64.RawURLEncoding.EncodeToString
	return enc([]byte(header)) + "." + enc(b) + "." + enc([]byte("signature"))
}

// TestCheckIdentity: a token is for this call of this run, and for the identity that asks. TestForeignClaimsFail has
// more.
func TestCheckIdentity(t *testing.T) {
	s := fakeSession(opIdentity, 2)
	w := gceMetadata().wire(s)
	const i = 5 // identity 1
	claims := func(name string, value any) string {
		c := map[string]any{"iss": "x", "sub": "1", "aud": gceFirst + "5", "email": s.emails[1], "exp": past + 1}
		if c[name] = value; value == nil {
			delete(c, name)
		}
		return unsignedJWT(t, `{"alg":"RS256","typ":"JWT"}`, c)
	}
	for _, c := range []struct {
		name, body string
		want       load.Outcome
	}{
		{"good", claims("x", "y"), load.OK},
		{"another call's audience", claims("aud", gceFirst+"4"), load.Wrong},
		{"another run's audience", claims("aud", strings.Replace(gceFirst, "n1", "n0", 1)+"5"), load.Wrong},
		{"another identity", claims("email", s.emails[0]), load.Wrong},
		{"no subject", claims("sub", nil), load.Wrong},
		{"no expiry", claims("exp", nil), load.Wrong},
		{"too large", claims("x", strings.Repeat("x", maxClaims)), load.Wrong},
		{"access token", goodToken, load.Wrong},
	} {
		if got := w.Check(i, 200, []byte(c.body)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// FuzzCheck: what is accepted as a JWT has three parts and says the call's audience.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(unsignedJWT(f, `{"alg":"RS256"}`, map[string]any{"aud": gceFirst + "0", "exp": 1_900_000_000, "sub": "1", "email": "gsa-127-1-0-1@tare-reference.iam.gserviceaccount.com"})))
	f.Add([]byte("a.b.c"))
	id := gceMetadata().wire(fakeSession(opIdentity, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer memtest.Bound(t, len(b))()
		if id.Check(0, 200, b) == load.OK {
			part := bytes.Split(bytes.TrimSpace(b), []byte("."))
			raw, err := base64.RawURLEncoding.DecodeString(string(part[1]))
			if len(part) != 3 || err != nil || !json.Valid(raw) || !bytes.Contains(raw, []byte("tare.invalid")) {
				t.Errorf("accepted %q", b)
			}
		}
	})
}

// TestRenderGolden pins the bytes on the wire.
func TestRenderGolden(t *testing.T) {
	var got bytes.Buffer
	for _, c := range []struct {
		operation, account string
		headers            map[string]string
		calls              []uint64
	}{
		{opToken, accountDefault, nil, []uint64{0}},
		{opToken, accountEmail, m{"X-Request-Source": "tare", "Accept": "application/json"}, []uint64{0, 1, 2}},
		{opIdentity, "robot@example.invalid", nil, []uint64{0, 18446744073709551615}},
	} {
		s := fakeSession(c.operation, 2)
		s.account, s.headers = c.account, c.headers
		w := gceMetadata().wire(s)
		for _, i := range c.calls {
			got.Write(w.Render(nil, i))
		}
	}
	for _, c := range gceMetadata().canaries(fakeSession(opToken, 1)) {
		got.Write(c.request(0))
	}
	got.Write(gceMetadata().whoami(fakeSession(opToken, 1)))
	file := filepath.Join("testdata", "gcemetadata.http")
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got.Bytes(), want) {
		t.Errorf("the requests differ from %s:\n%s", file, got.Bytes())
	}
}

// TestWiresDoNotAllocate, with several identities, a new request in each call, and audiences.
func TestWiresDoNotAllocate(t *testing.T) {
	many := fakeSession(opToken, 3)
	jwt := unsignedJWT(t, rsHeader, map[string]any{
		"sub": "robot", "aud": []string{"a", "vault"}, "exp": many.clock.Now().Unix() + 9, "iss": "i",
	})
	many.spec = &Spec{
		OIDC: &OIDC{ClientID: "robot", Scope: "x/{n}"}, Vault: &Vault{Role: "r"},
		HTTP:   &HTTP{Path: "/{n}", Expires: "expires_in"},
		Expect: &Expect{Audience: "vault", Subject: "robot", Issuer: "i"},
	}
	token, id := fakeSession(opToken, 300), fakeSession(opIdentity, 300)
	token.clock, id.clock = clock.System{}, clock.System{}
	for _, c := range []struct {
		a     adapter
		s     session
		body  string
		every uint64
	}{
		{gceMetadata(), token, string(realAnswer(t, token)), 300},
		{gceMetadata(), id, string(realAnswer(t, id)), 300},
		{oidcToken(), many, `{"access_token":"` + jwt + `","expires_in":300,"token_type":"Bearer"}`, 3},
		{httpToken(), many, `{"access_token":"` + jwt + `","expires_in":300}`, 3},
		{vaultLogin(), many, `{"auth":{"client_token":"hvs.x","lease_duration":300,"entity_id":"e"}}`, 3},
	} {
		w, buf, body, i := c.a.wire(c.s), make([]byte, 0, 4096), []byte(c.body), uint64(0)
		n := testing.AllocsPerRun(1000, func() {
			buf = w.Render(buf[:0], i*c.every)
			if w.Check(0, 200, body) != load.OK {
				t.Fatalf("%s refuses a good answer", c.a.name)
			}
			i++
		})
		if n != 0 {
			t.Errorf("%s: %v allocations a call", c.a.name, n)
		}
	}
}

// realAnswer returns an answer to call 0 of the usual length.
func realAnswer(t testing.TB, s session) []byte {
	t.Helper()
	if s.operation == opToken {
		return []byte(strings.Replace(goodToken, "abc", strings.Repeat("abcd", 107), 1))
	}
	signer, err := reference.NewSigner(reference.RS256)
	if err != nil {
		t.Fatal(err)
	}
	jwt, err := signer.Sign(reference.Claims{
		Issuer: "https://accounts.google.com", Subject: "114830185410493850000", Audience: gceFirst + "0",
		IssuedAt: time.Now().Unix(), Expires: time.Now().Add(time.Hour).Unix(), Email: s.emails[0], Verified: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	return []byte(jwt)
}

func BenchmarkCheck(b *testing.B) {
	for _, operation := range []string{opToken, opIdentity} {
		b.Run(operation, func(b *testing.B) {
			s := fakeSession(operation, 300)
			s.clock = clock.System{}
			w := gceMetadata().wire(s)
			body := realAnswer(b, s)
			b.ReportAllocs()
			for b.Loop() {
				if w.Check(0, 200, body) != load.OK {
					b.Fatal("a good answer is refused")
				}
			}
		})
	}
}

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
