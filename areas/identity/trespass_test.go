package identity

import (
	"bytes"
	"net/http"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"tare/internal/load"
)

// TestTrespassesOfEveryAdapter: a token is a breach, a refusal is one, and nothing else decides anything.
func TestTrespassesOfEveryAdapter(t *testing.T) {
	for _, v := range wireCases() {
		if v.operation == opSession {
			continue // TestNoTrespass
		}
		a, err := findAdapter(v.adapter)
		if err != nil {
			t.Fatal(err)
		}
		s := v.session()
		offered := 0
		for _, c := range a.canaries(s) {
			if c.alone != "" {
				continue
			}
			offered++
			w := a.trespass(s, c)
			name := v.adapter + ", " + v.operation + ", " + c.name
			if key, same := w.legitimate(a.operation(v.operation), s); same {
				t.Errorf("%s: identity %d makes the allowed request", name, key)
			}
			wantOutcome(t, w, name+", a token", v.status, v.answer(v.goodParts(t)), load.Permitted)
			for status, want := range map[int]load.Outcome{
				301: load.Wrong, 408: load.Wrong, 429: load.Refused, 500: load.Failed, 502: load.Failed, 503: load.Refused,
			} {
				wantOutcome(t, w, name, status, "no", want)
			}
			for _, body := range []string{"", "{}", "<html>sign in</html>", "null", `{"error":"access_denied"}`} {
				wantOutcome(t, w, name+", "+body, v.status, body, load.Wrong)
			}
			for _, status := range c.statuses {
				if want := load.Denied; status < 500 && v.outcomes[status] == 0 {
					wantOutcome(t, w, name, status, "no", want)
				}
			}
		}
		if offered == 0 {
			t.Errorf("%s, %s: no trespass", v.adapter, v.operation)
		}
	}
}

// TestRefusalsThatAreNone: an answer that means that the service is busy is no refusal, whatever its status.
func TestRefusalsThatAreNone(t *testing.T) {
	for _, c := range []struct {
		adapter, operation, body string
		status                   int
		want                     load.Outcome
	}{
		{"sts-web-identity", opCredentials, stsError("Throttling"), 400, load.Refused},
		{"sts-web-identity", opCredentials, stsError("InvalidIdentityToken"), 400, load.Denied},
		{"oidc-token", opToken, `{"error":"temporarily_unavailable"}`, 400, load.Refused},
		{"oidc-token", opToken, `{"error":"invalid_client"}`, 401, load.Denied},
		{"vault-login", "login", "", 500, load.Failed},
		{"k8s-tokenreview", opReview, `{"kind":"TokenReview","status":{"authenticated":false}}`, 201, load.Denied},
		{
			"k8s-tokenreview", opReview, `{"kind":"TokenReview","status":{"authenticated":true,"user":{"username":"x"}}}`, 201,
			load.Permitted,
		},
	} {
		for _, v := range wireCases() {
			if v.adapter == c.adapter && v.operation == c.operation {
				a, _ := findAdapter(c.adapter)
				s := v.session()
				wantOutcome(t, a.trespass(s, a.canaries(s)[0]), c.adapter, c.status, c.body, c.want)
			}
		}
	}
}

// door is a server that lets in who has the key, or with a fault, now and then, others too.
type door struct {
	every int64 // of the requests without a key, one is let in; 0: none
	asked atomic.Int64
	let   atomic.Int64
}

func (d *door) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.URL.Path == "/" && r.Header.Get("Authorization") == "Bearer "+planted:
	case d.every > 0 && d.asked.Add(1)%d.every == 0:
		d.let.Add(1)
	default:
		w.WriteHeader(http.StatusForbidden)
		return
	}
	_, _ = w.Write([]byte(`{"access_token":"t","expires_in":60}`))
}

