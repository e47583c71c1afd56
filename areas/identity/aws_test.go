package identity

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/areas/identity/fixture"
	"tare/internal/load"
	"tare/internal/unit"
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
	return started(t, m, err)
}

func startEKSAgent(t *testing.T) *fixture.EKSAgent {
	t.Helper()
	m, err := fixture.StartEKSAgent(fixture.Config{})
	return started(t, m, err)
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
	served(t, spec, 5)
	spec.STS, spec.Expect = &STS{Token: jwt}, nil
	other := issueToken(t, m, "b", "sts.amazonaws.com", time.Hour)
	spec.Callers = []Caller{{Name: testRole}, {Name: otherRole, Token: other}}
	served(t, spec, 4)
}

func TestEKSPodIdentity(t *testing.T) {
	m := startEKSAgent(t)
	token := issueToken(t, m, subjectA, eksTokens, time.Hour)
	spec := &Spec{Adapter: "eks-pod-identity", URL: m.URL, EKS: &EKS{Token: token}}
	served(t, spec, 5)
	spec.EKS, spec.Callers = nil, []Caller{
		{Token: issueToken(t, m, subjectA, eksTokens, time.Hour)},
		{Token: issueToken(t, m, "b", eksTokens, time.Hour)},
	}
	served(t, spec, 4)
}

// TestAWSRefusals: a refusal of the services is an error that says so and holds no token.
func TestAWSRefusals(t *testing.T) {
	sts, agent := startSTS(t, fixture.Config{}), startEKSAgent(t)
	past := startSTS(t, fixture.Config{Lifetime: -time.Hour})
	assume := func(m *fixture.STS, role string, token area.Secret, e Expect) *Spec {
		return &Spec{Adapter: "sts-web-identity", URL: m.URL, STS: &STS{RoleARN: role, Token: token}, Expect: &e}
	}
	ask := func(token area.Secret) *Spec {
		return &Spec{Adapter: "eks-pod-identity", URL: agent.URL, EKS: &EKS{Token: token}}
	}
	issue := func(m issuing, audience string, life time.Duration) area.Secret {
		return issueToken(t, m, subjectA, audience, life)
	}
	const amazon = "sts.amazonaws.com"
	good := issue(sts, amazon, time.Hour)
	for name, c := range map[string]struct {
		spec  *Spec
		cause verdict
	}{
		"sts, another audience":   {assume(sts, testRole, issue(sts, "other", time.Hour), Expect{}), credentialRefused},
		"sts, expired":            {assume(sts, testRole, issue(sts, amazon, -time.Hour), Expect{}), credentialRefused},
		"sts, forged":             {assume(sts, testRole, issue(past, amazon, time.Hour), Expect{}), credentialRefused},
		"sts, another role":       {assume(sts, testRole+"2", good, Expect{}), credentialRefused},
		"sts, expired answer":     {assume(past, testRole, issue(past, amazon, time.Hour), Expect{}), hasExpired},
		"sts, audience of answer": {assume(sts, testRole, good, Expect{Audience: "other"}), otherAudience},
		"sts, subject of answer":  {assume(sts, testRole, good, Expect{Subject: "b"}), otherSubject},
		"eks, another audience":   {ask(issue(agent, amazon, time.Hour)), credentialRefused},
		"eks, expired":            {ask(issue(agent, eksTokens, -time.Hour)), credentialRefused},
		"eks, forged":             {ask(issue(sts, eksTokens, time.Hour)), credentialRefused},
	} {
		if err := unprepared(t, c.spec); !strings.Contains(err.Error(), causes()[c.cause]) ||
			strings.Contains(err.Error(), "eyJ") {
			t.Errorf("%s: %v, want %q and no token", name, err, causes()[c.cause])
		}
	}
}

// TestAWSWritesNoSecret: neither the run's folder nor the journal holds tokens or credentials.
func TestAWSWritesNoSecret(t *testing.T) {
	sts, agent := startSTS(t, fixture.Config{}), startEKSAgent(t)
	for _, spec := range []*Spec{
		{
			Adapter: "sts-web-identity", URL: sts.URL,
			STS: &STS{RoleARN: testRole, Token: issueToken(t, sts, subjectA, "sts.amazonaws.com", time.Hour)},
		},
		{Adapter: "eks-pod-identity", URL: agent.URL, EKS: &EKS{Token: issueToken(t, agent, subjectA, eksTokens, time.Hour)}},
	} {
		tg, j := prepared(t, spec, standard)
		wantGoodCalls(t, tg, 2)
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
		if v := w.Explain(0, c.status, []byte(c.body)); v != int(c.cause) {
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

// TestAWSCanaries: Verify rejects an endpoint that gives credentials to anybody.
func TestAWSCanaries(t *testing.T) {
	m := startSTS(t, fixture.Config{})
	lax := map[string]string{"eks-pod-identity": fmt.Sprintf(
		`{"AccessKeyId":"ASIA1","SecretAccessKey":"x","Token":"t","AccountId":"1","Expiration":%q}`, time.Now().Add(time.Hour).Format(time.RFC3339))}
	lax["sts-web-identity"] = stsAnswer("t", time.Now().Add(time.Hour).Format(time.RFC3339), "")
	jwt := issueToken(t, m, "robot", "x", time.Hour)
	for name, answer := range lax {
		url := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(answer)) }))
		spec := &Spec{Adapter: AdapterName(name), URL: url}
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
