package identity

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/areas/identity/fixture"
	"tare/internal/load"
	"tare/internal/unit"
	"tare/rigs/areatest"
	"tare/rigs/memtest"
)

const (
	testRole  = "arn:aws:iam::123456789012:role/team/reader"
	otherRole = "arn:aws:iam::123456789012:role/team/writer"
	subjectA  = "system:serviceaccount:team:a"
	eksTokens = "pods.eks.amazonaws.com"
)

func startSTS(t *testing.T, c fixture.Config) *fixture.STS {
	t.Helper()
	m, err := fixture.StartSTS(c, "sts.amazonaws.com", testRole, otherRole)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, m)
	return m
}

func startEKSAgent(t *testing.T, c fixture.Config) *fixture.EKSAgent {
	t.Helper()
	m, err := fixture.StartEKSAgent(c)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, m)
	return m
}

// issuing is a fixture that signs workloads' tokens.
type issuing interface {
	Issue(subject, audience string, expires time.Time) (string, error)
}

func issueToken(t *testing.T, from issuing, subject, audience string, life time.Duration) area.Secret {
	t.Helper()
	token, err := from.Issue(subject, audience, time.Now().Add(life))
	if err != nil {
		t.Fatal(err)
	}
	return secretFile(t, "jwt", token)
}

func TestSTSWebIdentity(t *testing.T) {
	m := startSTS(t, fixture.Config{})
	jwt := issueToken(t, m, subjectA, "sts.amazonaws.com", time.Hour)
	spec := &Spec{
		Adapter: "sts-web-identity", URL: m.URL, STS: &STS{
			RoleARN: testRole, SessionName: "app-1",
			Duration: unit.Duration(15 * time.Minute), Token: jwt,
		},
		Expect: &Expect{Subject: subjectA, Audience: "sts.amazonaws.com"},
	}
	everyOK(t, callOnce(t, spec, 5))
	spec.STS, spec.Expect = &STS{Token: jwt}, nil
	other := issueToken(t, m, "b", "sts.amazonaws.com", time.Hour)
	spec.Callers = []Caller{{Name: testRole}, {Name: otherRole, Token: other}}
	everyOK(t, callOnce(t, spec, 4))
}

func TestEKSPodIdentity(t *testing.T) {
	m := startEKSAgent(t, fixture.Config{})
	token := issueToken(t, m, subjectA, eksTokens, time.Hour)
	spec := &Spec{Adapter: "eks-pod-identity", URL: m.URL, EKS: &EKS{Token: token}}
	everyOK(t, callOnce(t, spec, 5))
	spec.EKS, spec.Callers = nil, []Caller{
		{Token: issueToken(t, m, subjectA, eksTokens, time.Hour)},
		{Token: issueToken(t, m, "b", eksTokens, time.Hour)},
	}
	everyOK(t, callOnce(t, spec, 4))
}

