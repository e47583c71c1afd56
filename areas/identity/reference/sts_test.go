package reference

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"strings"
	"testing"
	"time"

	"tare/internal/clock"
)

// A testSTS is an STS without a network, on a fake clock.
type testSTS struct {
	t      *testing.T
	sts    *sts
	signer *Signer
	clock  *clock.Fake
}

func newTestSTS(t *testing.T, alg Algorithm, k STSKnobs) *testSTS {
	t.Helper()
	signer, err := NewSigner(alg)
	if err != nil {
		t.Fatal(err)
	}
	public, err := signer.Public()
	if err != nil {
		t.Fatal(err)
	}
	c := clock.NewFake(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	s, err := newSTS(c, STSConfig{TrustedKey: public, STSKnobs: k})
	if err != nil {
		t.Fatal(err)
	}
	return &testSTS{t, s, signer, c}
}

func (d *testSTS) claims() Claims {
	now := d.clock.Now()
	return Claims{
		Issuer: clusterURL, Subject: WorkloadOf(netip.MustParseAddr("127.1.0.1")).Subject(), Audience: Pool,
		IssuedAt: now.Unix(), Expires: now.Add(time.Hour).Unix(),
	}
}

func (d *testSTS) sign(c Claims) string {
	d.t.Helper()
	s, err := d.signer.Sign(c)
	if err != nil {
		d.t.Fatal(err)
	}
	return s
}

// exchangeForm returns a good exchange of token.
func exchangeForm(token string) url.Values {
	return url.Values{
		"grant_type": {grantExchange}, "audience": {audience(Pool)}, "subject_token_type": {typeJWT},
		"subject_token": {token},
	}
}

func (d *testSTS) post(ctx context.Context, path, bearer, kind, body string) (int, string) {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)).WithContext(ctx)
	r.Header.Set("Content-Type", kind)
	if bearer != "" {
		r.Header.Set("Authorization", "Bearer "+bearer)
	}
	w := httptest.NewRecorder()
	d.sts.handler().ServeHTTP(w, r)
	return w.Code, w.Body.String()
}

func (d *testSTS) exchange(f url.Values) (int, string) {
	return d.post(context.Background(), "/v1/token", "", "application/x-www-form-urlencoded", f.Encode())
}

func TestExchange(t *testing.T) {
	for _, alg := range []Algorithm{RS256, ES256} {
		t.Run(string(alg), func(t *testing.T) {
			d := newTestSTS(t, alg, base().STSKnobs)
			good := d.sign(d.claims())
			claims := func(change func(*Claims)) url.Values {
				c := d.claims()
				change(&c)
				return exchangeForm(d.sign(c))
			}
			with := func(name, value string) url.Values {
				f := exchangeForm(good)
				f.Set(name, value)
				return f
			}
			other := newTestSTS(t, alg, base().STSKnobs)
			parts := strings.Split(good, ".")
			flipped := parts[0] + "." + parts[1] + "." + string(parts[2][0]^1) + parts[2][1:]
			swapped := parts[0] + "." + strings.Split(d.sign(Claims{}), ".")[1] + "." + parts[2]
			unsigned := "eyJhbGciOiJub25lIn0." + parts[1] + "." // the attack of RFC 8725, section 2.1
			const kinds = "urn:ietf:params:oauth:token-type:"
			now := d.clock.Now().Unix()
			for _, c := range []struct {
				name   string
				form   url.Values
				status int
				code   string
			}{
				{"good", exchangeForm(good), 200, `"issued_token_type":"urn:ietf:params:oauth:token-type:access_token"`},
				{"no grant", with("grant_type", ""), 400, "unsupported_grant_type"},
				{"another grant", with("grant_type", "client_credentials"), 400, "unsupported_grant_type"},
				{"another kind of token", with("subject_token_type", kinds+"saml2"), 400, "invalid_request"},
				{"asks for a refresh token", with("requested_token_type", kinds+"refresh_token"), 400, "invalid_request"},
				{"no audience", with("audience", ""), 400, "invalid_target"},
				{"another provider", with("audience", "identitynamespace:"+Pool+":https://a.invalid"), 400, "invalid_target"},
				{"another pool than the token's", with("audience", audience("other.svc.id.goog")), 400, "for another audience"},
				{"no token", with("subject_token", ""), 400, "not a compact JWS"},
				{"not a token", with("subject_token", "a.b.c"), 400, "invalid_request"},
				{"signature changed", with("subject_token", flipped), 400, "signature"},
				{"claims of another token", with("subject_token", swapped), 400, "does not match the trusted key"},
				{"another's signature", with("subject_token", other.sign(d.claims())), 400, "does not match the trusted key"},
				{"unsigned", with("subject_token", unsigned), 400, "signature"},
				{"expired", claims(func(c *Claims) { c.Expires = now }), 400, "expired"},
				{"from the future", claims(func(c *Claims) { c.IssuedAt = now + 120 }), 400, "in the future"},
				{"from a clock that is ahead", claims(func(c *Claims) { c.IssuedAt = now + 30 }), 200, ""},
				{"wrong audience", claims(func(c *Claims) { c.Audience = "https://k8s.svc" }), 400, "for another audience"},
				{"wrong issuer", claims(func(c *Claims) { c.Issuer = "https://elsewhere.invalid" }), 400, "unknown issuer"},
			} {
				status, body := d.exchange(c.form)
				if status != c.status || !strings.Contains(body, c.code) {
					t.Errorf("%s: %d %s, want %d with %q", c.name, status, body, c.status, c.code)
				}
				if status != 200 && strings.Contains(body, parts[2]) {
					t.Errorf("%s: the error quotes the token", c.name)
				}
			}
		})
	}
}

