package protocol

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"tare/areas/decision/model"
	"tare/internal/clock"
	"tare/internal/load"
	"tare/internal/ratelimit"
	"tare/rigs/hosttest"
	"tare/rigs/memtest"
)

type answering func(stream grpc.ServerStream, request []byte) ([]byte, error)

// An authzServer answers Check as the test says.
type authzServer struct {
	answer   answering
	server   *grpc.Server
	listener net.Listener
	session  *Session
}

// startAuthz serves until the test ends. It is a real gRPC server, with a handler for whatever method comes.
func startAuthz(t *testing.T, tlsConfig *tls.Config, answer answering) *authzServer {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	a := serveAuthz(t, l, tlsConfig, answer)
	a.session = &Session{Addr: l.Addr().(*net.TCPAddr).AddrPort(), Host: "pdp:9191"}
	t.Cleanup(func() {
		if err := a.session.Close(); err != nil {
			t.Errorf("close the session: %v", err)
		}
	})
	return a
}

func serveAuthz(t *testing.T, l net.Listener, tlsConfig *tls.Config, answer answering) *authzServer {
	t.Helper()
	a := &authzServer{answer: answer, listener: l}
	options := []grpc.ServerOption{grpc.ForceServerCodecV2(rawCodec{}), grpc.UnknownServiceHandler(a.handle)}
	if tlsConfig != nil {
		options = append(options, grpc.Creds(credentials.NewTLS(tlsConfig)))
	}
	a.server = grpc.NewServer(options...)
	done := make(chan error, 1)
	go func() { done <- a.server.Serve(l) }()
	t.Cleanup(func() {
		a.server.Stop()
		if err := <-done; err != nil {
			t.Errorf("serve: %v", err)
		}
	})
	return a
}

func (a *authzServer) handle(_ any, stream grpc.ServerStream) error {
	if method, _ := grpc.MethodFromServerStream(stream); method != checkMethod {
		return status.Errorf(codes.Unimplemented, "no method %s", method)
	}
	var request []byte
	if err := stream.RecvMsg(&request); err != nil {
		return err
	}
	out, err := a.answer(stream, request)
	if err != nil {
		return err
	}
	return stream.SendMsg(&out)
}

func always(t *testing.T, text string) answering {
	b := unhex(t, text)
	return func(grpc.ServerStream, []byte) ([]byte, error) { return b, nil }
}

// checkCall makes one call as the load engine does.
func checkCall(t *testing.T, s *Session, q model.Question, timeout time.Duration) (load.Result, load.Operation) {
	t.Helper()
	op := operations(t, extAuthz(), s, 1, q)[0]
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	return op.Call(ctx, 3), op
}

func causeOf(r load.Result) Verdict { return Verdict(r.Cause) - Verdict(load.OwnCauses) }

func TestExtAuthzAnswers(t *testing.T) {
	set := model.Set{N: 3}
	for _, c := range []struct {
		name, answer string
		q            model.Question
		outcome      load.Outcome
		verdict      Verdict
	}{
		{"permit", goldenOK, set.Ask(model.Last), load.OK, Fine},
		{"permit of nothing", "", set.Ask(model.Last), load.OK, Fine},
		{"deny", goldenDenied, set.Forbidden(model.Last), load.Denied, Fine},
		{"deny 401", goldenUnauthenticated, set.Forbidden(model.Last), load.Denied, Fine},
		{"denied but permitted wanted", goldenDenied, set.Ask(model.Last), load.Wrong, SaysDeny},
		{"permitted but denied wanted", goldenOK, set.Forbidden(model.Last), load.Wrong, SaysPermit},
		{"indeterminate", goldenInternal, set.Ask(model.Last), load.Wrong, SaysIndeterminate},
		{"indeterminate is no deny", goldenInternal, set.Forbidden(model.Last), load.Wrong, SaysIndeterminate},
		{"no message", "0a", set.Ask(model.Last), load.Wrong, NotProto},
		{"group without an end", "0b", set.Ask(model.Last), load.Wrong, NotProto},
	} {
		a := startAuthz(t, nil, always(t, c.answer))
		r, op := checkCall(t, a.session, c.q, 10*time.Second)
		want := load.Cause(0)
		if c.verdict != Fine {
			want = load.OwnCauses + load.Cause(c.verdict)
		}
		if r.Outcome != c.outcome || r.Cause != want || r.Status != 200 {
			t.Errorf("%s: %+v (%s), want %v and %d", c.name, r, r.Cause.Text(op.Causes), c.outcome, want)
		}
		m, err := checkRequest(a.session, c.q)
		if err != nil {
			t.Fatal(err)
		}
		if r.BytesOut != uint64(len(m)+5) || r.BytesIn != uint64(len(c.answer)/2+5) {
			t.Errorf("%s: %d bytes out, %d in, want %d and %d", c.name, r.BytesOut, r.BytesIn, len(m)+5, len(c.answer)/2+5)
		}
		got, err := extAuthz().Ask(t.Context(), a.session, c.q)
		if err != nil || got.Outcome != c.outcome {
			t.Errorf("%s: asked once: %+v, %v", c.name, got, err)
		}
	}
}

