package identity

import (
	"context"
	"encoding/json"
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/areas/identity/fixture"
	"tare/internal/kit"
	"tare/internal/kit/oneshot"
	"tare/internal/load"
	"tare/internal/unit"
	"tare/rigs/hosttest"
)

func startIMDSv2(t *testing.T, c fixture.Config, role string) *fixture.IMDSv2 {
	t.Helper()
	m, err := fixture.StartIMDSv2(c, role)
	return started(t, m, err)
}

func TestIMDSv2(t *testing.T) {
	for _, operation := range []OperationName{"", opCredentials, opSession} {
		m := startIMDSv2(t, fixture.Config{}, "node")
		served(t, &Spec{Adapter: "imdsv2", URL: m.URL, Operation: operation}, 5)
		if n := m.Sessions(); n != 1 && operation != opSession || n < 5 && operation == opSession {
			t.Errorf("%q: %d session tokens for 5 calls, want one that is kept, or of session one for each", operation, n)
		}
	}
}

// TestIMDSv2Role: a role that the file names is not requested from the service.
func TestIMDSv2Role(t *testing.T) {
	m := startIMDSv2(t, fixture.Config{}, "node")
	served(t, &Spec{Adapter: "imdsv2", URL: m.URL, IMDS: &IMDS{Role: "node", TTL: unit.Duration(time.Minute)}}, 1)
	if err := unprepared(t, &Spec{Adapter: "imdsv2", URL: m.URL, IMDS: &IMDS{Role: "other"}}); !strings.Contains(
		err.Error(), causes()[notActive]) {
		t.Errorf("another role: %v", err)
	}
}

// TestIMDSv2Renewal: a session token that is about to end is replaced, and later requests use the new one.
func TestIMDSv2Renewal(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	m := startIMDSv2(t, fixture.Config{}, "node")
	tg, _ := prepared(t, &Spec{Adapter: "imdsv2", URL: m.URL, IMDS: &IMDS{TTL: unit.Duration(2 * time.Second)}}, standard)
	until := time.Now().Add(20 * time.Second)
	for m.Sessions() < 3 && time.Now().Before(until) {
		wantGoodCalls(t, tg, 1)
		time.Sleep(50 * time.Millisecond)
	}
	if n := m.Sessions(); n < 3 {
		t.Errorf("%d session tokens in 20 s, with a life of 2 s", n)
	}
}

// TestIMDSv2ExpiredSession: calls report that the service no longer knows the session.
func TestIMDSv2ExpiredSession(t *testing.T) {
	m := startIMDSv2(t, fixture.Config{}, "node")
	tg, _ := prepared(t, &Spec{Adapter: "imdsv2", URL: m.URL}, standard)
	m.Forget()
	if out, why := calls(t, tg, 1); out[0] != load.Wrong || !strings.Contains(why[0], causes()[leaseRefused]) {
		t.Errorf("got %v, %q; want Wrong because the session is unknown", out, why)
	}
}

func TestIMDSv2Login(t *testing.T) {
	for _, c := range []struct {
		name, role string
		faults     fixture.Faults
		want       string
	}{
		{"no role", "", fixture.Faults{}, "it has none"},
		{"no session", "node", fixture.Faults{Every: 1, Status: 403}, "ask for a session token: status 403"},
		{"no list", "node", fixture.Faults{Every: 2, Status: 500}, "ask for the instance's role: status 500"},
	} {
		m := startIMDSv2(t, fixture.Config{Faults: c.faults}, c.role)
		s := fakeSession(opCredentials, 1)
		s.host = strings.TrimPrefix(m.URL, "http://")
		_, err := imdsv2().login(t.Context(), s, 0, doerFor(t, m.URL))
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", c.name, err, c.want)
		}
	}
	m := startIMDSv2(t, fixture.Config{}, "node")
	s := fakeSession(opCredentials, 1)
	s.spec = &Spec{IMDS: &IMDS{TTL: unit.Duration(90 * time.Second)}}
	l, err := imdsv2().login(t.Context(), s, 0, doerFor(t, m.URL))
	if err != nil || l.lives != 90*time.Second || !strings.HasSuffix(l.value, " node") {
		t.Errorf("a lease for %v, %v", l.lives, err)
	}
}

