package reference

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"tare/rigs/hosttest"
)

func healthyPair(t *testing.T, adjust func(*Knobs)) *pair {
	t.Helper()
	k, _ := Preset("healthy")
	k.Signing = ES256 // quick keys
	if adjust != nil {
		adjust(&k)
	}
	return start(t, k)
}

func TestProtocol(t *testing.T) {
	p := healthyPair(t, nil)
	me := WorkloadOf(netip.MustParseAddr("127.0.0.1"))
	google := []string{"Metadata-Flavor", "Google"}
	const missing = "Missing Metadata-Flavor:Google header.\n"
	const forwarded = "Request contains X-Forwarded-For header.\n"
	for _, c := range []struct {
		name, path string
		header     []string
		status     int
		body       string // exactly, unless it ends in …: then a beginning
	}{
		{"no header", "default/email", []string{"Accept", "*/*"}, 403, missing},
		{"another flavour", "default/email", []string{"Metadata-Flavor", "google"}, 403, missing},
		{"through a proxy", "default/email", append([]string{"X-Forwarded-For", "192.0.2.7"}, google...), 403, forwarded},
		{"empty forward", "default/email", append([]string{"X-Forwarded-For", ""}, google...), 403, forwarded},
		{"accounts", "", google, 200, "default/\n" + me.Email + "/\n"},
		{"accounts at once", "?recursive=true", google, 200, `{"default":{"aliases":["default"],"email":"` + me.Email + `",…`},
		{"account without slash", "default", google, 301, "…"},
		{"account", "default/", google, 200, "aliases\nemail\nidentity\nscopes\ntoken\n"},
		{"account at once", "default/?recursive=true", google, 200, `{"aliases":["default"],"email":"` + me.Email + `","scopes":["https://www.googleapis.com/auth/cloud-platform"]}`},
		{"email", "default/email", google, 200, me.Email},
		{"aliases", "default/aliases", google, 200, "default\n"},
		{"scopes", "default/scopes", google, 200, "https://www.googleapis.com/auth/cloud-platform\n"},
		{"token", "default/token", google, 200, `{"access_token":"ya29.c.…`},
		{"token by address", me.Email + "/token", google, 200, `{"access_token":"ya29.c.…`},
		{
			"somebody else's token", "gsa-127-9-9-9@tare-reference.iam.gserviceaccount.com/token", google, 403,
			"Unable to generate access token; IAM answered 403\n",
		},
		{"identity", "default/identity?audience=a", google, 200, "eyJ…"},
		{"identity for nobody", "default/identity?audience=", google, 400, "non-empty audience parameter required\n"},
		{"identity without audience", "default/identity", google, 400, "non-empty audience parameter required\n"},
		{"unknown leaf", "default/nothing", google, 404, "404 page not found\n"},
	} {
		status, body := p.get(accountsPath+c.path, c.header...)
		begin, open := strings.CutSuffix(c.body, "…")
		if status != c.status || body != c.body && (!open || !strings.HasPrefix(body, begin)) {
			t.Errorf("%s: status %d, %q, want %d, %q", c.name, status, body, c.status, c.body)
		}
	}
	if status, _ := p.get("/computeMetadata/v1/project/project-id", google...); status != 404 {
		t.Errorf("a path outside service accounts: status %d", status)
	}
	status, _, header := p.ask(http.MethodPost, p.end.Addr, accountsPath+"default/token", google...)
	if status != 405 || header.Get("Metadata-Flavor") != "Google" {
		t.Errorf("POST: status %d, flavor %q", status, header.Get("Metadata-Flavor"))
	}
}

// TestTokenAnswer checks the answer's fields and its length, which the published report gives as 506 bytes.
func TestTokenAnswer(t *testing.T) {
	p := healthyPair(t, nil)
	_, body := p.get(accountsPath + "default/token")
	var a struct {
		Token   string `json:"access_token"`
		Expires int    `json:"expires_in"`
		Type    string `json:"token_type"`
	}
	if err := json.Unmarshal([]byte(body), &a); err != nil {
		t.Fatal(err)
	}
	if a.Type != "Bearer" || a.Expires < 3500 || a.Expires > 3600 || a.Token == "" {
		t.Errorf("type %q, expires in %d, token of %d bytes", a.Type, a.Expires, len(a.Token))
	}
	if len(body) < 480 || len(body) > 530 {
		t.Errorf("the answer has %d bytes, want about 506", len(body))
	}
}