// TestAWSRefusals: a refusal of the services is an error that says so and holds no token.
func TestAWSRefusals(t *testing.T) {
	sts, agent := startSTS(t, fixture.Config{}), startEKSAgent(t, fixture.Config{})
	lives := startSTS(t, fixture.Config{Lifetime: -time.Hour})
	assume := func(m *fixture.STS, o STS) *Spec { return &Spec{Adapter: "sts-web-identity", URL: m.URL, STS: &o} }
	ask := func(token area.Secret) *Spec {
		return &Spec{Adapter: "eks-pod-identity", URL: agent.URL, EKS: &EKS{Token: token}}
	}
	good := issueToken(t, sts, subjectA, "sts.amazonaws.com", time.Hour)
	expecting := assume(sts, STS{RoleARN: testRole, Token: good})
	expecting.Expect = &Expect{Audience: "other"}
	other := assume(sts, STS{RoleARN: testRole, Token: good})
	other.Expect = &Expect{Subject: "b"}
	for name, c := range map[string]struct {
		spec  *Spec
		cause verdict
	}{
		"sts, another audience": {
			assume(sts, STS{RoleARN: testRole, Token: issueToken(t, sts, subjectA, "other", time.Hour)}),
			credentialRefused,
		},
		"sts, expired": {assume(sts, STS{RoleARN: testRole, Token: issueToken(t, sts, subjectA, "sts.amazonaws.com",
			-time.Hour)}), credentialRefused},
		"sts, forged": {assume(sts, STS{RoleARN: testRole, Token: issueToken(t, lives, subjectA, "sts.amazonaws.com",
			time.Hour)}), credentialRefused},
		"sts, another role": {assume(sts, STS{RoleARN: testRole + "2", Token: good}), credentialRefused},
		"sts, expired answer": {assume(lives, STS{
			RoleARN: testRole,
			Token:   issueToken(t, lives, subjectA, "sts.amazonaws.com", time.Hour),
		}), hasExpired},
		"sts, audience of answer": {expecting, otherAudience},
		"sts, subject of answer":  {other, otherSubject},
		"eks, another audience":   {ask(issueToken(t, agent, subjectA, "sts.amazonaws.com", time.Hour)), credentialRefused},
		"eks, expired":            {ask(issueToken(t, agent, subjectA, eksTokens, -time.Hour)), credentialRefused},
		"eks, forged":             {ask(issueToken(t, sts, subjectA, eksTokens, time.Hour)), credentialRefused},
	} {
		opened, err := Area{}.Open(t.Context(), c.spec, testEnv(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := opened.Prepare(t.Context(), standard, &areatest.Journal{}); err == nil ||
			!strings.Contains(err.Error(), causes()[c.cause]) {
			t.Errorf("%s: %v, want %q", name, err, causes()[c.cause])
		} else if strings.Contains(err.Error(), "eyJ") {
			t.Errorf("%s: the error holds a token: %v", name, err)
		}
		if err := opened.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

// TestAWSWritesNoSecret: neither the run's folder nor the journal holds tokens or credentials.
func TestAWSWritesNoSecret(t *testing.T) {
	sts, agent := startSTS(t, fixture.Config{}), startEKSAgent(t, fixture.Config{})
	for _, spec := range []*Spec{
		{
			Adapter: "sts-web-identity", URL: sts.URL,
			STS: &STS{RoleARN: testRole, Token: issueToken(t, sts, subjectA, "sts.amazonaws.com", time.Hour)},
		},
		{Adapter: "eks-pod-identity", URL: agent.URL, EKS: &EKS{Token: issueToken(t, agent, subjectA, eksTokens, time.Hour)}},
	} {
		tg, j := prepared(t, spec, standard)
		everyOK(t, makeCalls(t, tg, 2))
		files, err := filepath.Glob(filepath.Join(tg.env.Dir, "*"))
		if err != nil || len(j.Changes()) != 0 {
			t.Errorf("got %v, journaled changes %v, want none", err, j.Changes())
		}
		for _, f := range files {
			if b, err := os.ReadFile(f); err != nil || bytes.Contains(b, []byte("eyJ")) || bytes.Contains(b, []byte("ASIA")) {
				t.Errorf("%s holds a secret, or cannot be read: %v", f, err)
			}
		}
		if text := fmt.Sprintf("%v %+v %#v", tg.arm(standard.ID).session("x"), tg.Notes(), spec); strings.Contains(text,
			"eyJ") {
			t.Errorf("a formatted secret shows its value: %s", text)
		}
	}
}

// TestAWSThrottling: STS reports too many calls with status 400.
func TestAWSThrottling(t *testing.T) {
	for name, c := range map[string]struct {
		a      adapter
		status int
		body   string
		want   load.Outcome
		cause  verdict
	}{
		"sts throttles":      {stsWebIdentity(), 400, stsError("Throttling"), load.Refused, slowDown},
		"sts limit":          {stsWebIdentity(), 400, stsError("RequestLimitExceeded"), load.Refused, slowDown},
		"sts's issuer":       {stsWebIdentity(), 400, stsError("IDPCommunicationError"), load.Failed, temporarilyUnavailable},
		"sts expired":        {stsWebIdentity(), 400, stsError("ExpiredTokenException"), load.Wrong, credentialRefused},
		"sts request":        {stsWebIdentity(), 400, stsError("ValidationError"), load.Wrong, requestRefused},
		"an error with 200":  {stsWebIdentity(), 200, stsError("Throttling"), load.Wrong, notJSON},
		"eks throttles":      {eksPodIdentity(), 429, "Too Many Requests. no", load.Refused, slowDown},
		"eks token":          {eksPodIdentity(), 400, "(InvalidTokenException)", load.Wrong, credentialRefused},
		"eks association":    {eksPodIdentity(), 404, "", load.Wrong, notActive},
		"eks text with 200":  {eksPodIdentity(), 200, "Access Denied. no", load.Wrong, notJSON},
		"eks error with 200": {eksPodIdentity(), 200, `{"message":"no"}`, load.Wrong, noToken},
	} {
		s := fakeSession(opCredentials, 1)
		s.spec = &Spec{STS: &STS{RoleARN: testRole}}
		w := c.a.wire(s)
		if o := w.Check(0, c.status, []byte(c.body)); o != c.want {
			t.Errorf("%s: %v, want %v", name, o, c.want)
		}
		if v := w.(load.Wire).Explain(0, c.status, []byte(c.body)); v != int(c.cause) {
			t.Errorf("%s: cause %d, want %d", name, v, c.cause)
		}
	}
	m := startSTS(t, fixture.Config{Faults: fixture.Faults{Refuse: true}})
	w := stsWebIdentity().wire(fakeSession(opCredentials, 1))
	got, err := doerFor(t, m.URL)(t.Context(), 0, w.Render(nil, 0))
	if err != nil || w.Check(0, got.Status, got.Body) != load.Refused {
		t.Errorf("the fixture's limit: %d %s, %v", got.Status, got.Body, err)
	}
}

func stsError(code string) string {
	return `<ErrorResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><Error><Type>Sender</Type><Code>` + code + `</Code></Error></ErrorResponse>`
}

// stsAnswer returns a good answer with that token. date replaces the session's expiry; extra is added to the
// credentials.
func stsAnswer(token, date, extra string) string {
	return `<?xml version="1.0"?>
<AssumeRoleWithWebIdentityResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleWithWebIdentityResult>
    <SubjectFromWebIdentityToken>robot</SubjectFromWebIdentityToken><Audience>https://aud.invalid/</Audience><SourceIdentity/>
    <AssumedRoleUser><Arn>arn:aws:sts::123456789012:assumed-role/reader/tare</Arn><AssumedRoleId>AROA:tare</AssumedRoleId></AssumedRoleUser>
    <Credentials>
      <SessionToken>` + token + `</SessionToken><SecretAccessKey>x</SecretAccessKey>
      <Expiration>` + date + `</Expiration><AccessKeyId>ASIA1</AccessKeyId>` + extra + `
    </Credentials>
  </AssumeRoleWithWebIdentityResult>
  <ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>
</AssumeRoleWithWebIdentityResponse>`
}

// TestMalformedXMLIsNoSuccess: a good status with a malformed document is no success.
func TestMalformedXMLIsNoSuccess(t *testing.T) {
	s := fakeSession(opCredentials, 1)
	s.spec, s.subjects = &Spec{STS: &STS{RoleARN: testRole}, Expect: &Expect{Audience: "https://aud.invalid/"}},
		[]string{"robot"}
	w := stsWebIdentity().wire(s)
	const date = "2027-01-15T08:00:01Z"
	good := stsAnswer("token", date, "")
	wantOutcome(t, w, "good", 200, good, load.OK)
	for n := range len(good) {
		wantOutcome(t, w, fmt.Sprintf("cut off after %d", n), 200, good[:n], load.Wrong)
	}
	for _, d := range append(stampDates(), `""`, `"2027-01-15T08:00:00Z"`) {
		wantOutcome(t, w, "an expiry of "+d, 200, stsAnswer("token", strings.Trim(d, `"`), ""), load.Wrong)
	}
	for _, token := range []string{
		"", " ", "a b", "a\x00b", "töken", "a&amp;b", "<![CDATA[a]]>", "<!-- -->a",
		"<b>a</b>",
	} {
		wantOutcome(t, w, "a token of "+token, 200, stsAnswer(token, date, ""), load.Wrong)
	}
	for _, extra := range []string{
		"<SessionToken>token</SessionToken>", "<SessionToken/>", "<Expiration>" + date + "</Expiration>", "x", "<a", "<a>",
		"</a>", "<a b>x</a>", "<a b=c>x</a>",
		"<!DOCTYPE a>", "<?a?>", strings.Repeat("<a>", 1e5), "<a></b>",
	} {
		wantOutcome(t, w, "also "+extra, 200, stsAnswer("token", date, extra), load.Wrong)
	}
	for _, c := range [][2]string{
		{"/reader/", "/writer/"},
		{"/tare<", "/other<"},
		{"robot", "mallory"},
		{"aud.invalid", "other.invalid"},
		{"<AccessKeyId>ASIA1</AccessKeyId>", ""},
		{"<SecretAccessKey>x</SecretAccessKey>", ""},
		{"AssumeRoleWithWebIdentityResponse", "AssumeRoleResponse"},
		{"Credentials>", "credentials>"},
	} {
		wantOutcome(t, w, c[1]+" for "+c[0], 200, strings.ReplaceAll(good, c[0], c[1]), load.Wrong)
	}
	wantOutcome(t, w, "a document after it", 200, good+good, load.Wrong)
}

// FuzzPickXML: whatever pickXML finds, encoding/xml finds too, and it finds nothing in what encoding/xml rejects.
func FuzzPickXML(f *testing.F) {
	f.Add([]byte(stsAnswer("token", "2027-01-15T08:00:01Z", "")))
	for _, s := range []string{"<a><b><c>x</c></b></a>", "<a><b><c/></b></a>", `<a x="1" y='<'><b><c>&lt;</c></b></a>`, "<a>", "<a></a></a>", "<a/>", "<a><b><c>x<d/></c></b></a>"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		defer memtest.Bound(t, len(b))()
		var out [1][]byte
		if !pickXML(b, "a", out[:], "b/c") {
			return
		}
		var whole struct {
			Inner []byte `xml:",innerxml"`
		}
		if err := xml.Unmarshal(b, &whole); err != nil && !strings.Contains(err.Error(), "invalid UTF-8") &&
			!strings.Contains(err.Error(), "illegal character") &&
			!strings.Contains(err.Error(), "entity") && !strings.Contains(err.Error(), "encoding") &&
			!strings.Contains(err.Error(), "version") &&
			!strings.Contains(err.Error(), "unescaped ]]>") {
			t.Errorf("pickXML accepts %q, encoding/xml fails with %v", b, err)
		}
		if out[0] != nil && !bytes.Contains(b, out[0]) {
			t.Errorf("%q: found %q", b, out[0])
		}
	})
}

func TestAWSOptions(t *testing.T) {
	x := area.Secret{Env: "X"}
	good := STS{RoleARN: testRole, Token: x}
	with := func(change func(*STS)) *Spec {
		o := good
		change(&o)
		return &Spec{STS: &o}
	}
	for _, c := range []struct {
		a    adapter
		spec *Spec
		want string
	}{
		{stsWebIdentity(), with(func(*STS) {}), ""},
		{stsWebIdentity(), with(func(o *STS) { o.RoleARN = "arn:aws-cn:iam::123456789012:role/r" }), ""},
		{stsWebIdentity(), &Spec{Callers: []Caller{{Name: testRole, Token: x}}}, ""},
		{stsWebIdentity(), &Spec{}, "sts.role_arn: "},
		{stsWebIdentity(), with(func(o *STS) { o.RoleARN = "reader" }), "sts.role_arn: "},
		{stsWebIdentity(), with(func(o *STS) { o.Token = area.Secret{} }), "sts.token: "},
		{stsWebIdentity(), with(func(o *STS) { o.SessionName = "a b" }), "sts.session_name: "},
		{stsWebIdentity(), with(func(o *STS) { o.Duration = unit.Duration(time.Minute) }), "sts.duration: "},
		{stsWebIdentity(), with(func(o *STS) { o.Duration = unit.Duration(13 * time.Hour) }), "sts.duration: "},
		{stsWebIdentity(), &Spec{STS: &good, Callers: []Caller{{Name: "reader"}}}, "callers: "},
		{eksPodIdentity(), &Spec{EKS: &EKS{Token: x}}, ""},
		{eksPodIdentity(), &Spec{Callers: []Caller{{Token: x}}}, ""},
		{eksPodIdentity(), &Spec{}, "eks.token: "},
	} {
		err := c.a.validate(c.spec, opCredentials)
		if (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%s %+v: %v, want %q", c.a.name, c.spec.STS, err, c.want)
		}
	}
}

// TestAWSCanaries: Verify rejects an endpoint that gives credentials to anybody.
func TestAWSCanaries(t *testing.T) {
	m := startSTS(t, fixture.Config{})
	lax := map[string]string{"eks-pod-identity": fmt.Sprintf(
		`{"AccessKeyId":"ASIA1","SecretAccessKey":"x","Token":"t","AccountId":"1","Expiration":%q}`, time.Now().Add(time.Hour).Format(time.RFC3339))}
	lax["sts-web-identity"] = stsAnswer("t", time.Now().Add(time.Hour).Format(time.RFC3339), "")
	jwt := issueToken(t, m, "robot", "x", time.Hour)
	for name, answer := range lax {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(answer))
		}))
		t.Cleanup(s.Close)
		spec := &Spec{Adapter: AdapterName(name), URL: s.URL}
		if name == "eks-pod-identity" {
			spec.EKS = &EKS{Token: jwt}
		} else {
			spec.STS = &STS{RoleARN: testRole, Token: jwt}
		}
		tg, _ := prepared(t, spec, standard)
		if err := tg.Verify(t.Context(), standard); err == nil || !strings.Contains(err.Error(), "must be refused") {
			t.Errorf("%s: Verify returned %v, want that strangers must be refused", name, err)
		}
	}
}
