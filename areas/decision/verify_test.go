package decision

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"tare/area"
	"tare/areas/decision/engine"
	"tare/areas/decision/model"
	"tare/areas/decision/protocol"
	"tare/internal/design"
	"tare/internal/probe"
	"tare/internal/unit"
	"tare/rigs/hosttest"
)

// TestVerifyRejectsPlantedAnswers: Verify rejects a decision point that does not decide, whatever its fault, and says
// what it does.
func TestVerifyRejectsPlantedAnswers(t *testing.T) {
	for _, c := range []struct {
		kind   engine.Kind
		answer string
		says   []string // all of them; none: the decision point is good
	}{
		{engine.Cedar, "", nil},
		{engine.Cedar, "always-permit", []string{"permits a request that must be refused", "permit everything"}},
		{engine.Cedar, "not-applicable-as-permit", []string{"permits a request that"}},
		// AuthZEN has no word for it
		{engine.Cedar, "indeterminate", []string{"no decision in the answer", "500", "could not be evaluated"}},
		{engine.PDPX, "", nil},
		{engine.PDPX, "always-permit", []string{"must be refused"}},
		{engine.PDPX, "not-applicable-as-permit", []string{"no policy is deployed for", "NotApplicable and answers Permit"}},
		{engine.PDPX, "indeterminate", []string{"Indeterminate", "neither yes nor no"}},
	} {
		t.Run(string(c.kind)+" "+c.answer, func(t *testing.T) {
			const section = "embedded: {engine: %s, planted: {answer: '%s'}}, policies: 5"
			tg, _ := prepared(t, specOf(t, fmt.Sprintf(section, c.kind, c.answer)))
			err := tg.Verify(t.Context(), standard)
			if len(c.says) == 0 && err != nil {
				t.Error(err)
			}
			for _, want := range c.says {
				if !said(err, want) {
					t.Errorf("%v\nlacks %q", err, want)
				}
			}
		})
	}
}

// TestVerifyPositions verifies each position, and that every measured question has the known answer.
func TestVerifyPositions(t *testing.T) {
	for position, want := range map[model.Position]string{
		model.First: "permit=permit deny=deny ", model.Last: "permit=permit deny=deny ", model.Absent: "absent=deny ",
	} {
		for _, batch := range []int{1, 7} {
			spec := embedded(engine.Cedar, Planted{})
			spec.Policies, spec.Position, spec.Batch = 3, position, batch
			tg, _ := verifiedIn(t, spec, testEnv(t))
			ops, err := tg.Operations(standard)
			if err != nil {
				t.Fatal(err)
			}
			names := ""
			for _, op := range ops {
				names += op.Name + "=" + op.Answer + " "
			}
			if names != want {
				t.Errorf("%s, batches of %d: %q, want %q", position, batch, names, want)
			}
		}
	}
}

// TestNotReadyIsAwaited: 409 is retried; when patience ends, the error says what to do.
func TestNotReadyIsAwaited(t *testing.T) {
	hosttest.SkipIfShortUnlessRaced(t)
	spec := embedded(engine.PDPX, Planted{NotReady: unit.Duration(1200 * time.Millisecond)})
	spec.Policies = 3
	verifiedIn(t, spec, testEnv(t))
	spec.Embedded.Planted.NotReady = unit.Duration(time.Hour)
	late, j := opened(t, spec, testEnv(t))
	late.patience = 600 * time.Millisecond
	err := late.Prepare(t.Context(), standard, j)
	if err == nil || !strings.Contains(err.Error(), "was not ready within 600ms") ||
		!strings.Contains(err.Error(), "409") {
		t.Errorf("prepare: %v", err)
	}
}

// TestExplain: each answer without a decision has a sentence with the next step.
func TestExplain(t *testing.T) {
	for status, want := range map[int]string{
		401: "check username, password or token", 403: "may not ask", 404: "check the url", 400: "does not understand",
		409: "not ready", 302: "redirects are not followed", 502: "log",
	} {
		got := explain(model.Question{Name: "permit", Want: model.Permit}, protocol.Answer{Status: status, Text: "what came"})
		if !strings.Contains(got, want) || !strings.Contains(got, "what came") {
			t.Errorf("status %d: %s, want %q", status, got, want)
		}
	}
	none := protocol.Answer{Decision: model.NotApplicable, Status: 200}
	if got := explain(model.Question{Name: "mine", Want: model.Deny}, none); !strings.Contains(got,
		"write expect: not-applicable") {
		t.Error(got)
	}
}

// TestRealEngines verifies the engines that must be built, at each position, and reads a JVM's garbage collections. It
// skips an engine that the host lacks, unless TARE_ENGINES names it.
func TestRealEngines(t *testing.T) {
	hosttest.SkipIfShort(t)
	for _, k := range []engine.Kind{engine.OPA, engine.OpenFGA, engine.ATT, engine.AuthzForce} {
		t.Run(string(k), func(t *testing.T) {
			env := testEnv(t)
			env.Getenv = os.LookupEnv
			_, err := engine.Find(t.Context(), k, host(env))
			if missing := new(engine.Missing); errors.As(err, &missing) && os.Getenv("TARE_ENGINES") == "" {
				hosttest.Missing(t, missing.Reason, missing.Next)
			}
			tg, j := opened(t, specOf(t, "embedded: {engine: "+string(k)+"}, policies: 5"), env)
			tg.warmth = rehearsal{workers: 2, calls: 200, within: 20 * time.Second}
			for _, position := range []model.Position{model.First, model.Last, model.Absent} {
				tr := design.Treatment{ID: string(position), Levels: map[string]string{"position": string(position)}}
				if err := tg.Prepare(t.Context(), tr, j); err != nil {
					t.Fatal(err)
				}
				if err := tg.Verify(t.Context(), tr); err != nil {
					t.Error(err)
				}
			}
			got := sampled(t, tg, design.Treatment{ID: string(model.Last)})
			_, cpu := got[probe.CPU.Name]
			_, collects := got[probe.GCCount.Name]
			if java := k != engine.OPA && k != engine.OpenFGA; !cpu || collects != java {
				t.Errorf("samples of %v", got)
			}
		})
	}
}