// TestImpersonation follows a federated token to access and identity tokens.
func TestImpersonation(t *testing.T) {
	d := newTestSTS(t, ES256, base().STSKnobs)
	w := WorkloadOf(netip.MustParseAddr("127.1.0.1"))
	federated, err := d.sts.sealed("ya29.d.", bearer{Subject: w.Subject(), Expires: d.clock.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	access, err := d.sts.sealed("ya29.c.", bearer{Email: w.Email, Expires: d.clock.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	const path = "/v1/projects/-/serviceAccounts/"
	for _, c := range []struct {
		name, path, bearer, body string
		status                   int
		has                      string
	}{
		{"access token", path + w.Email + ":generateAccessToken", federated, `{}`, 200, `"expireTime":"2026-01-02T04:04:05Z"`},
		{"identity token", path + w.Email + ":generateIdToken", federated, `{"audience":"a","includeEmail":true}`, 200, `"token":"eyJ`},
		{"identity token for nobody", path + w.Email + ":generateIdToken", federated, `{}`, 400, "INVALID_ARGUMENT"},
		{"another method", path + w.Email + ":signBlob", federated, `{}`, 404, "NOT_FOUND"},
		{"no token", path + w.Email + ":generateAccessToken", "", `{}`, 401, "UNAUTHENTICATED"},
		{"an access token instead", path + w.Email + ":generateAccessToken", access, `{}`, 401, "UNAUTHENTICATED"},
		{"a changed token", path + w.Email + ":generateAccessToken", federated[:len(federated)-2] + "AA", `{}`, 401, "UNAUTHENTICATED"},
		{"somebody else's account", path + "gsa-127-1-0-2" + emailDomain + ":generateAccessToken", federated, `{}`, 403, "PERMISSION_DENIED"},
	} {
		status, body := d.post(context.Background(), c.path, c.bearer, "application/json", c.body)
		if status != c.status || !strings.Contains(body, c.has) {
			t.Errorf("%s: %d %s, want %d with %q", c.name, status, body, c.status, c.has)
		}
	}
	if b, ok := d.sts.unsealed("ya29.c.", access); !ok || b.Email != w.Email {
		t.Errorf("a sealed token reads as %+v, %v", b, ok)
	}
	d.clock.Advance(time.Hour)
	if _, ok := d.sts.unsealed("ya29.c.", access); ok {
		t.Error("an expired token is good")
	}
}

// TestQuota offers twice the quota for ten seconds of the test's clock.
func TestQuota(t *testing.T) {
	const rate, burst, offered, seconds = 20, 50, 40, 10
	for _, mode := range []Mode{Reject, Tarpit} {
		k := base().STSKnobs
		k.QuotaRate, k.QuotaBurst, k.QuotaMode = rate, burst, mode
		d := newTestSTS(t, ES256, k)
		good := 0
		for range offered * seconds {
			// A request whose client has left at once ends also when it is never answered.
			ctx, cancel := context.WithCancel(context.Background())
			if mode == Tarpit {
				cancel()
			}
			c := d.claims()
			status, body := d.post(ctx, "/v1/token", "", "application/x-www-form-urlencoded", exchangeForm(d.sign(c)).Encode())
			cancel()
			switch {
			case status == 429 && mode == Reject && strings.Contains(body, "RESOURCE_EXHAUSTED"):
			case mode == Tarpit && body == "":
			case status == 200 && body != "":
				good++
			default:
				t.Fatalf("mode %s: unexpected status %d: %s", mode, status, body)
			}
			d.clock.Advance(time.Second / offered)
		}
		// A tarpit's clients leave before even a good answer is sent: count what the server allowed.
		if mode == Tarpit {
			good = offered*seconds - int(d.sts.overQuota.Load())
		}
		if want := burst + rate*seconds; good < want-1 || good > want+1 {
			t.Errorf("%s: %d of %d passed, want %d", mode, good, offered*seconds, want)
		}
	}
}

func TestQueueLendsTokens(t *testing.T) {
	now := time.Unix(0, 0)
	b := newBucket(STSKnobs{QuotaRate: 20, QuotaBurst: 2, QuotaMode: Queue}, now)
	want := []time.Duration{0, 0, 50 * time.Millisecond, 100 * time.Millisecond, 150 * time.Millisecond}
	for i, w := range want {
		if got, ok := b.take(now); !ok || got != w {
			t.Errorf("exchange %d waits %v (%v), want %v", i, got, ok, w)
		}
	}
	now = now.Add(time.Second) // pays back three tokens, and fills up to the burst
	for i, w := range []time.Duration{0, 0, 50 * time.Millisecond} {
		if got, ok := b.take(now); !ok || got != w {
			t.Errorf("a second later, exchange %d waits %v (%v), want %v", i, got, ok, w)
		}
	}
}

// TestPoolsHaveTheirOwnQuota: canaries do not use up the quota that is measured.
func TestPoolsHaveTheirOwnQuota(t *testing.T) {
	k := base().STSKnobs
	k.QuotaRate, k.QuotaBurst, k.QuotaMode = 0.001, 1, Reject
	d := newTestSTS(t, ES256, k)
	for _, pool := range []string{"a.svc.id.goog", "b.svc.id.goog"} {
		for i, want := range []int{200, 429} {
			c := d.claims()
			c.Audience = pool
			f := exchangeForm(d.sign(c))
			f.Set("audience", audience(pool))
			if status, body := d.exchange(f); status != want {
				t.Errorf("%s, exchange %d: %d %s, want %d", pool, i, status, body, want)
			}
		}
	}
}

func TestEndpointPassesQuotaOn(t *testing.T) {
	k, _ := Preset("sts-quota-reject")
	k.QuotaRate, k.QuotaBurst = 0.001, 2
	p := start(t, k)
	for i, want := range []int{200, 200, 429} {
		if status, body := p.get(accountsPath + "default/token"); status != want {
			t.Errorf("request %d: %d %s, want %d", i, status, body, want)
		}
	}
	if c := readCounters(t, p.end.Admin); c.OverQuota != 1 {
		t.Errorf("the endpoint counts %d over quota", c.OverQuota)
	}
}

func TestTarpitNeverAnswers(t *testing.T) {
	k, _ := Preset("sts-quota-tarpit")
	k.QuotaRate, k.QuotaBurst = 0.001, 1
	p := start(t, k)
	x := NewExchanger("http://"+p.sts.Addr, p.signer, 0, clock.System{})
	defer x.Close()
	w := WorkloadOf(netip.MustParseAddr("127.1.0.1"))
	if _, err := x.Federate(t.Context(), w, Pool); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := x.Federate(ctx, w, Pool); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("over quota: %v, want no answer", err)
	}
}