// TestExtAuthzStatuses: every gRPC status is a failure with its own cause, and never a decision.
func TestExtAuthzStatuses(t *testing.T) {
	for code, want := range map[codes.Code]struct {
		outcome load.Outcome
		verdict Verdict
	}{
		codes.Canceled:           {load.Failed, OtherStatus},
		codes.Unknown:            {load.Failed, InternalError},
		codes.InvalidArgument:    {load.Wrong, SchemaError},
		codes.DeadlineExceeded:   {load.Failed, DeadlineExceeded},
		codes.NotFound:           {load.Wrong, NoSuchPolicy},
		codes.AlreadyExists:      {load.Failed, OtherStatus},
		codes.PermissionDenied:   {load.Wrong, NotAllowed},
		codes.ResourceExhausted:  {load.Refused, Exhausted},
		codes.FailedPrecondition: {load.Failed, NotReady},
		codes.Aborted:            {load.Failed, OtherStatus},
		codes.OutOfRange:         {load.Failed, OtherStatus},
		codes.Unimplemented:      {load.Failed, Unimplemented},
		codes.Internal:           {load.Failed, InternalError},
		codes.Unavailable:        {load.Refused, Unavailable},
		codes.DataLoss:           {load.Failed, OtherStatus},
		codes.Unauthenticated:    {load.Wrong, WrongCredentials},
	} {
		a := startAuthz(t, nil, func(grpc.ServerStream, []byte) ([]byte, error) {
			return nil, status.Error(code, "the reason\nis this")
		})
		for _, q := range []model.Question{model.Set{N: 1}.Ask(model.Last), model.Set{N: 1}.Forbidden(model.Last)} {
			r, op := checkCall(t, a.session, q, 10*time.Second)
			if r.Outcome != want.outcome || causeOf(r) != want.verdict || r.Status != 200 {
				t.Errorf("%v: %+v (%s), want %v and %v", code, r, r.Cause.Text(op.Causes), want.outcome, Causes()[want.verdict])
			}
			if op.CauseAnswers[causeOf(r)] != "" {
				t.Errorf("%v counts as the answer %q", code, op.CauseAnswers[causeOf(r)])
			}
		}
		got, err := extAuthz().Ask(t.Context(), a.session, model.Set{N: 1}.Ask(model.Last))
		if err != nil || got.Decision != model.None || !strings.Contains(got.Text, code.String()) ||
			!strings.Contains(got.Text, "the reason is this") {
			t.Errorf("%v: asked once: %+v, %v", code, got, err)
		}
	}
}

// TestExtAuthzSends: the server receives the request as it was meant, and the credentials beside it.
func TestExtAuthzSends(t *testing.T) {
	got := make(chan []byte, 1)
	seen := make(chan metadata.MD, 1)
	a := startAuthz(t, nil, func(stream grpc.ServerStream, request []byte) ([]byte, error) {
		md, _ := metadata.FromIncomingContext(stream.Context())
		got <- bytes.Clone(request)
		seen <- md
		return nil, nil
	})
	a.session.Token = "s3cret"
	a.session.Headers = map[string]string{"X-Tenant": "eu"}
	q := model.Set{N: 8}.Ask(model.Last)
	q.Context = map[string]string{"zone": "eu", "app": "shop"}
	if r, _ := checkCall(t, a.session, q, 10*time.Second); r.Outcome != load.OK {
		t.Fatalf("got %+v, want OK", r)
	}
	if b := <-got; !bytes.Equal(b, unhex(t, goldenQuestion)) {
		t.Errorf("it was sent %x", b)
	}
	md := <-seen
	for name, want := range map[string]string{
		"authorization": "Bearer s3cret", "x-tenant": "eu", ":authority": "pdp:9191",
		"content-type": "application/grpc+proto",
	} {
		if v := strings.Join(md.Get(name), ","); v != want {
			t.Errorf("%s: %q, want %q", name, v, want)
		}
	}
}