// freeAddr returns an address on loopback at which nobody listens.
func freeAddr(t *testing.T) string {
	t.Helper()
	l := listen(t, nil)
	_ = l.Close()
	return l.Addr().String()
}

// listen listens on loopback until the test ends, and hands connections to serve.
func listen(t *testing.T, serve func(net.Conn)) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if serve != nil {
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go serve(conn)
			}
		}()
	}
	return l
}

// TestRefusedConnectionsAreAwaited: a decision point that does not listen yet is waited for, and the error of one that
// never does says what to look at.
func TestRefusedConnectionsAreAwaited(t *testing.T) {
	addr := freeAddr(t)
	spec := xacmlSpec("http://" + addr)
	found := Area{}.Preflight(t.Context(), spec, testEnv(t))
	if len(found) != 1 || found[0].Severity != area.Warning || !strings.Contains(found[0].Message, "nobody listens") {
		t.Errorf("preflight: %v, want a warning", found)
	}
	late, j := opened(t, spec, testEnv(t))
	late.patience = 3 * time.Second // on a busy host a single try may take a second
	err := late.Prepare(t.Context(), standard, j)
	if err == nil || !strings.Contains(err.Error(), "was not ready within 3s") ||
		!strings.Contains(err.Error(), "the url has its port") || strings.Contains(err.Error(), "policies") {
		t.Errorf("nobody comes: %v", err)
	}
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte(`{"Response":[{"Decision":"Permit"}]}`))
	}))
	started := make(chan error, 1)
	timer := time.AfterFunc(400*time.Millisecond, func() {
		l, err := net.Listen("tcp", addr)
		if err == nil {
			_ = server.Listener.Close()
			server.Listener = l
			server.Start()
		}
		started <- err
	})
	defer timer.Stop()
	preparedIn(t, spec, testEnv(t)) // it comes later
	if err := <-started; err != nil {
		t.Fatal(err)
	}
	server.Close()
}

// TestPlaintextToTLSIsExplained at once, and not after a minute with a hint at policies.
func TestPlaintextToTLSIsExplained(t *testing.T) {
	goServer := httptest.NewTLSServer(http.NotFoundHandler())
	defer goServer.Close()
	// Others than Go's close the connection.
	strict := listen(t, func(conn net.Conn) { relayTLS(conn, goServer.Listener.Addr().String()) })
	for what, addr := range map[string]string{
		"one that answers 400": goServer.Listener.Addr().String(), "one that closes": strict.Addr().String(),
	} {
		tg, j := opened(t, xacmlSpec("http://"+addr), testEnv(t))
		begin := time.Now()
		err := tg.Prepare(t.Context(), standard, j)
		if err == nil || !strings.Contains(err.Error(), "write https://") || strings.Contains(err.Error(), "policies") {
			t.Errorf("%s: %v", what, err)
		}
		if took := time.Since(begin); took > readyWithin/2 {
			t.Errorf("%s: it took %v", what, took)
		}
	}
	// A server that closes every connection speaks no TLS: it is waited for.
	mute := listen(t, func(conn net.Conn) { _ = conn.Close() })
	tg, j := opened(t, xacmlSpec("http://"+mute.Addr().String()), testEnv(t))
	tg.patience = 600 * time.Millisecond
	if err := tg.Prepare(t.Context(), standard, j); err == nil || !strings.Contains(err.Error(), "was not ready within") {
		t.Errorf("a mute server: %v", err)
	}
}

// relayTLS hands a connection on that begins with a TLS handshake, and closes any other.
func relayTLS(conn net.Conn, to string) {
	defer conn.Close() //nolint:errcheck // the other side sees it
	var first [1]byte
	if _, err := conn.Read(first[:]); err != nil || first[0] != 0x16 {
		return
	}
	next, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", to)
	if err != nil {
		return
	}
	defer next.Close() //nolint:errcheck // see above
	if _, err := next.Write(first[:]); err != nil {
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		pipe(next, conn)
	}()
	pipe(conn, next)
	<-done
}

// pipe copies until either side ends, and then ends the other.
func pipe(to, from net.Conn) {
	_, _ = io.Copy(to, from) // either side may end it
	_ = to.Close()
}

// TestColdness: a JVM is warm after many decisions or, where it counts none, after much CPU time.
func TestColdness(t *testing.T) {
	for _, c := range []struct {
		name   string
		cpu    float64
		counts map[string]float64
		want   string
	}{
		{"just started", 9, nil, "had only used 9 CPU-seconds"},
		{"has worked", 90, nil, ""},
		{"has run for days", 900, map[string]float64{"permit": 12, "deny": 3}, "had only made 15 decisions"},
		{"has decided", 9, map[string]float64{"permit": 70_000, "deny": 20_000}, ""},
	} {
		if got := coldness("pdp", c.cpu, c.counts); (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