func TestSingleflight(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	const callers = 500
	for shared, want := range map[bool]int64{true: 1, false: callers} {
		p := healthyPair(t, func(k *Knobs) {
			k.Cache, k.Singleflight, k.RefreshEarly, k.Jitter = shared, shared, 0, 0
			k.UpstreamLatency = 300 * time.Millisecond
		})
		var wg sync.WaitGroup
		for range callers {
			wg.Go(func() {
				if status, _ := p.get(accountsPath + "default/token"); status != 200 {
					t.Errorf("status %d", status)
				}
			})
		}
		wg.Wait()
		if n := readCounters(t, p.sts.Admin).Exchanges; n != want {
			t.Errorf("%d requests made %d exchanges, want %d", callers, n, want)
		}
	}
}

func TestUnavailableFirst(t *testing.T) {
	p := healthyPair(t, func(k *Knobs) { k.UnavailableFirst = 700 * time.Millisecond })
	if status, _ := p.get(accountsPath + "default/token"); status != 503 {
		t.Errorf("the first request got %d", status)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		status, _ := p.get(accountsPath + "default/token")
		if status == 200 {
			break
		}
		if status != 503 || time.Now().After(deadline) {
			t.Fatalf("status %d", status)
		}
	}
}

// TestDroppedRequestsAreNotAnswered: the given share of requests is read and never answered.
func TestDroppedRequestsAreNotAnswered(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	p := healthyPair(t, func(k *Knobs) { k.Drop = 0.5 })
	answered := 0
	for range 60 {
		conn, err := net.Dial("tcp", p.end.Addr)
		if err != nil {
			t.Fatal(err)
		}
		if ask(t, conn, 100*time.Millisecond) {
			answered++
		}
		_ = conn.Close()
	}
	c := readCounters(t, p.end.Admin)
	if c.Dropped < 15 || c.Dropped > 45 || int64(answered) > 60-c.Dropped {
		t.Errorf("of 60 requests %d were dropped and %d answered", c.Dropped, answered)
	}
}

// ask sends one request on conn and reports whether an answer begins within patience.
func ask(t *testing.T, conn net.Conn, patience time.Duration) bool {
	t.Helper()
	if _, err := io.WriteString(conn, "GET "+accountsPath+
		"default/email HTTP/1.1\r\nHost: x\r\nMetadata-Flavor: Google\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	return answered(t, conn, patience)
}

func answered(t *testing.T, conn net.Conn, patience time.Duration) bool {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	n, _ := conn.Read(make([]byte, 1))
	return n == 1
}

// TestListenQueue fills the slots and the listen queue: N connections are accepted, backlog + 1 more are established
// and stay unanswered, and the next is not even established.
func TestListenQueue(t *testing.T) {
	const slots, backlog = 3, 4
	p := healthyPair(t, func(k *Knobs) { k.MaxConns, k.Backlog = slots, backlog })
	if p.end.Backlog != backlog {
		t.Fatalf("backlog %d", p.end.Backlog)
	}
	var conns []net.Conn
	dial := func(patience time.Duration) bool {
		c, err := net.DialTimeout("tcp", p.end.Addr, patience)
		if err == nil {
			conns = append(conns, c)
		}
		return err == nil
	}
	t.Cleanup(func() {
		for _, c := range conns {
			_ = c.Close()
		}
	})
	for i := range slots {
		if !dial(10*time.Second) || !ask(t, conns[i], 10*time.Second) {
			t.Fatalf("connection %d of %d is not served", i, slots)
		}
	}
	for i := range backlog + 1 {
		if !dial(10 * time.Second) {
			t.Fatalf("connection %d of the queue is not established", i)
		}
	}
	if dial(500 * time.Millisecond) {
		t.Errorf("a connection beyond backlog + 1 = %d is established", backlog+1)
	}
	if ask(t, conns[slots], 300*time.Millisecond) {
		t.Error("a connection in the queue is answered")
	}
	if n := readCounters(t, p.end.Admin).Connections; n != slots {
		t.Errorf("%d connections are accepted, not %d", n, slots)
	}
	_ = conns[0].Close()
	if !answered(t, conns[slots], 10*time.Second) {
		t.Error("the first in the queue is not answered when a slot is free")
	}
}

// TestUpstreamConns bounds the connections to the STS while many exchanges wait.
func TestUpstreamConns(t *testing.T) {
	p := healthyPair(t, func(k *Knobs) {
		k.Cache, k.Singleflight, k.RefreshEarly, k.Jitter = false, false, 0, 0
		k.UpstreamConns, k.UpstreamLatency = 3, 50*time.Millisecond
	})
	var wg sync.WaitGroup
	for range 12 {
		wg.Go(func() { p.get(accountsPath + "default/token") })
	}
	most := int64(0)
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	for {
		select {
		case <-done:
			if most != 3 {
				t.Errorf("%d connections to the STS, want 3", most)
			}
			return
		default:
			most = max(most, readCounters(t, p.sts.Admin).Connections)
		}
	}
}