// TestPlantedDoor: a door that lets strangers in is found, each time that it does, and a sound one is not charged.
func TestPlantedDoor(t *testing.T) {
	for _, every := range []int64{0, 7, 100} {
		d := &door{}
		spec := &Spec{
			Adapter: "http-token", URL: serve(t, d), HTTP: &HTTP{Bearer: secretFile(t, "key", planted)},
			Trespass: []Trespass{
				{Name: "without it", Without: []string{"Authorization"}},
				{Name: "the vault", Path: "/vault", Refused: []int{403}},
				{Name: "somebody else's", Token: secretFile(t, "other", "somebody-else")},
			},
		}
		tg, _ := prepared(t, spec, standard)
		if err := tg.Verify(t.Context(), standard); err != nil {
			t.Fatal(err)
		}
		d.every = every
		twins, err := tg.Trespasses(standard)
		if err != nil {
			t.Fatal(err)
		}
		if len(twins) != 5 {
			t.Errorf("%d trespasses, want 5", len(twins))
		}
		n := map[load.Outcome]int64{}
		for _, op := range twins {
			for i := range uint64(100) {
				outcome, _, _ := tg.arm("default").answer(t.Context(), op.Wire, i, callTimeout)
				n[outcome]++
			}
			request, answer := op.Describe(0, 200, []byte(`{"access_token":"`+planted+`"}`))
			if !strings.HasPrefix(request, "GET /") || answer == "" || strings.Contains(request+answer, planted) {
				t.Errorf("%s: described as %q, %q", op.Name, request, answer)
			}
		}
		if n[load.Permitted] != d.let.Load() || n[load.Denied] != 500-d.let.Load() || every > 0 && d.let.Load() == 0 {
			t.Errorf("one in %d: %v, let in %d of 500", every, n, d.let.Load())
		}
	}
}

// TestTrespassIsNotTheAllowed: an entry that changes nothing is found before the load.
func TestTrespassIsNotTheAllowed(t *testing.T) {
	spec := &Spec{
		Adapter: "http-token", URL: serve(t, &door{}), HTTP: &HTTP{Bearer: secretFile(t, "key", planted)},
		Trespass: []Trespass{{Name: "the same", Path: "/"}},
	}
	tg, _ := prepared(t, spec, standard)
	if _, err := tg.Trespasses(standard); err == nil || !strings.Contains(err.Error(), "very request that is allowed") {
		t.Errorf("got %v", err)
	}
}

// TestGCETwinsAreAlike: twins differ from the allowed request in what must be refused only.
func TestGCETwinsAreAlike(t *testing.T) {
	for _, operation := range []string{opToken, opIdentity} {
		s := fakeSession(operation, 3)
		s.spec = &Spec{Trespass: []Trespass{{Name: "x", Headers: map[string]string{"Via": "y"}}}}
		legit := gceMetadata().wire(s)
		for _, c := range append(gceCanaries(s), s.spec.Trespass[0].canary(gceMetadata(), s)) {
			for i := range uint64(6) {
				want, got := legit.Render(nil, i), gceMetadata().trespass(s, c).Render(nil, i)
				if a, b := bytes.Fields(want)[1], bytes.Fields(got)[1]; !bytes.Equal(a, b) {
					t.Errorf("%s: path %s, want %s", c.name, b, a)
				}
			}
		}
	}
}

// TestReplacedHeadersKeepTheirPlace: what an entry replaces stands where it stood, and a made-up secret is as long as
// the real one, so that neither order nor size tells a trespass.
func TestReplacedHeadersKeepTheirPlace(t *testing.T) {
	x := Trespass{
		Without: []string{"x-old", "X-Key"}, Headers: map[string]string{"x-key": "other", "X-New": "1"},
	}
	request := "GET /a:b HTTP/1.1\r\nHost: h\r\nX-Key: mine\r\nX-Old: 1\r\nAccept: a\r\n\r\nbody"
	got := string(x.replaceHeaders([]byte(request), session{}))
	want := "GET /a:b HTTP/1.1\r\nHost: h\r\nx-key: other\r\nAccept: a\r\nX-New: 1\r\n\r\nbody"
	if got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestForgeriesLookLikeSecrets: as long, of the same alphabet, with the same marks in the same places, and the same one
// each time.
func TestForgeriesLookLikeSecrets(t *testing.T) {
	for secret, form := range map[string]string{
		"tok-app-1": `^[tokap]{3}-[tokap]{3}-1$`, "0123456789abcdef": `^[0-9]{10}[a-f]{6}$`,
		"ghp_A1b2C3d4E5": `^[ghpbd]{3}_[ACE][1-5][bdghp][1-5][ACE][1-5][bdghp][1-5][ACE][1-5]$`, "xxxxxxxxxxxx": `^A{12}$`,
		"AAAAAAAAAAAA": `^B{12}$`, "a.b.QWERTYUIOP": `^a\.b\.[QWERTYUIO]{9}P$`,
	} {
		forged := forgedSecret(secret)
		if len(forged) != len(secret) || forged == secret || !regexp.MustCompile(form).MatchString(forged) {
			t.Errorf("%q for %q, want the form %s", forged, secret, form)
		}
		if again := forgedSecret(secret); again != forged {
			t.Errorf("%q and then %q for %q", forged, again, secret)
		}
	}
	for _, token := range []string{"", "no dots", "a.b.", "a.b.x"} {
		if got := forgedFrom(token); got == token || !strings.HasSuffix(got, "forged") {
			t.Errorf("%q for %q, want one that nobody signed", got, token)
		}
	}
}