// doerFor makes requests to a plain server.
func doerFor(t *testing.T, url string) doer {
	t.Helper()
	addr, err := netip.ParseAddrPort(strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, _ int, request []byte) (oneshot.Answer, error) {
		return oneshot.Client{Addr: addr}.Do(ctx, request, 10*time.Second)
	}
}

func TestTimestamp(t *testing.T) {
	for want, texts := range map[int64][]string{
		1_800_000_000: {
			"2027-01-15T08:00:00Z", "2027-01-15t08:00:00z", "2027-01-15T08:00:00.123456Z", "2027-01-15T10:30:00+02:30",
			"2027-01-15T05:30:00-02:30",
		},
		0:             {"1970-01-01T00:00:00Z"},
		1_709_164_800: {"2024-02-29T00:00:00Z"},
		-1: { // none
			"2023-02-29T00:00:00Z", "2027-13-15T08:00:00Z", "2027-01-15T24:00:00Z", "2027-01-15T08:60:00Z",
			"2027-01-15T08:00:00", "2027-01-15T08:00:00.Z", "2027-01-15T08:00:00Zx", "2027-01-15T08:00:00+0230",
			"2027-01-15T08:00:00+24:00", "2027-01-15 08:00:00Z", "2027\r01-15T08:00:00Z", "1800000000", "",
		},
	} {
		for _, text := range texts {
			if got, ok := timestamp([]byte(text)); ok != (want >= 0) || ok && got != want {
				t.Errorf("%q: %d %v, want %d", text, got, ok, want)
			}
		}
	}
}

// FuzzTimestamp: package time reads every accepted timestamp as the same instant.
func FuzzTimestamp(f *testing.F) {
	for _, s := range []string{
		"2027-01-15T08:00:00Z", "2027-01-15T10:30:00.5+02:30", "0000-01-01T00:00:00Z",
		"2024-02-30T00:00:00Z", "0000\r01-01T00:00:00Z",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := timestamp([]byte(s))
		want, err := time.Parse(time.RFC3339, strings.ToUpper(s))
		if ok && (err != nil || want.Unix() != got) {
			t.Errorf("%q: %d, package time says %v, %v", s, got, want.Unix(), err)
		}
	})
}

func startAzure(t *testing.T) *fixture.AzureIMDS {
	t.Helper()
	a, err := fixture.StartAzureIMDS(fixture.Config{})
	return started(t, a, err)
}

// TestAzureIMDS reads the numbers as the service and as emulators write them, from the cache and around it.
func TestAzureIMDS(t *testing.T) {
	for _, numeric := range []bool{false, true} {
		a := startAzure(t)
		a.NumericExpiry = numeric
		served(t, &Spec{Adapter: "azure-imds", URL: a.URL}, 5)
		if n := a.Mints(); n != 1 {
			t.Errorf("token: %d tokens were signed, want 1", n)
		}
		served(t, &Spec{Adapter: "azure-imds", URL: a.URL, Operation: opFresh}, 5)
		if n := a.Mints(); n < 6 {
			t.Errorf("fresh: %d tokens were signed, want one for each call", n)
		}
	}
}

// TestAzureIdentities: each caller gets the token of its own identity, for its own resource.
func TestAzureIdentities(t *testing.T) {
	a := startAzure(t)
	served(t, &Spec{
		Adapter: "azure-imds", URL: a.URL, Azure: &Azure{Resource: "https://vault.azure.net"},
		Callers: []Caller{{Name: "one"}, {Name: "two", Audience: "https://storage.azure.com/?a=b&c"}},
	}, 4)
	if n := a.Mints(); n != 2 {
		t.Errorf("%d tokens were signed, want 2", n)
	}
}

