package identity

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/areas/identity/fixture"
	"tare/internal/kit"
	"tare/internal/load"
	"tare/internal/unit"
	"tare/rigs/areatest"
)

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
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, k)
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
		{Namespace: "team", ServiceAccount: "robot"},
		{
			Namespace: "team", ServiceAccount: "robot", Audiences: []string{"vault", "other"},
			Expiration: unit.Duration(10 * time.Minute),
		},
		{Namespace: "team", ServiceAccount: "robot", Audiences: []string{"new-{n}"}},
	} {
		before, _ := k.Counts()
		o.Token = secret("requester")
		everyOK(t, callOnce(t, &Spec{Adapter: "k8s-tokenrequest", URL: k.URL, TLS: trust, K8s: &o}, 5))
		if after, _ := k.Counts(); after-before < 5 {
			t.Errorf("%+v: %d tokens were signed for 5 calls", o, after-before)
		}
	}
}

// TestK8sCallers: each caller uses its own credential, for its own account.
func TestK8sCallers(t *testing.T) {
	k, trust, secret := startKubernetes(t, fixture.Config{})
	everyOK(t, callOnce(t, &Spec{
		Adapter: "k8s-tokenrequest", URL: k.URL, TLS: trust, K8s: &K8s{Namespace: "team", Token: secret("requester")},
		Callers: []Caller{{Name: "robot"}, {Name: "team/cleaner", Token: secret("admin"), Audience: "x"}},
	}, 4))
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
		p := findArm(t, spec)
		o, err := p.call(t.Context(), p.adapter.wire(p.session("test")), 0, 10*time.Second)
		if o != c.want || err == nil || (c.cause != noCause && !strings.Contains(err.Error(), causes()[c.cause])) {
			t.Errorf("%s: %v, %v; want %v", c.name, o, err, c.want)
		}
	}
}

// findArm does the part of Prepare that needs no good answer.
func findArm(t *testing.T, spec *Spec) *arm {
	t.Helper()
	plan, err := spec.plan(standard)
	if err != nil {
		t.Fatal(err)
	}
	p := &arm{plan: plan, env: testEnv(t)}
	if err := p.unlock(); err != nil {
		t.Fatal(err)
	}
	if err := p.find(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestK8sCanaries: an API server that serves strangers is not measured.
func TestK8sCanaries(t *testing.T) {
	k, trust, secret := startKubernetes(t, fixture.Config{})
	for _, adapter := range []string{"k8s-tokenrequest", "k8s-tokenreview"} {
		spec := &Spec{
			Adapter: AdapterName(adapter), URL: k.URL, TLS: trust,
			K8s: &K8s{Namespace: "team", ServiceAccount: "robot", Token: secret("admin")},
		}
		p := findArm(t, spec)
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
		everyOK(t, callOnce(t, &Spec{Adapter: "k8s-tokenreview", URL: k.URL, TLS: trust, K8s: &o}, 5))
		if _, after := k.Counts(); after-before < 5 {
			t.Errorf("%+v: %d reviews for 5 calls", o, after-before)
		}
	}
	spec := &Spec{Adapter: "k8s-tokenreview", URL: k.URL, TLS: trust, K8s: &K8s{Token: secret("admin"), Namespace: "team"}}
	spec.Callers = []Caller{{Token: secret(own)}, {Name: "cleaner"}}
	everyOK(t, callOnce(t, spec, 4))
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
	for _, c := range []struct {
		name  string
		o     K8s
		cause verdict
	}{
		{"expired", K8s{ReviewToken: secret(mint(k.Issuer, now.Add(-2*time.Hour), now.Add(-time.Hour)))}, notAuthenticated},
		{"forged", K8s{ReviewToken: secret(forgedFrom(good))}, notAuthenticated},
		{"another audience", K8s{ReviewToken: secret(mint("vault", now, now.Add(time.Hour)))}, notAuthenticated},
		{"not the one asked for", K8s{ReviewToken: secret(good), Audiences: []string{"vault"}}, notAuthenticated},
	} {
		c.o.Token = secret("admin")
		p := findArm(t, &Spec{Adapter: "k8s-tokenreview", URL: k.URL, TLS: trust, K8s: &c.o})
		o, err := p.call(t.Context(), p.adapter.wire(p.session("test")), 0, 10*time.Second)
		if o != load.Wrong || err == nil || !strings.Contains(err.Error(), causes()[c.cause]) {
			t.Errorf("%s: got %v, %v; want Wrong with %q", c.name, o, err, causes()[c.cause])
		}
	}
	spec := &Spec{Adapter: "k8s-tokenreview", URL: k.URL, TLS: trust, K8s: &K8s{
		Namespace: "team", ServiceAccount: "robot",
		Token: secret("reviewer"),
	}}
	opened, err := Area{}.Open(t.Context(), spec, testEnv(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Prepare(t.Context(), standard, &areatest.Journal{}); err == nil ||
		!strings.Contains(err.Error(), "mint a token to review: status 403") {
		t.Errorf("without the right to mint: %v", err)
	}
	if err := opened.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestK8sOptions(t *testing.T) {
	for _, c := range []struct {
		name string
		spec Spec
		want string
	}{
		{"none", Spec{}, ""},
		{"all", Spec{K8s: &K8s{
			Namespace: "kube-system", ServiceAccount: "a.b-c", Audiences: []string{"x"},
			Expiration: unit.Duration(time.Hour),
		}}, ""},
		{"namespace", Spec{K8s: &K8s{Namespace: "A"}}, "k8s.namespace"},
		{"slash", Spec{K8s: &K8s{Namespace: "a/../b"}}, "k8s.namespace"},
		{"account", Spec{K8s: &K8s{ServiceAccount: "-a"}}, "k8s.service_account"},
		{"short", Spec{K8s: &K8s{Expiration: unit.Duration(599 * time.Second)}}, "k8s.expiration"},
		{"long", Spec{K8s: &K8s{Expiration: unit.Duration(1 << 33 * time.Second)}}, "k8s.expiration"},
		{"parts", Spec{K8s: &K8s{Expiration: unit.Duration(601*time.Second + 1)}}, "k8s.expiration"},
		{"audience", Spec{K8s: &K8s{Audiences: []string{"x", ""}}}, "k8s.audiences"},
		{"caller", Spec{Callers: []Caller{{Name: "a/b"}, {Name: "a/b/c"}}}, "callers"},
	} {
		err := k8sTokenRequest().validate(&c.spec, opToken)
		if (err == nil) != (c.want == "") || (err != nil && !strings.HasPrefix(err.Error(), c.want+": ")) {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
	}
	if err := k8sTokenReview().validate(&Spec{}, opReview); err == nil ||
		!strings.HasPrefix(err.Error(), "k8s.review_token: ") {
		t.Errorf("nothing to review: %v", err)
	}
	if err := k8sTokenReview().validate(&Spec{Callers: []Caller{{Audience: "x"}}}, opReview); err == nil ||
		!strings.HasPrefix(err.Error(), "callers: ") {
		t.Errorf("a caller with nothing to review: %v", err)
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
