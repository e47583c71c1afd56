package identity

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"tare/areas/identity/fixture"
	"tare/internal/kit/oneshot"
	"tare/internal/load"
	"tare/internal/unit"
	"tare/rigs/areatest"
	"tare/rigs/hosttest"
)

// callOnce prepares and verifies spec against a fixture, and makes n calls of its only operation.
func callOnce(t *testing.T, spec *Spec, n int) []load.Outcome {
	t.Helper()
	tg, j := prepared(t, spec, standard)
	if len(j.Changes()) != 0 {
		t.Errorf("a URL target made changes: %v", j.Changes())
	}
	if err := tg.Enter(t.Context(), standard); err != nil {
		t.Fatal(err)
	}
	if err := tg.Verify(t.Context(), standard); err != nil {
		t.Fatal(err)
	}
	return makeCalls(t, tg, n)
}

// makeCalls makes n calls, each on a new connection.
func makeCalls(t *testing.T, tg *target, n int) (out []load.Outcome) {
	t.Helper()
	ops, err := tg.Operations(standard)
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		o, err := tg.arm(standard.ID).call(t.Context(), ops[0].Wire, uint64(i), 10*time.Second)
		if o == load.OK != (err == nil) {
			t.Errorf("call %d: %v with error %v", i, o, err)
		}
		out = append(out, o)
	}
	return out
}

// everyOK fails the test unless every outcome is OK.
func everyOK(t *testing.T, outcomes []load.Outcome) {
	t.Helper()
	for i, o := range outcomes {
		if o != load.OK {
			t.Errorf("call %d: %v", i, o)
		}
	}
}

func closeAtEnd(t *testing.T, c interface{ Close() error }) {
	t.Helper()
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("close the fixture: %v", err)
		}
	})
}

func startIMDSv2(t *testing.T, c fixture.Config, role string) *fixture.IMDSv2 {
	t.Helper()
	m, err := fixture.StartIMDSv2(c, role)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, m)
	return m
}

func TestIMDSv2(t *testing.T) {
	for _, operation := range []string{"", opCredentials, opSession} {
		m := startIMDSv2(t, fixture.Config{}, "node")
		everyOK(t, callOnce(t, &Spec{Adapter: "imdsv2", URL: m.URL, Operation: OperationName(operation)}, 5))
		sessions := m.Sessions()
		if operation == opSession && sessions < 5 {
			t.Errorf("session: %d session tokens for 5 calls", sessions)
		}
		if operation != opSession && sessions != 1 {
			t.Errorf("%q: %d session tokens, want one that is kept", operation, sessions)
		}
	}
}

// TestIMDSv2Role: a role that the file names is not requested from the service.
func TestIMDSv2Role(t *testing.T) {
	m := startIMDSv2(t, fixture.Config{}, "node")
	everyOK(t, callOnce(t, &Spec{
		Adapter: "imdsv2", URL: m.URL,
		IMDS: &IMDS{Role: "node", TTL: unit.Duration(time.Minute)},
	}, 1))
	opened, err := Area{}.Open(t.Context(), &Spec{Adapter: "imdsv2", URL: m.URL, IMDS: &IMDS{Role: "other"}}, testEnv(t))
	if err != nil {
		t.Fatal(err)
	}
	if err := opened.Prepare(t.Context(), standard, &areatest.Journal{}); err == nil ||
		!strings.Contains(err.Error(), causes()[notActive]) {
		t.Errorf("another role: %v", err)
	}
	if err := opened.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// TestIMDSv2Renewal: a session token that is about to end is replaced, and later requests use the new one.
func TestIMDSv2Renewal(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	m := startIMDSv2(t, fixture.Config{}, "node")
	tg, _ := prepared(t, &Spec{Adapter: "imdsv2", URL: m.URL, IMDS: &IMDS{TTL: unit.Duration(2 * time.Second)}}, standard)
	until := time.Now().Add(20 * time.Second)
	for m.Sessions() < 3 && time.Now().Before(until) {
		everyOK(t, makeCalls(t, tg, 1))
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
	ops, err := tg.Operations(standard)
	if err != nil {
		t.Fatal(err)
	}
	o, err := tg.arm(standard.ID).call(t.Context(), ops[0].Wire, 0, 10*time.Second)
	if o != load.Wrong || err == nil || !strings.Contains(err.Error(), causes()[leaseRefused]) {
		t.Errorf("got %v, %v; want Wrong because the session is unknown", o, err)
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
	for _, c := range []struct {
		text string
		want int64
		ok   bool
	}{
		{"2027-01-15T08:00:00Z", 1_800_000_000, true},
		{"2027-01-15t08:00:00z", 1_800_000_000, true},
		{"2027-01-15T08:00:00.123456Z", 1_800_000_000, true},
		{"2027-01-15T10:30:00+02:30", 1_800_000_000, true},
		{"2027-01-15T05:30:00-02:30", 1_800_000_000, true},
		{"1970-01-01T00:00:00Z", 0, true},
		{"2024-02-29T00:00:00Z", 1_709_164_800, true},
		{"2023-02-29T00:00:00Z", 0, false},
		{"2027-13-15T08:00:00Z", 0, false},
		{"2027-01-15T24:00:00Z", 0, false},
		{"2027-01-15T08:60:00Z", 0, false},
		{"2027-01-15T08:00:00", 0, false},
		{"2027-01-15T08:00:00.Z", 0, false},
		{"2027-01-15T08:00:00Zx", 0, false},
		{"2027-01-15T08:00:00+0230", 0, false},
		{"2027-01-15T08:00:00+24:00", 0, false},
		{"2027-01-15 08:00:00Z", 0, false},
		{"2027\r01-15T08:00:00Z", 0, false},
		{"1800000000", 0, false},
		{"", 0, false},
	} {
		if got, ok := timestamp([]byte(c.text)); ok != c.ok || (ok && got != c.want) {
			t.Errorf("%q: %d %v, want %d %v", c.text, got, ok, c.want, c.ok)
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

func TestIMDSv2Options(t *testing.T) {
	for _, c := range []struct {
		o    IMDS
		want string
	}{
		{IMDS{}, ""},
		{IMDS{TTL: unit.Duration(6 * time.Hour), Role: "a+=,.@_-Z9"}, ""},
		{IMDS{TTL: unit.Duration(time.Second)}, ""},
		{IMDS{TTL: unit.Duration(6*time.Hour + time.Second)}, "imds.ttl"},
		{IMDS{TTL: unit.Duration(time.Second / 2)}, "imds.ttl"},
		{IMDS{TTL: unit.Duration(1500 * time.Millisecond)}, "imds.ttl"},
		{IMDS{Role: "a b"}, "imds.role"},
		{IMDS{Role: "../x"}, "imds.role"},
		{IMDS{Role: strings.Repeat("x", 65)}, "imds.role"},
	} {
		err := imdsv2().validate(&Spec{IMDS: &c.o}, opCredentials)
		if (err == nil) != (c.want == "") || (err != nil && !strings.HasPrefix(err.Error(), c.want+": ")) {
			t.Errorf("%+v: %v, want %q", c.o, err, c.want)
		}
	}
}
