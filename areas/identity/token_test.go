package identity

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"flag"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/areas/identity/reference"
	"tare/internal/clock"
	"tare/internal/load"
	"tare/rigs/memtest"
)

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

func TestCheckToken(t *testing.T) {
	for _, c := range []struct {
		name   string
		status int
		body   string
		want   load.Outcome
	}{
		{"good", 200, goodToken, load.OK},
		{
			"good in another order, with blanks and more",
			200, "{ \"token_type\" : \"bearer\",\n\"x\":[{}], \"expires_in\":1, \"access_token\":\"a\" }\n", load.OK,
		},
		{"no token", 200, `{"expires_in":3599,"token_type":"Bearer"}`, load.Wrong},
		{"empty token", 200, `{"access_token":"","expires_in":3599,"token_type":"Bearer"}`, load.Wrong},
		{"token that is no string", 200, `{"access_token":{},"expires_in":3599,"token_type":"Bearer"}`, load.Wrong},
		{"token with a blank", 200, `{"access_token":"a b","expires_in":3599,"token_type":"Bearer"}`, load.Wrong},
		{"expired", 200, `{"access_token":"a","expires_in":0,"token_type":"Bearer"}`, load.Wrong},
		{"long expired", 200, `{"access_token":"a","expires_in":-5,"token_type":"Bearer"}`, load.Wrong},
		{"expiry as text", 200, `{"access_token":"a","expires_in":"3599","token_type":"Bearer"}`, load.Wrong},
		{"expiry with a fraction", 200, `{"access_token":"a","expires_in":3599.5,"token_type":"Bearer"}`, load.OK},
		{"expiry with an exponent", 200, `{"access_token":"a","expires_in":3.6e3,"token_type":"Bearer"}`, load.OK},
		{"half a second left", 200, `{"access_token":"a","expires_in":0.5,"token_type":"Bearer"}`, load.OK},
		{"expiry far away", 200, `{"access_token":"a","expires_in":99999999999999999999,"token_type":"Bearer"}`, load.OK},
		{"expiry of no finite value", 200, `{"access_token":"a","expires_in":1e999,"token_type":"Bearer"}`, load.Wrong},
		{"no expiry", 200, `{"access_token":"a","token_type":"Bearer"}`, load.Wrong},
		{"another type", 200, `{"access_token":"a","expires_in":3599,"token_type":"mac"}`, load.Wrong},
		{"error with 200", 200, `{"error":"invalid_request"}`, load.Wrong},
		{"cut off", 200, goodToken[:len(goodToken)-1], load.Wrong},
		{"page", 200, "<html>login</html>", load.Wrong},
		{"nothing", 200, "", load.Wrong},
		{"forbidden", 403, "", load.Wrong},
		{"not found", 404, "", load.Wrong},
		{"redirect", 302, "", load.Wrong},
		{"no content", 204, "", load.Wrong},
		{"too many", 429, "", load.Refused},
		{"unavailable", 503, "", load.Refused},
		{"server error", 500, "", load.Failed},
		{"bad gateway", 502, goodToken, load.Failed},
	} {
		if got := gceMetadata().wire(fakeSession(opToken, 1)).Check(0, c.status, []byte(c.body)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestBadTokensHaveTheirOwnCause: a token that is bad for another reason is not charged as another identity's.
func TestBadTokensHaveTheirOwnCause(t *testing.T) {
	for body, want := range map[string]verdict{
		`{"access_token":"a","expires_in":"3599","token_type":"Bearer"}`:   noLifetime,
		`{"access_token":"a","expires_in":null,"token_type":"Bearer"}`:     noLifetime,
		`{"access_token":"a","expires_in":[3599],"token_type":"Bearer"}`:   noLifetime,
		`{"access_token":"a","expires_in":1e999,"token_type":"Bearer"}`:    noLifetime,
		`{"access_token":"a","expires_in":-3599.5,"token_type":"Bearer"}`:  hasExpired,
		`{"access_token":"a b","expires_in":3599.5,"token_type":"Bearer"}`: notVisible,
		`{"access_token":"a","expires_in":3599.5,"token_type":"mac"}`:      notBearer,
		`{"expires_in":3599.5,"token_type":"Bearer"}`:                      noToken,
		`{"access_token":"a"`: notJSON,
	} {
		if got := gceMetadata().wire(fakeSession(opToken, 2)).Explain(0, 200, []byte(body)); got != int(want) {
			t.Errorf("%s: %q, want %q", body, causes()[got], causes()[want])
		}
	}
}

// TestFractionalLifetime: expires_in is a number in JSON, and a server that gives it a fraction is sound.
func TestFractionalLifetime(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Metadata-Flavor") != "Google" || r.Header.Get("X-Forwarded-For") != "" {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/email") {
			_, _ = w.Write([]byte("robot@project.iam.gserviceaccount.com"))
			return
		}
		_, _ = w.Write([]byte(`{"access_token":"ya29.robot","expires_in":3599.5,"token_type":"Bearer"}`))
	}))
	defer srv.Close()
	everyOK(t, callOnce(t, &Spec{Adapter: "gce-metadata", URL: srv.URL}, 3))
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