// hangs tells that a call has come, and never answers it.
func hangs(came chan<- struct{}) answering {
	return func(stream grpc.ServerStream, _ []byte) ([]byte, error) {
		came <- struct{}{}
		<-stream.Context().Done()
		return nil, stream.Context().Err()
	}
}

func TestExtAuthzHangs(t *testing.T) {
	a := startAuthz(t, nil, hangs(make(chan struct{}, 1)))
	r, _ := checkCall(t, a.session, model.Set{N: 1}.Ask(model.Last), 200*time.Millisecond)
	if r.Outcome != load.Timeout || r.Status != 0 {
		t.Errorf("got %+v, want a timeout without a status", r)
	}
}

// TestExtAuthzRestart: calls in flight fail when the decision point ends; calls succeed when it is back at the same
// address.
func TestExtAuthzRestart(t *testing.T) {
	inside := make(chan struct{}, 1)
	a := startAuthz(t, nil, hangs(inside))
	q := model.Set{N: 1}.Ask(model.Last)
	op := operations(t, extAuthz(), a.session, 1, q)[0]
	ended := make(chan load.Result, 1)
	go func() { ended <- op.Call(t.Context(), 0) }()
	<-inside
	a.server.Stop()
	if r := <-ended; r.Outcome != load.ConnFailed || causeOf(r) != Unavailable || r.Status != 0 {
		t.Errorf("in flight: %+v", r)
	}
	begin := time.Now()
	for range 3 {
		if r := op.Call(t.Context(), 0); r.Outcome != load.ConnFailed || causeOf(r) != Unavailable {
			t.Errorf("while it is away: %+v", r)
		}
	}
	if d := time.Since(begin); d < 3*failPause {
		t.Errorf("three calls to a decision point that is away took %v: a closed loop would spin", d)
	}
	l, err := net.Listen("tcp", a.listener.Addr().String())
	if err != nil {
		hosttest.Missing(t, fmt.Sprintf("the port was taken meanwhile: %v", err), "run it again")
	}
	serveAuthz(t, l, nil, always(t, goldenOK))
	for deadline := time.Now().Add(30 * time.Second); ; {
		if r := op.Call(t.Context(), 0); r.Outcome == load.OK {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("calls fail although the decision point is back")
		}
	}
}

func TestExtAuthzOverTLS(t *testing.T) {
	serverTLS, clientTLS := testTLS(t)
	a := startAuthz(t, serverTLS, always(t, goldenDenied))
	a.session.TLS = clientTLS
	r, _ := checkCall(t, a.session, model.Set{N: 1}.Forbidden(model.Last), 10*time.Second)
	if r.Outcome != load.Denied {
		t.Errorf("got %+v, want Denied", r)
	}
	plain := &Session{Addr: a.session.Addr, Host: "pdp"}
	if r, _ := checkCall(t, plain, model.Set{N: 1}.Forbidden(model.Last), 2*time.Second); r.Outcome == load.Denied ||
		r.Outcome == load.OK {
		t.Errorf("in plaintext: %+v", r)
	}
	if err := plain.Close(); err != nil {
		t.Error(err)
	}
}

// testTLS returns a certificate for example.com, and a client that trusts it.
func testTLS(t *testing.T) (server, client *tls.Config) {
	t.Helper()
	s := httptest.NewTLSServer(nil)
	s.Close()
	pool := x509.NewCertPool()
	pool.AddCert(s.Certificate())
	return &tls.Config{Certificates: s.TLS.Certificates, MinVersion: tls.VersionTLS12},
		&tls.Config{RootCAs: pool, ServerName: "example.com", MinVersion: tls.VersionTLS12}
}