// TestAzureTransientErrors: errors that Azure documents as transient are retried before the load, and counted as
// transient during it.
func TestAzureTransientErrors(t *testing.T) {
	for _, c := range []struct {
		faults fixture.Faults
		want   load.Outcome
		cause  verdict
	}{
		{fixture.Faults{Every: 1, Status: 404}, load.Failed, temporarilyUnavailable},
		{fixture.Faults{Every: 1, Status: 410}, load.Failed, temporarilyUnavailable},
		{fixture.Faults{Every: 1, Status: 500}, load.Failed, noCause},
		{fixture.Faults{Every: 1, Status: 503}, load.Refused, temporarilyUnavailable},
		{fixture.Faults{Refuse: true}, load.Refused, slowDown},
		{fixture.Faults{Every: 1, Status: 403}, load.Wrong, credentialRefused},
	} {
		a := startAzure(t)
		tg, _ := prepared(t, &Spec{Adapter: "azure-imds", URL: a.URL}, standard)
		a.Turn(c.faults)
		out, why := calls(t, tg, 1)
		if out[0] != c.want || c.cause != noCause && !strings.Contains(why[0], causes()[c.cause]) {
			t.Errorf("%+v: %v, %q; want %v", c.faults, out, why, c.want)
		}
	}
	a := startAzure(t)
	a.Turn(fixture.Faults{Every: 1, Status: 410})
	go func() { // the update ends
		for a.Calls() < 2 {
			time.Sleep(10 * time.Millisecond)
		}
		a.Turn(fixture.Faults{})
	}()
	prepared(t, &Spec{Adapter: "azure-imds", URL: a.URL}, standard)
	if n := a.Calls(); n < 3 {
		t.Errorf("%d calls: the transient error was not retried", n)
	}
}

func TestAzureRequest(t *testing.T) {
	s := fakeSession(opFresh, 1)
	s.spec = &Spec{Azure: &Azure{Resource: "https://a/?b=c&d", ClientID: "x&y"}}
	const want = "GET /metadata/identity/oauth2/token?api-version=2018-02-01" +
		"&resource=https%3A%2F%2Fa%2F%3Fb%3Dc%26d&client_id=x%26y&bypass_cache=true HTTP/1.1\r\n"
	if got := string(azureIMDS().wire(s).Render(nil, 0)); !strings.HasPrefix(got, want) ||
		!strings.Contains(got, "\r\nMetadata: true\r\n") {
		t.Errorf("request %q", got)
	}
}

// startKubernetes starts an API server over HTTPS. The callers' tokens are in files, and so is its authority.
func startKubernetes(t *testing.T, c fixture.Config) (k *fixture.Kubernetes, trust *kit.TLS,
	secret func(string) area.Secret,
) {
	t.Helper()
	c.TLS = true
	both := []string{"tokenrequests", "tokenreviews"}
	k, err := fixture.StartKubernetes(c, map[string]fixture.Caller{
		"admin": {User: "admin", May: both}, "requester": {User: "requester", May: both[:1]},
		"reviewer": {User: "reviewer", May: both[1:]},
	}, "team/robot", "team/cleaner")
	started(t, k, err)
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secrets := 0
	return k, &kit.TLS{CA: file("ca.pem", string(k.CA))}, func(text string) area.Secret {
		secrets++
		return area.Secret{File: file("secret-"+string(rune('a'+secrets)), text+"\n")}
	}
}

func TestK8sTokenRequest(t *testing.T) {
	k, trust, secret := startKubernetes(t, fixture.Config{})
	for _, o := range []K8s{
		{},
		{Audiences: []string{"vault", "other"}, Expiration: unit.Duration(10 * time.Minute)},
		{Audiences: []string{"new-{n}"}},
	} {
		before, _ := k.Counts()
		o.Namespace, o.ServiceAccount, o.Token = "team", "robot", secret("requester")
		served(t, &Spec{Adapter: "k8s-tokenrequest", URL: k.URL, TLS: trust, K8s: &o}, 5)
		if after, _ := k.Counts(); after-before < 5 {
			t.Errorf("%+v: %d tokens were signed for 5 calls", o, after-before)
		}
	}
	// Each caller uses its own credential, for its own account.
	served(t, &Spec{
		Adapter: "k8s-tokenrequest", URL: k.URL, TLS: trust, K8s: &K8s{Namespace: "team", Token: secret("requester")},
		Callers: []Caller{{Name: "robot"}, {Name: "team/cleaner", Token: secret("admin"), Audience: "x"}},
	}, 4)
}