func TestCheckIdentity(t *testing.T) {
	s := fakeSession(opIdentity, 2)
	w := gceMetadata().wire(s)
	const i = 5 // identity 1
	email := s.emails[1]
	exp := s.clock.Now().Unix()
	claims := func(change map[string]any) map[string]any {
		c := map[string]any{"iss": "x", "sub": "1", "aud": gceFirst + "5", "email": email, "exp": exp + 1}
		for k, v := range change {
			if c[k] = v; v == nil {
				delete(c, k)
			}
		}
		return c
	}
	const rs = `{"alg":"RS256","typ":"JWT"}`
	for _, c := range []struct {
		name, body string
		want       load.Outcome
	}{
		{"good", unsignedJWT(t, rs, claims(nil)), load.OK},
		{"good with a newline", unsignedJWT(t, rs, claims(nil)) + "\n", load.OK},
		{
			"another call's audience", unsignedJWT(t, rs, claims(map[string]any{"aud": gceFirst + "4"})),
			load.Wrong,
		},
		{
			"another run's audience",
			unsignedJWT(t, rs, claims(map[string]any{"aud": strings.Replace(gceFirst, "n1", "n0", 1) + "5"})),
			load.Wrong,
		},
		{"no audience", unsignedJWT(t, rs, claims(map[string]any{"aud": nil})), load.Wrong},
		{"another identity", unsignedJWT(t, rs, claims(map[string]any{"email": s.emails[0]})), load.Wrong},
		{"no identity", unsignedJWT(t, rs, claims(map[string]any{"email": nil})), load.Wrong},
		{"no subject", unsignedJWT(t, rs, claims(map[string]any{"sub": nil})), load.Wrong},
		{"expired", unsignedJWT(t, rs, claims(map[string]any{"exp": exp})), load.Wrong},
		{"no expiry", unsignedJWT(t, rs, claims(map[string]any{"exp": nil})), load.Wrong},
		{"unsigned", unsignedJWT(t, `{"alg":"none"}`, claims(nil)), load.Wrong},
		{"no algorithm", unsignedJWT(t, `{}`, claims(nil)), load.Wrong},
		{"no signature", strings.TrimSuffix(unsignedJWT(t, rs, claims(nil)),
			base64.RawURLEncoding.EncodeToString([]byte("signature"))), load.Wrong},
		{"two parts", "a.b", load.Wrong},
		{"four parts", unsignedJWT(t, rs, claims(nil)) + ".x", load.Wrong},
		{"too large", unsignedJWT(t, rs, claims(map[string]any{"x": strings.Repeat("x", maxClaims)})), load.Wrong},
		{"access token", goodToken, load.Wrong},
		{"nothing", "", load.Wrong},
	} {
		if got := w.Check(i, 200, []byte(c.body)); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// FuzzCheck: no answer makes a checker panic, and encoding/json accepts whatever it accepts.
func FuzzCheck(f *testing.F) {
	f.Add([]byte(goodToken))
	f.Add([]byte(unsignedJWT(f, `{"alg":"RS256"}`, map[string]any{"aud": gceFirst + "0", "exp": 1_900_000_000, "sub": "1", "email": "gsa-127-1-0-1@tare-reference.iam.gserviceaccount.com"})))
	f.Add([]byte("a.b.c"))
	f.Add([]byte(`{"access_token":"x","expires_in":1e9,"token_type":"Bearer"}`))
	token, id := gceMetadata().wire(fakeSession(opToken, 1)), gceMetadata().wire(fakeSession(opIdentity, 1))
	f.Fuzz(func(t *testing.T, b []byte) {
		defer memtest.Bound(t, len(b))()
		if token.Check(0, 200, b) == load.OK {
			var a struct {
				Token   string  `json:"access_token"`
				Expires float64 `json:"expires_in"`
				Type    string  `json:"token_type"`
			}
			if err := json.Unmarshal(b, &a); err != nil && !strings.Contains(err.Error(), "cannot unmarshal") {
				t.Errorf("accepted %q: %v", b, err)
			}
		}
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
		{
			opToken, accountEmail,
			map[string]string{"X-Request-Source": "tare", "Accept": "application/json"},
			[]uint64{0, 1, 2},
		},
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

func TestHotPathDoesNotAllocate(t *testing.T) {
	for _, operation := range []string{opToken, opIdentity} {
		s := fakeSession(operation, 300)
		s.clock = clock.System{}
		w := gceMetadata().wire(s)
		body := realAnswer(t, s)
		buf := make([]byte, 0, 4096)
		var i uint64
		n := testing.AllocsPerRun(1000, func() {
			buf = w.Render(buf[:0], i*300)
			if w.Check(0, 200, body) != load.OK {
				t.Fatal("a good answer is refused")
			}
			i++
		})
		if n != 0 {
			t.Errorf("%s: %v allocations a call", operation, n)
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