// TestExtAuthzUnderLoad: a few hundred calls through the load engine all succeed, and the decision point counts as
// many.
func TestExtAuthzUnderLoad(t *testing.T) {
	set := model.Set{N: 4}
	permit, err := checkRequest(&Session{Host: "pdp:9191"}, set.Ask(model.Last))
	if err != nil {
		t.Fatal(err)
	}
	ok, denied := unhex(t, goldenOK), unhex(t, goldenDenied)
	counted := make(chan string, 1<<20)
	a := startAuthz(t, nil, func(_ grpc.ServerStream, request []byte) ([]byte, error) {
		if bytes.Equal(request, permit) {
			counted <- "permit"
			return ok, nil
		}
		counted <- "deny"
		return denied, nil
	})
	ops := operations(t, extAuthz(), a.session, 1, set.Ask(model.Last), set.Forbidden(model.Last))
	seen := runOperations(t, a.session, load.Std, ops)
	server := map[string]float64{}
	for range len(counted) {
		server[<-counted]++
	}
	if server["permit"] != seen["permit"] || server["deny"] != seen["deny"] {
		t.Errorf("callers saw %v, the decision point answered %v", seen, server)
	}
}

// TestSessionCloseLeavesNothing: no connection and no goroutine.
func TestSessionCloseLeavesNothing(t *testing.T) {
	before := goleak.IgnoreCurrent()
	t.Run("calls", func(t *testing.T) {
		a := startAuthz(t, nil, always(t, goldenOK))
		for range 3 * grpcConns {
			if r, _ := checkCall(t, a.session, model.Set{N: 1}.Ask(model.Last), 10*time.Second); r.Outcome != load.OK {
				t.Fatalf("got %+v, want OK", r)
			}
		}
	})
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}

// TestClosedSessionCanBeUsedAgain after Close.
func TestClosedSessionCanBeUsedAgain(t *testing.T) {
	a := startAuthz(t, nil, always(t, goldenOK))
	q := model.Set{N: 1}.Ask(model.Last)
	_, op := checkCall(t, a.session, q, 10*time.Second)
	for range 2 {
		if err := a.session.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if r := op.Call(t.Context(), 0); r.Outcome == load.OK {
		t.Errorf("a call on closed connections: %+v", r)
	}
	if r, _ := checkCall(t, a.session, q, 10*time.Second); r.Outcome != load.OK {
		t.Errorf("after Close: %+v", r)
	}
}

// TestExtAuthzWithoutGRPC: an HTTP/2 server without gRPC is told apart from one that cannot be reached.
func TestExtAuthzWithoutGRPC(t *testing.T) {
	for _, c := range []struct {
		status  int
		outcome load.Outcome
		verdict Verdict
	}{
		{404, load.Failed, Unimplemented},
		{401, load.Wrong, WrongCredentials},
		{403, load.Wrong, NotAllowed},
		{503, load.Refused, Unavailable},
		{200, load.Failed, InternalError},
	} {
		srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(c.status)
		}))
		srv.Config.Protocols = &http.Protocols{}
		srv.Config.Protocols.SetUnencryptedHTTP2(true)
		srv.Start()
		s := &Session{Addr: srv.Listener.Addr().(*net.TCPAddr).AddrPort(), Host: "h"}
		q := model.Set{N: 1}.Forbidden(model.Last)
		r, op := checkCall(t, s, q, 10*time.Second)
		if r.Outcome != c.outcome || causeOf(r) != c.verdict || int(r.Status) != c.status {
			t.Errorf("%d: %+v (%s), want %v and %v", c.status, r, r.Cause.Text(op.Causes), c.outcome, Causes()[c.verdict])
		}
		if got, err := extAuthz().Ask(t.Context(), s, q); err != nil || got.Decision != model.None {
			t.Errorf("%d: asked once: %+v, %v", c.status, got, err)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		srv.Close()
	}
}