// TestK8sDenied: what the API server refuses is Wrong, with its reason.
func TestK8sDenied(t *testing.T) {
	for _, c := range []struct {
		name, token, account string
		faults               fixture.Faults
		want                 load.Outcome
		cause                verdict
	}{
		{"unknown", "nobody", "robot", fixture.Faults{}, load.Wrong, credentialRefused},
		{"without the right", "reviewer", "robot", fixture.Faults{}, load.Wrong, credentialRefused},
		{"no such account", "admin", "absent", fixture.Faults{}, load.Wrong, notActive},
		{"over its limit", "admin", "robot", fixture.Faults{Refuse: true}, load.Refused, slowDown},
		{"starting", "admin", "robot", fixture.Faults{Every: 1, Status: 503}, load.Refused, temporarilyUnavailable},
		{"broken", "admin", "robot", fixture.Faults{Every: 1}, load.Failed, noCause},
		{"another answer", "admin", "robot", fixture.Faults{Every: 1, Status: 200}, load.Wrong, noCause},
	} {
		k, trust, secret := startKubernetes(t, fixture.Config{Faults: c.faults})
		spec := &Spec{
			Adapter: "k8s-tokenrequest", URL: k.URL, TLS: trust,
			K8s: &K8s{Namespace: "team", ServiceAccount: c.account, Token: secret(c.token)},
		}
		_, o, why := askUnprepared(t, spec)
		if o != c.want || why == "" || (c.cause != noCause && !strings.Contains(why, causes()[c.cause])) {
			t.Errorf("%s: %v, %q; want %v", c.name, o, why, c.want)
		}
	}
}

// askUnprepared makes one call without what Prepare does with a good answer.
func askUnprepared(t *testing.T, spec *Spec) (*arm, load.Outcome, string) {
	t.Helper()
	plan, err := spec.plan(standard)
	if err != nil {
		t.Fatal(err)
	}
	p := &arm{plan: plan, env: testEnv(t)}
	if err := errors.Join(p.unlock(), p.find(t.Context())); err != nil {
		t.Fatal(err)
	}
	o, err := p.call(t.Context(), p.adapter.wire(p.session("test")), 0, 10*time.Second)
	if err == nil {
		return p, o, ""
	}
	return p, o, err.Error()
}

// TestK8sCanaries: an API server that serves strangers is not measured.
func TestK8sCanaries(t *testing.T) {
	k, trust, secret := startKubernetes(t, fixture.Config{})
	for _, adapter := range []string{"k8s-tokenrequest", "k8s-tokenreview"} {
		spec := &Spec{
			Adapter: AdapterName(adapter), URL: k.URL, TLS: trust,
			K8s: &K8s{Namespace: "team", ServiceAccount: "robot", Token: secret("admin")},
		}
		p, _, _ := askUnprepared(t, spec)
		refusals := p.adapter.canaries(p.session("test"))
		if len(refusals) < 2 {
			t.Errorf("%s: %d canaries", adapter, len(refusals))
		}
		for _, c := range refusals {
			got, err := p.client(0).Do(t.Context(), c.request(0), 10*time.Second)
			if err != nil || !c.wasRefused(got.Status, got.Body) {
				t.Errorf("%s: %s was not refused: status %d, %v", adapter, c.name, got.Status, err)
			}
			if c.wasRefused(201, []byte(`{"kind":"TokenReview","status":{"authenticated":true,"user":{"username":"x"}}}`)) || c.wasRefused(500, nil) {
				t.Errorf("%s: %s: a good answer or an error passes for a refusal", adapter, c.name)
			}
		}
	}
}

