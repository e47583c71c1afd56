package protocol

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"tare/internal/clock"
	"tare/internal/load"
	"tare/internal/ratelimit"
)

const (
	// grpcConns is how many connections the callers share, in turn: Envoy has one for each of its worker threads.
	grpcConns = 8
	// failPause is the least time that a call takes which no answer came to.
	failPause = 20 * time.Millisecond
	// frameHead is the length of what stands before a message on the wire: a flag and its size.
	frameHead = 5
	// maxMessage and maxHeaders bound the message of an answer, and each of its lists of headers after HPACK, which makes
	// thousands of bytes of one. Each call in flight may hold as much.
	maxMessage = 1 << 20
	maxHeaders = 64 << 10
)

// grpcLines are connections to one decision point.
type grpcLines struct {
	conns    []*grpc.ClientConn
	metadata metadata.MD
	clock    clock.Clock
}

// grpcLines returns the session's connections. They are made when they are first used, and last until Close.
func (s *Session) grpcLines() (*grpcLines, error) {
	if s.lines == nil {
		lines, err := newGRPCLines(s, grpcConns)
		if err != nil {
			return nil, err
		}
		s.lines = lines
	}
	return s.lines, nil
}

// Close ends the connections that operations of the session hold: those of ext-authz; the load engine owns the others'.
// A call that comes after it fails, and a new Operation makes new connections. It must not run while Operation does.
func (s *Session) Close() error {
	if s.lines == nil {
		return nil
	}
	lines := s.lines
	s.lines = nil
	return lines.close()
}

// newGRPCLines prepares n connections; none is made before the first call.
func newGRPCLines(s *Session, n int) (*grpcLines, error) {
	// With TLS the authority is the name in the certificate, which gRPC insists on.
	how := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithAuthority(s.Host)}
	if s.TLS != nil {
		how = []grpc.DialOption{grpc.WithTransportCredentials(credentials.NewTLS(s.TLS.Clone()))}
	}
	how = append(how, grpcOptions()...)
	if s.Limit != nil {
		how = append(how, grpc.WithStatsHandler(turns{s.Limit}))
	}
	l := &grpcLines{metadata: metadata.New(s.Headers), clock: clock.System{}}
	if a := s.authorization(); a != "" && len(l.metadata.Get("authorization")) == 0 {
		l.metadata.Set("authorization", a)
	}
	for range n {
		c, err := grpc.NewClient("passthrough:///"+s.Addr.String(), how...)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("prepare a connection: %w", err), l.close())
		}
		l.conns = append(l.conns, c)
	}
	return l, nil
}

// grpcOptions keep everything away that could come between a call and the decision point: a proxy, a second try of what
// it has answered, a long pause after it was restarted. What it has refused unprocessed is sent again once, as engine
// std does over HTTP/2: it may be closing the connection.
func grpcOptions() []grpc.DialOption {
	return []grpc.DialOption{
		grpc.WithUserAgent("tare"), grpc.WithNoProxy(), grpc.WithDisableRetry(), grpc.WithDisableServiceConfig(),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(maxMessage)),
		grpc.WithMaxHeaderListSize(maxHeaders),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{
				BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
				MaxDelay: time.Second,
			},
			MinConnectTimeout: 5 * time.Second,
		}),
	}
}

// turns takes a turn of the limiter for each attempt that gRPC makes by itself. For a call's first one the caller has
// taken it.
type turns struct{ limit *ratelimit.Limiter }

var _ stats.Handler = turns{}

// HandleRPC implements stats.Handler.
func (t turns) HandleRPC(ctx context.Context, s stats.RPCStats) {
	if begin, ok := s.(*stats.Begin); ok && begin.IsTransparentRetryAttempt {
		_ = t.limit.Wait(ctx) // if ctx has ended, gRPC says so; the turn is taken all the same
	}
}

// TagRPC implements stats.Handler.
func (turns) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context { return ctx }

// TagConn implements stats.Handler.
func (turns) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }

// HandleConn implements stats.Handler.
func (turns) HandleConn(context.Context, stats.ConnStats) {}

func (l *grpcLines) close() error {
	var errs []error
	for _, c := range l.conns {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

// checked is how one call ended.
type checked struct {
	code     codes.Code
	text     string // of a status that is not OK
	answered bool   // the status came from the other side
	tooLong  bool   // the connection gave the answer up, which was longer than allowed
	http     uint16 // HTTP status of an answer
	whole    bool   // response was read from body
	response checkResponse
	sent     int
	body     []byte
}

// check makes one call with the message m.
func (l *grpcLines) check(ctx context.Context, i uint64, m []byte) checked {
	var header, trailer metadata.MD
	r := checked{}
	if len(l.metadata) > 0 {
		ctx = metadata.NewOutgoingContext(ctx, l.metadata)
	}
	err := l.conns[i%uint64(len(l.conns))].Invoke(ctx, checkMethod, &m, &r.body, grpc.Header(&header),
		grpc.Trailer(&trailer))
	if r.answered = err == nil || len(header) > 0 || len(trailer) > 0; r.answered {
		r.http = 200 // a gRPC status comes with it
	}
	if err == nil {
		r.sent = len(m) + frameHead
		r.response, r.whole = readCheckResponse(r.body)
		return r
	}
	st := status.Convert(err)
	r.code, r.text = st.Code(), st.Message()
	if r.tooLong = isTooLong(r.text); r.tooLong {
		r.answered, r.http = true, 200
	}
	if code := httpOf(r.text); code != 0 {
		r.answered, r.http = true, code
	}
	if r.answered {
		r.sent = len(m) + frameHead
		return r
	}
	if ctx.Err() == nil {
		_ = l.clock.Sleep(ctx, failPause) // the call's end comes a little later, or with the call's own
	}
	return r
}

// isTooLong reports whether gRPC made the status itself since the answer was longer than allowed: only its words say so
// (grpc-go, recvMsg and operateHeaders).
func isTooLong(text string) bool {
	return text == "peer header list size exceeded limit" ||
		strings.HasPrefix(text, "grpc: received message larger than max")
}

// httpOf returns the HTTP status of an answer that was none of gRPC's, such as a proxy's 503; 0: there was no answer.
// gRPC makes a status of its own of it, and leaves the number only in these words (grpc-go, internal/transport).
func httpOf(text string) uint16 {
	rest, ok := strings.CutPrefix(text, "unexpected HTTP status code received from server: ")
	if !ok || len(rest) < 3 {
		return 0
	}
	code, err := strconv.ParseUint(rest[:3], 10, 16)
	if err != nil {
		return 0
	}
	return uint16(code)
}

// result returns r for the load engine. The sizes are of the messages with what stands before them, without HTTP/2's
// headers.
func (r checked) result(o load.Outcome, v Verdict) load.Result {
	out := load.Result{Outcome: o, Status: r.http, BytesOut: uint64(r.sent)}
	if r.code == codes.OK {
		out.BytesIn = uint64(len(r.body) + frameHead)
	}
	if v != Fine {
		out.Cause = load.OwnCauses + load.Cause(v)
	}
	return out
}

// rawCodec hands messages through as they are: *[]byte. Its name is that of the encoding that is spoken.
type rawCodec struct{}

var _ encoding.CodecV2 = rawCodec{}

// Marshal implements encoding.CodecV2.
func (rawCodec) Marshal(v any) (mem.BufferSlice, error) {
	b, ok := v.(*[]byte)
	if !ok {
		return nil, fmt.Errorf("a message is no *[]byte but %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(*b)}, nil
}

// Unmarshal implements encoding.CodecV2.
func (rawCodec) Unmarshal(data mem.BufferSlice, v any) error {
	b, ok := v.(*[]byte)
	if !ok {
		return fmt.Errorf("a message is no *[]byte but %T", v)
	}
	*b = data.Materialize()
	return nil
}

// Name implements encoding.CodecV2.
func (rawCodec) Name() string { return "proto" }