// TestAttemptsOverGRPCTakeTurns: gRPC sends a call again that the target refuses without processing it, and max_rate
// bounds what is sent. For the first attempt the load takes the turn.
func TestAttemptsOverGRPCTakeTurns(t *testing.T) {
	srv := startFraming(t, func(f *http2.Framer, stream uint32) error {
		return f.WriteRSTStream(stream, http2.ErrCodeRefusedStream)
	})
	clk := clock.NewFake(time.Unix(0, 0)) // it passes for who waits for a turn
	const calls, rate = 5, 10
	s := &Session{Addr: srv.addr, Host: "h", Limit: ratelimit.New(clk, rate)}
	q := model.Set{N: 1}.Forbidden(model.Last)
	for range calls {
		if err := s.Limit.Wait(t.Context()); err != nil {
			t.Fatal(err)
		}
		if r, _ := checkCall(t, s, q, 10*time.Second); r.Outcome == load.OK {
			t.Errorf("%+v", r)
		}
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	turns := int(math.Round(s.Limit.Ahead(s.Limit.Since(time.Unix(0, 0))).Seconds() * rate))
	if sent := int(srv.requests.Load()); sent != 2*calls || turns != sent {
		t.Errorf("%d calls sent %d requests and took %d turns", calls, sent, turns)
	}
}

// TestAnswersOverGRPCAreBounded: an answer that would fill the memory, of few bytes on the wire, fails at once.
func TestAnswersOverGRPCAreBounded(t *testing.T) {
	headers := func(f *http2.Framer, stream uint32, end bool, fields []hpack.HeaderField, again int) error {
		var b bytes.Buffer
		e := hpack.NewEncoder(&b)
		for _, h := range fields {
			if err := e.WriteField(h); err != nil {
				return err
			}
		}
		b.Write(bytes.Repeat([]byte{0x80 | 62}, again)) // the last field that entered the dynamic table
		return f.WriteHeaders(http2.HeadersFrameParam{
			StreamID: stream, BlockFragment: b.Bytes(), EndHeaders: true, EndStream: end,
		})
	}
	fine := []hpack.HeaderField{{Name: ":status", Value: "200"}, {Name: "content-type", Value: "application/grpc"}}
	large := hpack.HeaderField{Name: "x-bin", Value: strings.Repeat("QUFB", 1000)}
	const references = 4000
	for name, answer := range map[string]func(f *http2.Framer, stream uint32) error{
		"headers": func(f *http2.Framer, stream uint32) error {
			return headers(f, stream, false, append(fine[:2:2], large), references)
		},
		"trailers": func(f *http2.Framer, stream uint32) error {
			if err := headers(f, stream, false, fine, 0); err != nil {
				return err
			}
			return headers(f, stream, true, []hpack.HeaderField{{Name: "grpc-status", Value: "0"}, large}, references)
		},
		"message": func(f *http2.Framer, stream uint32) error {
			if err := headers(f, stream, false, fine, 0); err != nil {
				return err
			}
			return f.WriteData(stream, false, []byte{0, 0, 1 << 4, 0, 1}) // one byte more than 1 MiB follows
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := &Session{Addr: startFraming(t, answer).addr, Host: "h"}
			defer memtest.Bound(t, references)()
			r, op := checkCall(t, s, model.Set{N: 1}.Ask(model.Last), 30*time.Second)
			if r.Outcome != load.Failed || causeOf(r) != TooLong {
				t.Errorf("%+v (%s)", r, r.Cause.Text(op.Causes))
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// framing is a server of HTTP/2 that answers each request by frames.
type framing struct {
	answer   func(f *http2.Framer, stream uint32) error
	addr     netip.AddrPort
	requests atomic.Int64
}

func startFraming(t *testing.T, answer func(f *http2.Framer, stream uint32) error) *framing {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &framing{answer: answer, addr: l.Addr().(*net.TCPAddr).AddrPort()}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { r.serve(c) })
		}
	})
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	return r
}

func (r *framing) serve(c net.Conn) {
	defer c.Close() //nolint:errcheck // the client has gone
	if _, err := io.ReadFull(c, make([]byte, len(http2.ClientPreface))); err != nil {
		return
	}
	f := http2.NewFramer(c, c)
	err := f.WriteSettings()
	for err == nil {
		var in http2.Frame
		if in, err = f.ReadFrame(); err != nil {
			return
		}
		switch in := in.(type) {
		case *http2.SettingsFrame:
			if !in.IsAck() {
				err = f.WriteSettingsAck()
			}
		case *http2.HeadersFrame:
			r.requests.Add(1)
			err = r.answer(f, in.StreamID)
		}
	}
}