// TestK8sTokenReview reviews a given token, the caller's own, and one that is minted for it.
func TestK8sTokenReview(t *testing.T) {
	k, trust, secret := startKubernetes(t, fixture.Config{})
	now := time.Now()
	own, err := k.Mint("team/robot", []string{k.Issuer}, now, now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := k.Mint("team/cleaner", []string{"vault"}, now, now.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range []K8s{
		{ReviewToken: secret(own)},
		{ReviewToken: secret(foreign), Audiences: []string{"vault"}},
		{ReviewToken: secret(foreign), Audiences: []string{"vault", "tare-{n}"}},
		{Namespace: "team", ServiceAccount: "robot"},
		{Namespace: "team", ServiceAccount: "robot", Audiences: []string{"vault", "tare-{n}"}},
	} {
		o.Token = secret("admin")
		_, before := k.Counts()
		served(t, &Spec{Adapter: "k8s-tokenreview", URL: k.URL, TLS: trust, K8s: &o}, 5)
		if _, after := k.Counts(); after-before < 5 {
			t.Errorf("%+v: %d reviews for 5 calls", o, after-before)
		}
	}
	spec := &Spec{Adapter: "k8s-tokenreview", URL: k.URL, TLS: trust, K8s: &K8s{Token: secret("admin"), Namespace: "team"}}
	spec.Callers = []Caller{{Token: secret(own)}, {Name: "cleaner"}}
	served(t, spec, 4)
}

// TestK8sReviewFailures: a review of a bad token, or of one for another audience, is not a success.
func TestK8sReviewFailures(t *testing.T) {
	k, trust, secret := startKubernetes(t, fixture.Config{})
	now := time.Now()
	mint := func(audience string, from, until time.Time) string {
		token, err := k.Mint("team/robot", []string{audience}, from, until)
		if err != nil {
			t.Fatal(err)
		}
		return token
	}
	good := mint(k.Issuer, now, now.Add(time.Hour))
	for name, o := range map[string]K8s{
		"expired":               {ReviewToken: secret(mint(k.Issuer, now.Add(-2*time.Hour), now.Add(-time.Hour)))},
		"forged":                {ReviewToken: secret(forgedFrom(good))},
		"another audience":      {ReviewToken: secret(mint("vault", now, now.Add(time.Hour)))},
		"not the one asked for": {ReviewToken: secret(good), Audiences: []string{"vault"}},
	} {
		o.Token = secret("admin")
		_, outcome, why := askUnprepared(t, &Spec{Adapter: "k8s-tokenreview", URL: k.URL, TLS: trust, K8s: &o})
		if outcome != load.Wrong || !strings.Contains(why, causes()[notAuthenticated]) {
			t.Errorf("%s: got %v, %q; want Wrong with %q", name, outcome, why, causes()[notAuthenticated])
		}
	}
	err := unprepared(t, &Spec{Adapter: "k8s-tokenreview", URL: k.URL, TLS: trust, K8s: &K8s{
		Namespace: "team", ServiceAccount: "robot", Token: secret("reviewer"),
	}})
	if !strings.Contains(err.Error(), "mint a token to review: status 403") {
		t.Errorf("without the right to mint: %v", err)
	}
}

// TestK8sRequestBodies checks the bodies that are sent.
func TestK8sRequestBodies(t *testing.T) {
	s := fakeSession(opToken, 1)
	s.base = "/clusters/a"
	s.spec = &Spec{K8s: &K8s{Namespace: "team", ServiceAccount: "robot", Audiences: []string{`"a<b`, "n-{n}"}}}
	w := k8sTokenRequest().wire(s)
	var audiences []string
	for i := range uint64(3) {
		head, body, _ := strings.Cut(string(w.Render(nil, i)), "\r\n\r\n")
		if !strings.HasPrefix(head, "POST /clusters/a/api/v1/namespaces/team/serviceaccounts/robot/token HTTP/1.1\r\n") ||
			strings.Contains(head, "Authorization") {
			t.Errorf("head %q", head)
		}
		var got struct {
			Kind string
			Spec struct {
				Audiences         []string
				ExpirationSeconds int64
			}
		}
		if err := json.Unmarshal([]byte(body), &got); err != nil || got.Kind != "TokenRequest" || got.Spec.ExpirationSeconds != 3600 || got.Spec.Audiences[0] != `"a<b` {
			t.Errorf("body %s: %v", body, err)
		}
		audiences = append(audiences, got.Spec.Audiences[1])
	}
	slices.Sort(audiences)
	if n := len(slices.Compact(audiences)); n != 3 {
		t.Errorf("%d audiences in 3 calls", n)
	}
}
